"""calls/ID/: what each call leaves, ids of one's own, who sees what, and what is kept."""

import datetime
import errno
import json
import os
import re
import stat
import time

import pytest

from lib.counter import Counter
from lib.programs import OTHER_USER, THIRD_USER, Background, check, run, until

STATUS_LINE = re.compile(r"([a-z]+): (.*)")


@pytest.fixture
def counter(work):
    return Counter(work)


def directory(m, tool, call_id):
    return m / tool / "calls" / call_id


def reserve(m, tool, call_id):
    path = directory(m, tool, call_id)
    path.mkdir()
    return path


def status_of(path):
    return dict(STATUS_LINE.fullmatch(line).groups() for line in (path / "status").read_text().splitlines())


def ids(m, tool):
    return os.listdir(m / tool / "calls")


def write(path, request):
    fd = os.open(path / "call", os.O_WRONLY)
    try:
        os.write(fd, json.dumps(request).encode())
    finally:
        os.close(fd)


def refused(action):
    with pytest.raises(OSError) as failure:
        action()
    return failure.value.errno


# ------------------------------------------------------------------------------- what is in one

def test_directory_of_a_call_has_eight_files_with_truthful_modes(m):
    path = reserve(m, "hello", "modes")
    names = {name: stat.S_IMODE((path / name).stat().st_mode) for name in os.listdir(path)}
    assert names == {"call": 0o666, "cancel": 0o222, "status": 0o444, "request.json": 0o444, "progress": 0o444,
                     "result.json": 0o444, "result.txt": 0o444, "log": 0o444}


def test_reserved_id_becomes_the_tool_call_id(m):
    path = reserve(m, "ids", "My-call_1.a")
    assert status_of(path)["state"] == "reserved"
    write(path, {})
    assert json.loads((path / "result.json").read_text())["content"][0]["text"].find("My-call_1.a") >= 0
    assert status_of(path)["id"] == "My-call_1.a"


def test_what_a_finished_call_leaves(m):
    path = reserve(m, "prints", "leaves")
    write(path, {"name": "Ada"})
    assert json.loads((path / "request.json").read_text()) == {"name": "Ada"}
    assert (path / "result.txt").read_text() == "read 0 bytes of standard input\n"
    assert json.loads((path / "result.json").read_text())["content"][0]["type"] == "text"
    assert "to stderr: Ada" in (path / "log").read_text()
    assert (path / "progress").read_text() == ""
    for name in ("request.json", "result.json", "result.txt", "log", "status"):
        assert (path / name).stat().st_size == len((path / name).read_bytes()), name


def test_read_write_form_on_a_reserved_id(m):
    path = reserve(m, "hello", "both-ways")
    fd = os.open(path / "call", os.O_RDWR)
    os.write(fd, b'{"name":"Ada"}')
    assert json.loads(os.read(fd, 4096))["content"][0]["text"] == "Hello, Ada!"
    os.close(fd)
    assert status_of(path)["state"] == "done"


def test_calls_without_an_id_appear_too(m):
    before = set(ids(m, "twin"))
    m.ask("twin", {})
    (new,) = set(ids(m, "twin")) - before
    status = status_of(directory(m, "twin", new))
    assert status["state"] == "done" and status["id"] == new and status["tool"] == "twin"


def test_id_takes_one_request(m, counter):
    path = reserve(m, "count", "once")
    write(path, json.loads(counter.request()))
    fd = os.open(path / "call", os.O_WRONLY)
    done = path / "result.json"
    first = done.read_bytes()
    try:
        os.write(fd, counter.request(data="more").encode())
    except OSError:
        pass
    os.close(fd)
    assert done.read_bytes() == first and status_of(path)["state"] == "done"


# -------------------------------------------------------------------------------------- status

def times(status):
    return [datetime.datetime.strptime(status[key], "%Y-%m-%dT%H:%M:%S.%fZ")
            for key in ("created", "started", "ended") if key in status]


def test_status_of_a_success_has_its_times_in_order(m):
    path = reserve(m, "slow", "timed")
    assert list(status_of(path)) == ["state", "id", "tool", "created"]
    write(path, {"ms": 200})
    status = status_of(path)
    assert list(status) == ["state", "id", "tool", "created", "started", "ended"]
    created, started, ended = times(status)
    assert created <= started and 0.15 < (ended - started).total_seconds() < 10
    now = datetime.datetime.utcnow()
    assert abs((now - ended).total_seconds()) < 60


def test_status_runs_through_its_states(m, work):
    go = work / "go"
    path = reserve(m, "steps", "states")
    with Background(["sh", "-c", 'printf %s "$D" > "$C"'],
                    env={"C": path / "call", "D": json.dumps({"go": str(go)})}) as writer:
        until(lambda: status_of(path)["state"] == "running", what="running")
        assert "ended" not in status_of(path) and "started" in status_of(path)
        go.touch()
        assert writer.end().status == 0
    assert status_of(path)["state"] == "done"


