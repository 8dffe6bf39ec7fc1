"""What docs/security.md claims: each of its claims names a test of this file.

The callers of other containers are real ones where podman is installed and can run; the same is
asked of plain namespaces, which are always there.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import pytest

from lib.look import can, make_look
from lib.mount import EXAMPLES, PEGFS, ROOT, Mount
from lib.programs import OTHER_USER, THIRD_USER, need, run, until

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
pytestmark = as_root

HELLO = 'echo \'{"name":"Ada"}\' > hello/call && cat hello/result.txt'
WHY = 'echo \'{"name":"Ada"}\' > hello/call; status=$?; cat hello/result.txt; exit $status'

# Shows what it may do: ids, groups, capabilities, and that it can gain none.
RIGHTS_MD = """---
name: rights
version: 1
language: bash
description: Shows the rights of its process.
---
Use it in tests.
"""
RIGHTS_SH = """
printf 'Host:\\t%s\\n' "$PPID"
grep -E '^(Uid|Gid|Groups|CapPrm|CapEff|CapBnd|CapInh|CapAmb|NoNewPrivs):' /proc/self/status
"""


@pytest.fixture(scope="module")
def rights_dir(tmp_path_factory):
    directory = tmp_path_factory.mktemp("rights")
    for path in (directory, *directory.parents):
        if path == pathlib.Path("/tmp"):
            break
        path.chmod(0o755)
    (directory / "rights").mkdir()
    (directory / "rights/TOOL.md").write_text(RIGHTS_MD)
    (directory / "rights/index.sh").write_text(RIGHTS_SH)
    return directory


def rights(mount, command=(), uid=None):
    """What a tool may do that is called through `command`, a prefix; status and lines."""
    done = run([*command, "bash", "-c", 'echo "{}" > rights/call; s=$?; cat rights/result.txt; exit $s'],
               cwd=mount.path, uid=uid)
    lines = dict(line.split(":", 1) for line in done.out.splitlines() if ":" in line)
    return done.status, {name: value.split() for name, value in lines.items()}, done.out


def as_user(uid):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]


ELSEWHERE = {
    "mount": ["unshare", "-m"],
    "pid": ["unshare", "-p", "-f"],
    "network": ["unshare", "-n"],
    "ipc": ["unshare", "-i"],
    "user": ["unshare", "-U", "--map-root-user"],
    "all": ["unshare", "-m", "-p", "-f", "-n", "-i", "--mount-proc"],
}


# ---------------------------------------------------------------- callers that live elsewhere

@pytest.mark.parametrize("kind", ELSEWHERE)
def test_root_of_another_namespace_is_refused(new_mount, kind):
    mount = new_mount()
    done = run([*ELSEWHERE[kind], "bash", "-c", WHY], cwd=mount.path)
    assert done.status != 0 and "Permission denied" in done.err
    assert "Hello" not in done.out


def test_the_refusal_names_what_differs_and_the_options(new_mount):
    mount = new_mount()
    call = 'exec 3<>hello/call; echo \'{"name":"Ada"}\' >&3; cat <&3'
    done = run([*ELSEWHERE["mount"], "bash", "-c", call], cwd=mount.path)
    assert "mount namespace" in done.out, done
    assert "--run-in daemon" in done.out and "--call-uid" in done.out


def test_a_user_of_another_namespace_is_refused(new_mount):
    mount = new_mount()
    done = run([*ELSEWHERE["mount"], *as_user(OTHER_USER), "bash", "-c", WHY], cwd=mount.path)
    assert done.status != 0 and "Permission denied" in done.err


def test_a_caller_in_a_chroot_is_refused(new_mount, work):
    need("busybox")
    mount = new_mount()
    root = work / "jail"
    (root / "bin").mkdir(parents=True)
    (root / "mnt").mkdir()
    shutil.copy(shutil.which("busybox"), root / "bin/sh")
    with open(mount.path / "hello/call", "wb") as call:
        # The descriptor is from outside; who writes to it is in there.
        done = subprocess.run(["chroot", root, "/bin/sh", "-c", "echo '{\"name\":\"Ada\"}' >&3"],
                              pass_fds=[call.fileno()], capture_output=True, text=True, check=False,
                              preexec_fn=lambda: os.dup2(call.fileno(), 3))
    assert done.returncode != 0


def test_a_descriptor_that_was_opened_elsewhere_is_from_there(new_mount):
    """Root of a container hands an open `call` to somebody outside, who writes what he is given."""
    mount = new_mount()
    near, far = socket.socketpair()
    opener = "import array, os, socket, sys; s = socket.socket(fileno=int(sys.argv[1])); " \
             "fd = os.open('hello/call', os.O_RDWR); " \
             "s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))])"
    done = subprocess.run([*ELSEWHERE["mount"], "/usr/bin/python3", "-c", opener, str(far.fileno())],
                          pass_fds=[far.fileno()], cwd=mount.path, check=False)
    assert done.returncode == 0
    _, fds, _, _ = socket.recv_fds(near, 1, 1)
    try:
        with pytest.raises(PermissionError):
            os.write(fds[0], b'{"name":"Ada"}')
    finally:
        os.close(fds[0])
        near.close()
        far.close()


def test_a_caller_outside_of_the_daemons_pid_namespace_is_refused(work):
    """Its pid is 0 to the daemon: nothing is known of it."""
    script = """
        cd "$W" && mkdir -p m && mount --bind . . && mount --make-shared . && cd "$W"
        unshare -m --propagation unchanged -p -f --mount-proc --kill-child \\
            "$PEGFS" mount -f "$W/m" --tools "$TOOLS" --ready-fd 4 4>ready 3>&- &
        daemon=$!
        for i in $(seq 100); do [ -s ready ] && break; sleep 0.1; done
        exec 3<>m/hello/call
        echo '{"name":"Ada"}' >&3 && echo WORKED
        cat <&3
        exec 3<&-
        umount m; kill $daemon; wait
    """
    done = run(["unshare", "-m", "bash", "-c", script],
               env={"W": work, "PEGFS": PEGFS, "TOOLS": EXAMPLES})
    assert "WORKED" not in done.out, done
    assert "cannot tell where the caller lives" in done.out, done


# ---------------------------------------------------------------- --run-in daemon

def test_run_in_daemon_takes_users_of_other_namespaces(new_mount, rights_dir):
    mount = new_mount(tools=[rights_dir], args=["--run-in", "daemon"])
    status, lines, out = rights(mount, [*ELSEWHERE["mount"], *as_user(OTHER_USER)])
    assert status == 0, out
    assert lines["Uid"] == [str(OTHER_USER)] * 4


def test_run_in_daemon_never_runs_root_of_another_namespace(new_mount, rights_dir):
    mount = new_mount(tools=[rights_dir], args=["--run-in", "daemon"])
    for kind in ELSEWHERE:
        status, _, out = rights(mount, ELSEWHERE[kind])
        assert status != 0, (kind, out)


def test_a_host_is_not_shared_between_places(new_mount, rights_dir):
    """Two callers with the same ids in different namespaces: a tool's memory is not common to them."""
    mount = new_mount(tools=[rights_dir], args=["--run-in", "daemon"])
    ask = 'exec 3<>rights/call; echo "{}" >&3; cat <&3'
    said = [run([*command, *as_user(OTHER_USER), "bash", "-c", ask], cwd=mount.path).out
            for command in ([], ELSEWHERE["mount"], [])]
    pids = [re.search(r"Host:\\t(\d+)", text)[1] for text in said]
    assert pids[0] == pids[2] != pids[1]


