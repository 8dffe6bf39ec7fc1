"""README.md and docs: each block of commands does what the block behind it says."""

import ctypes
import os
import pathlib
import re
import shutil

import pytest

from lib import mount as mounts
from lib.mount import EXAMPLES, ROOT, Mount
from lib.programs import need, run

PAGE = ROOT / "docs" / "calls.md"
INTEGRATIONS = ROOT / "docs" / "integrations.md"
README, MANUAL = ROOT / "README.md", ROOT / "docs" / "pegfs.1.md"
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


def blocks(page=PAGE):
    return [(command, expected or "") for command, expected in BLOCK.findall(page.read_text())]


@pytest.mark.parametrize("page, least", [(PAGE, 6), (README, 4), (MANUAL, 3), (INTEGRATIONS, 2)])
def test_a_page_has_commands_and_each_output_belongs_to_one(page, least):
    text = page.read_text()
    assert len(blocks(page)) >= least
    assert text.count("\n```") == sum(2 + 2 * bool(expected) for _, expected in blocks(page))


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


def test_commands_of_the_integrations_print_what_the_page_says(officer, work):
    mount = Mount(work, tools=(EXAMPLES, officer / "user" / "tools"), at=officer / "tools").start()
    wrong = [problem for command, expected in blocks(INTEGRATIONS)
             for problem in wrong_of(command, expected, mount.path)]
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


# ---- README.md, docs/pegfs.1.md

@pytest.fixture
def data(officer):
    """/data as README.md has it: tools of all, and of one user, who has none yet."""
    path = pathlib.Path("/data")
    made = not path.exists()
    path.mkdir(exist_ok=True)
    if mounts.libc.mount(b"none", bytes(path), b"tmpfs", 0, b"mode=0755") != 0:
        raise OSError(ctypes.get_errno(), "no tmpfs at /data")
    shutil.copytree(EXAMPLES, path / "tools")
    (path / "ada@example.org" / "tools").mkdir(parents=True)
    (officer / "tools").mkdir()
    yield path
    assert mounts.libc.umount2(bytes(path), 0) == 0, os.strerror(ctypes.get_errno())
    if made:
        path.rmdir()


def run_block(command, cwd):
    path = f"{pathlib.Path(mounts.PEGFS).parent}:{os.environ['PATH']}"
    return run(f"set -e\n{command}", cwd=cwd, timeout=60,
               env={"PATH": path, "PEGFS_MOUNT": None, "PI_TOOLS_DIRS": None})


def wrong_of(command, expected, cwd):
    done = run_block(command, cwd)
    if (done.out, done.status) == (expected, 0):
        return []
    return [f"$ {command}--- the page says\n{expected}--- it prints\n{done.out}{done.err}"]


def test_commands_of_the_readme_print_what_it_says(data, work):
    mount = Mount(work, tools=(data / "tools",), at=OFFICER / "tools")
    wrong = []
    for command, expected in blocks(README):
        mounts_itself = "pegfs mount" in command
        if not mounts_itself:
            mount.start()
        wrong += wrong_of(command, expected, work)
        if not mounts_itself:
            wrong += mount.stop()
    assert not wrong, "\n".join(wrong)


def test_commands_of_the_manual_print_what_it_says(work):
    wrong = [problem for command, expected in blocks(MANUAL) for problem in wrong_of(command, expected, work)]
    for path in work.rglob("tree"):
        mounts.libc.umount2(bytes(path), 2)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("page", sorted([README, *ROOT.glob("docs/*.md")]), ids=lambda page: page.name)
def test_every_target_of_make_that_a_page_names_is_there(page):
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^    |`)make ([a-z][a-z0-9-]*)", page.read_text(), re.M):
        assert re.search(rf"^{target}(?: [a-z0-9 -]+)?:", makefile, re.M), target


def test_the_manual_has_every_command_and_option(work):
    need("cmark", "mandoc")
    page = ROOT / "build" / "man" / "pegfs.1"
    run(["make", "-C", ROOT, "man"], timeout=80)
    text = re.sub(".\b", "", run(["mandoc", "-T", "utf8", "-O", "width=200", page]).out)
    told = run([mounts.PEGFS, "--help"]).out
    for command in re.findall(r"^  ([a-z]+)  ", told, re.M):
        assert f"pegfs {command} [OPTIONS]" in text
        for option in re.findall(r"^ .*?(--[a-z-]+)", run([mounts.PEGFS, command, "--help"]).out, re.M):
            assert option in text or option == "--help", (command, option)
    assert run(["mandoc", "-T", "lint", "-W", "warning", page]).status == 0
