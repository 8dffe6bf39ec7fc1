"""Tools that are edited while others read them: how, and what may be seen of it when.

Each of KINDS is a tool of that name, with its number of edits (a version) in its texts. The board is
a file that the editor and the readers have mapped: which version of each was begun, and when each of the
last ones was complete. So a reader knows which versions it may see: none that is newer than what
was begun, and none that was replaced longer than LATE_S ago.
"""

import ctypes
import mmap
import os
import pathlib
import random
import re
import shutil
import time

# How an edit is made: TOOL.md replaced by rename, or written in place; the directory exchanged with
# another; an override that comes and goes; the source a link that is flipped; a tool that comes and goes.
KINDS = ("renamed", "written", "swapped", "overlaid", "flipped", "guest")
LATE_S = 1.0  # with the server being killed; tests/e2e/test_live.py has 100 ms
RING = 64
VERSION = re.compile(rb"version (\d{8})")
RENAME_EXCHANGE, AT_FDCWD = 2, -100
libc = ctypes.CDLL(None, use_errno=True)


class Board:
    """begun, and a ring of times, for each kind: 8 bytes each, which are written in one go."""

    ROW = 1 + RING

    def __init__(self, path):
        path = pathlib.Path(path)
        size = len(KINDS) * self.ROW * 8
        if not path.exists():
            path.write_bytes(bytes(size))
            path.chmod(0o644)
        writable = os.access(path, os.W_OK)
        with open(path, "r+b" if writable else "rb") as file:
            self.map = mmap.mmap(file.fileno(), size,
                                 access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ)
        self.words = memoryview(self.map).cast("Q")

    def begin(self, kind, version):
        self.words[KINDS.index(kind) * self.ROW] = version

    def end(self, kind, version):
        at = KINDS.index(kind) * self.ROW + 1 + version % RING
        self.words[at] = time.monotonic_ns()

    def begun(self, kind):
        return self.words[KINDS.index(kind) * self.ROW]

    def oldest(self, kind, now_ns):
        """The oldest version that may still be seen."""
        newest, before_ns = self.begun(kind), now_ns - int(LATE_S * 1e9)
        row = self.words[KINDS.index(kind) * self.ROW + 1:(KINDS.index(kind) + 1) * self.ROW]
        for version in range(newest, max(newest - RING + 1, 0), -1):
            ended = row[version % RING]
            is_complete = version < newest or ended > row[(version - 1) % RING]
            if is_complete and ended < before_ns:
                return version
        return max(newest - RING + 1, 0)


def shown(kind, version):
    """What the texts of a tool say after that many edits; None: the tool is not there."""
    if kind == "guest":
        return version if version % 2 else None
    if kind == "overlaid":
        return version if version % 2 else 0
    return version


def manifest(kind, version):
    return (f"---\nname: {kind}\ndescription: Is edited, version {version:08d}. Use this in a test.\n"
            f"version: 1\ninputs: {{}}\n---\n# {kind}\n\nIts body, version {version:08d}.\n")


def write_tool(directory, kind, version):
    directory.mkdir(parents=True)
    (directory / "TOOL.md").write_text(manifest(kind, version))
    (directory / "index.ts").write_text(
        f"// version {version:08d}\nexport async function execute() {{\n"
        f"    return {{ content: [{{ type: 'text', text: 'version {version:08d}' }}] }};\n}}\n")


class Tree:
    """The sources below a directory: `base`, `flip` (a link) and `user`, the last one wins."""

    def __init__(self, top):
        self.top = pathlib.Path(top)
        self.staging = self.top / "staging"
        self.versions = dict.fromkeys(KINDS, 0)

    @property
    def sources(self):
        return [self.top / name for name in ("base", "flip", "user")]

    def make(self):
        for name in ("base", "user", "staging"):
            (self.top / name).mkdir(parents=True)
        for kind in ("renamed", "written", "swapped", "overlaid"):
            write_tool(self.top / "base" / kind, kind, 0)
        write_tool(self.top / "flip-0" / "flipped", "flipped", 0)
        (self.top / "flip").symlink_to("flip-0")
        return self

    def edit(self, kind, board):
        """Makes the next version of it; returns its number."""
        version = self.versions[kind] + 1
        # What was replaced stays until then: who has begun to open it is not disturbed.
        shutil.rmtree(self.staging / f"{kind}-old", ignore_errors=True)
        ready = getattr(self, "prepare_" + kind)(version)
        board.begin(kind, version)
        getattr(self, "make_" + kind)(ready)
        board.end(kind, version)
        self.versions[kind] = version
        return version

    def prepare_renamed(self, version):
        ready = self.top / "base/renamed/.TOOL.md.new"
        ready.write_text(manifest("renamed", version))
        return ready

    def make_renamed(self, ready):
        os.replace(ready, self.top / "base/renamed/TOOL.md")

    @staticmethod
    def prepare_written(version):
        return manifest("written", version).encode()

    def make_written(self, ready):
        fd = os.open(self.top / "base/written/TOOL.md", os.O_WRONLY)
        os.pwrite(fd, ready, 0)
        os.close(fd)

    def prepare_swapped(self, version):
        write_tool(self.staging / "swapped-old", "swapped", version)
        return self.staging / "swapped-old"

    def make_swapped(self, ready):
        if libc.renameat2(AT_FDCWD, os.fsencode(ready), AT_FDCWD,
                          os.fsencode(self.top / "base/swapped"), RENAME_EXCHANGE) != 0:
            raise OSError(ctypes.get_errno(), "renameat2")

    def prepare_overlaid(self, version, kind="overlaid"):
        if version % 2 == 0:
            return self.top / "user" / kind, self.staging / f"{kind}-old"
        write_tool(self.staging / kind, kind, version)
        return self.staging / kind, self.top / "user" / kind

    @staticmethod
    def make_overlaid(ready):
        os.rename(*ready)

    def prepare_guest(self, version):
        return self.prepare_overlaid(version, "guest")

    make_guest = make_overlaid

    def prepare_flipped(self, version):
        write_tool(self.top / f"flip-{version}" / "flipped", "flipped", version)
        ready = self.top / "flip.new"
        ready.symlink_to(f"flip-{version}")
        return ready

    def make_flipped(self, ready):
        old = self.top / os.readlink(self.top / "flip")
        os.replace(ready, self.top / "flip")
        os.rename(old, self.staging / "flipped-old")


def versions_in(data):
    """The versions that a text names."""
    return {int(number) for number in VERSION.findall(data)}


def random_kind():
    return random.choice(KINDS)