# ---------------------------------------------------------------- --call-uid

def test_call_uid_runs_every_call_as_that_user(new_mount, rights_dir):
    mount = new_mount(tools=[rights_dir], args=["--call-uid", THIRD_USER, "--call-gid", 4321])
    for command in ([], as_user(OTHER_USER), ELSEWHERE["all"], ELSEWHERE["user"]):
        status, lines, out = rights(mount, command)
        assert status == 0, out
        assert lines["Uid"] == [str(THIRD_USER)] * 4 and lines["Gid"] == ["4321"] * 4
        assert lines["Groups"] == [] and int(lines["CapPrm"][0], 16) == 0


@pytest.mark.parametrize("args, text", [
    (["--call-uid", "0"], "never run as root"), (["--call-uid", "-1"], "no id"),
    (["--call-uid", "x"], "no id"), (["--call-uid", "4294967295"], "no id"),
    (["--callers", ""], "nobody"), (["--callers", "0,x"], "no list"), (["--callers", "-1"], "no list"),
    (["--callers", "1,,2"], "no list"), (["--call-gid", "5"], "--call-uid"), (["--run-in", "moon"], "neither daemon nor caller"),
    (["--run-in", "caller", "--call-uid", "5"], "does not go with"),
    (["--run-in", "caller", "--sandbox", "bwrap"], "does not go with")])
