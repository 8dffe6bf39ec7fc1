"""How the programs are built: what Debian's hardening flags give (dpkg-buildflags, hardening=+all)."""

import os
import pathlib
import re

import pytest

from lib.mount import PEGFS, ROOT, VARIANT
from lib.programs import check, need

PROGRAMS = {"pegfs": pathlib.Path(PEGFS), "pegfs-core": pathlib.Path(os.environ.get("PEGFS_CORE", f"{PEGFS}-core")),
            "warden": ROOT / "build/lib/pegfs/host/warden/warden"}


@pytest.fixture(params=PROGRAMS)
def program(request):
    need("readelf")
    return PROGRAMS[request.param]


def readelf(what, program):
    return check(["readelf", "--wide", what, program])


def test_it_lies_at_another_address_each_time(program):
    assert "DYN" in readelf("-h", program)
    assert re.search(r"FLAGS_1.* PIE", readelf("-d", program))
    assert "TEXTREL" not in readelf("-d", program)


def test_its_table_of_functions_is_read_only(program):
    assert "GNU_RELRO" in readelf("-l", program)
    assert re.search(r"FLAGS\).*BIND_NOW", readelf("-d", program))


def test_no_memory_can_be_written_and_run(program):
    lines = readelf("-l", program).splitlines()
    stack = [line for line in lines if "GNU_STACK" in line]
    assert len(stack) == 1 and " RW " in stack[0], stack
    assert not [line for line in lines if "LOAD" in line and "RWE" in line]


def test_it_looks_for_libraries_where_the_system_does(program):
    assert not re.search(r"R(UN)?PATH", readelf("-d", program))


@pytest.mark.skipif(VARIANT != "", reason="sanitizers have checks of their own")
def test_overruns_of_the_stack_and_of_buffers_end_it(program):
    symbols = readelf("--dyn-syms", program)
    assert "__stack_chk_fail" in symbols
    # The warden formats and copies nothing of which the compiler would not know the size.
    if program.name != "warden":
        assert re.search(r"__\w+_chk@", symbols.replace("__stack_chk", ""))
