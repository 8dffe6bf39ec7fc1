"""Hosts: one is ready before the first call, they scale and go; and a thousand callers that wait."""

import json
import os
import pathlib
import resource
import select
import shutil
import time

import pytest

from lib.mount import FIXTURES, VARIANT
from lib.programs import Background, descendants_of, until
from stress import calls as stress

WAITING = 1000


def stat_of(mount, name):
    line = next(line for line in mount.text(".pegfs/stats").splitlines() if line.startswith(f"pegfs_{name} "))
    return int(line.split()[1])


def start_asking(mount, tool, request):
    fd = os.open(mount / tool / "call", os.O_RDWR)
    os.write(fd, json.dumps(request).encode())
    return fd


def answer(fd):
    result = json.loads(os.read(fd, 1 << 16))
    os.close(fd)
    return result["content"][0]["text"]


# -------------------------------------------------------------------------------- warm and cold

def test_spare_host_that_was_booted_before_serves_the_first_call(new_mount):
    mount = new_mount()
    until(lambda: stat_of(mount, "hosts_spare") == 1, what="the spare host")
    booted = descendants_of(mount.pid)
    assert stat_of(mount, "hosts_started_total") >= 1
    assert json.loads(mount.say("env"))["pid"] in booted


def test_another_spare_host_is_ready_after_it(new_mount):
    mount = new_mount()
    mount.say("hello", {"name": "x"})
    until(lambda: stat_of(mount, "hosts_spare") == 1, what="the next spare host")
    booted = descendants_of(mount.pid)
    assert json.loads(mount.say("env"))["pid"] in booted, "the first call of another tool"


def test_spares_option(new_mount):
    mount = new_mount(args=["--spares", 3])
    until(lambda: stat_of(mount, "hosts_spare") == 3, what="three spare hosts")


def test_warm_host_is_kept_for_the_next_call(m):
    assert len({json.loads(m.say("env"))["pid"] for _ in range(5)}) == 1


def test_hosts_scale_with_the_calls_that_wait_up_to_the_limit_and_go_when_idle(new_mount):
    mount = new_mount(args=["--hosts-per-tool", 3, "--idle", 1])
    fds = [start_asking(mount, "slow", {"ms": 700}) for _ in range(6)]
    until(lambda: stat_of(mount, "calls_running") == 3, what="three at once")
    assert stat_of(mount, "calls_waiting") <= 3
    for fd in fds:
        assert answer(fd) == "slept 700"
    until(lambda: stat_of(mount, "hosts") - stat_of(mount, "hosts_spare") == 0, timeout=8, what="the end of idle hosts")
    until(lambda: len(descendants_of(mount.pid)) <= 2, what="a spare host and its warden alone")
    assert mount.say("slow", {"ms": 1}) == "slept 1"


VERSION = """
import { existsSync } from 'node:fs';
export async function execute(_id, { go }) {
    while (go && !existsSync(go)) await new Promise((done) => setTimeout(done, 10));
    return { content: [{ type: 'text', text: `%s ${process.pid}` }] };
}
"""
MANIFEST = "---\nname: changing\ndescription: Changes.\ninputs:\n  go: {type: string, description: A file., optional: true}\n---\n"


def test_changed_file_means_a_fresh_host_and_running_calls_finish_on_the_old(new_mount, work):
    tool = work / "tools" / "changing"
    tool.mkdir(parents=True)
    (tool / "TOOL.md").write_text(MANIFEST)
    (tool / "index.js").write_text(VERSION % "old")
    mount = new_mount(tools=(work / "tools",))
    _, warm = mount.say("changing").split()
    running = start_asking(mount, "changing", {"go": str(work / "go")})
    until(lambda: stat_of(mount, "calls_running") == 1, what="the call")
    (tool / "index.js").write_text(VERSION % "new")
    until(lambda: mount.say("changing").startswith("new"), what="the new version")
    _, fresh = mount.say("changing").split()
    assert fresh != warm
    (work / "go").touch()
    assert answer(running) == f"old {warm}"
    assert mount.say("changing") == f"new {fresh}", "the old host is used no more"


