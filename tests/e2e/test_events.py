""".pegfs/events: who called what, when, and how it ended, for those who may know, and no secret."""

import json
import os
import re
import signal
import stat

import pytest

from lib.mount import EXAMPLES, FIXTURES, PEGFS
from lib.programs import OTHER_USER, THIRD_USER, Background, check, need, run, until
from lib.survival import server_of

SECRET, PLAIN, ENV = "s3cr3t-of-a-param-x17", "plain-value-of-a-param-x18", "s3cr3t-of-the-env-x19"


@pytest.fixture
def mount(new_mount, work):
    return new_mount(tools=(EXAMPLES, FIXTURES), args=["--audit", work / "audit.log"],
                     tool_env={"A_TOKEN": ENV})


def parse(text):
    return [json.loads(line) for line in text.splitlines()]


def events(mount, uid=None):
    return parse(check(["cat", mount / ".pegfs/events"], uid=uid))


def ends(mount, uid=None):
    return [event for event in events(mount, uid) if event["event"] == "end"]


def call(mount, tool, request, uid=None):
    return run(f"printf %s \"$R\" > '{mount / tool}/call'", uid=uid, env={"R": json.dumps(request)})


def test_a_call_has_a_record_of_its_start_and_one_of_its_end(mount):
    with Background(f"echo '{{\"name\":\"Ada\"}}' > '{mount / 'hello'}/call'") as shell:
        shell.end()
        pid = shell.pid
    start, end = [event for event in events(mount) if event.get("tool") == "hello"]
    assert (start["event"], end["event"]) == ("call", "end")
    same = {"uid": 0, "gid": 0, "tool": "hello", "version": 1, "pid": pid, "id": start["id"]}
    assert same.items() <= start.items() and same.items() <= end.items()
    assert end["state"] == "done" and end["ran_ms"] >= 0 and end["waited_ms"] >= 0
    assert start["time"] <= end["time"]
    assert os.path.isdir(mount / f"hello/calls/{end['id']}")
    for event in (start, end):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["time"])


@pytest.mark.parametrize("tool, request_, state", [
    ("hello", {"name": "x"}, "done"), ("fail", {}, "failed"), ("exits", {"how": "kill"}, "failed"),
    ("limited", {}, "timed out"), ("hello", {}, "refused"), ("hello", [1], "refused")])
def test_every_end_is_told(mount, tool, request_, state):
    call(mount, tool, request_)
    [end] = ends(mount)
    assert (end["tool"], end["state"]) == (tool, state)


def test_a_cancelled_call_and_its_name(mount):
    os.mkdir(mount / "slow/calls/by-name")
    with Background(f"echo '{{\"ms\":60000}}' > '{mount / 'slow/calls/by-name'}/call'") as writer:
        until(lambda: mount.text("slow/calls/by-name/status").startswith("state: running"))
        assert [event["id"] for event in events(mount) if event["event"] == "call"] == ["by-name"]
        (mount / "slow/calls/by-name/cancel").write_text("x")
        writer.end()
    [end] = ends(mount)
    assert (end["id"], end["state"]) == ("by-name", "cancelled")
    assert end["ran_ms"] > 0


def test_a_user_sees_his_own_and_root_sees_all(mount):
    for uid in (OTHER_USER, THIRD_USER):
        assert call(mount, "hello", {"name": "x"}, uid=uid).status == 0
    assert call(mount, "hello", {"name": "x"}).status == 0
    for uid in (OTHER_USER, THIRD_USER):
        seen = events(mount, uid)
        assert [event["event"] for event in seen] == ["call", "end"]
        assert {event["uid"] for event in seen} == {uid}
        stated = int(check(["stat", "-c", "%s", mount / ".pegfs/events"], uid=uid))
        assert stated == len(check(["cat", mount / ".pegfs/events"], uid=uid))
    assert {event["uid"] for event in events(mount)} == {0, OTHER_USER, THIRD_USER}
    assert {"server", "tools"} <= {event["event"] for event in events(mount)}
    assert check(["tail", "-n", "1", mount / ".pegfs/events"]) == mount.text(".pegfs/events").splitlines(True)[-1]


@pytest.fixture
def fuse_for_all(work):
    """/dev/fuse as desktops have it, in this mount namespace only."""
    if os.stat("/dev/fuse").st_mode & stat.S_IWOTH:
        yield
        return
    made = run(f"mknod -m 666 '{work}/fuse' c 10 229 && mount --bind '{work}/fuse' /dev/fuse")
    if made.status != 0 or run("exec 3<>/dev/fuse", uid=OTHER_USER).status != 0:
        pytest.skip("/dev/fuse is closed to users, and no other can be made: " + made.err)
    yield
    check("umount /dev/fuse")


