"""A sensitive value is in the tool and nowhere else (R29, A21, T19): looked for everywhere."""

import json
import os
import pathlib
import time

import pytest

from lib.programs import Background, children_of, descendants_of, run, until

CANARY = 'c4nary-"S3CR3T"\\\u00e9-x91'
# As it is, and as it stands within JSON.
FORMS = {CANARY.encode(), json.dumps(CANARY)[1:-1].encode(), json.dumps(CANARY, ensure_ascii=False)[1:-1].encode()}
PLAIN = "c4nary-plain-S3CR3T-x91"
STATE = pathlib.Path("/run/pegfs")


def files_below(top):
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            try:
                with open(path, "rb") as file:
                    yield path, file.read()
            except (OSError, ValueError):
                continue


def state_dirs(m):
    """Where pegfs keeps what calls leave, as its own descriptors say."""
    found = set()
    for fd in os.listdir(f"/proc/{m.pid}/fd"):
        target = os.readlink(f"/proc/{m.pid}/fd/{fd}")
        if os.path.isdir(target) and "/calls" in target and not target.startswith(str(m.path)):
            found.add(os.path.dirname(target))
    return found


def assert_nowhere(m, forms=None):
    forms = forms or FORMS | {PLAIN.encode()}
    places = [m.path, *state_dirs(m)]
    assert len(places) > 1, "the state directory was found"
    for place in places:
        for path, content in files_below(place):
            assert not [form for form in forms if form in content], path
    assert not [form for form in forms if form in m.log().encode()], m.log()
    for pid in [m.pid, *descendants_of(m.pid)]:
        for name in ("cmdline", "environ"):
            try:
                content = pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                continue
            assert not [form for form in forms if form in content], (pid, name)


HOWS = ["throw", "error", "not a result", "log", "log in pieces", "progress", "exit", "nothing"]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("token", [CANARY, PLAIN], ids=["odd", "plain"])
def test_r29_a21_t19_tool_that_tells_its_secret(m, how, token):
    path = m / "leaky/calls" / f"secret-{time.monotonic_ns()}"
    path.mkdir()
    fd = os.open(path / "call", os.O_RDWR)
    os.write(fd, json.dumps({"token": token, "how": how}).encode())
    answer = os.read(fd, 1 << 16)
    os.close(fd)
    assert not [form for form in FORMS | {PLAIN.encode()} if form in answer], "the answer that is read"
    assert_nowhere(m)
    expected = {"throw": ("result.txt", "401"), "error": ("result.txt", "401"), "log": ("log", "using"), "log in pieces": ("log", "["),
                "progress": ("progress", "phase 1"), "nothing": ("result.txt", f"{len(token)} characters")}
    name, words = expected.get(how, ("status", "failed"))
    assert words in (path / name).read_text(), "what is no secret is there"
    request = json.loads((path / "request.json").read_text())
    assert request["how"] == how and request["token"] != token


@pytest.mark.parametrize("request_", [
    {"how": "x", "token": {"wrong": PLAIN}}, {"how": "x", "token": [PLAIN]}, {"token": PLAIN}, {"how": 5, "token": PLAIN, "tokn": "x"},
    '{"how":"x","token":"' + PLAIN, '{"how":"x","token":"' + PLAIN + '"} x', '{"how":"x","token":"' + PLAIN + '\\q"}',
    '{"how":"x","token":"' + PLAIN + '","token":"' + PLAIN + '"}', '["' + PLAIN + '"]', '"' + PLAIN + '"', PLAIN,
], ids=range(11))
def test_r29_refused_request_is_not_told(m, request_):
    try:
        m.write("leaky", request_)
    except OSError:
        pass
    assert_nowhere(m)


def test_r29_while_the_call_runs_and_after_it_was_cancelled(m):
    path = m / "leaky/calls/running"
    path.mkdir()
    with Background('printf %s "$D" > "$C"', env={"C": path / "call", "D": json.dumps({"token": PLAIN, "how": "hang"})}) as writer:
        until(lambda: (path / "log").read_text() and (path / "progress").read_text(), what="what it tells")
        for place in (m.path, *state_dirs(m)):
            for name, content in files_below(place):
                assert PLAIN.encode() not in content, name
        (path / "cancel").write_text("x")
        writer.end(4)
    assert_nowhere(m)


def test_r29_by_run_in_a_form_that_is_not_in_its_arguments(m):
    done = run([str(m / "leaky/run")], stdin=json.dumps({"token": PLAIN, "how": "throw"}).encode())
    assert done.status == 1 and PLAIN not in done.out + done.err and "[sensitive]" in done.err
    assert_nowhere(m)


@pytest.mark.parametrize("tool, request_", [("bash_kit", {"how": "fail", "token": PLAIN}), ("bash_kit", {"how": "secret", "token": PLAIN}),
                                            ("sample", {"param_name": "x", "mode": "single", "secret_param": PLAIN})])
def test_r29_in_other_languages_and_in_warm_hosts(m, tool, request_):
    """The host waits for another call: nothing of the last one is in its environment or arguments."""
    m.ask(tool, request_)
    assert children_of(m.pid)
    assert_nowhere(m)


def test_r29_state_directory_is_private(m):
    (place,) = state_dirs(m)
    assert os.stat(os.path.join(place, "calls")).st_mode & 0o777 == 0o700
    if os.geteuid() == 0:
        assert run(["ls", os.path.join(place, "calls")], uid=1000).status != 0


def core_limit(pid):
    for line in pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines():
        if line.startswith("Max core file size"):
            return int(line.split()[4])
    raise AssertionError("no limit")


def test_r29_core_dumps_are_off(m, work):
    """Of the daemon: not dumpable at all. Of hosts: no file, nor anything for a core_pattern that is a pipe."""
    m.say("python_kit", {"how": "string", "text": "x"})
    if "asan" not in os.environ.get("PEGFS_VARIANT", ""):
        # What is not dumpable belongs to root in /proc, and its memory is closed to its own user.
        assert core_limit(m.pid) == 0
    pids = descendants_of(m.pid)
    assert pids and all(core_limit(pid) <= 1 for pid in pids)
    m.fail("exits", {"how": "abort"})
    assert not list(work.rglob("core*")) and not list(m.work.glob("core*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for other users")
def test_r29_daemon_of_a_user_cannot_be_looked_into_by_that_user(new_mount, work):
    if os.environ.get("PEGFS_VARIANT") in ("asan", "tiny"):
        pytest.skip("the leak check needs a process that can be traced")
    if run(["sh", "-c", "test -u $(command -v fusermount3) && test -r /dev/fuse -a -w /dev/fuse"], uid=1000).status != 0:
        pytest.skip("users cannot mount here")
    mount = new_mount(uid=1000)
    assert run(["cat", f"/proc/{mount.pid}/environ"], uid=1000).status != 0
