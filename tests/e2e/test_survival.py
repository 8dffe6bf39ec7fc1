"""The mount, its files and its calls outlive the server: docs/reliability.md."""

import collections
import errno
import json
import os
import signal
import time

import pytest

from lib.mount import EXAMPLES, FIXTURES, PEGFS, TOOLS, VARIANT, mount_entry
from lib.programs import Background, check, run, until
from lib.survival import hosts_of, server_of, storm, words_of

SURVIVAL = TOOLS / "survival"
STORM_S = float(os.environ.get("PEGFS_STORM_S", "7"))
SLOWEST_S = 5  # of what needs no tool, on a machine that has other work as well


def stats(mount):
    lines = [line.rsplit(None, 1) for line in mount.text(".pegfs/stats").splitlines()
             if not line.startswith("#")]
    return {name.removeprefix("pegfs_"): float(value) for name, value in lines}


def kill_server(mount, number=signal.SIGKILL):
    """Kills the server and waits for the next one."""
    before = server_of(mount)
    os.kill(before, number)
    return until(lambda: server_of(mount) not in (None, before) and server_of(mount),
                 what="the next server")


@pytest.fixture
def survivor(new_mount):
    return new_mount(tools=(EXAMPLES, FIXTURES, SURVIVAL))


@pytest.fixture(params=["resend", "replay"])
def either(request, new_mount):
    """Requests repeated by the kernel (Linux 6.9), and by the server."""
    args = ["--replay"] if request.param == "replay" else []
    return new_mount(tools=(EXAMPLES, FIXTURES, SURVIVAL), args=args)


# ------------------------------------------------------------------------------------- the mount

def test_server_pid_is_told_and_is_not_the_supervisors(survivor):
    found = stats(survivor)
    assert found["server_pid"] == server_of(survivor) != survivor.pid
    assert found["supervisor_pid"] == survivor.pid
    assert found["restarts_total"] == 0


def test_files_directories_and_names_stay_valid(survivor):
    fd = os.open(survivor / "hello/TOOL.md", os.O_RDONLY)
    text = os.open(survivor / "README.md", os.O_RDONLY)
    directory = os.open(survivor / "hello", os.O_RDONLY | os.O_DIRECTORY)
    whole = os.pread(fd, 1 << 20, 0)
    readme = os.pread(text, 1 << 20, 0)
    before = os.stat(survivor / "README.md")
    try:
        for count in range(1, 4):
            kill_server(survivor)
            for held in (fd, text):
                os.posix_fadvise(held, 0, 0, os.POSIX_FADV_DONTNEED)
            assert os.pread(fd, 1 << 20, 0) == whole
            assert os.pread(text, 1 << 20, 0) == readme
            assert "TOOL.md" in os.listdir(directory)
            assert os.stat("TOOL.md", dir_fd=directory).st_size == len(whole)
            assert stats(survivor)["restarts_total"] == count
        after = os.stat(survivor / "README.md")
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    finally:
        for held in (fd, text, directory):
            os.close(held)


def test_file_changed_while_there_was_no_server_is_read_anew(new_mount, work):
    source = work / "mine"
    source.mkdir()
    check(["cp", "-r", EXAMPLES / "hello", source / "hello"])
    mount = new_mount(tools=(source,))
    fd = os.open(mount / "hello/index.ts", os.O_RDONLY)
    try:
        before = os.pread(fd, 1 << 20, 0)
        os.fstat(fd)
        server = server_of(mount)
        os.kill(mount.pid, signal.SIGSTOP)
        os.kill(server, signal.SIGKILL)
        with open(source / "hello/index.ts", "ab") as file:
            file.write(b"// more\n")
        os.kill(mount.pid, signal.SIGCONT)
        until(lambda: server_of(mount) not in (None, server), what="the next server")
        assert until(lambda: (mount / "hello/index.ts").read_bytes() == before + b"// more\n")
        assert os.fstat(fd).st_size == len(before) + 8
    finally:
        os.close(fd)


