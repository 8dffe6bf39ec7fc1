"""The handle of `call`, state by state: call-semantics.md, 4.3 to 4.5 and 4.7."""

import asyncio
import contextlib
import errno
import json
import os
import pathlib
import select
import shutil
import signal
import threading
import time

import pytest

from lib.counter import Counter
from lib.mount import EXAMPLES, read_all
from lib.programs import Background, check, need, process_state, run, until


@contextlib.contextmanager
def opened(path, flags):
    """An open file whose close may fail, as it does after an incomplete document."""
    fd = os.open(path, flags)
    try:
        yield fd
    finally:
        with contextlib.suppress(OSError):
            os.close(fd)


@contextlib.contextmanager
def fails_with(number):
    with pytest.raises(OSError) as caught:
        yield
    assert errno.errorcode[caught.value.errno] == errno.errorcode[number]


@pytest.fixture
def counter(work):
    return Counter(work)


def blocks(act):
    """Runs act in a thread; returns (thread, list that gets its value or error)."""
    outcome = []

    def body():
        try:
            outcome.append(act())
        except OSError as failure:
            outcome.append(failure)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    return thread, outcome


# --------------------------------------------------------------------------------- write-only

def test_write_waits_until_the_tool_is_done(m):
    start = time.monotonic()
    m.write("slow", {"ms": 400})
    assert 0.4 <= time.monotonic() - start < 5
    assert m.text("slow/result.txt").strip() == "slept 400"


def test_result_is_there_when_the_write_returns(m):
    for number in range(20):
        m.write("echo", {"text": str(number)})
        assert json.loads(m.text("echo/result.txt")) == {"text": str(number)}
        assert m.json("echo/result.json")["content"][0]["text"] == json.dumps({"text": str(number)}, separators=(",", ":"))


@pytest.mark.parametrize("tool, request_, number", [
    ("fail", {}, errno.EIO), ("throws", {"how": "error"}, errno.EIO),
    ("exits", {"how": "exit"}, errno.EIO), ("exits", {"how": "kill"}, errno.EIO),
    ("limited", {}, errno.ETIMEDOUT), ("typed", {"n": "x"}, errno.EINVAL),
    ("echo", "nonsense", errno.EINVAL), ("syntax_error", {}, errno.EIO),
    ("no_export", {}, errno.EIO),
])
def test_outcome_is_the_errno_of_the_write(m, tool, request_, number):
    with fails_with(number):
        m.write(tool, request_)
    assert m.json(f"{tool}/result.json")["isError"] is True
    assert m.text(f"{tool}/result.txt").strip()


@pytest.mark.parametrize("request_, number", [({"fail": True}, errno.EIO), ("x", errno.EINVAL)])
def test_error_sticks_to_the_handle(m, counter, request_, number):
    """H2: the same bytes again, other bytes, blanks: the same error, and nothing runs."""
    document = counter.request(**request_).encode() if isinstance(request_, dict) else b"x"
    with opened(m / "count/call", os.O_WRONLY) as fd:
        for data in (document, document, b"\n", counter.request().encode()):
            with fails_with(number):
                os.write(fd, data)
    assert counter.count() == (1 if isinstance(request_, dict) else 0)


def test_second_document_on_a_handle_does_not_run(m, counter):
    """H3."""
    document = counter.request().encode()
    with opened(m / "count/call", os.O_WRONLY) as fd:
        assert os.write(fd, document) == len(document)
        assert os.write(fd, b" \n\t") == 3
        with fails_with(errno.EINVAL):
            os.write(fd, document)
        with fails_with(errno.EINVAL):
            os.write(fd, b"\n")
    assert counter.count() == 1


def test_each_open_is_a_call(m, counter):
    for _ in range(3):
        m.write("count", counter.request())
    assert counter.count() == 3
    assert len({run["id"] for run in counter.runs()}) == 3


def test_offsets_are_ignored(m, counter):
    document = counter.request().encode()
    with opened(m / "count/call", os.O_WRONLY) as fd:
        os.pwrite(fd, document[:10], 1 << 40)
        os.pwrite(fd, document[10:], 0)
    assert counter.count() == 1


def test_truncating_drops_what_was_gathered(m, counter):
    with opened(m / "count/call", os.O_WRONLY) as fd:
        os.write(fd, b'{"file":"/nowhere')
        os.ftruncate(fd, 0)
        os.write(fd, counter.request().encode())
    assert counter.count() == 1


