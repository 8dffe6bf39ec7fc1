"""Four ways to cancel a call, and what is left of it: nothing (T7, H4, H6)."""

import errno
import json
import os
import select
import signal
import time

import pytest

from lib.counter import Counter
from lib.programs import Background, is_alive, need, process_state, until

WRITE = 'exec /usr/bin/env printf %s "$D" > "$C"'


@pytest.fixture
def marks(work):
    file = work / "marks"
    file.touch()
    file.chmod(0o666)
    return file


def reserve(m, tool):
    path = m / tool / "calls" / f"c{time.monotonic_ns()}"
    path.mkdir()
    return path


def state_of(path):
    return (path / "status").read_text().splitlines()[0].removeprefix("state: ")


def pids_in(marks):
    return [int(line) for line in marks.read_text().split() if line.isdigit()]


def family(marks, **params):
    return json.dumps({"pids": str(marks), **params})


# ---- the ways: each is given a call that runs in the background, and its directory

def by_cancel_file(path, writer):
    (path / "cancel").write_text("x")


def by_empty_echo(path, writer):
    os.system(f"echo > {path}/cancel")


def by_rmdir(path, writer):
    path.rmdir()


def by_kill(path, writer):
    writer.signal(signal.SIGKILL)


def by_interrupt(path, writer):
    writer.signal(signal.SIGINT)


WAYS = [by_cancel_file, by_empty_echo, by_rmdir, by_kill, by_interrupt]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_t7_the_signal_fires_first_and_the_writer_is_free_at_once(m, marks, way):
    path = reserve(m, "patient")
    with Background(WRITE, env={"C": path / "call", "D": json.dumps({"file": str(marks)})}) as writer:
        until(lambda: "started" in marks.read_text(), what="the call")
        start = time.monotonic()
        way(path, writer)
        done = writer.end(3)
        assert time.monotonic() - start < 1 and done.status != 0
    until(lambda: "aborted" in marks.read_text(), what="the abort")
    if way is not by_rmdir:
        until(lambda: state_of(path) == "cancelled", what="the end")
        assert "cancelled" in (path / "result.txt").read_text()
        assert json.loads((path / "result.json").read_text())["isError"] is True


@pytest.mark.parametrize("way, stubborn", [(by_cancel_file, False), (by_rmdir, True), (by_kill, True)],
                         ids=["meek_by_cancel_file", "stubborn_by_rmdir", "stubborn_by_kill"])
def test_t7_whole_process_tree_ends_wherever_it_hides(m, marks, way, stubborn):
    """The signal, then TERM, then KILL: children that left the group and the session, and orphans."""
    path = reserve(m, "family")
    with Background(WRITE, env={"C": path / "call", "D": family(marks, stubborn=stubborn)}) as writer:
        until(lambda: len(pids_in(marks)) == 4, what="the family")
        pids = pids_in(marks)
        sessions = {os.getsid(pid) for pid in pids}
        assert len(sessions) >= 3, "they have left the session"
        assert all(is_alive(pid) for pid in pids)
        way(path, writer)
        until(lambda: "aborted" in marks.read_text(), timeout=1, what="the AbortSignal")
        until(lambda: not any(is_alive(pid) for pid in pids), timeout=6, what="the end of all")
        assert writer.end(3).status != 0


def test_t7_normal_end_of_a_call_ends_what_it_left_running(m, marks):
    assert m.say("family", {"pids": str(marks), "ms": 50}) == "left them all"
    pids = pids_in(marks)[1:]
    assert len(pids) == 3
    until(lambda: not any(is_alive(pid) for pid in pids), timeout=5, what="the end of its children")


def test_writer_of_a_cancelled_call_gets_ecanceled(m, marks):
    path = reserve(m, "patient")
    script = ('import os, sys\ntry:\n    os.write(os.open(sys.argv[1], os.O_WRONLY), sys.argv[2].encode())\n'
              'except OSError as failure:\n    sys.exit(failure.errno)')
    with Background(["/usr/bin/python3", "-c", script, str(path / "call"), json.dumps({"file": str(marks)})]) as writer:
        until(lambda: "started" in marks.read_text(), what="the call")
        by_cancel_file(path, writer)
        assert writer.end(3).status == errno.ECANCELED


def test_reader_of_a_cancelled_call_gets_the_result_that_says_so(m, marks):
    path = reserve(m, "patient")
    fd = os.open(path / "call", os.O_RDWR)
    os.write(fd, json.dumps({"file": str(marks)}).encode())
    until(lambda: "started" in marks.read_text(), what="the call")
    by_cancel_file(path, None)
    result = json.loads(os.read(fd, 4096))
    os.close(fd)
    assert result["isError"] is True and "cancelled" in result["content"][0]["text"]


def test_queued_call_is_cancelled_without_having_run(new_mount, work, marks):
    mount = new_mount(args=["--hosts-per-tool", 1])
    counter = Counter(work)
    fd = os.open(mount / "count/call", os.O_RDWR)
    os.write(fd, counter.request(ms=1500).encode())
    until(counter.count, what="the first call")
    path = reserve(mount, "count")
    with Background(WRITE, env={"C": path / "call", "D": counter.request()}) as writer:
        until(lambda: state_of(path) == "queued", what="queued")
        start = time.monotonic()
        by_cancel_file(path, writer)
        assert writer.end(2).status != 0 and time.monotonic() - start < 1
    assert state_of(path) == "cancelled"
    assert b"counted" in os.read(fd, 4096)
    os.close(fd)
    assert counter.count() == 1