@pytest.mark.parametrize("how", ["edited", "removed"])
def test_what_was_opened_before_an_edit_is_read_to_its_end_after_it(new_mount, work, how):
    """The server that had the old bytes is gone, and so are they: found by tests/chaos."""
    source = work / "mine"
    source.mkdir()
    check(["cp", "-r", EXAMPLES / "hello", source / "hello"])
    mount = new_mount(tools=(source,))
    names = ("hello/prompt.md", "prompt.md", "hello/TOOL.md", "hello/index.ts", ".pegfs/version")
    held = {name: os.open(mount / name, os.O_RDONLY) for name in names}
    other = mount.text("prompt.md")
    wanted = {name: ((mount / name).read_bytes(), os.fstat(fd)) for name, fd in held.items()}
    server = server_of(mount)
    os.kill(mount.pid, signal.SIGSTOP)
    os.kill(server, signal.SIGKILL)
    if how == "removed":
        check(["rm", "-r", source / "hello"])
    else:
        for name in ("TOOL.md", "index.ts"):
            text = (source / "hello" / name).read_text()
            (source / "hello/new").write_text(text.replace("greet", "salute") + "\n\n")
            os.replace(source / "hello/new", source / "hello" / name)
    os.kill(mount.pid, signal.SIGCONT)
    until(lambda: server_of(mount) not in (None, server), what="the next server")
    until(lambda: mount.text("prompt.md") != other, what="the edit")
    for name, fd in held.items():
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        data, before = wanted[name]
        assert os.pread(fd, 1 << 20, 0) == data, name
        after = os.fstat(fd)
        assert after.st_size == before.st_size, name
        # What is not made of tools is as old as the tree all the same.
        assert after.st_mtime_ns == before.st_mtime_ns or name.startswith(".pegfs"), name
        os.close(fd)


# -------------------------------------------------------------------------------------- calls

def test_call_that_runs_while_the_server_dies_goes_on(either):
    """The waiting writer gets the outcome from the next server, and the tool ran once."""
    with Background('echo \'{"ms":1500}\' > "$M/slow/call" && cat "$M/slow/result.txt"',
                    env={"M": either.path}) as writer:
        until(lambda: stats(either)["calls_running"] == 1, what="the call")
        for _ in range(3):
            kill_server(either)
            time.sleep(0.1)
        done = writer.end(10)
    assert done.status == 0 and done.out == "slept 1500\n", done
    assert stats(either)["calls_unknown_total"] == 0
    assert stats(either)["calls_resumed_total"] == 3


def test_reader_that_waits_gets_the_answer_once(either, work):
    marks = work / "marks"
    marks.touch(mode=0o666)
    marks.chmod(0o666)
    script = ('exec 3<>"$M/mark/call"; echo \'{"file":"\'"$F"\'","data":"a","ms":1000}\' >&3; '
              'cat <&3')
    with Background(script, env={"M": either.path, "F": marks}) as asker:
        until(lambda: marks.read_text(), what="the call")
        kill_server(either)
        done = asker.end(10)
    assert done.status == 0 and "marked a" in done.out, done
    assert marks.read_text() == "a\n"


def test_calls_that_wait_for_a_host_wait_on_and_run_once(new_mount, work):
    """Acknowledged before the server died, not begun: none is lost."""
    marks = work / "marks"
    marks.touch()
    marks.chmod(0o666)
    mount = new_mount(tools=(SURVIVAL,), args=["--hosts", "1"])
    handles = []
    try:
        for number in range(12):
            handles.append(os.open(mount / "mark/call", os.O_RDWR))
            os.write(handles[-1], json.dumps(
                {"file": str(marks), "data": f"m{number}", "ms": 100}).encode())
        for _ in range(3):
            kill_server(mount)
            time.sleep(0.1)
        for number, fd in enumerate(handles):
            assert f"marked m{number}".encode() in os.read(fd, 4096)
    finally:
        for fd in handles:
            os.close(fd)
    assert count_marks(marks) == {f"m{number}": 1 for number in range(12)}


def test_failure_reaches_the_writer_through_the_next_server(survivor, work):
    runs = work / "runs"
    runs.touch()
    runs.chmod(0o666)
    script = 'echo \'{"file":"\'"$F"\'","ms":800,"fail":true}\' > "$M/count/call"'
    with Background(script, env={"M": survivor.path, "F": runs}) as writer:
        until(lambda: runs.read_text(), what="the call")
        kill_server(survivor)
        done = writer.end(10)
    assert done.status != 0 and "Input/output error" in done.err
    assert len(runs.read_text().splitlines()) == 1
    reason = (survivor / "count/calls" / os.listdir(survivor / "count/calls")[0] / "status").read_text()
    assert "told to fail" in reason and "unknown" not in reason