def test_queued_call_says_so(new_mount, work):
    mount = new_mount(args=["--hosts-per-tool", 1])
    go = work / "go"
    request = json.dumps({"go": str(go)})
    first, second = reserve(mount, "steps", "first"), reserve(mount, "steps", "second")
    fds = [os.open(path / "call", os.O_RDWR) for path in (first, second)]
    for fd in fds:
        os.write(fd, request.encode())
    until(lambda: status_of(first)["state"] == "running", what="running")
    assert status_of(second)["state"] == "queued" and "started" not in status_of(second)
    go.touch()
    for fd in fds:
        assert b"done" in os.read(fd, 4096)
        os.close(fd)
    assert status_of(second)["state"] == "done"


def fails(m, tool, call_id, request):
    path = reserve(m, tool, call_id)
    code = refused(lambda: write(path, request))
    return path, code, status_of(path)


@pytest.mark.parametrize("tool, request_, code, state, words", [
    ("fail", {}, errno.EIO, "failed", ""),
    ("throws", {"how": "error"}, errno.EIO, "failed", "thrown on purpose"),
    ("exits", {"how": "kill"}, errno.EIO, "failed", "signal 9"),
    ("exits", {"how": "exit"}, errno.EIO, "failed", "status 3"),
    ("limited", {}, errno.ETIMEDOUT, "timed out", "within 1 seconds"),
    ("hello", {"nme": "x"}, errno.EINVAL, "refused", "1 parameter"),
    ("hello", [], errno.EINVAL, "refused", "object"),
], ids=lambda value: value if isinstance(value, str) and " " not in value else None)
def test_status_of_what_did_not_go_well_has_a_reason(m, tool, request_, code, state, words):
    path, seen, status = fails(m, tool, f"bad-{time.monotonic_ns()}", request_)
    assert seen == code
    assert status["state"] == state
    assert words in status["reason"]
    assert json.loads((path / "result.json").read_text())["isError"] is True
    assert status["reason"].split("\n")[0][:40] in (path / "result.txt").read_text()


def test_refused_call_never_started(m):
    _, _, status = fails(m, "hello", "never-started", {})
    assert "started" not in status and "ended" in status


# ----------------------------------------------------------------------------------------- ids

@pytest.mark.parametrize("bad", ["a b", ".hidden", "-x", "_x", "x" * 65, "a:b", "\u00e9", "a\nb", "a\\b", "~"])
def test_bad_id_is_invalid(m, bad):
    assert refused(lambda: reserve(m, "hello", bad)) == errno.EINVAL


@pytest.mark.parametrize("good", ["a", "7", "x" * 64, "A.b-c_d", "call_0123456789abcdef"])
def test_good_id_is_taken_once(m, good):
    reserve(m, "hello", good)
    assert good in ids(m, "hello")
    assert refused(lambda: reserve(m, "hello", good)) == errno.EEXIST
    directory(m, "hello", good).rmdir()
    assert good not in ids(m, "hello")


def test_same_id_may_be_used_for_another_tool(m):
    reserve(m, "hello", "shared")
    reserve(m, "echo", "shared")


def test_too_many_reserved_ids_are_refused(m):
    for i in range(256):
        reserve(m, "both", f"r{i}")
    assert refused(lambda: reserve(m, "both", "one-more")) == errno.EBUSY
    directory(m, "both", "r0").rmdir()
    reserve(m, "both", "one-more")


def test_mkdir_p_and_other_programs(m):
    check("mkdir calls/by-shell && mkdir -p calls/by-shell && rmdir calls/by-shell && ! test -e calls/by-shell",
          cwd=m / "hello")
    done = run("mkdir calls/x/y", cwd=m / "hello")
    assert done.status == 1


def test_nothing_else_can_be_made_in_calls(m):
    path = reserve(m, "hello", "closed")
    for action in (lambda: (m / "hello/calls/file").write_text("x"), lambda: (path / "more").write_text("x"),
                   lambda: (path / "sub").mkdir(), lambda: (path / "log").unlink(),
                   lambda: (path / "status").write_text("x"), lambda: path.rename(m / "hello/calls/new")):
        assert refused(action) in (errno.EROFS, errno.EACCES, errno.EPERM)


# ------------------------------------------------------------------------------------ forgetting

def test_rmdir_forgets_a_finished_call(m):
    path = reserve(m, "hello", "to-go")
    write(path, {"name": "Ada"})
    status = path / "status"
    assert status.exists()
    path.rmdir()
    assert "to-go" not in ids(m, "hello")
    assert refused(path.stat) == errno.ENOENT
    assert refused(status.read_text) == errno.ENOENT


def test_rmdir_of_a_running_call_cancels_it_and_its_id_is_free_at_once(m, work):
    marks = work / "marks"
    marks.touch()
    path = reserve(m, "patient", "running")
    with Background(["sh", "-c", 'printf %s "$D" > "$C"'],
                    env={"C": path / "call", "D": json.dumps({"file": str(marks)})}) as writer:
        until(lambda: "started" in marks.read_text(), what="the call")
        path.rmdir()
        assert refused(path.stat) == errno.ENOENT
        reserve(m, "patient", "running")
        assert writer.end(5).status != 0
    until(lambda: "aborted" in marks.read_text(), what="the abort")
    assert status_of(path)["state"] == "reserved"