def test_senseless_identities_are_refused_at_the_mount(work, args, text):
    done = run([PEGFS, "mount", work, "--tools", EXAMPLES, *args])
    assert done.status != 0 and text in done.err


def test_only_named_callers_may_call(new_mount):
    mount = new_mount(args=["--callers", f"0,{OTHER_USER}"])
    for uid in (None, OTHER_USER):
        assert run(HELLO, cwd=mount.path, uid=uid).out == "Hello, Ada!\n"
    for other in (THIRD_USER, 100, OTHER_USER * 10):
        done = run("cat hello/prompt.md >/dev/null && stat -c %a hello/call && " + HELLO,
                   cwd=mount.path, uid=other)
        assert done.status != 0 and done.out == "444\n" and "Permission denied" in done.err
    os.kill(mount.server_pid, signal.SIGKILL)  # the next server knows it as well
    assert run(HELLO, cwd=mount.path, uid=OTHER_USER).out == "Hello, Ada!\n"
    assert run(HELLO, cwd=mount.path, uid=THIRD_USER).status != 0


# ---------------------------------------------------------------- rights

def test_a_call_has_the_ids_and_groups_of_its_caller(new_mount, rights_dir):
    mount = new_mount(tools=[rights_dir])
    _, lines, _ = rights(mount, ["setpriv", "--reuid=1234", "--regid=2345", "--groups=7,8"])
    assert lines["Uid"] == ["1234"] * 4 and lines["Gid"] == ["2345"] * 4
    assert lines["Groups"] == ["7", "8"]


def test_a_user_gets_no_capability(new_mount, rights_dir):
    mount = new_mount(tools=[rights_dir])
    _, lines, _ = rights(mount, as_user(OTHER_USER))
    for name in ("CapPrm", "CapEff", "CapInh", "CapAmb", "CapBnd"):
        assert int(lines[name][0], 16) == 0, name


def test_root_with_fewer_capabilities_gets_no_more_than_it_has(new_mount, rights_dir):
    mount = new_mount(tools=[rights_dir])
    _, full, _ = rights(mount)
    assert int(full["CapPrm"][0], 16) >> 21 & 1  # CAP_SYS_ADMIN
    keep = ["setpriv", "--bounding-set=-all,+chown,+kill", "--inh-caps=-all"]
    _, few, _ = rights(mount, keep)
    assert int(few["CapPrm"][0], 16) == int(few["CapBnd"][0], 16) == 1 << 0 | 1 << 5
    _, again, _ = rights(mount)
    assert again.pop("Host") != few.pop("Host")
    assert again == {name: value for name, value in full.items() if name != "Host"}


def test_a_tool_cannot_gain_rights(new_mount, rights_dir):
    mount = new_mount(tools=[rights_dir])
    for uid in (None, OTHER_USER):
        assert rights(mount, uid=uid)[1]["NoNewPrivs"] == ["1"]


def test_a_file_opened_by_a_user_never_runs_as_root(new_mount, rights_dir):
    mount = new_mount(tools=[rights_dir])
    os.setegid(OTHER_USER)
    os.seteuid(OTHER_USER)
    try:
        fd = os.open(mount.path / "rights/call", os.O_RDWR)
    finally:
        os.seteuid(0)
        os.setegid(0)
    os.write(fd, b"{}")
    out = os.read(fd, 65536).decode()
    os.close(fd)
    text = json.loads(out)["content"][0]["text"]
    assert f"Uid:\t{OTHER_USER}\t" in text, out


def test_a_daemon_without_ptrace_rights_knows_its_callers(work, rights_dir):
    """As in a container: root there without CAP_SYS_PTRACE serves users, and refuses others still."""
    mount = Mount(work, tools=[rights_dir])
    wrapper = work / "pegfs-no-ptrace"
    wrapper.write_text(f'#!/bin/sh\nexec setpriv --bounding-set=-sys_ptrace --inh-caps=-all {mount.program} "$@"\n')
    wrapper.chmod(0o755)
    mount.program = wrapper
    mount.start()
    try:
        status, lines, out = rights(mount, as_user(OTHER_USER))
        assert status == 0 and lines["Uid"][0] == str(OTHER_USER), out
        assert rights(mount, [*ELSEWHERE["mount"], *as_user(OTHER_USER)])[0] != 0
        assert mount.is_alive()
    finally:
        assert mount.stop() == []


