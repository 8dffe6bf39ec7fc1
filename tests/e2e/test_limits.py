"""Every limit of `pegfs mount`: what is beyond it fails with a message, and costs its own call only."""

import errno
import json
import os
import shutil
import time

import pytest

from lib.counter import Counter
from lib.mount import FIXTURES, PEGFS, read_all
from lib.programs import OTHER_USER, THIRD_USER, Background, children_of, descendants_of, run, until

MIB = 1 << 20


@pytest.fixture(scope="module")
def tight():
    """A mount of its own with small limits, for the tests of this file."""
    from conftest import complain, new_work_dir, remove
    from lib.mount import Mount

    directory = new_work_dir()
    mount = Mount(directory, args=[
        "--timeout", 2, "--memory", 300, "--processes", 40, "--files", 64, "--request-max", 100_000,
        "--result-max", 65_536, "--log-max", 100_000, "--progress-max", 50_000]).start()
    yield mount
    problems = mount.stop()
    remove(directory)
    complain(problems)


@pytest.fixture
def t(tight):
    """After each test its daemon lives and other calls work."""
    yield tight
    assert tight.is_alive() and tight.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    assert not tight.log_problems()


@pytest.fixture
def fds():
    """Descriptors that are closed whatever becomes of the test: a mount that is in use stays."""
    opened = []
    yield opened
    for fd in opened:
        os.close(fd)


def failed(mount, tool, request):
    """errno of the write-only form, and the text that explains it."""
    with pytest.raises(OSError) as failure:
        mount.write(tool, request)
    return failure.value.errno, mount.text(f"{tool}/result.txt")


def hungry(mount, what, count=0):
    return mount.fail("hungry", {"what": what, "count": count})


def stat_of(mount, name):
    line = next(line for line in mount.text(".pegfs/stats").splitlines() if line.startswith(name + " "))
    return int(line.split()[1])


# ---------------------------------------------------------------------------------------- time

def test_time(t):
    start = time.monotonic()
    code, text = failed(t, "hungry", {"what": "hang"})
    assert code == errno.ETIMEDOUT and "within 2 seconds" in text and "--timeout" in text
    assert 0.9 < time.monotonic() - start < 8


def test_time_of_a_tool_that_never_looks_up(t):
    """It blocks its own event loop: no AbortSignal gets through, SIGTERM does."""
    code, text = failed(t, "hungry", {"what": "spin"})
    assert code == errno.ETIMEDOUT and "within 2 seconds" in text


def test_timeout_of_tool_md_lowers_it_and_never_raises_it(work, new_mount):
    for name, seconds in (("quick", 0.3), ("endless", 3600)):
        tool = work / "tools" / name
        tool.mkdir(parents=True)
        (tool / "TOOL.md").write_text(f"---\nname: {name}\ndescription: Waits.\ntimeout: {seconds}\n---\n")
        (tool / "index.js").write_text("export const execute = () => new Promise((done) => setTimeout(done, 20000));\n")
    mount = new_mount(tools=(work / "tools",), args=["--timeout", 1])
    code, text = failed(mount, "quick", {})
    assert code == errno.ETIMEDOUT and "within 0.3 seconds" in text and "TOOL.md" in text
    code, text = failed(mount, "endless", {})
    assert code == errno.ETIMEDOUT and "within 1 seconds" in text and "--timeout" in text


# ------------------------------------------------------------------------ memory, processes, files

@pytest.mark.parametrize("what", ["heap", "buffers", "child_memory"])
def test_memory(work, new_mount, what):
    mount = new_mount(args=["--memory", 160, "--timeout", 20])
    text = hungry(mount, what)
    assert "memory" in text or "allocation failed" in text, text
    assert "finish" not in text
    assert mount.say("hello", {"name": "Ada"}) == "Hello, Ada!"


def test_processes(t):
    text = hungry(t, "processes", 100)
    assert "40 processes" in text
    until(lambda: len(descendants_of(t.pid)) < 20, what="the end of what it started")


