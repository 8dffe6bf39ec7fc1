"""What one user can do to the others: the daemon serves all of them from one thread."""

import contextlib
import errno
import json
import os
import threading
import time

import pytest

from lib.programs import OTHER_USER, check, need, run, until

FAR = 1 << 30


def call_and_read(fd, **params):
    os.write(fd, json.dumps(params).encode())
    return os.read(fd, 1 << 20)


# -------------------------------------------------------- sizes of a node that is read by its writer

def test_stat_of_a_path_shows_the_usage_while_somebody_has_the_file_open(m):
    usage = len((m / "echo/call").read_bytes())
    fd = os.open(m / "echo/call", os.O_RDWR)
    call_and_read(fd, text="x" * 10000)
    assert os.stat(m / "echo/call").st_size == usage
    os.close(fd)


def test_fstat_of_the_descriptor_shows_where_the_result_ends(m):
    fd = os.open(m / "echo/call", os.O_RDWR)
    call_and_read(fd, text="x" * 10000)
    assert os.fstat(fd).st_size == os.lseek(fd, 0, os.SEEK_CUR)
    os.close(fd)


def test_h7_sendfile_is_refused_also_after_a_stat(m):
    """Zero bytes would be an empty answer; an error makes programs read in another way."""
    with open(m / "echo/call", "r+b", buffering=0) as file, open(os.devnull, "wb") as out:
        os.fstat(file.fileno())
        file.write(b'{"text":"' + b"x" * 100000 + b'"}')
        os.fstat(file.fileno())
        with pytest.raises(OSError) as caught:
            os.sendfile(out.fileno(), file.fileno(), 100011, 1 << 20)
        assert caught.value.errno == errno.EINVAL
        assert len(file.read(1 << 20)) > 100000


def test_node_reads_a_whole_answer_by_its_size(m):
    need("node")
    out = check("""node -e '
        const fs = require("fs");
        (async () => {
            const file = await fs.promises.open(process.env.C, "r+");
            await file.write(JSON.stringify({ text: "x".repeat(50000) }), 0);
            console.log(JSON.parse(await file.readFile("utf8")).content[0].text.length);
        })()'""", env={"C": m / "echo/call"})
    assert int(out) > 50000


def test_appending_works_under_a_limit_of_file_size(m):
    check('ulimit -f 10000; echo \'{"text":"x"}\' >>"$C"', env={"C": m / "echo/call"})


# --------------------------------------------------------------------------- holding up the daemon

def test_who_reads_a_page_over_and_over_holds_up_nobody(m):
    """A page that is being read is locked until the daemon answers: it must never wait for one."""
    fd = os.open(m / "echo/call", os.O_RDWR)
    call_and_read(fd, text="x")
    stop = threading.Event()

    def spin():
        ends = os.pipe()
        while not stop.is_set():
            for offset in (FAR, 1 << 20, 0):
                os.posix_fadvise(fd, offset, 4096, os.POSIX_FADV_DONTNEED)
                with contextlib.suppress(OSError):
                    if os.splice(fd, ends[1], 1, offset_src=offset):
                        os.read(ends[0], 1)

    thread = threading.Thread(target=spin, daemon=True)
    thread.start()
    worst = 0.0
    for _ in range(20):
        begin = time.monotonic()
        call_and_read(fd, text="x" * 500000)
        while os.read(fd, 1 << 20):
            pass
        os.listdir(m.path)
        worst = max(worst, time.monotonic() - begin)
    stop.set()
    thread.join()
    os.close(fd)
    assert worst < 5


# ----------------------------------------------------------------------------------------- memory

def test_what_one_uid_gathers_is_limited(new_mount):
    mount = new_mount(args=["--request-max", 100_000])
    part = b'{"text":"' + b"x" * 90_000
    fds = [os.open(mount / "echo/call", os.O_WRONLY) for _ in range(6)]
    written = []
    for fd in fds:
        try:
            written.append(os.write(fd, part))
        except OSError as failure:
            written.append(failure.errno)
    assert written == [len(part)] * 4 + [errno.EBUSY] * 2
    # Whoever is let in is served, and makes room.
    os.write(fds[0], b'"}')
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)
    again = os.open(mount / "echo/call", os.O_WRONLY)
    os.write(again, part + b'"}')
    os.close(again)


# -------------------------------------------------------------------------------------- directories

def test_a_directory_that_is_read_again_shows_what_is_there_then(m):
    fd = os.open(m / "echo/calls", os.O_RDONLY)
    before = set(os.listdir(fd))
    os.mkdir(m / "echo/calls/one-more")
    assert set(os.listdir(fd)) == before | {"one-more"}
    os.rmdir(m / "echo/calls/one-more")
    assert set(os.listdir(fd)) == before
    os.close(fd)


def test_an_open_directory_that_has_been_removed_is_no_more(m):
    os.mkdir(m / "echo/calls/gone")
    fd = os.open(m / "echo/calls/gone", os.O_RDONLY)
    os.rmdir(m / "echo/calls/gone")
    with pytest.raises(OSError) as caught:
        os.listdir(fd)
    assert caught.value.errno in (errno.ENOENT, errno.ESTALE)
    os.close(fd)


# -------------------------------------------------------------------------------- open call files

def may_open(mount, fds):
    with contextlib.suppress(OSError):
        fds.append(os.open(mount / "echo/call", os.O_WRONLY))
        return True
    return False


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_one_uid_does_not_open_all_that_can_be_open(new_mount):
    """A low limit: each of 8192 would be two turns between the daemon and a busy machine."""
    mount = new_mount(args=["--open-per-user", 20])
    fds = []
    try:
        with pytest.raises(OSError) as failure:
            while len(fds) < 1000:
                fds.append(os.open(mount / "echo/call", os.O_WRONLY))
        assert failure.value.errno == errno.EMFILE and len(fds) == 20
        done = run("echo '{\"text\":\"x\"}' >call && cat result.txt", uid=OTHER_USER, cwd=mount / "echo")
        assert done.status == 0 and "x" in done.out, done
        os.close(fds.pop())
        until(lambda: may_open(mount, fds), what="room for one more")
    finally:
        for fd in fds:
            os.close(fd)
    assert mount.say("echo", {"text": "x"})
