"""build/pegfs-static: one file that runs in a root directory with nothing else in it."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from lib import mount as mounts
from lib.mount import EXAMPLES, FIXTURES, ROOT
from lib.programs import check, need, run

BUILD = pathlib.Path(mounts.PEGFS).parent
STATIC = BUILD / "pegfs-static"

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a root directory of its own"),
    pytest.mark.skipif(mounts.VARIANT != "", reason="sanitizers do not link statically"),
]


@pytest.fixture(scope="module", autouse=True)
def built():
    check(["make", "-C", ROOT, "static"], timeout=85)


class Bare:
    """A root directory with busybox, and what a container has: /proc, /dev/fuse, /tmp."""

    def __init__(self, path):
        self.path = path
        for name in ("bin", "proc", "dev", "tmp", "mnt", "tools", "etc"):
            (path / name).mkdir()
        shutil.copy(STATIC, path / "bin" / "pegfs")
        shutil.copy("/bin/busybox", path / "bin" / "busybox")
        for name in ("sh", "cat", "ls", "echo", "find", "sleep", "mount"):
            (path / "bin" / name).symlink_to("busybox")
        os.mknod(path / "dev" / "fuse", 0o20666, os.makedev(10, 229))
        os.mknod(path / "dev" / "null", 0o20666, os.makedev(1, 3))
        os.mknod(path / "dev" / "urandom", 0o20666, os.makedev(1, 9))
        for path_ in (path / "dev" / "fuse", path / "dev" / "null", path / "dev" / "urandom"):
            path_.chmod(0o666)

    def add_tools(self, *directories):
        for directory in directories:
            shutil.copytree(directory, self.path / "tools" / directory.name, symlinks=True)

    def add_program(self, program):
        """With the libraries that it needs."""
        program = pathlib.Path(shutil.which(program)).resolve()
        files = re.findall(r"(/\S+) \(0x", check(["ldd", program])) + [str(program)]
        for file in files:
            target = self.path / file.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        (self.path / "bin" / program.name).unlink(missing_ok=True)
        (self.path / "bin" / program.name).symlink_to(program)

    def run(self, script):
        """In namespaces of its own, which take every mount and process with them."""
        return run(["unshare", "--mount", "--pid", "--fork", "--kill-child",
                    f"--root={self.path}", "/bin/sh", "-c", f"mount -t proc proc /proc; {script}"],
                   env={"PATH": "/bin", "TMPDIR": None, "XDG_RUNTIME_DIR": None}, timeout=60)


@pytest.fixture
def bare(work):
    need("busybox", "unshare")
    root = work / "root"
    root.mkdir()
    return Bare(root)


def test_it_is_one_file_without_libraries():
    done = subprocess.run(["ldd", STATIC], capture_output=True, text=True, check=False)
    assert "statically linked" in done.stdout + done.stderr
    assert re.search(r"libfuse 3\.\d+", check([STATIC, "--version"]))


def test_it_mounts_in_a_bare_root_and_says_what_a_call_lacks(bare):
    bare.add_tools(EXAMPLES / "hello")
    done = bare.run("""
pegfs check tools/hello
pegfs mount /mnt --tools /tools && ls /mnt && cat /mnt/hello/TOOL.md
echo '{"name":"Ada"}' > /mnt/hello/call || cat /mnt/hello/result.txt
pegfs umount /mnt; ls /mnt""")
    assert "README.md\nhello\nprompt.md\ntools.json\n---\nname: hello\n" in done.out, done
    assert "node" in done.out.split("---")[-1], done


def test_it_calls_a_tool_in_a_bare_root_that_has_node(bare):
    bare.add_tools(EXAMPLES / "hello", FIXTURES / "echo")
    bare.add_program("node")
    done = bare.run("""
pegfs call --tools /tools hello name=Bob
pegfs mount /mnt --tools /tools
echo '{"name":"Ada"}' > /mnt/hello/call && cat /mnt/hello/result.txt
pegfs call --mount /mnt hello name=Eve
/mnt/hello/run --name Zoe
pegfs umount /mnt; ls /mnt; ls -d /tmp/*""")
    assert done.out.startswith("Hello, Bob!\nHello, Ada!\nHello, Eve!\nHello, Zoe!\n"), done
    assert re.fullmatch(r"/tmp/pegfs-0\n/tmp/pegfs-lib-[0-9a-f]{16}-0\n", done.out.split("Zoe!\n")[1]), done


def unpacked(work, **env):
    """Where a program with TMPDIR = work unpacks its scripts."""
    done = run([STATIC, "call", "--tools", EXAMPLES, "hello", "name=x"],
               env={"TMPDIR": work, "PEGFS_MOUNT": None, **env})
    return done, sorted(name for name in os.listdir(work) if name.startswith("pegfs-lib"))


def test_scripts_are_unpacked_once_and_kept_for_the_next(work):
    done, names = unpacked(work)
    assert done.out == "Hello, x!\n" and len(names) == 1
    scripts = work / names[0]
    assert scripts.stat().st_mode & 0o777 == 0o755
    before = (scripts / "host" / "node" / "host.mjs").stat().st_ctime_ns
    assert unpacked(work)[1] == names
    assert (scripts / "host" / "node" / "host.mjs").stat().st_ctime_ns == before


def test_a_place_that_another_user_could_have_made_is_not_trusted(work):
    _, names = unpacked(work)
    shutil.rmtree(work / names[0])
    for spoil in (lambda path: os.chown(path, 1000, 1000), lambda path: path.chmod(0o777)):
        (work / names[0]).mkdir()
        (work / names[0] / "mark").touch()
        spoil(work / names[0])
        done, found = unpacked(work)
        assert done.out == "Hello, x!\n" and found == names  # it has gone to another directory
        assert os.listdir(work / names[0]) == ["mark"]
        shutil.rmtree(work / names[0])


def test_many_that_start_at_once_unpack_into_one(work):
    programs = [subprocess.Popen([STATIC, "call", "--tools", EXAMPLES, "hello", "name=x"],
                                 env={**os.environ, "TMPDIR": str(work)}, stdout=subprocess.PIPE)
                for _ in range(4)]
    assert [program.communicate()[0] for program in programs] == [b"Hello, x!\n"] * 4
    assert len([name for name in os.listdir(work) if name.startswith("pegfs-lib")]) == 1