def test_open_files(t):
    count, code = t.say("hungry", {"what": "files"}).split()
    assert code == "EMFILE" and 20 < int(count) <= 64


# ------------------------------------------------------------------------------------------- sizes

def test_request(t, work):
    counter = Counter(work)
    assert t.write("count", counter.request(data="x" * 90_000))
    code, text = failed(t, "count", counter.request(data="x" * 110_000))
    assert code == errno.EFBIG and "100000" in text.replace(",", "").replace(" ", "")
    assert counter.count() == 1


def test_request_that_never_ends(t, work):
    with Background('yes "{" > "$C"', env={"C": t / "count/call"}) as writer:
        done = writer.end(10)
    assert done.status != 0


def test_result(t):
    assert len(t.say("hungry", {"what": "result", "count": 60_000})) == 60_000
    code, text = failed(t, "hungry", {"what": "result", "count": 70_000})
    assert code == errno.EIO and "more than" in text and "Write large data to a file" in text


def test_result_of_bash_and_python(t):
    assert "more than the 65536" in t.fail("python_kit", {"how": "string", "text": "x" * 70_000})
    assert "more than the 65536" in t.fail("bash_kit", {"how": "text", "text": "x" * 70_000})


def test_result_of_16_mb_works(m):
    """Whole, with its true size, in the form that is read and in files."""
    size = 16 * MIB
    path = m / "hungry/calls/large"
    path.mkdir()
    fd = os.open(path / "call", os.O_RDWR)
    os.write(fd, json.dumps({"what": "result", "count": size}).encode())
    assert read_all(fd) == b'{"content":[{"type":"text","text":"' + b"r" * size + b'"}]}\n'
    os.close(fd)
    assert (path / "result.txt").stat().st_size == size + 1 and (path / "result.txt").read_bytes() == b"r" * size + b"\n"
    assert (path / "result.json").stat().st_size == len((path / "result.json").read_bytes()) > size


def test_log(t):
    t.say("hungry", {"what": "log", "count": 2 * MIB})
    log = t.text("hungry/log")
    assert 100_000 <= len(log) < 101_000
    assert "100000 bytes; the rest is left out" in log.splitlines()[-1]


def test_log_of_a_flood_until_the_time_limit(t):
    """A tool that prints for ever neither fills the disk nor holds the daemon up."""
    with Background('exec /usr/bin/env printf %s "$D" > "$C"',
                    env={"C": t / "hungry/call", "D": json.dumps({"what": "log", "count": 1 << 40})}) as writer:
        for _ in range(5):
            start = time.monotonic()
            os.listdir(t.path)
            assert t.say("echo", {"text": "x"})
            assert time.monotonic() - start < 2
        writer.end(10)


def test_progress(t):
    assert t.say("hungry", {"what": "progress", "count": MIB}) == "updated"
    newest = max((t / "hungry/calls").iterdir(), key=lambda path: path.stat().st_mtime)
    progress = (newest / "progress").read_text()
    assert 40_000 < len(progress) < 52_000
    assert all(json.loads(line) for line in progress.splitlines())
    assert "limit of progress" in t.text("hungry/log") or "reached its limit" in progress


# ------------------------------------------------------------------------------- how many at once

def ask_later(mount, tool, request, fds):
    fd = os.open(mount / tool / "call", os.O_RDWR)
    fds.append(fd)
    os.write(fd, json.dumps(request).encode())


def test_calls_of_one_user(new_mount, work, fds):
    """Who fills the queue gets EBUSY, with a message; another user is served all the same."""
    mount = new_mount(args=["--queue-per-user", 4, "--hosts-per-tool", 2])
    for _ in range(4):
        ask_later(mount, "steps", {"go": str(work / "go")}, fds)
    code, text = failed(mount, "hello", {"name": "x"})
    others = None
    if os.geteuid() == 0:
        others = run('echo \'{"name":"x"}\' > call && cat result.txt', uid=OTHER_USER, cwd=mount / "hello")
    (work / "go").touch()
    for fd in fds:
        assert b"done" in os.read(fd, 4096)
    assert code == errno.EBUSY and "try again" in text and "4 calls" in text
    assert others is None or others.out == "Hello, x!\n"
    assert mount.say("hello", {"name": "Ada"}) == "Hello, Ada!"


