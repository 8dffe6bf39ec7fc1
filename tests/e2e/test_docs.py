"""docs/calls.md: each block of commands does what the block behind it says."""

import ctypes
import os
import pathlib
import re

import pytest

from lib import mount as mounts
from lib.mount import EXAMPLES, ROOT, Mount
from lib.programs import run

PAGE = ROOT / "docs" / "calls.md"
OFFICER = pathlib.Path("/officer")
BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:```\n(.*?)^```\n)?", re.M | re.S)


@pytest.fixture
def officer(work):
    """/officer as a tool's container has it, seen by this process and its children only."""
    if os.geteuid() != 0:
        pytest.skip("needs root for a mount at /officer")
    made = not OFFICER.exists()
    OFFICER.mkdir(exist_ok=True)
    if mounts.libc.mount(b"none", bytes(OFFICER), b"tmpfs", 0, b"mode=0755") != 0:
        raise OSError(ctypes.get_errno(), "no tmpfs at /officer")
    (OFFICER / "user" / "tools").mkdir(parents=True)
    yield OFFICER
    assert mounts.libc.umount2(bytes(OFFICER), 0) == 0, os.strerror(ctypes.get_errno())
    if made:
        OFFICER.rmdir()


def blocks():
    return [(command, expected or "") for command, expected in BLOCK.findall(PAGE.read_text())]


def test_the_page_has_commands_and_each_output_belongs_to_one():
    text = PAGE.read_text()
    assert len(blocks()) >= 6
    assert text.count("\n```") == sum(2 + 2 * bool(expected) for _, expected in blocks())


def test_two_pages_at_most():
    assert len(PAGE.read_text().splitlines()) <= 220


def test_commands_of_the_page_print_what_it_says(officer, work):
    mount = Mount(work, tools=(EXAMPLES, officer / "user" / "tools"), at=officer / "tools").start()
    wrong = []
    for command, expected in blocks():
        done = run(command, cwd=mount.path)
        if done.out != expected:
            wrong.append(f"$ {command}--- the page says\n{expected}--- it prints\n{done.out}{done.err}")
    assert not mount.stop()
    assert not wrong, "\n".join(wrong)


OPTION = re.compile(r"`(--[a-z-]+)[` ]")


def test_every_option_and_default_of_the_page_is_that_of_the_program():
    told = run([mounts.PEGFS, "mount", "--help"]).out
    for option in set(OPTION.findall(PAGE.read_text())):
        assert option + " " in told, option
    page = PAGE.read_text()
    for option, default in re.findall(r"(--(?:timeout|memory|processes|files|keep|queue|hosts|idle)) .*\(default: (\d+)\)", told):
        row = next(line for line in page.splitlines() if f"`{option} " in line)
        assert re.search(rf"\b{default}\b", row), (option, default, row)