def test_the_owner_of_a_daemon_that_is_not_root_sees_all(fuse_for_all, new_mount, work):
    need("fusermount3")
    (work / "mine").mkdir()
    os.chown(work / "mine", OTHER_USER, OTHER_USER)
    mount = new_mount(uid=OTHER_USER, at=work / "mine")
    assert call(mount, "hello", {"name": "x"}, uid=OTHER_USER).status == 0
    assert [event["event"] for event in events(mount, OTHER_USER)] == ["server", "tools", "call", "end"]


def test_root_of_another_pid_namespace_sees_its_own_only(mount):
    need("unshare")
    assert call(mount, "hello", {"name": "x"}).status == 0
    seen = check(["unshare", "--pid", "--fork", "cat", mount / ".pegfs/events"])
    assert seen == ""


def test_no_secret_and_no_text_is_in_a_record(mount, work):
    assert call(mount, "env", {}).status == 0
    for how in ("fine", "throw", "error", "log", "not a result", "exit"):
        call(mount, "leaky", {"token": SECRET, "how": how})
    with Background(f"echo '{json.dumps({'token': SECRET, 'how': 'hang', PLAIN: PLAIN})}' > '{mount / 'leaky'}/call'") as hanging:
        until(lambda: SECRET not in mount.text("leaky/log") and "waiting" in mount.text("leaky/log"), what="the call")
        hanging.signal(signal.SIGKILL, group=True)
    until(lambda: ends(mount)[-1]["state"] == "cancelled")
    call(mount, "fail", {"text": PLAIN})
    call(mount, "hello", {"name": [SECRET, PLAIN]})
    call(mount, "hello", {SECRET: PLAIN})
    run(f"printf '%s' '{{\"name\":\"{SECRET}' > '{mount / 'hello'}/call'")
    found = mount.text(".pegfs/events") + (work / "audit.log").read_text()
    assert len(ends(mount)) >= 11
    for secret in (SECRET, PLAIN, ENV):
        assert secret not in found
    known = {"time", "uid", "pid_ns", "event", "id", "tool", "version", "gid", "pid", "state", "waited_ms",
             "ran_ms", "generation", "count", "faults"}
    assert {key for event in events(mount) for key in event} <= known


def test_the_trail_outlives_the_server_and_a_call_that_does_too(mount):
    assert call(mount, "hello", {"name": "x"}).status == 0
    before = mount.text(".pegfs/events")
    with Background(f"echo '{{\"ms\":1500}}' > '{mount / 'slow'}/call'") as writer:
        until(lambda: "pegfs_calls_running 1" in mount.text(".pegfs/stats"), what="the call")
        server = server_of(mount)
        os.kill(server, signal.SIGKILL)
        assert writer.end().status == 0
    after = mount.text(".pegfs/events")
    assert after.startswith(before)
    told = events(mount)
    assert [event["generation"] for event in told if event["event"] == "server"] == [1, 2]
    of_slow = [event["event"] for event in told if event.get("tool") == "slow"]
    assert of_slow == ["call", "end"]


def test_the_tools_that_are_there_are_told(new_mount, work):
    tools = work / "tools"
    tools.mkdir()
    mount = new_mount(tools=(tools,))
    check(["cp", "-r", EXAMPLES / "hello", tools])
    until(lambda: [event["count"] for event in events(mount) if event["event"] == "tools"][-1] == 1)


# --------------------------------------------------------------------------------------- --audit

def test_the_file_has_the_same_and_is_made_anew_where_it_was_moved_away(mount, work):
    log = work / "audit.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert call(mount, "hello", {"name": "x"}).status == 0
    assert log.read_text() == mount.text(".pegfs/events")
    log.rename(work / "audit.log.1")
    assert call(mount, "hello", {"name": "x"}).status == 0
    assert [event["event"] for event in parse(log.read_text())] == ["call", "end"]
    assert mount.text(".pegfs/events") == (work / "audit.log.1").read_text() + log.read_text()


def test_standard_error_for_the_journal(new_mount):
    mount = new_mount(args=["--audit", "-"])
    assert call(mount, "hello", {"name": "x"}).status == 0
    lines = [line for line in mount.log().splitlines() if line.startswith("{")]
    assert "\n".join(lines) + "\n" == mount.text(".pegfs/events")


@pytest.mark.parametrize("what, said", [("fifo", "no regular file"), ("dir/none/file", "cannot open"), ("-", "--foreground")])
def test_a_trail_that_cannot_be_is_an_error_of_the_mount(work, what, said):
    os.mkfifo(work / "fifo")
    (work / "mnt").mkdir()
    done = run([PEGFS, "mount", work / "mnt", "--tools", EXAMPLES, "--audit", what], cwd=work)
    assert done.status in (1, 2) and said in done.err, done
    assert not os.listdir(work / "mnt")
