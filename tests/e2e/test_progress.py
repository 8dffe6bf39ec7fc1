"""Progress: every onUpdate is a line of JSON that can be read at once (R42, R52)."""

import asyncio
import json
import os
import select
import time

import pytest

from lib.programs import Background, check, until


class Steps:
    """A call of `steps`: it has sent one update and waits for release() before the next."""

    def __init__(self, m, work, name, **params):
        self.go = work / "go"
        self.path = m / "steps" / "calls" / name
        self.path.mkdir()
        self.fd = os.open(self.path / "call", os.O_RDWR)
        os.write(self.fd, json.dumps({"go": str(self.go), **params}).encode())

    def release(self):
        self.go.touch()

    def lines(self):
        text = (self.path / "progress").read_text()
        assert text == "" or text.endswith("\n"), "whole lines only"
        return [json.loads(line) for line in text.splitlines()]

    def first(self):
        return until(self.lines, what="the first update")

    def end(self):
        result = json.loads(os.read(self.fd, 1 << 16))
        os.close(self.fd)
        assert result == {"content": [{"type": "text", "text": "done"}]}


@pytest.fixture
def steps(m, work):
    made = []

    def make(**params):
        made.append(Steps(m, work, f"s{time.monotonic_ns()}", **params))
        return made[-1]

    yield make
    for call in made:
        call.path.rmdir()


def text_of(update):
    return update["content"][0]["text"]


def test_r52_update_1_is_seen_before_update_2_is_sent(steps):
    call = steps()
    assert [text_of(update) for update in call.first()] == ["first"]
    assert "running" in (call.path / "status").read_text()
    call.release()
    call.end()
    assert [text_of(update) for update in call.lines()] == ["first", "line\n2 \u00e9\U0001f600"]


def test_r42_each_update_is_one_line_whatever_is_in_it(steps):
    call = steps(count=20)
    call.release()
    call.end()
    assert [text_of(update) for update in call.lines()] == ["first"] + [f"line\n{i} \u00e9\U0001f600" for i in range(2, 22)]


def test_size_and_time_of_progress_move_with_it(steps):
    call = steps()
    call.first()
    before = (call.path / "progress").stat()
    assert before.st_size == len((call.path / "progress").read_bytes()) > 0
    time.sleep(0.02)
    call.release()
    call.end()
    after = (call.path / "progress").stat()
    assert after.st_size > before.st_size and after.st_mtime_ns > before.st_mtime_ns


def test_reader_that_is_at_the_end_gets_nothing_and_never_waits(steps):
    call = steps()
    call.first()
    with open(call.path / "progress", "rb", buffering=0) as file:
        assert file.read() != b""
        start = time.monotonic()
        assert file.read() == b"" and time.monotonic() - start < 1
        call.release()
        call.end()
        assert b"line" in file.read(), "the same descriptor reads on"


def test_poll_wakes_at_each_update_and_at_the_end(steps):
    call = steps()
    call.first()
    with open(call.path / "progress", "rb", buffering=0) as file:
        poll = select.poll()
        poll.register(file, select.POLLIN)
        assert poll.poll(5000), "there is something to read"
        file.read()
        assert poll.poll(50) == [], "there is nothing more"
        start = time.monotonic()
        call.release()
        seen = b""
        while b"line" not in seen:
            assert poll.poll(5000)
            seen += file.read()
        assert time.monotonic() - start < 2
        call.end()
        assert poll.poll(5000), "the end of the call is an end of waiting"


def test_poll_that_began_before_the_first_update_wakes(m, work):
    path = m / "steps/calls/early"
    path.mkdir()
    with open(path / "progress", "rb", buffering=0) as file:
        poll = select.poll()
        poll.register(file, select.POLLIN)
        assert poll.poll(20) == []
        fd = os.open(path / "call", os.O_RDWR)
        os.write(fd, json.dumps({"go": str(work / "go")}).encode())
        assert poll.poll(10_000)
        assert b"first" in file.read()
        (work / "go").touch()
        assert b"done" in os.read(fd, 4096)
        os.close(fd)


@pytest.mark.parametrize("edge", [0, select.EPOLLET], ids=["level", "edge"])
def test_epoll_wakes_level_and_edge_triggered(steps, edge):
    call = steps()
    call.first()
    with open(call.path / "progress", "rb", buffering=0) as file:
        file.read()
        epoll = select.epoll()
        epoll.register(file, select.EPOLLIN | edge)
        epoll.poll(0.05)
        file.read()
        call.release()
        seen = b""
        while b"line" not in seen:
            assert epoll.poll(5), "woken"
            seen += file.read()
        epoll.close()
    call.end()


def test_asyncio_follows(steps):
    call = steps()
    call.first()

    async def follow():
        loop, more = asyncio.get_running_loop(), asyncio.Event()
        with open(call.path / "progress", "rb", buffering=0) as file:
            loop.add_reader(file, more.set)
            seen = b""
            while b"line" not in seen:
                await asyncio.wait_for(more.wait(), 5)
                more.clear()
                seen += file.read()
                call.release()
            loop.remove_reader(file)
        return seen

    assert b"first" in asyncio.run(follow())
    call.end()


def test_tail_follows(steps):
    call = steps()
    call.first()
    with Background(["tail", "-n", "+1", "-s", "0.1", "-f", str(call.path / "progress")]) as tail:
        seen = b""
        while b"first" not in seen:
            assert select.select([tail.process.stdout], [], [], 5)[0]
            seen += os.read(tail.process.stdout.fileno(), 4096)
        call.release()
        while b"line" not in seen:
            assert select.select([tail.process.stdout], [], [], 5)[0], seen
            seen += os.read(tail.process.stdout.fileno(), 4096)
        call.end()
    assert len(seen.splitlines()) == 2


def test_running_log_grows_in_the_same_way(m, work):
    path = m / "leaky/calls/log-grows"
    path.mkdir()
    with Background(["sh", "-c", 'printf %s "$D" > "$C"'],
                    env={"C": path / "call", "D": json.dumps({"token": "a-long-token", "how": "hang"})}):
        with open(path / "log", "rb", buffering=0) as file:
            poll = select.poll()
            poll.register(file, select.POLLIN)
            seen = b""
            while b"waiting" not in seen:
                assert poll.poll(10_000)
                seen += file.read()
        check("echo > cancel", cwd=path)


def test_large_updates_arrive_whole(steps):
    call = steps(big=200_000, count=5)
    call.release()
    call.end()
    assert [len(text_of(update)) > 200_000 for update in call.lines()] == [True] * 6


def test_updates_of_parallel_calls_do_not_mix(m, work):
    calls = [Steps(m, work, f"mix{i}", count=30) for i in range(4)]
    for call in calls:
        call.first()
    calls[0].release()
    for call in calls:
        call.end()
        assert len(call.lines()) == 31
        call.path.rmdir()


def test_progress_stays_after_the_end(steps):
    call = steps()
    call.release()
    call.end()
    with open(call.path / "progress", "rb") as file:
        assert select.select([file], [], [], 0)[0] and len(file.read().splitlines()) == 2