def test_cancelling_what_has_ended_changes_nothing(m):
    path = reserve(m, "hello")
    (path / "call").write_text('{"name":"Ada"}')
    by_cancel_file(path, None)
    assert state_of(path) == "done" and (path / "result.txt").read_text() == "Hello, Ada!\n"


def test_cancel_takes_any_write_and_every_way_of_writing(m, marks):
    path = reserve(m, "patient")
    for command in ('echo 1 > "$P/cancel"', 'echo 1 >> "$P/cancel"', 'printf "" | tee "$P/cancel"', 'touch "$P/cancel"'):
        assert os.system(f"P={path}; {command}") == 0, command
    assert state_of(path) == "reserved"


# ---- closing early

def start_rw(m, marks):
    fd = os.open(m / "patient/call", os.O_RDWR)
    os.write(fd, json.dumps({"file": str(marks)}).encode())
    until(lambda: "started" in marks.read_text(), what="the call")
    return fd


def test_h6_closing_a_descriptor_that_waits_cancels(m, marks):
    fd = start_rw(m, marks)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    assert poll.poll(50) == []
    os.close(fd)
    until(lambda: "aborted" in marks.read_text(), timeout=3, what="the abort")


def test_h6_closing_one_of_two_duplicates_cancels_nothing(m, marks):
    fd = start_rw(m, marks)
    twin = os.dup(fd)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    assert poll.poll(50) == []
    os.close(fd)
    time.sleep(0.3)
    assert "aborted" not in marks.read_text()
    os.close(twin)
    until(lambda: "aborted" in marks.read_text(), timeout=3, what="the abort")


def test_h6_closing_a_descriptor_that_never_waited_lets_the_call_end(m, work):
    counter = Counter(work)
    path = reserve(m, "count")
    fd = os.open(path / "call", os.O_RDWR)
    os.write(fd, counter.request(ms=300).encode())
    os.close(fd)
    until(lambda: state_of(path) == "done", what="the end")
    assert counter.count() == 1


def test_end_of_a_program_that_waits_cancels(m, marks):
    command = 'exec 3<>"$C"; printf %s "$D" >&3; cat <&3'
    with Background(command, env={"C": m / "patient/call", "D": json.dumps({"file": str(marks)})}) as reader:
        until(lambda: "started" in marks.read_text(), what="the call")
        time.sleep(0.2)
        reader.signal(signal.SIGKILL, group=True)
        reader.end(2)
    until(lambda: "aborted" in marks.read_text(), timeout=3, what="the abort")


# ---- a blocked caller can be killed, whatever the tool does

@pytest.mark.parametrize("what", ["spin", "hang"])
def test_blocked_caller_is_never_unkillable(m, what):
    with Background(WRITE, env={"C": m / "hungry/call", "D": json.dumps({"what": what})}) as writer:
        until(lambda: int(m.text(".pegfs/stats").split("\npegfs_calls_running ")[1].split()[0]) > 0, what="the call")
        time.sleep(0.2)
        assert process_state(writer.pid) in "SD"
        writer.signal(signal.SIGKILL)
        start = time.monotonic()
        assert writer.end(3).status == -signal.SIGKILL
        assert time.monotonic() - start < 0.5
    until(lambda: "\npegfs_calls_running 0" in m.text(".pegfs/stats"), timeout=8, what="the end of the call")


def test_caller_of_a_queued_call_can_be_killed(new_mount, work):
    mount = new_mount(args=["--hosts-per-tool", 1, "--hosts", 1])
    fd = os.open(mount / "slow/call", os.O_RDWR)
    os.write(fd, b'{"ms":3000}')
    with Background(WRITE, env={"C": mount / "hello/call", "D": '{"name":"x"}'}) as writer:
        time.sleep(0.3)
        writer.signal(signal.SIGTERM)
        start = time.monotonic()
        assert writer.end(3).status == -signal.SIGTERM and time.monotonic() - start < 0.5
    os.close(fd)


# ---- signals that are merely handled

TICKS = """
import os, signal, sys
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
fd = os.open(sys.argv[1], os.O_WRONLY)
os.write(fd, sys.argv[2].encode())
os.close(fd)
signal.setitimer(signal.ITIMER_REAL, 0)  # before Python takes its handler away
"""


def test_h4_pythons_alarm_neither_fails_nor_repeats_it(m, work):
    counter = Counter(work)
    with Background(["/usr/bin/python3", "-c", TICKS, str(m / "count/call"), counter.request(ms=800)]) as writer:
        assert writer.end(10).status == 0
    assert counter.count() == 1


def test_h4_bashs_children_neither_fail_nor_repeat_it(m, work):
    counter = Counter(work)
    command = 'for i in 1 2 3 4 5; do sleep 0.$i & done; printf %s "$D" > "$C"'
    with Background(command, env={"C": m / "count/call", "D": counter.request(ms=800)}) as writer:
        assert writer.end(10).status == 0
    assert counter.count() == 1


def test_h4_gos_urgent_signals_neither_fail_nor_repeat_it(m, work):
    """What Go's scheduler sends to its own threads, sent from outside: a call undisturbed."""
    need("perl")
    counter = Counter(work)
    script = '$SIG{URG} = sub {}; $SIG{CHLD} = sub {}; open(my $f, ">", $ENV{C}) or exit 2; exit(syswrite($f, $ENV{D}) ? 0 : 3)'
    with Background(["perl", "-e", script], env={"C": m / "count/call", "D": counter.request(ms=800)}) as writer:
        until(counter.count, what="the call")
        for _ in range(10):
            writer.signal(signal.SIGURG)
            writer.signal(signal.SIGCHLD)
            time.sleep(0.02)
        assert writer.end(10).status == 0
    assert counter.count() == 1