def test_queue_in_all(new_mount, fds):
    mount = new_mount(args=["--queue", 2, "--hosts", 1, "--hosts-per-tool", 1])
    for _ in range(3):
        ask_later(mount, "slow", {"ms": 400}, fds)
    code, text = failed(mount, "slow", {"ms": 1})
    assert code == errno.EBUSY and "2 calls wait already" in text
    for fd in fds:
        assert b"slept" in os.read(fd, 4096)


def test_hosts_at_once(new_mount, work, fds):
    """Of two tools with three calls each: two of one, three in all."""
    shutil.copytree(FIXTURES / "steps", work / "tools" / "steps2")
    manifest = work / "tools" / "steps2" / "TOOL.md"
    manifest.write_text(manifest.read_text().replace("name: steps", "name: steps2"))
    mount = new_mount(tools=(FIXTURES, work / "tools"), args=["--hosts", 3, "--hosts-per-tool", 2])
    for tool in ("steps", "steps2"):
        for _ in range(3):
            ask_later(mount, tool, {"go": str(work / "go")}, fds)
    until(lambda: stat_of(mount, "pegfs_calls_running") == 3, what="three at once")
    until(lambda: sorted((path / "status").read_text().split()[1] for path in (mount / "steps/calls").iterdir())
          == ["queued", "running", "running"], what="two of one tool")
    assert stat_of(mount, "pegfs_calls_waiting") == 3
    (work / "go").touch()
    for fd in fds:
        assert b"done" in os.read(fd, 4096)


FLOOD = 'for i in $(seq 40); do echo \'{"ms":250}\' > call & done; wait'


def overtakes(mount, uid):
    """A call of `hello` is answered while many calls of `slow` wait for all hosts that there are."""
    with Background(FLOOD, uid=OTHER_USER if os.geteuid() == 0 else None, cwd=mount / "slow"):
        until(lambda: stat_of(mount, "pegfs_calls_waiting") > 20, what="the queue")
        assert run('echo \'{"name":"x"}\' > call', uid=uid, cwd=mount / "hello").status == 0
        return stat_of(mount, "pegfs_calls_waiting")


def test_fair_between_users(new_mount):
    """Forty calls of one user do not keep another's one waiting for all of them."""
    if os.geteuid() != 0:
        pytest.skip("needs root for other users")
    mount = new_mount(args=["--hosts", 2, "--hosts-per-tool", 2])
    assert overtakes(mount, THIRD_USER) > 0


# ------------------------------------------------------------------------- costs its own call only

@pytest.mark.parametrize("bad", [{"what": "crash"}, {"what": "spin"}, {"what": "log", "count": 8 * MIB}, {"what": "processes", "count": 90}],
                         ids=lambda bad: bad["what"])
def test_bad_call_costs_its_own_call_only(t, work, bad, fds):
    """Another call of the same tool and one of another run beside it, undisturbed."""
    counter = Counter(work)
    ask_later(t, "count", json.loads(counter.request(ms=600)), fds)
    ask_later(t, "hungry", bad, fds)
    ask_later(t, "hungry", {"what": "files"}, fds)
    assert b"counted" in os.read(fds[0], 4096)
    assert b"EMFILE" in os.read(fds[2], 4096)
    assert os.read(fds[1], 65536)
    assert counter.count() == 1


def test_wrong_value_of_an_option_is_refused_with_its_range():
    for option, value in (("--timeout", "0"), ("--files", "abc"), ("--keep", "-1"), ("--result-max", "10"), ("--memory", "1e3")):
        done = run([PEGFS, "mount", "/nonexistent", option, value])
        assert done.status == 2 and option in done.err and value in done.err, done


def test_no_process_of_all_that_is_left(t):
    until(lambda: len(descendants_of(t.pid)) <= 2 * len(children_of(t.pid)), what="hosts and wardens alone")