def test_tool_that_is_gone_while_it_runs_finishes_and_its_hosts_go(new_mount, work):
    shutil.copytree(FIXTURES / "slow", work / "tools" / "slow")
    mount = new_mount(tools=(work / "tools",))
    pids = work / "pids"
    fd = start_asking(mount, "slow", {"ms": 600, "pids": str(pids)})
    until(pids.exists, what="the call")
    shutil.rmtree(work / "tools" / "slow")
    assert answer(fd) == "slept 600"


# ---------------------------------------------------------------------- a thousand that wait

@pytest.fixture
def many_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4 * WAITING:
        pytest.skip(f"only {hard} open files are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (4 * WAITING, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def memory_kib(pid):
    return int(pathlib.Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0])


def quick(action, limit_s=0.5):
    start = time.monotonic()
    action()
    assert time.monotonic() - start < limit_s, "at once"


def test_a_thousand_callers_that_wait(new_mount, work, many_files, capsys):
    """No thread each, little memory each, the tree stays quick, and every one is answered."""
    mount = new_mount()
    go = work / "go"
    mount.say("hello", {"name": "x"})
    threads, before = len(os.listdir(f"/proc/{mount.pid}/task")), memory_kib(mount.pid)
    fds = [start_asking(mount, "steps", {"go": str(go), "count": 0}) for _ in range(WAITING)]
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    writers = [Background('printf %s "$D" > "$C"', env={"C": mount / "hello/call", "D": '{"name":"w"}'}) for _ in range(10)]
    try:
        until(lambda: stat_of(mount, "calls_waiting") >= WAITING - 20, what="the queue")
        assert poll.poll(0) == []
        each = (memory_kib(mount.pid) - before) / WAITING
        assert len(os.listdir(f"/proc/{mount.pid}/task")) == threads, "no thread a call"
        assert VARIANT or each < 32, f"{each:.1f} KiB a waiting call"
        for action in (lambda: os.listdir(mount.path), lambda: mount.text("hello/schema.json"), lambda: mount.text("steps/result.txt"),
                       lambda: mount.say("echo", {"text": "x"})):
            quick(action, 2)
        assert all(writer.end(10).status == 0 for writer in writers), "another tool is not behind them"
        go.touch()
        waiting = dict.fromkeys(fds)
        while waiting:
            ready = poll.poll(20_000)
            assert ready, f"{len(waiting)} are not answered"
            for fd, _ in ready:
                poll.unregister(fd)
                del waiting[fd]
                assert answer(fd) == "done"
    finally:
        for writer in writers:
            writer.__exit__()
    with capsys.disabled():
        print(f"\n[memory of the daemon for each of {WAITING} waiting calls: {each:.1f} KiB] ", end="")


def test_hundred_write_only_callers_at_once(new_mount, work):
    """Each in a process of its own, all blocked, all answered."""
    mount = new_mount()
    go = work / "go"
    command = 'for i in $(seq 100); do printf %s "$D" > "$C" && echo ok & done; wait'
    with Background(command, env={"C": mount / "steps/call", "D": json.dumps({"go": str(go)})}) as writers:
        until(lambda: stat_of(mount, "calls_waiting") >= 90, timeout=20, what="the queue")
        quick(lambda: os.listdir(mount.path), 2)
        go.touch()
        done = writers.end(40)
    assert done.out.count("ok") == 100, done.err


# ---------------------------------------------------------------------------------------- leaks

def test_two_thousand_calls_leave_nothing(new_mount):
    """tests/stress/calls.py has the kinds of calls; `make stress` runs a hundred thousand."""
    mount = new_mount(args=["--idle", 60])
    assert not stress.stress(mount, 2000)
