"""The mount outlives its supervisor where a service manager keeps its descriptors: fs/store.h."""

import json
import os
import signal
import time

import pytest

from lib import survival
from lib.manager import ManagedMount
from lib.mount import EXAMPLES, FIXTURES, PEGFS, TOOLS, mount_entry
from lib.programs import Background, check, until
from lib.survival import server_of

NAMES = ["covered", "fuse", "lock", "put-by", "state"]


def stats(mount):
    lines = [line.rsplit(None, 1) for line in mount.text(".pegfs/stats").splitlines()
             if not line.startswith("#")]
    return {name.removeprefix("pegfs_"): float(value) for name, value in lines}


def kill_supervisor(mount):
    """Kills it and waits for the next one."""
    before, restarts = server_of(mount), mount.restarts
    mount.kill_supervisor()
    until(lambda: mount.restarts > restarts, what="the next supervisor")
    until(lambda: server_of(mount) not in (None, before), what="its server")


@pytest.fixture
def managed(work):
    mount = ManagedMount(work, tools=(EXAMPLES, FIXTURES, TOOLS / "survival")).start()
    yield mount
    problems = mount.stop() if mount.is_alive() else mount.end_store()
    assert not problems, "\n".join(problems)


def test_the_manager_is_told_and_keeps_the_descriptors(managed):
    until(lambda: {"READY": "1"} in managed.store.told, what="READY=1")
    until(lambda: [name for name in managed.store.names() if not name.startswith("host-")] == NAMES)
    assert managed.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    hosts = stats(managed)["hosts"]
    until(lambda: sum(name.startswith("host-") for name in managed.store.names()) == 3 * hosts)


def test_mount_and_what_is_open_survive_the_supervisor(managed):
    fd = os.open(managed / "hello/TOOL.md", os.O_RDONLY)
    whole = os.pread(fd, 1 << 20, 0)
    minor = mount_entry(managed.path)[0]
    try:
        for count in range(1, 4):
            kill_supervisor(managed)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            assert os.pread(fd, 1 << 20, 0) == whole
            found = stats(managed)
            assert found["supervisor_restarts_total"] == count
            assert found["supervisor_pid"] == managed.pid and found["server_pid"] == server_of(managed)
            assert managed.say("hello", {"name": "Ada"}) == "Hello, Ada!"
        assert mount_entry(managed.path)[0] == minor
    finally:
        os.close(fd)


def test_a_call_goes_on_without_supervisor_and_server(managed, work):
    marks = work / "marks"
    marks.touch()
    marks.chmod(0o666)
    request = json.dumps({"file": str(marks), "data": "once", "ms": 1500})
    with Background('printf %s "$R" > "$M/mark/call" && cat "$M/mark/result.txt"',
                    env={"M": managed.path, "R": request}) as writer:
        until(marks.read_text, what="the call")
        for _ in range(3):
            kill_supervisor(managed)
        done = writer.end(15)
    assert done.status == 0 and done.out == "marked once\n", done
    assert marks.read_text() == "once\n"
    assert stats(managed)["calls_unknown_total"] == 0


def test_results_and_reservations_survive_the_supervisor(managed):
    assert managed.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    os.mkdir(managed / "hello/calls/mine")
    kill_supervisor(managed)
    assert "state: reserved" in managed.text("hello/calls/mine/status")
    assert managed.text("hello/result.txt") == "Hello, Ada!\n"


def test_a_server_that_dies_with_the_next_supervisor_is_replaced(managed):
    for _ in range(5):
        managed.kill_supervisor()
        until(lambda: survival.kill_server(managed), what="a server")
    until(lambda: managed.say("hello", {"name": "Ada"}) == "Hello, Ada!")


@pytest.mark.parametrize("how", ["umount", "SIGTERM"])
def test_the_end_leaves_nothing_in_the_store(managed, how):
    managed.say("hello", {"name": "Ada"})
    kill_supervisor(managed)
    if how == "umount":
        check([PEGFS, "umount", managed.path])
    else:
        os.kill(managed.pid, signal.SIGTERM)
    assert managed.process.wait(15) == 0
    assert mount_entry(managed.path) is None
    assert managed.clear_away() == []
    assert managed.end_store(expect_empty=True) == []


def test_what_cannot_be_gone_on_with_is_made_anew(managed):
    """Unmounted while there was no supervisor: its descriptors are of no use."""
    os.kill(managed.pid, signal.SIGSTOP)
    server = server_of(managed)
    check(["umount", "-l", managed.path])
    until(lambda: mount_entry(managed.path) is None)
    managed.kill_supervisor()
    until(lambda: server_of(managed) not in (None, server), what="the next server")
    until(lambda: mount_entry(managed.path), what="the next mount")
    time.sleep(0.1)
    assert managed.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    assert stats(managed)["supervisor_restarts_total"] == 0