# ---------------------------------------------------------------- --sandbox bwrap

@pytest.fixture
def sandboxed(new_mount, work):
    """A mount whose tools are in a sandbox; two tools, a user's data, and a secret beside them."""
    need("bwrap")
    make_look(work / "tools", "look", "other")
    (work / "user").mkdir()
    (work / "user").chmod(0o777)
    (work / "secret").write_text("of somebody else")

    def make(kind="bwrap"):
        return new_mount(tools=[work / "tools"], args=["--sandbox", kind],
                         tool_env={"OFFICER_USER_ROOT": work / "user", "PATH": "/usr/bin:/bin"})

    return make


def look(mount, code, uid=None, tool="look"):
    """What `out` is after the code has run in the tool; an error is a failure of the test."""
    request = json.dumps({"code": code})
    done = run(f"cat > {tool}/call; cat {tool}/result.txt", cwd=mount.path, uid=uid, stdin=request.encode())
    assert done.status == 0, done
    return done.out.strip()


@pytest.fixture(params=[0, OTHER_USER], ids=["root", "user"])
def uid(request):
    return request.param


def test_a_sandbox_shows_its_own_tool_and_the_users_data_alone(sandboxed, work, uid):
    mount = sandboxed()
    assert look(mount, f"import os; out = os.listdir('{work}/tools')", uid) == "['look']"
    assert look(mount, f"import os; out = sorted(os.listdir('{work}'))", uid) == "['tools', 'user']"
    assert look(mount, can(f"open('{work}/secret')"), uid) == "No such file or directory"
    assert look(mount, can(f"open('{work}/user/mine', 'w').write('x')"), uid) == "could"
    assert (work / "user/mine").stat().st_uid == uid
    assert look(mount, f"import os; out = os.listdir('{work}/tools')", uid, "other") == "['other']"


def test_a_sandboxs_system_and_tool_are_read_only(sandboxed, work, uid):
    mount = sandboxed()
    for path in ("/usr/x", "/etc/x", f"{work}/tools/look/x"):
        assert look(mount, can(f"open('{path}', 'w')"), uid) in (
            "Read-only file system", "Permission denied"), path
        assert not os.path.exists(path)
    assert look(mount, can("open('/usr/x', 'w')"), 0) == "Read-only file system"


def test_a_sandboxs_tmp_is_its_own(sandboxed, uid):
    mount = sandboxed()
    name = f"/tmp/pegfs-sandbox-{os.getpid()}"
    assert look(mount, can(f"open('{name}', 'w').write('x')"), uid) == "could"
    assert not os.path.exists(name)


def test_a_sandbox_sees_no_process_outside_of_it(sandboxed, uid):
    mount = sandboxed()
    assert look(mount, "import os; out = [p for p in os.listdir('/proc') if p.isdigit()]", uid) == "['1']"
    assert look(mount, can(f"import os; os.kill({mount.pid}, 0)"), uid) == "No such process"


def test_a_sandbox_has_no_capability_and_an_ipc_namespace_of_its_own(sandboxed, uid):
    mount = sandboxed()
    code = "out = [l.split()[1] for l in open('/proc/self/status') if l.startswith(('Cap', 'NoNew'))]"
    assert look(mount, code, uid) == str(["0" * 16] * 5 + ["1"])
    ipc = look(mount, "import os; out = os.readlink('/proc/self/ns/ipc')", uid)
    assert ipc != os.readlink("/proc/self/ns/ipc")


def test_an_offline_sandbox_has_no_network(sandboxed, uid):
    interfaces = "out = [l.split(':')[0].strip() for l in list(open('/proc/net/dev'))[2:]]"
    assert look(sandboxed("bwrap-offline"), interfaces, uid) == "['lo']"
    net = "import os; out = os.readlink('/proc/self/ns/net')"
    assert look(sandboxed(), net, uid) == os.readlink("/proc/self/ns/net")


