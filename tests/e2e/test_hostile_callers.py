"""Callers that mean harm: the daemon stays as it is, stays small, and serves the others."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from lib.hostile import Unharmed, make_tool, stat_of
from lib.mount import PEGFS, VARIANT, read_all
from lib.programs import OTHER_USER, Background, run, until

MIB = 1 << 20
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
# A sanitizer keeps freed memory for a while, and each byte has a shadow.
ROOM = (64 if not VARIANT else 640) * MIB


@contextlib.contextmanager
def opened(path, flags, count=1):
    fds = []
    try:
        while len(fds) < count:
            fds.append(os.open(path, flags))
        yield fds
    finally:
        for fd in fds:
            os.close(fd)


def is_served(mount, uid=None):
    start = time.monotonic()
    done = run("ls >/dev/null && echo '{\"name\":\"Ada\"}' >hello/call && cat hello/result.txt", cwd=mount.path, uid=uid)
    assert done.out == "Hello, Ada!\n", done
    assert time.monotonic() - start < 8


# A descriptor of another directory of the tree stays, so nothing is looked up through the root.
FROM_A_ROOT_OF_OURS = """
import os, sys, time
mount, root = sys.argv[1:]
tool, slow = os.open(mount + "/fixed", os.O_PATH), os.open(root, os.O_RDONLY)
os.chroot(root)
os.listdir(slow)  # what the kernel knew of it is no longer sure
time.sleep(1.1)
try:
    os.write(os.open("call", os.O_WRONLY, dir_fd=tool), b'{"code":""}')
except OSError as refused:
    print(refused.errno)
