"""Measuring two things side by side: drivers (probe.h), programs, and what their samples say."""

import contextlib
import os
import pathlib
import statistics
import subprocess
import time

from lib import programs

BUILD = pathlib.Path(os.environ["PEGFS_BUILD_DIR"]) / "bench"
PROBE = BUILD / "probe"
NODE_DIR = BUILD / "node"


class Driver:
    """A process that does one thing N times when asked, and answers with the nanoseconds of each."""

    def __init__(self, argv, uid=None):
        argv = programs.argv_of(["setpriv", "--pdeathsig=KILL", "--", *argv], uid=uid)
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        env=programs.environment())

    def ask(self, line):
        self.process.stdin.write(f"{line}\n")
        return self.take()

    def take(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args} ended with status {self.process.wait()}")
        return [int(word) for word in line.split()]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def probe(*words, uid=None):
    return Driver([PROBE, *words], uid=uid)


def node(script, *words):
    return Driver(["node", NODE_DIR / script, *words])


@contextlib.contextmanager
def drivers(**made):
    """Drivers by name, which end with the block."""
    try:
        yield made
    finally:
        for driver in made.values():
            driver.close()


def interleave(sides, rounds, count):
    """Asks all of them in turn, rounds times; {name: [samples of a round, ...]} after one for warmth."""
    taken = {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name, driver in sides.items():
            samples = driver.ask(count)
            if turn > 0:
                taken[name].append(samples)
    return taken


def interleave_acts(sides, rounds, before=None, warm=True):
    """The same for functions: the nanoseconds of one run each, as a round with one sample."""
    taken = {name: [] for name in sides}
    for turn in range(-1 if warm else 0, rounds):
        for name, act in sides.items():
            if before:
                before()
            start = time.perf_counter_ns()
            act()
            if turn >= 0:
                taken[name].append([time.perf_counter_ns() - start])
    return taken


def pooled(rounds):
    return [sample for samples in rounds for sample in samples]


def percentile(samples, share):
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def p50(rounds):
    return statistics.median(pooled(rounds))


def p99(rounds):
    return percentile(pooled(rounds), 0.99)


def ratio(ours, theirs, of=statistics.median):
    """The median of the rounds' ratios: what burdens the machine for a while burdens both sides."""
    return statistics.median(of(a) / of(b) for a, b in zip(ours, theirs))


def ratio_p99(ours, theirs):
    return p99(ours) / p99(theirs)


def program(argv, **how):
    """A function that runs a program to its end, its output going nowhere; grep's status 1 is fine."""
    argv = [str(word) for word in argv]

    def act():
        # A pipe to cat, for grep and tar do less when they see /dev/null.
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how) as running:
            with subprocess.Popen(["cat"], stdin=running.stdout, stdout=subprocess.DEVNULL):
                running.stdout.close()
                err = running.stderr.read()
        if running.returncode not in ((0, 1) if argv[0] == "grep" else (0,)):
            raise RuntimeError(f"{argv[:4]}: status {running.returncode}: {err[:400]}")
    return act


def drop_caches():
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


def pss_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise RuntimeError(f"no Pss of {pid}")
