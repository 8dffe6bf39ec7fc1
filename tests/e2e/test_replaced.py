"""A tool's own file that is replaced, changed or removed while somebody reads it: never a mix."""

import os
import shutil

import pytest

from lib.mount import EXAMPLES
from lib.programs import until

PAGES = 64
SIZE = PAGES * 4096


@pytest.fixture
def tool(work):
    shutil.copytree(EXAMPLES / "hello", work / "tools/hello")
    return work / "tools/hello"


@pytest.fixture
def mounted(tool, new_mount):
    return new_mount(tools=[tool.parent])


def put(tool, byte, size=SIZE):
    (tool / ".new").write_bytes(byte * size)
    (tool / ".new").rename(tool / "data.bin")


def first_byte(path):
    with open(path, "rb") as file:
        return file.read(1)


def test_each_reader_has_the_file_that_it_opened(mounted, tool):
    put(tool, b"a")
    until(lambda: (mounted / "hello/data.bin").exists())
    old = os.open(mounted / "hello/data.bin", os.O_RDONLY)
    assert os.pread(old, 1, 0) == b"a"
    for byte in (b"b", b"c"):
        put(tool, byte)
        until(lambda byte=byte: first_byte(mounted / "hello/data.bin") == byte)
        # Pages that nobody has read so far: of the old file, into the old file's pages.
        page = 4096 * (40 if byte == b"b" else 50)
        assert os.pread(old, 4096, page) == b"a" * 4096
        assert (mounted / "hello/data.bin").read_bytes() == byte * SIZE
    assert os.pread(old, SIZE, 0) == b"a" * SIZE
    os.close(old)


def test_a_file_that_was_removed_can_be_read_to_its_end(mounted, tool):
    put(tool, b"a")
    until(lambda: (mounted / "hello/data.bin").exists())
    old = os.open(mounted / "hello/data.bin", os.O_RDONLY)
    (tool / "data.bin").unlink()
    until(lambda: not (mounted / "hello/data.bin").exists())
    assert os.fstat(old).st_size == SIZE
    assert os.pread(old, SIZE, 0) == b"a" * SIZE
    shutil.rmtree(tool)
    until(lambda: not (mounted / "hello").exists())
    assert os.fstat(old).st_size == SIZE
    os.posix_fadvise(old, 0, 0, os.POSIX_FADV_DONTNEED)
    assert os.pread(old, SIZE, 0) == b"a" * SIZE
    os.close(old)


def test_a_file_that_grows_in_its_place_is_followed(mounted, tool):
    put(tool, b"a", 10)
    until(lambda: (mounted / "hello/data.bin").exists())
    fd = os.open(mounted / "hello/data.bin", os.O_RDONLY)
    assert os.read(fd, 100) == b"a" * 10
    with open(tool / "data.bin", "ab") as file:
        file.write(b"b" * 10)
    until(lambda: os.fstat(fd).st_size == 20)
    assert os.read(fd, 100) == b"b" * 10
    os.close(fd)


def test_stat_shows_one_number_for_a_path_as_a_listing_does(mounted, tool):
    put(tool, b"a", 10)
    until(lambda: (mounted / "hello/data.bin").exists())
    number = os.stat(mounted / "hello/data.bin").st_ino
    put(tool, b"b", 20)
    until(lambda: os.stat(mounted / "hello/data.bin").st_size == 20)
    assert os.stat(mounted / "hello/data.bin").st_ino == number
    with os.scandir(mounted / "hello") as entries:
        assert {entry.name: entry.inode() for entry in entries}["data.bin"] == number
