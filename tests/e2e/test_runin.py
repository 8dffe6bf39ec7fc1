"""--run-in caller: tools run where their caller lives. docs/security.md names these tests.

The callers live in plain namespaces, which are always there, and in real containers where podman runs.
Some of them are hostile: they have all that a container may be given, and a look at all that happens.
"""

import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from lib.look import asking, can, make_look
from lib.mount import EXAMPLES, Mount
from lib.podman import STAY
from lib.programs import OTHER_USER, THIRD_USER, Background, need, run, until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: others cannot join namespaces")

CONTAINER = ["unshare", "-m", "-p", "-f", "--kill-child", "-n", "-i", "-u", "-C", "--mount-proc"]
USER_CONTAINER = ["setpriv", f"--reuid={OTHER_USER}", f"--regid={OTHER_USER}", "--clear-groups", "--",
                  "unshare", "-U", "-r", *CONTAINER[1:]]
HELLO = 'echo \'{"name":"Ada"}\' > hello/call; status=$?; cat hello/result.txt; exit $status'
KINDS = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")


def as_user(uid, *more):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", *(more or ["--clear-groups"]), "--"]


@pytest.fixture
def there(new_mount, work):
    """A mount that runs calls where they come from, with a tool that looks around."""
    return new_mount(tools=[EXAMPLES, make_look(work / "tools")], args=["--run-in", "caller"])


def look(mount, code, where=CONTAINER, before=":"):
    """What the tool says that is called from there."""
    done = run([*where, "bash", "-c", f"{before}\n{asking(code)}"], cwd=mount.path)
    assert done.status == 0, done
    return done.out.strip()


def status_of(text):
    """/proc/PID/status as a dictionary."""
    return {name: value.split() for name, value in (line.split(":", 1) for line in text.splitlines() if ":" in line)}


STATUS = "out = open('/proc/self/status').read()"


# ---------------------------------------------------------------- where it runs

@pytest.mark.parametrize("where", [CONTAINER, USER_CONTAINER, ["unshare", "-n"], ["unshare", "-U", "-r"]],
                         ids=["container", "user container", "network", "user"])
def test_a_tool_is_in_the_namespaces_of_its_caller(there, where):
    kinds = f"out = [os.readlink(f'/proc/self/ns/{{kind}}') for kind in {KINDS}]"
    done = run([*where, "bash", "-c", f"readlink {' '.join(f'/proc/self/ns/{kind}' for kind in KINDS)}\n"
                f"{asking('import os; ' + kinds)}"], cwd=there.path)
    assert done.status == 0, done
    *own, said = done.out.splitlines()
    assert said == str(own)


def test_who_lives_where_pegfs_does_is_served_there(there):
    assert run(HELLO, cwd=there.path).out == "Hello, Ada!\n"
    code = f"import os; out = [os.readlink(f'/proc/self/ns/{{kind}}') for kind in {KINDS}]"
    assert run(asking(code), cwd=there.path).out.strip() == str([os.readlink(f"/proc/self/ns/{kind}") for kind in KINDS])


def test_tools_of_every_language_run_there(new_mount, work):
    tools = make_look(work / "tools")
    (tools / "shell").mkdir()
    (tools / "shell/TOOL.md").write_text("---\nname: shell\nversion: 1\nlanguage: bash\ndescription: x\n---\nx\n")
    (tools / "shell/index.sh").write_text("echo $$; hostname; echo said >&2\n")
    mount = new_mount(tools=[EXAMPLES, tools], args=["--run-in", "caller"])
    script = f"hostname there; ({HELLO}); echo '{{}}' > shell/call && cat shell/result.txt shell/log; {asking('out = 1')}"
    done = run([*CONTAINER, "bash", "-c", script], cwd=mount.path)
    assert re.fullmatch(r"Hello, Ada!\n\d{1,3}\nthere\nsaid\n1\n", done.out), done


def test_a_tool_sees_the_files_and_processes_of_its_caller(there):
    before = "mount -t tmpfs none /mnt; echo mine > /mnt/mine; sleep 4321 & echo $! > /mnt/pid"
    code = "out = open('/mnt/mine').read() + open(f'/proc/{int(open(\"/mnt/pid\").read())}/cmdline').read()"
    assert look(there, code, before=before) == "mine\nsleep\x004321\x00"
    assert not os.path.exists("/mnt/mine")


