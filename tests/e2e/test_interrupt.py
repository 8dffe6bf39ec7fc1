"""Signals to a caller that waits: call-semantics.md 4.6, T7."""

import json
import os
import pathlib
import pty
import select
import signal
import time

import pytest

from lib.counter import Counter
from lib.programs import Background, is_alive, need, run, until

PYTHON = "/usr/bin/python3"
WRITER = '''
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
os.write(fd, sys.argv[2].encode())
'''


@pytest.fixture
def counter(work):
    return Counter(work)


@pytest.fixture
def marks(work):
    file = work / "marks"
    file.touch()
    file.chmod(0o666)
    return file


def waits(m, marks):
    """The request of a call that lasts until it is aborted."""
    return json.dumps({"file": str(marks)})


def start_waiting(m, marks, command, **how):
    env = {"C": m / "patient/call", "DOC": waits(m, marks)}
    writer = Background(command, env=env, **how)
    until(lambda: "started" in marks.read_text(), what="the call")
    time.sleep(0.1)
    return writer


FATAL = [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGABRT, signal.SIGKILL, signal.SIGINT]


@pytest.mark.parametrize("number", FATAL, ids=lambda number: number.name)
def test_t7_fatal_signal_ends_writer_and_call_at_once(m, marks, number):
    with start_waiting(m, marks, 'exec /usr/bin/env printf %s "$DOC" > "$C"') as writer:
        writer.signal(number)
        sent = time.monotonic()
        assert writer.end(3).status == -number
        assert time.monotonic() - sent < 1
    until(lambda: "aborted" in marks.read_text(), what="the abort")


def test_t7_fatal_signal_to_a_reader_cancels(m, marks):
    with start_waiting(m, marks, 'exec 3<>"$C"; printf %s "$DOC" >&3; exec cat <&3') as reader:
        reader.signal(signal.SIGTERM)
        assert reader.end(3).status == -signal.SIGTERM
    until(lambda: "aborted" in marks.read_text(), what="the abort")


def test_t7_timeout_ends_the_whole_tree_of_the_tool(m, work):
    pids = work / "pids"
    pids.touch()
    pids.chmod(0o666)
    request = json.dumps({"ms": 60_000, "pids": str(pids)})
    done = run('timeout 3 sh -c \'printf %s "$DOC" > "$C"\'', env={"C": m / "slow/call", "DOC": request})
    assert done.status == 124 and done.seconds < 5
    started = [int(line) for line in pids.read_text().split()]
    assert len(started) == 3
    until(lambda: not any(is_alive(pid) for pid in started), timeout=15, what="the end of all three")


def test_cancelled_call_is_told_in_the_result(m, marks):
    with start_waiting(m, marks, 'exec /usr/bin/env printf %s "$DOC" > "$C"') as writer:
        writer.signal(signal.SIGTERM)
        writer.end(3)
    until(lambda: "cancel" in m.text("patient/result.txt").lower() or
          "abort" in m.text("patient/result.txt").lower(), what="the result")


HARMLESS = [signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGCONT, signal.SIGUSR1,
            signal.SIGUSR2, signal.SIGIO]


@pytest.mark.parametrize("number", HARMLESS, ids=lambda number: number.name)
def test_signal_that_is_merely_handled_disturbs_nothing(m, counter, number):
    """H4: not failed, not aborted, not repeated."""
    handler = f"import signal; signal.signal({int(number)}, lambda *_: None)\n" + WRITER
    request = counter.request(ms=500)
    with Background([PYTHON, "-c", handler, str(m / "count/call"), request]) as writer:
        until(counter.count, what="the call")
        for _ in range(5):
            writer.signal(number)
            time.sleep(0.03)
        assert writer.end().status == 0
    assert counter.count() == 1


def test_stop_and_continue_disturb_nothing(m, counter):
    with Background([PYTHON, "-c", WRITER, str(m / "count/call"), counter.request(ms=600)]) as writer:
        until(counter.count, what="the call")
        writer.signal(signal.SIGSTOP)
        time.sleep(0.1)
        writer.signal(signal.SIGCONT)
        assert writer.end().status == 0
    assert counter.count() == 1


def test_second_signal_counts_although_the_kernel_sends_one_interrupt(m, marks):
    """H5: USR1 is ignored, the TERM that follows is not."""
    handler = "import signal; signal.signal(signal.SIGUSR1, lambda *_: None)\n" + WRITER
    with Background([PYTHON, "-c", handler, str(m / "patient/call"), waits(m, marks)]) as writer:
        until(lambda: "started" in marks.read_text(), what="the call")
        writer.signal(signal.SIGUSR1)
        time.sleep(0.2)
        assert writer.is_running()
        writer.signal(signal.SIGTERM)
        assert writer.end(2).status == -signal.SIGTERM
    until(lambda: "aborted" in marks.read_text(), what="the abort")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGALRM, signal.SIGHUP],
                         ids=lambda number: number.name)
def test_handled_soft_signal_lets_the_handler_run_and_the_call_goes_on(m, counter, work, number):
    handler = (f"import signal; signal.signal({int(number)}, lambda *_: "
               f"open('{work}/handled', 'a').write('x'))\n") + WRITER
    with Background([PYTHON, "-c", handler, str(m / "count/call"), counter.request(ms=1000)]) as writer:
        until(counter.count, what="the call")
        time.sleep(0.1)
        writer.signal(number)
        until(lambda: (work / "handled").exists(), timeout=0.6, what="the handler")
        assert writer.end().status == 0
    assert counter.count() == 1


