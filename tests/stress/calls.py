"""Very many calls through a real mount: is anything left, does anything grow? `make stress`.

    tests/stress/calls.py [CALLS]       100000, unless given

Nine of ten are plain calls of warm hosts, in each form; the rest fail, crash, end their process, are
cancelled, left early, leave processes behind, or are other languages. What the daemon holds is
compared between the first tenth and the end: descriptors, memory, zombies, processes, kept calls.
"""

import collections
import contextlib
import json
import os
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lib.mount import VARIANT  # noqa: E402
from lib.programs import children_of, descendants_of, process_state, until  # noqa: E402

THREADS = 6
GROWTH_MAX_KIB = 8 * 1024
GROWTH_MAX_FDS = 40  # hosts come and go: four descriptors each

Held = collections.namedtuple("Held", "fds kib zombies hosts kept handles")


# ---- the kinds of calls; each gets the mount and a number

def ask(mount, tool, request):
    fd = os.open(mount / tool / "call", os.O_RDWR)
    try:
        os.write(fd, json.dumps(request).encode())
        return json.loads(os.read(fd, 1 << 16))
    finally:
        os.close(fd)


def plain(mount, number):
    answer = ask(mount, "hello", {"name": f"n{number}"})
    assert answer["content"][0]["text"] == f"Hello, n{number}!", answer


def write_only(mount, number):
    mount.write("hello", {"name": str(number)})


def named(mount, number):
    path = mount / "hello" / "calls" / f"stress-{number}"
    path.mkdir()
    (path / "call").write_text(json.dumps({"name": f"m{number}"}))
    assert (path / "result.txt").read_text() == f"Hello, m{number}!\n"
    path.rmdir()


def failing(mount, _):
    assert ask(mount, "fail", {})["isError"]


def refused(mount, _):
    with contextlib.suppress(OSError):
        mount.write("hello", {"nme": 1})


def crashing(mount, number):
    assert ask(mount, "exits", {"how": ("exit", "kill")[number % 2]})["isError"]


def updating(mount, _):
    ask(mount, "updates", {"ms": 0})


def other_language(mount, number):
    tool = ("python_kit", "bash_kit")[number % 2]
    ask(mount, tool, {"how": ("string", "text")[number % 2], "text": "x"})


def cancelled(mount, number):
    path = mount / "slow" / "calls" / f"stress-{number}"
    path.mkdir()
    fd = os.open(path / "call", os.O_RDWR)
    os.write(fd, b'{"ms":60000}')
    (path / "cancel").write_text("x")
    assert json.loads(os.read(fd, 4096))["isError"]
    os.close(fd)


def left_early(mount, _):
    """Cancelled as its descriptor is closed."""
    import select
    fd = os.open(mount / "slow" / "call", os.O_RDWR)
    os.write(fd, b'{"ms":60000}')
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.poll(1)
    os.close(fd)


def leaving_processes(mount, _):
    ask(mount, "bash_kit", {"how": "background", "text": "/dev/null"})


KINDS = [(plain, 700), (write_only, 130), (named, 70), (failing, 30), (refused, 30), (updating, 15), (other_language, 15),
         (crashing, 3), (cancelled, 3), (left_early, 2), (leaving_processes, 2)]  # of 1000


def kind_of(number):
    at = number * 619 % 1000  # spreads the kinds evenly
    for kind, share in KINDS:
        if at < share:
            return kind
        at -= share
    raise AssertionError("the shares make 1000")


# ---- running them, and looking at the daemon

def run_calls(mount, first, count):
    """Calls first to first + count, by some threads; what went wrong, as sentences."""
    numbers, problems, lock = iter(range(first, first + count)), [], threading.Lock()

    def work():
        while not problems:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                kind_of(number)(mount, number)
            except Exception as problem:
                problems.append(f"call {number} ({kind_of(number).__name__}): {problem!r}")

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return problems


def stat_of(mount, name):
    line = next(line for line in mount.text(".pegfs/stats").splitlines() if line.startswith(f"pegfs_{name} "))
    return int(line.split()[1])


def look(mount):
    """What the daemon holds once nothing runs."""
    until(lambda: stat_of(mount, "calls_running") + stat_of(mount, "calls_waiting") == 0, timeout=60, what="rest")
    time.sleep(1.5)  # hosts settle, figures in stats are up to a second old
    status = pathlib.Path(f"/proc/{mount.pid}/status").read_text()
    kib = int(status.split("VmRSS:")[1].split()[0])
    below = descendants_of(mount.pid)
    return Held(mount.fd_count(), kib, sum(process_state(pid) == "Z" for pid in children_of(mount.pid)), len(below),
                stat_of(mount, "calls_kept"), stat_of(mount, "open_handles"))


def judge(before, after):
    problems = []
    if after.fds > before.fds + GROWTH_MAX_FDS:
        problems.append(f"descriptors: {before.fds}, then {after.fds}")
    # A sanitizer keeps what has been freed.
    if not VARIANT and after.kib > before.kib + GROWTH_MAX_KIB:
        problems.append(f"memory: {before.kib} KiB, then {after.kib}")
    if after.zombies:
        problems.append(f"{after.zombies} zombies")
    if after.hosts > 2 * 16 + 4:
        problems.append(f"{after.hosts} processes are left")
    if after.handles > 8:
        problems.append(f"{after.handles} open files are left")
    return problems


def stress(mount, count, say=lambda *_: None):
    """Runs count calls; what went wrong, as sentences."""
    tenth = count // 10
    problems = run_calls(mount, 0, tenth)
    before = look(mount)
    start = time.monotonic()
    problems += run_calls(mount, tenth, count - tenth)
    seconds = time.monotonic() - start
    after = look(mount)
    say(f"{count} calls, {(count - tenth) / seconds:.0f} a second\nafter the first tenth: {before}\nat the end:            {after}")
    return problems + judge(before, after)


def main():
    import tempfile

    from lib import mount as mounts

    os.umask(0o022)
    mounts.isolate()
    with tempfile.TemporaryDirectory(prefix="pegfs-stress-") as work:
        os.chmod(work, 0o777)
        mount = mounts.Mount(work).start()
        problems = stress(mount, int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, print)
        problems += mount.stop()
    for problem in problems:
        print(f"FAILED: {problem}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