@pytest.fixture
def jail(work):
    """A root directory with nothing but a shell; what is below it is for the test to mount."""
    need("busybox")
    root = work / "jail"
    for name in ("bin", "proc", "officer/tools", "tmp"):
        (root / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    for name in ("sh", "cat", "printf", "ls", "mount"):
        (root / "bin" / name).symlink_to("busybox")
    return root


def in_jail(mount, root, command, *binds):
    lines = [f"mount --bind {mount.path} {root}/officer/tools"]
    lines += [f"mkdir -p {root}{path} && mount --rbind {path} {root}{path}" for path in binds]
    lines += [f"exec chroot {root} /bin/sh -c \"$1\""]
    return run(["unshare", "-m", "-p", "-f", "--kill-child", "bash", "-ec", "\n".join(lines), "bash",
                f"mount -t proc proc /proc; cd /officer/tools; {command}"])


def test_a_tool_is_below_the_root_directory_of_its_caller(new_mount, work, jail):
    mount = new_mount(tools=[make_look(work / "tools")], args=["--run-in", "caller", "--at", "/officer/tools"])
    system = [path for path in ("/usr", "/lib", "/lib64", "/etc") if os.path.isdir(path)]
    done = in_jail(mount, jail, asking("import os; out = sorted(os.listdir('/'))"), *system)
    assert done.out.strip() == str(sorted(os.listdir(jail))), done


def test_where_the_caller_has_no_node_the_result_says_what_to_do(new_mount, jail):
    mount = new_mount(tools=[EXAMPLES], args=["--run-in", "caller", "--at", "/officer/tools"])
    done = in_jail(mount, jail, HELLO)
    assert done.status != 0, done
    assert "There is no 'node' where the caller lives" in done.out and "install it in that container" in done.out


def test_where_the_tree_is_not_at_its_place_the_result_says_what_to_do(there, jail):
    done = in_jail(there, jail, HELLO)
    assert done.status != 0, done
    assert f"not at '{there.path}/hello' where its caller lives" in done.out and "--at" in done.out


def test_who_opens_at_one_place_and_writes_at_another_is_refused(there):
    """Nobody makes a process of another container call what he likes, nor lends it his place."""
    for opener, writer in ((CONTAINER, []), ([], CONTAINER), (CONTAINER, CONTAINER)):
        with Background([*opener, "bash", "-c", "exec 3<>hello/call; echo; sleep 60"], cwd=there.path) as holder:
            holder.process.stdout.read(1)
            pid = holder.pid if not opener else child_of(holder.pid)
            # A copy of the descriptor, as SCM_RIGHTS would hand it over.
            script = "import ctypes, os, sys; libc = ctypes.CDLL(None, use_errno=True); " \
                     f"pidfd = libc.syscall(434, {pid}, 0); fd = libc.syscall(438, pidfd, 3, 0); " \
                     "assert fd >= 0; os.dup2(fd, 3); os.execvp(sys.argv[1], sys.argv[1:])"
            call = "printf '{\"name\":\"Ada\"}' >&3 && echo WORKED; cat <&3"
            done = run(["/usr/bin/python3", "-c", script, *writer, "bash", "-c", call], cwd=there.path)
        assert "WORKED" not in done.out and "Hello" not in done.out, done
        assert "opened at one place and written to at another" in done.out, (opener, writer, done)


def child_of(pid):
    from lib.programs import children_of
    until(lambda: children_of(pid), what="a child")
    return children_of(pid)[0]


# ---------------------------------------------------------------- with which rights

def capabilities(lines):
    return {name: int(lines[name][0], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")}


def both(mount, where):
    """/proc/self/status of the caller and of the tool that it calls."""
    done = run([*where, "bash", "-c", f"cat /proc/self/status; echo =====; {asking(STATUS)}"], cwd=mount.path)
    assert done.status == 0, done
    return [status_of(text) for text in done.out.split("=====\n")]


FEW = ["setpriv", "--bounding-set=-all,+chown,+kill,+setpcap", "--inh-caps=-all", "--"]


@pytest.mark.parametrize("where", [
    CONTAINER, [*CONTAINER, *FEW], [*CONTAINER, *as_user(OTHER_USER, "--groups=7,8")], USER_CONTAINER,
    [*USER_CONTAINER, *FEW], [*as_user(OTHER_USER, "--groups=7,8"), "unshare", "-U", *CONTAINER[1:-1]],
], ids=["root", "root with few", "user", "root of a user namespace", "the same with few", "without a number there"])
def test_a_tool_there_has_the_ids_groups_and_at_most_the_capabilities_of_its_caller(there, where):
    caller, tool = both(there, where)
    for name in ("Uid", "Gid", "Groups"):
        assert tool[name] == caller[name], name
    has, may = capabilities(tool), capabilities(caller)
    for name in ("CapPrm", "CapEff"):
        assert has[name] & ~may["CapPrm"] == 0
    assert has["CapBnd"] & ~(may["CapPrm"] & may["CapBnd"]) == 0
    assert has["CapInh"] == has["CapAmb"] == 0
    assert tool["NoNewPrivs"] == ["1"]


def test_ids_are_those_of_the_caller_seen_from_outside_too(there):
    """Whatever number root of a user namespace has in there, its tool is that user, and no other, outside."""
    keep = "import os, time; os.stat('/'); out = open('/proc/self/stat').read().split()[0]"
    with Background([*USER_CONTAINER, "bash", "-c", asking(keep) .replace("exit $status", "sleep 60")],
                    cwd=there.path) as caller:
        caller.process.stdout.readline()
        found = [status_of(pathlib.Path(f"/proc/{pid}/status").read_text()) for pid in below(there.server_pid)]
        inner = [lines for lines in found if len(lines["NSpid"]) > 1]
        assert len(inner) == 2 and all(lines["Uid"] == [str(OTHER_USER)] * 4 for lines in inner), found


def below(pid):
    from lib.programs import descendants_of
    return descendants_of(pid)


def test_limits_of_the_caller_are_those_of_the_tool(there):
    code = "import resource; out = [resource.getrlimit(what) for what in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)]"
    assert look(there, code, before="ulimit -n 77; ulimit -f 100") == str([(77, 77), (102400, 102400)])


def cgroup_dirs():
    """A cgroup of our own in each hierarchy that is mounted and can be written to: {line of /proc/PID/cgroup: dir}."""
    found = {}
    for line in open("/proc/self/mountinfo", encoding="ascii"):
        left, right = line.split(" - ")
        kind, _, options = right.split()[:3]
        if not kind.startswith("cgroup"):
            continue
        names = {name.split(":")[1]: name.split(":")[2].strip() for name in open("/proc/self/cgroup", encoding="ascii")}
        for controllers, path in names.items():
            is_it = kind == "cgroup2" if not controllers else set(controllers.split(",")) <= set(options.split(","))
            if is_it and (kind == "cgroup") == bool(controllers):
                found[controllers] = pathlib.Path(left.split()[4] + path) / f"pegfs-test-{os.getpid()}"
    return found


@pytest.fixture
def cgroups():
    made = {}
    for controllers, path in cgroup_dirs().items():
        if controllers in ("cpuset", "cpuset,cpu"):
            continue  # a new one of these takes no process until it has been set up
        try:
            path.mkdir()
            made[controllers] = path
        except OSError:
            continue
    if not made:
        pytest.skip("no cgroup can be made here")
    yield made
    for path in made.values():
        until(lambda path=path: not (path / "cgroup.procs").read_text(), what="the end of all in a cgroup")
        path.rmdir()


def test_a_tool_is_in_the_cgroups_of_its_caller(there, cgroups):
    enter = "\n".join(f"echo $$ > {path}/cgroup.procs" for path in cgroups.values())
    read = asking("out = open('/proc/self/cgroup').read()")
    command = f"{enter}\ncat /proc/self/cgroup; echo =====; {read}"
    done = run([*CONTAINER[:-2], "--mount-proc", "bash", "-c", command], cwd=there.path)
    own, tool = done.out.split("=====\n")
    assert tool.strip() == own.strip(), done
    assert all(f"/{path.name}" in own for path in cgroups.values())


# ---------------------------------------------------------------- hosts, containers, restarts

COUNT = "import builtins, os; builtins.n = getattr(builtins, 'n', 0) + 1; out = builtins.n"


def test_a_host_there_stays_warm_and_is_of_one_place(there):
    """Two containers with the same ids have a process each, of which the other knows nothing."""
    ask = f"({asking(COUNT)})"
    first, second = (run([*CONTAINER, "bash", "-c", f"{ask}; {ask}"], cwd=there.path) for _ in range(2))
    assert first.out == second.out == "1\n2\n", (first, second)


def test_hosts_end_with_their_container(there):
    """And what tools have left in it is found before, at the end of the call, whoever its parent is."""
    leave = "import subprocess; subprocess.run(['setsid', '-f', 'sleep', '987123']); out = 1"
    alive = "pgrep -f 'sleep 98712[3]'"
    with Background([*CONTAINER, "bash", "-c", f"({asking(leave)}); sleep 60"], cwd=there.path) as container:
        assert container.process.stdout.readline() == b"1\n"
        until(lambda: run(alive).status == 1, what="the end of what a call has left")
        inner = [pid for pid in below(there.server_pid) if name_of(pid) == "pegfs-enter"]
        assert len(inner) == 2
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in inner), what="the end of the hosts")
    assert look(there, "out = 2") == "2"


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
    except OSError:
        return None


def test_a_call_is_cancelled_and_timed_out_there_as_everywhere(new_mount, work):
    mount = new_mount(tools=[make_look(work / "tools")], args=["--run-in", "caller", "--timeout", "2"])
    done = run([*CONTAINER, "bash", "-c", asking("import time; time.sleep(50)")], cwd=mount.path)
    assert done.status != 0 and "within 2 seconds" in done.out and done.seconds < 20
    slow = asking("import subprocess; subprocess.run(['sleep', '987124'])")
    with Background([*CONTAINER, "bash", "-c", slow], cwd=mount.path) as container:
        until(lambda: run("pgrep -f 'sleep 98712[4]'").status == 0, what="the call")
        container.signal(signal.SIGKILL)
    until(lambda: run("pgrep -f 'sleep 98712[4]'").status == 1, what="the end of the call")
    assert look(mount, "out = 3") == "3"


def test_a_host_there_and_its_call_outlive_the_server(there):
    ask = f"({asking(COUNT)})"
    slow = "exec 3<>look/call; echo '{\"code\":\"import time; time.sleep(2); out = 77\"}' >&3; echo sent; cat <&3; exec 3<&-"
    with Background([*CONTAINER, "bash", "-c", f"{slow}; {ask}; {ask}"], cwd=there.path) as container:
        assert container.process.stdout.readline() == b"sent\n"
        until(lambda: [pid for pid in below(there.server_pid) if name_of(pid) == "pegfs-enter"], what="the host")
        os.kill(there.server_pid, signal.SIGKILL)
        done = container.end()
    assert '"text":"77"' in done.out and done.out.endswith("\n1\n2\n"), done


def jobs(mount, state):
    return int(re.search(rf"^pegfs_calls_{state} (\d+)$", (mount.path / ".pegfs/stats").read_text(), re.M)[1])


def test_a_call_that_waits_for_a_host_there_outlives_the_server(new_mount, work):
    mount = new_mount(tools=[make_look(work / "tools")], args=["--run-in", "caller", "--hosts", "1"])
    with Background(asking("import time; time.sleep(4); out = 'first'"), cwd=mount.path) as first:
        until(lambda: jobs(mount, "running") == 1, what="the first call")
        with Background([*CONTAINER, "bash", "-c", asking("out = 'second'")], cwd=mount.path) as second:
            until(lambda: jobs(mount, "waiting") == 1, what="the second")
            os.kill(mount.server_pid, signal.SIGKILL)
            assert "second" in second.end().out
        assert first.end().out == "first\n"


@pytest.fixture
def machines_mount(machine, new_mount, work):
    """A mount that real containers have at /officer/tools."""
    make_look(work / "tools")
    for path in (work, work / "tools"):
        path.chmod(0o755)

    def make(*args, **how):
        return new_mount(tools=[EXAMPLES, work / "tools"], at=machine.work / "mnt",
                         args=["--run-in", "caller", "--at", "/officer/tools", *args], **how)

    return make


def volumes(mount, *more):
    return [(mount.path, "/officer/tools", "rslave"), *more]


@pytest.mark.parametrize("args", [[], ["--user", "1000:1000"], ["--uidmap", "0:100000:65536"], ["--read-only"],
                                  ["--cap-drop", "ALL"], ["--ipc", "host"]],
                         ids=["root", "user", "user namespace", "read-only", "no capability", "ipc namespace of the host"])
def test_a_tool_lives_in_the_real_container_that_calls_it(machine, machines_mount, work, args):
    mount = machines_mount()
    (work / "data").mkdir()
    (work / "data/mine").write_text("of the container")
    data = "import socket; out = socket.gethostname() + open('/officer/user/mine').read()"
    command = f"cd /officer/tools; hostname; ({HELLO}); cat /proc/self/status; echo =====; " \
              f"({asking(data)}); " \
              f"{asking(STATUS)}"
    done = machine.run(command, volumes=volumes(mount, (work / "data", "/officer/user")), args=args)
    assert done.status == 0, done
    host, hello, rest = done.out.split("\n", 2)
    assert hello == "Hello, Ada!"
    own, said = rest.split("=====\n")
    assert said.startswith(host + "of the container\n")
    caller, tool = status_of(own), status_of(said)
    assert [tool[name] for name in ("Uid", "Gid", "Groups")] == [caller[name] for name in ("Uid", "Gid", "Groups")]
    assert int(tool["CapEff"][0], 16) & ~int(caller["CapPrm"][0], 16) == 0
    assert int(tool["CapBnd"][0], 16) & ~int(caller["CapPrm"][0], 16) == 0


def test_a_real_container_that_restarts_is_served_again(machine, machines_mount):
    mount = machines_mount()
    ask = f"cd /officer/tools; ({asking(COUNT)}); {asking(COUNT)}"
    with machine.start(STAY, volumes=volumes(mount)) as container:
        assert container.exec(ask).out == "1\n2\n"
        container.restart()
        assert container.exec(ask).out == "1\n2\n"