def test_results_ids_logs_and_reservations_survive(survivor):
    assert survivor.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    ids = os.listdir(survivor / "hello/calls")
    os.mkdir(survivor / "hello/calls/mine")
    result = survivor.text("hello/result.txt")
    kill_server(survivor)
    assert set(os.listdir(survivor / "hello/calls")) == {*ids, "mine"}
    assert survivor.text("hello/result.txt") == result == "Hello, Ada!\n"
    assert "state: done" in survivor.text(f"hello/calls/{ids[0]}/status")
    assert "state: reserved" in survivor.text("hello/calls/mine/status")
    (survivor / "hello/calls/mine/call").write_text('{"name":"Eve"}')
    assert survivor.text("hello/calls/mine/result.txt") == "Hello, Eve!\n"


def test_call_of_a_dead_host_and_a_dead_server_is_told_as_unknown(survivor, work):
    pids = work / "pids"
    pids.touch()
    pids.chmod(0o666)
    with Background(f'echo \'{{"ms":60000,"pids":"{pids}"}}\' > "$M/slow/call"',
                    env={"M": survivor.path}) as writer:
        until(lambda: len(pids.read_text().split()) == 3, what="the tool")
        host = int(pids.read_text().split()[0])
        os.kill(survivor.pid, signal.SIGSTOP)
        os.kill(server_of(survivor), signal.SIGKILL)
        os.kill(host, signal.SIGKILL)
        os.kill(survivor.pid, signal.SIGCONT)
        done = writer.end(10)
    assert done.status != 0 and "Input/output error" in done.err


def test_call_is_not_given_to_another_host_when_its_warden_is_killed(survivor, work):
    """Its host dies a moment later, and may have begun: found by tests/chaos, which saw it run twice."""
    marks = work / "marks"
    marks.touch()
    marks.chmod(0o666)
    assert survivor.say("mark", {"file": str(marks), "data": "first"}) == "marked first"
    kill_server(survivor)  # the next one is not the warden's parent, and hears of its end in another way
    until(lambda: stats(survivor)["hosts_idle"] == 1, what="the host at rest")
    mine = [(host, warden) for host, warden in hosts_of(survivor) if b"mark" in b"".join(words_of(host))]
    host, warden = mine[0]
    os.kill(host, signal.SIGSTOP)
    fd = os.open(survivor / "mark/call", os.O_RDWR)
    try:
        os.write(fd, json.dumps({"file": str(marks), "data": "second"}).encode())
        os.kill(warden, signal.SIGKILL)
        answer = json.loads(os.read(fd, 1 << 20))
    finally:
        os.close(fd)
    assert answer["isError"] and "its warden was killed" in answer["content"][0]["text"]
    assert marks.read_text() == "first\n"


def test_gathered_bytes_are_lost_and_the_handle_says_so(survivor):
    fd = os.open(survivor / "hello/call", os.O_WRONLY)
    try:
        os.write(fd, b'{"name":')
        kill_server(survivor)
        for _ in range(2):
            with pytest.raises(OSError) as caught:
                os.write(fd, b'"Ada"}')
            assert caught.value.errno == errno.EIO
    finally:
        with pytest.raises(OSError) as caught:
            os.close(fd)
        assert caught.value.errno == errno.EIO
    assert survivor.say("hello", {"name": "Ada"}) == "Hello, Ada!"


def test_handle_that_was_opened_before_can_call_after(survivor):
    fd = os.open(survivor / "hello/call", os.O_RDWR)
    try:
        kill_server(survivor)
        os.write(fd, b'{"name":"Ada"}')
        kill_server(survivor)
        assert b"Hello, Ada!" in os.read(fd, 4096)
    finally:
        os.close(fd)


def test_sensitive_values_stay_hidden_after_a_takeover(new_mount, work):
    tool = work / "mine/whisper"
    tool.mkdir(parents=True)
    (tool / "TOOL.md").write_text(
        "---\nname: whisper\ndescription: Prints a secret. Use this in a test.\nversion: 1\ninputs:\n"
        "  key:\n    type: string\n    description: The secret.\n    sensitive: true\n---\n# whisper\n")
    (tool / "index.ts").write_text(
        "export async function execute(_id: string, { key }: { key: string }) {\n"
        "    console.log('begin');\n"
        "    await new Promise((done) => setTimeout(done, 1000));\n"
        "    console.log(`the key is ${key}`);\n    throw new Error(`no ${key}`);\n}\n")
    mount = new_mount(tools=(work / "mine",))
    with Background('echo \'{"key":"s3cr3t-canary"}\' > "$M/whisper/call"; cat "$M/whisper/log"; '
                    'cat "$M/whisper/result.txt"', env={"M": mount.path}) as writer:
        until(lambda: stats(mount)["calls_running"] == 1, what="the call")
        kill_server(mount)
        done = writer.end(10)
    assert "the key is" in done.out and "s3cr3t-canary" not in done.out + done.err
    assert "s3cr3t-canary" not in mount.log()