def test_id_that_is_gone_is_never_anothers(m):
    path = reserve(m, "hello", "again")
    write(path, {"name": "First"})
    held = os.open(path / "result.txt", os.O_RDONLY)
    path.rmdir()
    reserve(m, "hello", "again")
    assert (path / "result.txt").read_text() == "", "the new call has no result yet"
    assert (path / "result.json").read_text() == "null\n"
    write(path, {"name": "Second"})
    assert (path / "result.txt").read_text() == "Hello, Second!\n"
    assert os.read(held, 100) in (b"Hello, First!\n", b""), "who has it open keeps its bytes"
    os.close(held)


def test_a_bounded_number_of_finished_calls_is_kept(new_mount):
    mount = new_mount(args=["--keep", 3])
    for i in range(12):
        mount.write("hello", {"name": f"n{i}"})
    kept = ids(mount, "hello")
    assert len(kept) <= 4
    results = [(directory(mount, "hello", name) / "result.txt").read_text() for name in sorted(kept)]
    assert results[-1] == "Hello, n11!\n", "the newest are kept"
    assert "Hello, n0!\n" not in results


def test_kept_number_is_that_of_each_tool_and_reserved_ids_do_not_count(new_mount):
    mount = new_mount(args=["--keep", 2])
    reserve(mount, "hello", "mine")
    mount.write("echo", {"text": "x"})
    for i in range(6):
        mount.write("hello", {"name": str(i)})
    assert "mine" in ids(mount, "hello")
    assert len(ids(mount, "hello")) <= 4 and len(ids(mount, "echo")) == 1


def test_many_reserved_calls_end_as_their_own(m):
    """Fifty ids at once: each has its own answer."""
    paths = [reserve(m, "hello", f"p{i}") for i in range(50)]
    fds = [os.open(path / "call", os.O_RDWR) for path in paths]
    for i, fd in enumerate(fds):
        os.write(fd, json.dumps({"name": f"n{i}"}).encode())
    for i, (fd, path) in enumerate(zip(fds, paths)):
        assert f"Hello, n{i}!" in os.read(fd, 4096).decode()
        os.close(fd)
        assert (path / "result.txt").read_text() == f"Hello, n{i}!\n"
        assert json.loads((path / "request.json").read_text()) == {"name": f"n{i}"}
        path.rmdir()


# ----------------------------------------------------------------------------------- who sees what

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for other users")


@needs_root
def test_a_caller_sees_only_its_own_calls_and_root_all(m):
    for uid in (OTHER_USER, THIRD_USER):
        check(f'mkdir calls/of-{uid} && echo \'{{"name":"{uid}"}}\' > calls/of-{uid}/call', uid=uid, cwd=m / "hello")
    mine, other = f"of-{OTHER_USER}", f"of-{THIRD_USER}"
    listed = check(["ls", "calls"], uid=OTHER_USER, cwd=m / "hello").split()
    assert mine in listed and other not in listed
    assert check(f"cat calls/{mine}/result.txt", uid=OTHER_USER, cwd=m / "hello") == f"Hello, {OTHER_USER}!\n"
    for command in (f"ls calls/{other}", f"cat calls/{other}/result.txt", f"cat calls/{other}/request.json",
                    f"echo > calls/{other}/cancel", f"rmdir calls/{other}", f"echo '{{}}' > calls/{other}/call"):
        assert run(command, uid=OTHER_USER, cwd=m / "hello").status != 0, command
    assert {mine, other} <= set(ids(m, "hello"))
    assert (directory(m, "hello", mine) / "result.txt").read_text() == f"Hello, {OTHER_USER}!\n"


@needs_root
def test_two_users_may_use_the_same_id(m):
    for uid in (OTHER_USER, THIRD_USER):
        check(f'mkdir calls/same && echo \'{{"name":"{uid}"}}\' > calls/same/call', uid=uid, cwd=m / "hello")
    for uid in (OTHER_USER, THIRD_USER):
        assert check("cat calls/same/result.txt", uid=uid, cwd=m / "hello") == f"Hello, {uid}!\n"


@needs_root
def test_what_one_user_has_looked_at_is_not_in_the_kernels_cache_for_another(m):
    """The names are looked up for each user: an entry that was cached would be anybody's."""
    check('mkdir calls/cached && echo \'{"name":"x"}\' > calls/cached/call && cat calls/cached/result.txt',
          uid=OTHER_USER, cwd=m / "hello")
    for _ in range(3):
        check("cat calls/cached/result.txt", uid=OTHER_USER, cwd=m / "hello")
        assert run("cat calls/cached/result.txt", uid=THIRD_USER, cwd=m / "hello").status == 1