"""


@as_root
def test_a_caller_whose_root_is_in_the_mount_stops_nobody(new_mount, work):
    """Who looks where that caller lives must not ask the file system that is there: it is ours."""
    make_tool(work / "tools", "fixed")
    (work / "tools/fixed/inner").mkdir()
    mount = new_mount(tools=[work / "tools"])
    with Unharmed(mount):
        start = time.monotonic()
        done = run([sys.executable, "-c", FROM_A_ROOT_OF_OURS, mount.path, mount / "fixed/inner"])
        assert done.out == f"{errno.EACCES}\n", done
        assert time.monotonic() - start < 8
    assert stat_of(mount, "hangs_total") == 0


@as_root
def test_ten_thousand_descriptors(new_mount, work):
    """Of a daemon that may have 400 open: one user gets a part of them, the other the rest."""
    program = work / "pegfs"
    program.write_text(f'#!/bin/sh\nulimit -n 400\nexec {PEGFS} "$@"\n')
    program.chmod(0o755)
    mount = new_mount(program=program)
    script = "import os,sys\nfds=[]\n" \
             "try:\n  while len(fds) < 10000: fds.append(os.open('echo/index.ts', os.O_RDONLY))\n" \
             "except OSError as e: print(len(fds), e.errno, flush=True)\nsys.stdin.read()"
    with Unharmed(mount), subprocess.Popen(
            ["setpriv", f"--reuid={OTHER_USER}", "--clear-groups", "prlimit", "--nofile=20000:20000", sys.executable, "-c", script],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=mount.path, text=True) as greedy:
        count, code = greedy.stdout.readline().split()
        assert int(code) == errno.EMFILE and 100 < int(count) < 300
        is_served(mount)
        greedy.stdin.close()
        greedy.wait(20)
    is_served(mount, OTHER_USER)


def test_a_gigabyte_that_is_never_a_request(new_mount):
    """Errors do not stop this writer; what is beyond --request-max is kept by nobody."""
    mount = new_mount(args=["--request-max", 4 * MIB])
    first, piece = b'{"text":"', b"x" * MIB
    with Unharmed(mount, grows_by=ROOM) as harm, opened(mount / "echo/call", os.O_WRONLY) as (fd,):
        os.write(fd, first)
        codes = set()
        for _ in range(1024 if not VARIANT else 256):
            try:
                os.write(fd, piece)
            except OSError as refused:
                codes.add(refused.errno)
        assert codes == {errno.EFBIG}
        is_served(mount)
        harm.check()


@as_root
def test_answers_that_nobody_reads(new_mount):
    """Each of 6 descriptors is owed an answer of 8 MB: the daemon holds none of them in its memory."""
    mount = new_mount()
    size = 8 * MIB
    with Unharmed(mount, grows_by=ROOM // 2) as harm, opened(mount / "hungry/call", os.O_RDWR, 6) as fds:
        for fd in fds:
            os.write(fd, json.dumps({"what": "result", "count": size}).encode())
        until(lambda: stat_of(mount, 'calls_total{state="done"}') == 6, timeout=60, what="the end of all")
        is_served(mount)
        harm.check()
        for fd in (fds[0], fds[-1]):
            assert os.pread(fd, 30, 0) == b'{"content":[{"type":"text","te'
            assert len(read_all(fd)) > size


def test_a_caller_that_stops_in_its_call(new_mount, work):
    """Its call goes on and ends; it has its answer when it goes on itself."""
    mount = new_mount(args=["--hosts", 2])
    request = json.dumps({"go": str(work / "go")})
    with Unharmed(mount), Background('printf %s "$D" >call && cat result.txt', cwd=mount / "steps", env={"D": request}) as caller:
        until(lambda: stat_of(mount, "calls_running") == 1, what="its call")
        caller.signal(signal.SIGSTOP, group=True)
        is_served(mount)
        (work / "go").touch()
        until(lambda: stat_of(mount, "calls_running") == 0, what="the end of its call")
        is_served(mount)
        caller.signal(signal.SIGCONT, group=True)
        assert "done" in caller.end().out


def test_callers_that_stop_while_they_read(new_mount):
    """They have asked for a result that comes when they cannot take it."""
    mount = new_mount(args=["--hosts", 2])
    script = 'exec 3<>call; printf %s \'{"ms":400}\' >&3; exec cat <&3'
    with contextlib.ExitStack() as stack, Unharmed(mount):
        readers = [stack.enter_context(Background(script, cwd=mount / "slow")) for _ in range(6)]
        until(lambda: len(os.listdir(mount / "slow/calls")) == 6, what="their calls")  # stats are up to a second old
        for reader in readers:
            reader.signal(signal.SIGSTOP, group=True)
        until(lambda: stat_of(mount, 'calls_total{state="done"}') == 6, what="the end of all")
        is_served(mount)
        for reader in readers:
            reader.signal(signal.SIGCONT, group=True)
        for reader in readers:
            assert "slept" in reader.end().out


def test_one_who_opens_and_closes_without_end_holds_up_nobody(new_mount):
    mount = new_mount()
    with Unharmed(mount, grows_by=ROOM), Background("while :; do : >call; done", cwd=mount / "echo"):
        for _ in range(3):
            is_served(mount)


@as_root
def test_a_user_cannot_end_look_into_or_stop_the_daemon(new_mount):
    mount = new_mount()
    with Unharmed(mount):
        for pid in (mount.pid, mount.server_pid):
            for what in (f"kill -TERM {pid}", f"kill -STOP {pid}", f"cat /proc/{pid}/mem", f"cat /proc/{pid}/environ",
                         f"ls /proc/{pid}/fd", f"echo 1000 >/proc/{pid}/oom_score_adj", f"prlimit --nofile=3:3 --pid {pid}"):
                assert run(what, uid=OTHER_USER).status != 0, what


@as_root
def test_a_user_cannot_unmount_or_reload_it(new_mount):
    mount = new_mount()
    with Unharmed(mount):
        for command in ("umount", "reload"):
            done = run([PEGFS, command, mount.path], uid=OTHER_USER)
            assert done.status != 0 and done.err, done


@pytest.mark.parametrize("name", ["/".join(["x" * 255] * 15), "a" * 256, "\udcff\udcfe", "%n%s", "\n", "-rf"],
                         ids=["deep", "long", "bytes", "format", "line", "option"])
def test_names_that_nobody_has(m, name):
    with Unharmed(m), pytest.raises(OSError) as failure:
        os.stat(os.path.join(m.path, "echo", "calls", name))
    assert failure.value.errno in (errno.ENOENT, errno.ENAMETOOLONG)


def test_many_ids_are_no_more_than_are_allowed(m):
    """Ids that were reserved and never used are limited, and can be given back."""
    made, calls = [], m / "count/calls"
    with Unharmed(m):
        with pytest.raises(OSError) as failure:
            while len(made) < 2000:
                os.mkdir(calls / f"id-{len(made)}")
                made.append(calls / f"id-{len(made)}")
        assert failure.value.errno == errno.EBUSY and len(made) == 256
        for path in made:
            path.rmdir()
        os.mkdir(calls / "again")
        os.rmdir(calls / "again")
