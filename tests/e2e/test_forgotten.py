"""A call that is forgotten while somebody reads what it left: who has it open reads to the end."""

import errno
import json
import os

import pytest

from lib.programs import until


def start(m, tool, name, **params):
    (m / f"{tool}/calls/{name}").mkdir()
    fd = os.open(m / f"{tool}/calls/{name}/call", os.O_RDWR)
    os.write(fd, json.dumps(params).encode())
    return fd


def test_progress_of_a_forgotten_call_is_read_to_its_end(m, work):
    call = start(m, "steps", "gone", go=str(work / "go"), count=50)
    progress = m / "steps/calls/gone/progress"
    until(lambda: progress.read_bytes())
    early = os.open(progress, os.O_RDONLY)
    beginning = os.read(early, 10)
    (work / "go").touch()
    os.read(call, 4096)
    os.close(call)
    whole = progress.read_bytes()
    assert whole.count(b"\n") == 51
    (m / "steps/calls/gone").rmdir()
    rest = b""
    while chunk := os.read(early, 1000):
        rest += chunk
    assert beginning + rest == whole
    os.close(early)


def test_what_was_never_read_of_a_forgotten_call_is_an_error_and_not_empty(m, work):
    call = start(m, "steps", "unread", go=str(work / "go"))
    log = os.open(m / "steps/calls/unread/log", os.O_RDONLY)
    assert os.read(log, 10) == b""
    os.close(call)
    (m / "steps/calls/unread").rmdir()
    (work / "go").touch()

    def gone():
        with pytest.raises(OSError) as caught:
            os.read(log, 10)
        return caught.value.errno == errno.ESTALE

    until(gone)
    os.close(log)


def test_a_large_result_is_read_to_its_end(m):
    call = start(m, "echo", "large", text="x" * 300_000)
    json.loads(os.read(call, 1 << 20))
    os.close(call)
    directory = m / "echo/calls/large"
    whole = {name: (directory / name).read_bytes()
             for name in ("result.txt", "result.json", "request.json")}
    fds = {name: os.open(directory / name, os.O_RDONLY) for name in whole}
    parts = {name: os.read(fd, 1000) for name, fd in fds.items()}
    directory.rmdir()
    for name, fd in fds.items():
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        while chunk := os.read(fd, 50_000):
            parts[name] += chunk
        os.close(fd)
    assert parts == whole
    assert len(whole["result.txt"]) > 300_000