@pytest.mark.parametrize("flags", [os.O_TRUNC, os.O_APPEND, os.O_NONBLOCK, os.O_SYNC, os.O_DIRECT,
                                   os.O_TRUNC | os.O_APPEND | os.O_NONBLOCK, os.O_CREAT])
def test_flags_of_open_change_nothing(m, counter, flags):
    """H14: O_NONBLOCK does not make a write-only call asynchronous."""
    with opened(m / "count/call", os.O_WRONLY | flags) as fd:
        start = time.monotonic()
        document = counter.request(ms=200).encode()
        assert os.write(fd, document) == len(document)
        assert time.monotonic() - start >= 0.2
    assert counter.count() == 1


def test_exclusive_create_says_that_it_exists(m):
    with fails_with(errno.EEXIST):
        os.open(m / "count/call", os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def test_flush_with_an_incomplete_document_fails_and_changes_nothing(m, counter):
    """H6: a duplicate's close tells, and the bytes may go on."""
    document = counter.request().encode()
    with opened(m / "count/call", os.O_WRONLY) as fd:
        os.write(fd, document[:7])
        with fails_with(errno.EINVAL):
            os.close(os.dup(fd))
        assert os.write(fd, document[7:]) == len(document) - 7
        os.close(os.dup(fd))
    assert counter.count() == 1


def test_release_with_an_incomplete_document_leaves_a_message(m):
    with opened(m / "count/call", os.O_WRONLY) as fd:
        os.write(fd, b'{"file": "/x"')
    until(lambda: m.json("count/result.json") is not None, what="the message")
    assert m.json("count/result.json")["isError"] is True


def test_fsync_and_fallocate_succeed(m):
    with opened(m / "count/call", os.O_WRONLY) as fd:
        os.fsync(fd)
        os.posix_fallocate(fd, 0, 4096)
        os.fsync(fd)


# --------------------------------------------------------------------------------- read-write

def test_write_returns_at_once_and_the_read_waits(m):
    with opened(m / "slow/call", os.O_RDWR) as fd:
        start = time.monotonic()
        os.write(fd, b'{"ms":400}')
        assert time.monotonic() - start < 0.35
        assert json.loads(read_all(fd)) == {"content": [{"type": "text", "text": "slept 400"}]}
        assert time.monotonic() - start >= 0.4
        assert os.read(fd, 100) == b""


def test_answer_is_one_line_of_json(m):
    with opened(m / "echo/call", os.O_RDWR) as fd:
        os.write(fd, b'{"text":"a\\nb"}')
        answer = read_all(fd)
    assert answer.endswith(b"\n") and answer.count(b"\n") == 1


@pytest.mark.parametrize("tool, request_", [
    ("fail", {}), ("throws", {"how": "error"}), ("exits", {"how": "exit"}), ("limited", {}),
])
def test_tool_error_is_an_answer(m, tool, request_):
    assert m.fail(tool, request_).strip()


@pytest.mark.parametrize("document", [b"nonsense", b'{"n":"x"}', b'{"a":1}{"b":2}'])
def test_bad_document_fails_the_write_and_can_be_read(m, document):
    with opened(m / "typed/call", os.O_RDWR) as fd:
        with fails_with(errno.EINVAL):
            os.write(fd, document)
        result = json.loads(read_all(fd))
        assert result["isError"] is True and result["content"][0]["text"]
        with fails_with(errno.EINVAL):
            os.write(fd, b"{}")


def test_read_before_any_document_is_the_end(m):
    """H16: it must not wait."""
    with opened(m / "echo/call", os.O_RDWR) as fd:
        assert os.read(fd, 100) == b""
        os.write(fd, b"{}")
        assert json.loads(read_all(fd))["content"][0]["text"] == "{}"


def test_read_of_an_incomplete_document_fails(m, counter):
    document = counter.request().encode()
    with opened(m / "count/call", os.O_RDWR) as fd:
        os.write(fd, document[:5])
        for _ in range(2):
            with fails_with(errno.EINVAL):
                os.read(fd, 100)
        os.write(fd, document[5:])
        assert json.loads(read_all(fd))["content"]
    assert counter.count() == 1


def test_next_document_may_follow_once_the_answer_was_read(m):
    with opened(m / "echo/call", os.O_RDWR) as fd:
        for number in range(5):
            os.write(fd, json.dumps({"text": f"{number}" * (number + 1)}).encode())
            answer = json.loads(read_all(fd))
            assert json.loads(answer["content"][0]["text"]) == {"text": f"{number}" * (number + 1)}
            assert os.write(fd, b"\n ") == 2


def test_next_document_before_the_answer_was_read_is_refused(m, counter):
    with opened(m / "count/call", os.O_RDWR) as fd:
        os.write(fd, counter.request(ms=300).encode())
        assert os.write(fd, b"\n") == 1
        with fails_with(errno.EBUSY):
            os.write(fd, counter.request().encode())
        until(lambda: select.select([fd], [], [], 0)[0], what="the result")
        with fails_with(errno.EBUSY):
            os.write(fd, counter.request().encode())
        assert json.loads(read_all(fd))["content"]
        os.write(fd, counter.request().encode())
        assert json.loads(read_all(fd))["content"]
    assert counter.count() == 2


def test_positions_of_reads(m):
    with opened(m / "shapes/call", os.O_RDWR) as fd:
        os.write(fd, b'{"shape":"several"}')
        whole = os.pread(fd, 1 << 16, 0)
        assert os.pread(fd, 10, 5) == whole[5:15]
        assert os.pread(fd, 10, len(whole)) == b""
        assert os.pread(fd, 10, len(whole) + 1000) == b""
        os.lseek(fd, 0, os.SEEK_SET)
        assert read_all(fd) == whole
    result = json.loads(whole)
    assert [block["text"] for block in result["content"]] == ["first", "second", "third"]


def test_big_answer_comes_whole(m):
    with opened(m / "shapes/call", os.O_RDWR) as fd:
        os.write(fd, b'{"shape":"big"}')
        answer = json.loads(read_all(fd))
    assert answer["content"][0]["text"] == "x" * 3_000_000


def test_several_readers_of_one_handle_all_get_it(m):
    with opened(m / "slow/call", os.O_RDWR) as fd:
        os.write(fd, b'{"ms":300}')
        waiting = [blocks(lambda: os.pread(fd, 1000, 0)) for _ in range(3)]
        for thread, outcome in waiting:
            thread.join(10)
            assert b"slept 300" in outcome[0]


def test_nonblocking_read_says_try_again(m):
    with opened(m / "slow/call", os.O_RDWR | os.O_NONBLOCK) as fd:
        os.write(fd, b'{"ms":300}')
        with fails_with(errno.EAGAIN):
            os.read(fd, 100)
        until(lambda: select.select([fd], [], [], 1)[0], what="the answer")
        assert b"slept 300" in os.read(fd, 1000)


def test_close_without_reading_lets_it_run(m, counter):
    """H6: a program that opens for reading and writing and never reads."""
    with opened(m / "count/call", os.O_RDWR) as fd:
        os.write(fd, counter.request(ms=200, data="abc").encode())
    until(lambda: m.text("count/result.txt").strip() == "counted 3", what="the result")
    assert counter.count() == 1


def test_close_after_beginning_to_wait_cancels(m, work):
    marks = work / "marks"
    marks.touch()
    marks.chmod(0o666)
    with opened(m / "patient/call", os.O_RDWR) as fd:
        os.write(fd, json.dumps({"file": str(marks)}).encode())
        until(lambda: "started" in marks.read_text(), what="the start")
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        assert poll.poll(50) == []
    until(lambda: "aborted" in marks.read_text(), what="the abort")


def test_close_of_a_duplicate_cancels_nothing(m):
    with opened(m / "slow/call", os.O_RDWR) as fd:
        os.write(fd, b'{"ms":300}')
        thread, outcome = blocks(lambda: os.pread(fd, 1000, 0))
        for _ in range(3):
            os.close(os.dup(fd))
            time.sleep(0.02)
        thread.join(10)
        assert b"slept 300" in outcome[0]


# ---------------------------------------------------------------------------------------- poll

def test_poll_of_a_write_only_handle(m):
    with opened(m / "slow/call", os.O_WRONLY) as fd:
        poll = select.poll()
        poll.register(fd, select.POLLIN | select.POLLOUT)
        assert poll.poll(1000) == [(fd, select.POLLOUT)]


def test_poll_of_a_read_write_handle(m):
    with opened(m / "slow/call", os.O_RDWR) as fd:
        poll = select.poll()
        poll.register(fd, select.POLLIN | select.POLLOUT)
        assert poll.poll(1000) == [(fd, select.POLLIN | select.POLLOUT)]
        os.write(fd, b'{"ms":300}')
        assert poll.poll(0) == [(fd, select.POLLOUT)]
        poll.modify(fd, select.POLLIN)
        start = time.monotonic()
        assert poll.poll(5000) == [(fd, select.POLLIN)]
        assert 0.1 < time.monotonic() - start < 3
        assert b"slept" in os.read(fd, 1000)


@pytest.mark.parametrize("edge", [0, select.EPOLLET])
def test_epoll_registered_before_the_write(m, edge):
    """As Go does: the file is in epoll from the start, and O_NONBLOCK is set on it."""
    with opened(m / "slow/call", os.O_RDWR | os.O_NONBLOCK) as fd, select.epoll() as epoll:
        epoll.register(fd, select.EPOLLIN | edge)
        epoll.poll(0.05)
        os.write(fd, b'{"ms":200}')
        with fails_with(errno.EAGAIN):
            os.read(fd, 100)
        assert epoll.poll(5)[0][0] == fd
        assert b"slept" in os.read(fd, 1000)


def test_asyncio_waits_for_a_hundred_answers(m):
    """Waiting costs no thread."""
    async def ask(number):
        fd = os.open(m / "echo/call", os.O_RDWR | os.O_NONBLOCK)
        try:
            os.write(fd, json.dumps({"text": str(number)}).encode())
            ready = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().add_reader(fd, lambda: ready.done() or ready.set_result(None))
            await asyncio.wait_for(ready, 60)
            asyncio.get_running_loop().remove_reader(fd)
            return json.loads(json.loads(read_all(fd))["content"][0]["text"])["text"]
        finally:
            os.close(fd)

    async def ask_all():
        return await asyncio.gather(*(ask(number) for number in range(40)))

    assert asyncio.run(ask_all()) == [str(number) for number in range(40)]


def test_poll_of_what_is_read_only(m):
    for name in ("hello/call", "hello/schema.json", "hello/result.json", "hello/TOOL.md"):
        with opened(m / name, os.O_RDONLY) as fd:
            assert select.select([fd], [], [], 1)[0] == [fd], name


# ----------------------------------------------------------------------------------- read-only

def test_reading_call_shows_the_usage_text(m):
    assert m.text("hello/call").startswith("#")
    with opened(m / "hello/call", os.O_RDONLY) as fd:
        whole = read_all(fd)
        assert os.pread(fd, 5, 3) == whole[3:8]
        assert os.fstat(fd).st_size == len(whole)


def test_reading_call_while_a_call_runs_does_not_wait(m):
    thread, _ = blocks(lambda: m.write("slow", {"ms": 600}))
    start = time.monotonic()
    for name in ("slow/call", "slow/result.json", "slow/result.txt", "slow/log", "slow/schema.json"):
        m.text(name)
    os.listdir(m / "slow")
    assert time.monotonic() - start < 0.5
    thread.join(10)


# ------------------------------------------------------------------------- the inode lock (H1)

def test_two_writers_of_one_tool_do_not_block_each_other(m):
    start = time.monotonic()
    writers = [blocks(lambda: m.write("slow", {"ms": 800})) for _ in range(2)]
    time.sleep(0.2)
    before = time.monotonic()
    os.stat(m / "slow/call")
    check(["touch", m / "slow/call"])
    check('exec 3>"$C"; exec 3>&-; : > "$C"', env={"C": m / "slow/call"})
    assert time.monotonic() - before < 0.5
    for thread, outcome in writers:
        thread.join(10)
        assert outcome == [len('{"ms": 800}')]
    assert time.monotonic() - start < 1.6


@pytest.mark.parametrize("redirection", [">", ">>"])
def test_second_caller_can_be_killed(m, redirection):
    """Neither is in D state, and kill -9 takes effect at once."""
    command = f'echo \'{{"ms":3000}}\' {redirection} "$C"'
    env = {"C": m / "slow/call"}
    with Background(command, env=env) as first, Background(command, env=env) as second:
        time.sleep(0.3)
        assert process_state(first.pid) == "S" and process_state(second.pid) == "S"
        second.signal(signal.SIGKILL)
        killed = time.monotonic()
        second.process.wait(5)
        assert time.monotonic() - killed < 0.5
        assert first.is_running()


# ------------------------------------------------------------------------------------- sendfile

def test_h7_busybox_cat_gets_the_answer(m):
    need("busybox")
    out = check('exec 3<>"$C"; echo \'{"shape":"several"}\' >&3; busybox cat <&3',
                env={"C": m / "shapes/call"})
    assert len(json.loads(out)["content"]) == 3


def test_h10_sendfile_on_two_results_does_not_mix_them(m, work):
    fds = []
    for number in range(2):
        m.write("echo", {"text": str(number) * 10})
        fds.append(os.open(m / "echo/result.json", os.O_RDONLY))
    texts = []
    for fd in fds:
        with open(work / "out", "wb") as out:
            os.sendfile(out.fileno(), fd, 0, 1 << 20)
        texts.append(json.loads((work / "out").read_bytes())["content"][0]["text"])
        os.close(fd)
    assert texts == ['{"text":"0000000000"}', '{"text":"1111111111"}']


def test_reader_keeps_the_result_that_it_opened(m):
    m.write("echo", {"text": "old"})
    with opened(m / "echo/result.txt", os.O_RDONLY) as fd:
        m.write("echo", {"text": "new and longer"})
        assert os.fstat(fd).st_size == len('{"text":"old"}') or b"old" in os.pread(fd, 100, 0)
        assert b"old" in os.pread(fd, 100, 0) and b"new" not in os.pread(fd, 100, 0)
    assert "new" in m.text("echo/result.txt")


def test_t25_time_of_the_result_moves(m):
    m.write("echo", {"text": "1"})
    first = os.stat(m / "echo/result.json")
    time.sleep(0.02)
    m.write("echo", {"text": "22"})
    second = os.stat(m / "echo/result.json")
    assert second.st_mtime_ns > first.st_mtime_ns
    assert second.st_size == first.st_size + 1
    assert abs(second.st_mtime - time.time()) < 30


def test_t25_find_newer_and_make(m, work):
    need("make")
    stamp = work / "stamp"
    m.write("ids", {})
    (work / "Makefile").write_text(f"out: {m / 'ids/result.json'}\n\tcp $< $@\n")
    check(["make", "-C", work])
    stamp.touch()
    assert check(["find", m / "ids", "-name", "result.json", "-newer", stamp]) == ""
    time.sleep(0.02)
    m.write("ids", {})
    assert "result.json" in check(["find", m / "ids", "-name", "result.json", "-newer", stamp])
    assert "cp" in check(["make", "-C", work])


def test_inotify_sees_the_write_of_a_call(m):
    need("inotifywait")
    with Background(["inotifywait", "-t", "20", "-e", "close_write", m / "echo"]) as watcher:
        until(lambda: select.select([watcher.process.stderr], [], [], 1)[0], what="the watch")
        until(lambda: b"established" in watcher.process.stderr.readline(), what="the watch")
        m.write("echo", {})
        assert "CLOSE_WRITE" in watcher.end(20).out


def test_tail_follows_the_result_without_harm(m):
    done = run(["timeout", "1", "tail", "-n", "+1", "-F", m / "echo/result.txt"], timeout=10)
    assert done.status == 124


def test_handle_keeps_its_tool_when_it_is_removed(work, new_mount):
    """ENODEV where the tool is gone; never another tool's answer."""
    source = work / "tools"
    shutil.copytree(EXAMPLES, source)
    mount = new_mount(tools=(source,))
    with opened(mount / "hello/call", os.O_WRONLY) as fd:
        shutil.rmtree(source / "hello")
        until(lambda: "hello" not in os.listdir(mount.path), what="the end of the tool")
        with fails_with(errno.ENODEV):
            os.write(fd, b'{"name":"Ada"}')


def test_path_of_the_call_through_a_link_and_a_relative_one(m, work):
    (work / "link").symlink_to(m / "hello")
    check('cd "$W" && echo \'{"name":"Ada"}\' > link/call && cat link/result.txt', env={"W": work})
    assert pathlib.Path(work / "link/result.txt").read_text().strip() == "Hello, Ada!"