# --------------------------------------------------------------------------------- kill -9 storms

def count_marks(path):
    return collections.Counter(path.read_text().splitlines())


def check_calls(reports, marks):
    """No call ran twice; what was reported as done ran; what did not run was never told as done."""
    ran = count_marks(marks)
    assert [mark for mark, times in ran.items() if times > 1] == [], "calls that ran twice"
    unknown = 0
    for report in reports:
        for mark, outcome in report.get("calls", {}).items():
            if outcome == "done":
                assert ran[mark] == 1, f"{mark} was told as done and did not run"
            elif "was not run" in outcome:
                assert ran[mark] == 0, f"{mark} was told as not run and ran"
            else:
                assert outcome == "EIO" or "unknown" in outcome, (mark, outcome)
                unknown += 1
    return sum(ran.values()), unknown


def test_storm_of_kills(either, work):
    marks = work / "marks"
    marks.touch()
    marks.chmod(0o666)
    reports, kills = storm(either, STORM_S, [
        ("readers", {}), ("readers", {}), ("writers", {"marks": str(marks), "first": 1}),
        ("askers", {"marks": str(marks), "first": 2})])
    assert [failure for report in reports for failure in report["failures"]] == []
    ran, unknown = check_calls(reports, marks)
    slowest = max(report["slowest_s"] for report in reports)
    found = stats(either)
    print(f"{kills} kills, {sum(report['operations'] for report in reports)} operations, {ran} calls ran, "
          f"{unknown} unknown, slowest {slowest:.3f} s, {found['resends_total']:.0f} resends, "
          f"{found['calls_resumed_total']:.0f} resumed")
    assert kills > STORM_S * 2 and ran > 0
    assert unknown <= max(2, kills // 10)
    assert found["restarts_total"] >= kills - 1
    assert max(report["slowest_s"] for report in reports if report["kinds"] == "readers") < SLOWEST_S
    assert found["open_handles"] <= 4


# ------------------------------------------------------------------------- crashes, hangs, the end

PRELOAD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
ssize_t pread64(int fd, void *buf, size_t size, off64_t at)
{
    ssize_t (*real)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
    ssize_t got = real(fd, buf, size, at);
    if (got >= 9 && memcmp(buf, "crash now", 9) == 0)
        abort();
    if (got >= 8 && memcmp(buf, "hang now", 8) == 0)
        for (;;)
            pause();
    return got;
}
"""


@pytest.fixture
def fragile(new_mount, work):
    """A server that crashes, or hangs, with the content of certain files."""
    if VARIANT:
        pytest.skip("a sanitizer wants to be loaded first")
    (work / "preload.c").write_text(PRELOAD)
    check(["cc", "-shared", "-fPIC", "-o", work / "preload.so", work / "preload.c", "-ldl"])
    (work / "mine").mkdir()
    check(["cp", "-r", EXAMPLES / "hello", work / "mine/hello"])
    (work / "mine/hello/crash").write_text("crash now")
    (work / "mine/hello/hang").write_text("hang now")
    return new_mount(tools=(work / "mine",), env={"LD_PRELOAD": work / "preload.so"},
                     args=["--watchdog", "1"])


def test_request_that_crashes_the_server_gets_eio_after_two_tries(fragile):
    fd = os.open(fragile / "hello/TOOL.md", os.O_RDONLY)
    start = time.monotonic()
    with pytest.raises(OSError) as caught:
        (fragile / "hello/crash").read_text()
    assert caught.value.errno == errno.EIO
    assert time.monotonic() - start < 2
    assert os.pread(fd, 10, 0)
    os.close(fd)
    found = stats(fragile)
    # The kernel reads ahead first and then asks again for what it needs: two requests.
    assert found["quarantined_total"] in (1, 2)
    assert found["restarts_total"] == 2 * found["quarantined_total"]
    fragile.log_seen = len(fragile.log())
    assert fragile.say("hello", {"name": "Ada"}) == "Hello, Ada!"


def test_request_that_hangs_the_server_gets_eio_after_two_periods(fragile):
    start = time.monotonic()
    with pytest.raises(OSError) as caught:
        (fragile / "hello/hang").read_text()
    assert caught.value.errno == errno.EIO
    assert 1.5 < time.monotonic() - start < 7
    assert stats(fragile)["hangs_total"] in (2, 4)
    fragile.log_seen = len(fragile.log())  # it says so as an error


def test_server_that_dies_at_once_again_and_again_is_given_up(survivor):
    """The mount goes, and nobody hangs."""
    victims = set()
    end = time.monotonic() + 30
    while survivor.is_alive() and time.monotonic() < end:
        pid = server_of(survivor)
        if pid and pid not in victims:
            victims.add(pid)
            os.kill(pid, signal.SIGSEGV)
        time.sleep(0.001)
    assert survivor.process.wait(5) == 1
    assert 20 <= len(victims) <= 30
    assert mount_entry(survivor.path) is None
    assert "given up" in survivor.log()
    survivor.log_seen = len(survivor.log())
    survivor.clear_away(killed=True)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM, signal.SIGKILL],
                         ids=lambda number: number.name)
def test_every_end_of_a_server_is_followed_by_another(survivor, number):
    if VARIANT == "asan" and number in (signal.SIGSEGV, signal.SIGABRT):
        pytest.skip("the sanitizer reports these as errors of the server")
    kill_server(survivor, number)
    assert survivor.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    assert stats(survivor)["restarts_total"] == 1


@pytest.mark.parametrize("how", ["umount", "SIGTERM"])
def test_nothing_is_left(survivor, how):
    kill_server(survivor)
    survivor.say("hello", {"name": "Ada"})
    with Background('echo \'{"ms":60000}\' > "$C"', env={"C": survivor / "slow/call"}) as writer:
        until(lambda: stats(survivor)["calls_running"] == 1, what="the call")
        if how == "umount":
            check([PEGFS, "umount", "--lazy", survivor.path])
            writer.signal(signal.SIGKILL)
        else:
            os.kill(survivor.pid, signal.SIGTERM)
        writer.end(10)
    assert survivor.process.wait(15) == 0
    assert mount_entry(survivor.path) is None
    assert survivor.clear_away() == []


# -------------------------------------------------------------------------------------- reload

def test_reload_replaces_the_server_under_use(survivor, work):
    before = server_of(survivor)
    with Background('echo \'{"ms":1500}\' > "$M/slow/call" && cat "$M/slow/result.txt"',
                    env={"M": survivor.path}) as writer:
        until(lambda: stats(survivor)["calls_running"] == 1, what="the call")
        check([PEGFS, "reload", survivor.path])
        assert server_of(survivor) != before
        assert survivor.say("hello", {"name": "Ada"}) == "Hello, Ada!"
        assert writer.end(10).out == "slept 1500\n"
    found = stats(survivor)
    assert found["reloads_total"] == 1 and found["restarts_total"] == 0


def test_reload_of_what_is_no_mount(work):
    done = run([PEGFS, "reload", work])
    assert done.status == 1 and len(done.err.splitlines()) == 1


def test_reload_of_a_program_that_cannot_take_over_changes_nothing(new_mount, work):
    if VARIANT:
        pytest.skip("the program is copied with its library directory")
    check(["mkdir", "-p", work / "bin"])
    check(["cp", PEGFS, work / "bin/pegfs"])
    mount = new_mount(tools=(EXAMPLES,), program=work / "bin/pegfs",
                      args=["--lib-dir", os.path.dirname(PEGFS) + "/lib/pegfs"])
    before = server_of(mount)
    check(["cp", "--remove-destination", "/bin/false", work / "bin/pegfs"])
    done = run([PEGFS, "reload", mount.path])
    assert done.status == 1 and "could not take over" in done.err
    assert server_of(mount) == before
    kill_server(mount)
    assert mount.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    mount.log_seen = len(mount.log())
    check(["cp", "--remove-destination", PEGFS, work / "bin/pegfs"])
    check([PEGFS, "reload", mount.path])
    assert mount.say("hello", {"name": "Ada"}) == "Hello, Ada!"