def test_a_sandboxed_host_stays_warm_and_its_children_end_with_the_call(sandboxed, uid):
    mount = sandboxed()
    start = "import subprocess, builtins; builtins.n = getattr(builtins, 'n', 0) + 1; " \
            "subprocess.Popen(['sleep', '987654']); out = builtins.n"
    assert look(mount, start, uid) == "1"
    until(lambda: run(["pgrep", "-f", "sleep 98765[4]"]).status == 1, what="the end of what it left")
    keep = "import builtins; builtins.n = getattr(builtins, 'n', 0) + 1; out = builtins.n"
    first = int(look(mount, keep, uid))
    assert int(look(mount, keep, uid)) == first + 1


def test_tools_of_every_language_run_in_a_sandbox(new_mount, rights_dir, uid):
    need("bwrap")
    mount = new_mount(tools=[EXAMPLES, rights_dir], args=["--sandbox", "bwrap"])
    for _ in range(2):
        done = run(HELLO, cwd=mount.path, uid=uid)
        assert done.out == "Hello, Ada!\n", done
        assert rights(mount, uid=uid)[1]["CapEff"] == ["0" * 16]


def test_a_sandbox_without_bwrap_is_refused_at_the_mount(work):
    done = run([PEGFS, "mount", work, "--tools", EXAMPLES, "--sandbox", "bwrap",
                "--env", f"PATH={work}/bin"])
    assert done.status != 0 and "bubblewrap" in done.err, done


# ---------------------------------------------------------------- real containers

def can_run_podman():
    return shutil.which("podman") and shutil.which("busybox")


def podman(root, mount, *command, args=()):
    """Runs a command in a container that has the mount at /officer/tools."""
    argv = ["podman", "run", "--rm", "--cgroups=disabled", "--network=none",
            "--ulimit", "nofile=20000:20000", "--ulimit", "nproc=30000:30000",
            "-v", f"{mount.path}:/officer/tools:rslave", *args, "--rootfs", str(root), *command]
    script = ("mountpoint -q /sys/fs/cgroup/unified && umount /sys/fs/cgroup/unified; exec \"$@\"")
    return run(["unshare", "-m", "sh", "-c", script, "sh", *argv], timeout=80)


@pytest.fixture
def container_root(work):
    if not can_run_podman():
        pytest.skip("podman and busybox-static are needed for real containers")
    root = work / "rootfs"
    for name in ("bin", "etc", "proc", "sys", "dev", "tmp", "officer/tools"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    for name in ("sh", "cat", "echo", "ls", "id", "true"):
        (root / "bin" / name).symlink_to("busybox")
    if podman(root, type("No", (), {"path": work})(), "/bin/true").status != 0:
        pytest.skip("podman cannot run a container here")
    return root


def test_root_of_a_real_container_is_refused(new_mount, container_root):
    mount = new_mount()
    done = podman(container_root, mount, "/bin/sh", "-c", "cd /officer/tools; " + WHY)
    assert done.status != 0 and "ermission denied" in done.err, done
    assert "Hello" not in done.out


def test_a_real_container_may_call_as_the_one_user(new_mount, container_root, rights_dir):
    mount = new_mount(tools=[rights_dir], args=["--call-uid", THIRD_USER])
    done = podman(container_root, mount, "/bin/sh", "-c",
                  "cd /officer/tools; echo '{}' > rights/call && cat rights/result.txt")
    assert done.status == 0, done
    assert f"Uid:\t{THIRD_USER}" in done.out


# ---------------------------------------------------------------- the document

def test_every_claim_of_the_document_names_its_test():
    text = (ROOT / "docs/security.md").read_text()
    claims = re.findall(r"^- (.*(?:\n  .*)*)", text, re.M)
    assert len(claims) > 10
    sources = {path.name: path.read_text() for path in (ROOT / "tests").rglob("test_*")
               if path.suffix in (".py", ".c")}
    for claim in claims:
        named = re.findall(r"`(test_\w+\.(?:py|c)):(\w+)`", claim)
        assert named, f"no test is named for: {claim}"
        for file, name in named:
            assert re.search(rf"\b{name}\(", sources[file]), f"{file} has no {name}"
    own = set(re.findall(r"^def (test_\w+)", sources["test_security.py"], re.M))
    own |= set(re.findall(r"^def (test_\w+)", sources["test_runin.py"], re.M))
    assert own - set(re.findall(r"test_(?:security|runin)\.py:(test_\w+)", text)) <= {
        "test_every_claim_of_the_document_names_its_test"}