def test_periodic_timer_with_a_handler_runs_it_once(m, counter):
    """Python retries EINTR (PEP 475): the same bytes attach to the running call again."""
    handler = ("import signal; signal.signal(signal.SIGALRM, lambda *_: None); "
               "signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)\n") + WRITER
    handler += "signal.setitimer(signal.ITIMER_REAL, 0)  # before Python takes its handler away\n"
    with Background([PYTHON, "-c", handler, str(m / "count/call"), counter.request(ms=1500)]) as writer:
        assert writer.end().status == 0
    assert counter.count() == 1


def test_alarm_that_raises_is_a_time_out_of_the_callers_own(m, marks):
    handler = ("import signal\ndef late(*_): raise SystemExit(9)\n"
               "signal.signal(signal.SIGALRM, late); signal.setitimer(signal.ITIMER_REAL, 0.5)\n") + WRITER
    with Background([PYTHON, "-c", handler, str(m / "patient/call"), waits(m, marks)]) as writer:
        assert writer.end(4).status == 9
    until(lambda: "aborted" in marks.read_text(), what="the abort")


def test_alarm_and_die_in_perl(m, marks):
    need("perl")
    script = ('$SIG{ALRM} = sub { die "late\n" }; alarm 1; open(my $f, ">", $ENV{C}); '
              'eval { syswrite($f, $ENV{DOC}) }; exit($@ eq "late\n" ? 7 : 1)')
    with start_waiting(m, marks, ["perl", "-e", script]) as writer:
        assert writer.end(5).status == 7


@pytest.mark.parametrize("shell", ["bash", "busybox sh", "zsh"])
def test_trap_of_term_runs(m, marks, shell):
    """dash and mksh write again by themselves, and run their traps when the call has ended."""
    need(shell.split()[0])
    with start_waiting(m, marks, 'trap "echo trapped >&2; exit 5" TERM; printf %s "$DOC" > "$C"',
                       shell=shell) as writer:
        writer.signal(signal.SIGTERM)
        done = writer.end(3)
    assert "trapped" in done.err and done.status == 5


@pytest.mark.parametrize("shell", ["bash", "dash", "zsh", "mksh"])
@pytest.mark.parametrize("form", ['printf %s "$DOC" > "$C"',
                                  'exec 3<>"$C"; printf %s "$DOC" >&3; cat <&3'])
def test_t7_ctrl_c_in_an_interactive_shell(m, marks, shell, form):
    """The shell catches SIGINT itself; the call ends all the same, and the prompt is back."""
    need(shell)
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(C=str(m / "patient/call"), DOC=waits(m, marks), PS1="", ENV="", HISTFILE="")
        interactive = {"bash": ["--norc", "-i"], "zsh": ["-f", "-i"]}.get(shell, ["-i"])
        os.execvp(shell, [shell, *interactive])
    try:
        os.write(terminal, form.encode() + b"\n")
        until(lambda: "started" in marks.read_text(), what="the call")
        time.sleep(0.2)
        os.write(terminal, b"\x03")
        sent = time.monotonic()
        os.write(terminal, b"echo back-$((40+2))\n")
        seen = b""
        while b"back-42" not in seen:
            assert time.monotonic() - sent < 4, seen
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 4096)
        assert time.monotonic() - sent < 2
    finally:
        os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(pid, 0)
    until(lambda: "aborted" in marks.read_text(), what="the abort")


def test_t7_tool_that_ignores_the_signal_is_killed(m, work):
    """slow does not listen; SIGTERM and SIGKILL follow, and the next call works."""
    with Background('exec /usr/bin/env printf %s \'{"ms":60000}\' > "$C"', env={"C": m / "slow/call"}) as writer:
        time.sleep(0.5)
        writer.signal(signal.SIGKILL)
        writer.end(2)
    assert m.say("slow", {"ms": 1}) == "slept 1"


def test_second_call_is_not_disturbed_by_the_end_of_the_first(m, marks, counter):
    with start_waiting(m, marks, 'exec /usr/bin/env printf %s "$DOC" > "$C"') as writer, \
            Background([PYTHON, "-c", WRITER, str(m / "count/call"), counter.request(ms=700)]) as other:
        until(counter.count, what="the other call")
        writer.signal(signal.SIGKILL)
        writer.end(2)
        assert other.end().status == 0
    assert counter.count() == 1


def test_node_that_is_interrupted_by_its_child(m, counter):
    script = ("require('child_process').spawn('sleep', ['0.3']); "
              "fs.writeFileSync(process.env.C, process.env.DOC)")
    done = run(["node", "-e", script], env={"C": m / "count/call", "DOC": counter.request(ms=800)})
    assert done.status == 0, done.err
    assert counter.count() == 1


def test_killed_in_the_middle_of_writing_leaves_nothing(m, counter, work):
    with Background('{ printf "{"; sleep 20; } > "$C"', env={"C": m / "count/call"}) as writer:
        time.sleep(0.2)
        writer.signal(signal.SIGKILL, group=True)
        writer.end(2)
    assert counter.count() == 0
    assert m.write("count", counter.request())
    assert pathlib.Path(counter.file).read_text().count("\n") == 1
