"""Runs programs for the tests: bounded in time, and ended with all that they started."""

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import time

import pytest

TIME_LIMIT_S = 30
OTHER_USER = 1000  # nobody in particular; needs no entry in passwd(5)
THIRD_USER = 1001

# What is to be done when a program cannot even be killed: set by the mount harness, which aborts
# the FUSE connections, so that a wedged mount ends as a failed test.
on_wedged = []

# Children of the test process that stay while mounts come and go: the namespaces of containers.
helpers = set()


@dataclasses.dataclass
class Done:
    status: int  # exit status, or minus the signal's number
    out: str
    err: str
    seconds: float


def need(*programs):
    """Skips the test where a program is missing; the reason is counted by the summary."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def argv_of(command, shell="bash", uid=None):
    argv = [*shell.split(), "-c", command] if isinstance(command, str) else [str(c) for c in command]
    if uid is not None:
        argv = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", *argv]
    return argv


def environment(more=None):
    env = {**os.environ, "LC_ALL": "C.UTF-8", **(more or {})}
    return {name: str(value) for name, value in env.items() if value is not None}


def kill_group(process):
    """Ends a process that leads a session, with its group; aborts the mounts if it does not go."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        for abort in on_wedged:
            abort()
        process.wait(5)


def run(command, *, shell="bash", timeout=TIME_LIMIT_S, uid=None, cwd=None, env=None, stdin=b""):
    """Runs a shell command (a string) or a program (a list) to its end."""
    start = time.monotonic()
    process = subprocess.Popen(argv_of(command, shell, uid), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                               env=environment(env), start_new_session=True)
    try:
        out, err = process.communicate(stdin, timeout)
    except subprocess.TimeoutExpired:
        kill_group(process)
        raise AssertionError(f"no end after {timeout} s: {command}") from None
    return Done(process.returncode, out.decode(errors="surrogateescape"),
                err.decode(errors="surrogateescape"), time.monotonic() - start)


def check(command, **how):
    """Runs it and insists on success; returns what it printed."""
    done = run(command, **how)
    assert done.status == 0, f"{command}\nstatus {done.status}\n{done.out}{done.err}"
    return done.out


class Background:
    """A program that runs beside the test and ends with it."""

    def __init__(self, command, *, shell="bash", uid=None, cwd=None, env=None):
        self.process = subprocess.Popen(argv_of(command, shell, uid), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
                                        env=environment(env), start_new_session=True)
        self.pid = self.process.pid
        self.start = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        kill_group(self.process)
        self.process.stdout.close()
        self.process.stderr.close()

    def signal(self, number, group=False):
        (os.killpg if group else os.kill)(self.pid, number)

    def end(self, timeout=TIME_LIMIT_S):
        """Waits for its end; fails the test where it does not come."""
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"no end after {timeout} s: {self.process.args}") from None
        return Done(self.process.returncode, out.decode(errors="surrogateescape"),
                    err.decode(errors="surrogateescape"), time.monotonic() - self.start)

    def is_running(self):
        return self.process.poll() is None


def until(condition, timeout=10, what="the condition"):
    """Waits until condition() is true, and returns its value; looks often, never sleeps blindly."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what} did not come within {timeout} s"
        time.sleep(0.01)


def process_state(pid):
    """The letter of ps(1), or None where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid):
    return process_state(pid) not in (None, "Z", "X")


def children_of(pid):
    """The ids of a process's children, dead ones too."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as stat:
                    if int(stat.read().rsplit(")", 1)[1].split()[1]) == pid:
                        found.append(int(name))
    return found


def descendants_of(pid):
    found = []
    for child in children_of(pid):
        found += [child, *descendants_of(child)]
    return found
