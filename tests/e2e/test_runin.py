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
from lib.mount import EXAMPLES, PEGFS, Mount
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


# ---------------------------------------------------------------- a hostile root of the container

WATCHER = pathlib.Path(__file__).parents[1] / "lib" / "watcher.py"
SECRET = "pegfs-secret-of-somebody-else"
SECRET_MD = """---
name: guarded
version: 1
language: python
description: Keeps a secret.
inputs:
  token:
    type: string
    description: The secret.
    sensitive: true
---
Use it in tests.
"""
SECRET_PY = "import time\ndef execute(call_id, params):\n    time.sleep(60)\n    return 'done'\n"


def watched(mount, code, where=CONTAINER, before=(), words=()):
    """What a hostile root sees of the processes that a call brings into its container."""
    script = f"""
        coproc WATCH {{ exec {' '.join(before)} /usr/bin/python3 {WATCHER} '{json.dumps(list(words))}'; }}
        read -r ready <&"${{WATCH[0]}}"
        exec 5>&"${{WATCH[1]}}" 6<&"${{WATCH[0]}}"
        echo go >&5
        ({asking(code)}) || true
        echo end >&5
        cat <&6
    """
    done = run([*where, "bash", "-c", script], cwd=mount.path, timeout=60)
    assert done.status == 0, done
    lines = done.out.splitlines()
    return "\n".join(lines[:-1]), json.loads(lines[-1])


def host_files():
    library = pathlib.Path(os.environ.get("PEGFS_LIB_DIR", pathlib.Path(__file__).parents[2] / "build/lib/pegfs"))
    return {path: path.read_bytes() for path in (library / "host").rglob("*") if path.is_file()}


@pytest.mark.parametrize("where", [CONTAINER, USER_CONTAINER], ids=["root", "root of a user namespace"])
def test_a_root_that_traces_all_it_sees_gets_no_right_and_no_memory_of_the_daemon(new_mount, work, where):
    """It may trace every process: none has more than it, nor anything open or in memory that is not the tool's."""
    tools = make_look(work / "tools")
    (tools / "guarded").mkdir()
    (tools / "guarded/TOOL.md").write_text(SECRET_MD)
    (tools / "guarded/index.py").write_text(SECRET_PY)
    mount = new_mount(tools=[tools], args=["--run-in", "caller"])
    before = host_files()
    keep = f"exec 3<>guarded/call; echo '{{\"token\":\"{SECRET}\"}}' >&3; echo; sleep 60"
    with Background(keep, cwd=mount.path) as other:  # what is in the daemon's memory by then
        other.process.stdout.read(1)
        words = [SECRET, "lib/pegfs/host", "/sys/fs/cgroup", str(mount.log_path)]
        said, found = watched(mount, "out = 'answer'", where, words=words)
    assert said == "answer"
    own = [one for one in found["caught"] if isinstance(one, dict)]
    ours = [one for one in own if one["name"] == "pegfs-enter"]
    assert ours, found
    for one in ours:
        assert one["no_new_privs"] == "1" and one["command"].strip().startswith("pegfs-enter"), one
        assert "lib/pegfs" not in one["command"], one
        if where is USER_CONTAINER:  # its right to trace does not go as far as that
            assert one["untraced"] and all(one[name].startswith("!") for name in ("exe", "fds", "words")), one
            continue
        assert "untraced" not in one and one["same_root"] and one["words"] == [], one
        assert one["exe"] == "/memfd:pegfs-enter (deleted)" and one["overwrite"].startswith("!"), one
        assert one["cwd"] == "/"
        for fd, target in one["fds"].items():
            assert re.match(r"(pipe|socket):|/memfd:pegfs-enter", target), (fd, one)
        assert len(one["fds"]) <= 7, one
    assert host_files() == before


def test_a_root_with_few_capabilities_meets_no_process_with_more(there):
    """Not even for the blink of an eye: what is in its pid namespace has given all up before it came."""
    few = 1 << 0 | 1 << 5 | 1 << 8 | 1 << 19
    where = [*CONTAINER, "setpriv", "--bounding-set=-all,+chown,+kill,+setpcap,+sys_ptrace", "--inh-caps=-all", "--"]
    _, found = watched(there, "out = 1", where)
    seen = [one for one in found["caught"] if isinstance(one, dict)]
    assert any(one["name"] == "pegfs-enter" for one in seen), found
    for one in seen:
        for name, value in one["caps"].items():
            assert int(value, 16) & ~few == 0, (name, one)


def test_a_user_cannot_look_into_the_process_that_brings_its_tool(there):
    """It is hidden from all but who may trace in the daemon's own user namespace."""
    where = [*CONTAINER, *as_user(OTHER_USER)]
    _, found = watched(there, "out = 1", where)
    ours = [one for one in found["caught"] if isinstance(one, dict) and one["name"] == "pegfs-enter"]
    assert ours, found
    for one in ours:
        assert one["untraced"] and one["fds"].startswith("!") and one["exe"].startswith("!"), one


def test_what_a_tool_has_open_is_no_file_of_the_daemons_system(there):
    """Root of a container without a user namespace may chmod(2) what it has open."""
    code = "import os, stat\nout = {}\nfor fd in os.listdir('/proc/self/fd'):\n    try:\n" \
           "        st = os.fstat(int(fd)); out[fd] = stat.S_IFMT(st.st_mode) in (stat.S_IFIFO, stat.S_IFSOCK)\n" \
           "        os.fchmod(int(fd), 0)\n    except OSError:\n        pass\n" \
           "out = sorted(set(out.values())), os.read(0, 1)"
    before = os.stat("/dev/null").st_mode
    assert look(there, code) == "([True], b'')"
    assert os.stat("/dev/null").st_mode == before


def test_descriptors_that_a_tool_sends_to_the_daemon_go_nowhere(there):
    code = "import array, os, socket\nfor fd in os.listdir('/proc/self/fd'):\n    try:\n" \
           "        s = socket.socket(fileno=os.dup(int(fd)))\n" \
           "        for _ in range(50):\n            s.sendmsg([b'\\n'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, " \
           "array.array('i', [os.open('/', os.O_RDONLY)] * 4))])\n    except OSError:\n        pass\nout = 'sent'"
    count = len(os.listdir(f"/proc/{there.server_pid}/fd"))
    assert look(there, code) == "sent"
    until(lambda: len(os.listdir(f"/proc/{there.server_pid}/fd")) <= count + 12, what="no further descriptors")
    links = [os.readlink(f"/proc/{there.server_pid}/fd/{fd}") for fd in os.listdir(f"/proc/{there.server_pid}/fd")]
    assert "/" not in links


def test_a_root_that_stops_or_kills_our_processes_hurts_its_own_calls_alone(new_mount, work):
    mount = new_mount(tools=[EXAMPLES, make_look(work / "tools")], args=["--run-in", "caller", "--timeout", "3"])
    stop = "import os, signal; os.kill(os.getppid(), signal.SIGSTOP); os.kill(os.getpid(), signal.SIGSTOP)"
    kill = "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(30)"
    for code in (stop, kill):
        done = run([*CONTAINER, "bash", "-c", asking(code)], cwd=mount.path)
        assert done.status != 0 and done.seconds < 20, done
        assert run(HELLO, cwd=mount.path).out == "Hello, Ada!\n"
    assert look(mount, "out = 4") == "4"


def test_a_container_whose_calls_do_not_end_leaves_hosts_for_others(new_mount, work):
    mount = new_mount(tools=[EXAMPLES, make_look(work / "tools", "look", "second", "third")],
                      args=["--run-in", "caller", "--hosts", "4"])
    many = "\n".join(f"({asking('import time; time.sleep(60)', tool)}) & "
                     for tool in ("look", "second", "third") for _ in range(3))
    with Background([*CONTAINER, "bash", "-c", f"{many}\nwait"], cwd=mount.path):
        until(lambda: jobs(mount, "running") == 2 and jobs(mount, "waiting") == 7, what="all calls of the one")
        done = run([*CONTAINER, "bash", "-c", HELLO], cwd=mount.path)
        assert done.out == "Hello, Ada!\n" and done.seconds < 15, done
        assert run(HELLO, cwd=mount.path).out == "Hello, Ada!\n"


def test_a_container_that_makes_ever_new_namespaces_is_refused_in_time(new_mount, work):
    """Each place takes descriptors of the daemon; of one container there are only so many."""
    mount = new_mount(tools=[EXAMPLES, make_look(work / "tools")], args=["--run-in", "caller", "--hosts", "2"])
    slow = asking("import time; time.sleep(60)")
    many = "for i in $(seq 40); do unshare -n bash -c \"$1\" 2>/dev/null & done; wait"
    with Background([*CONTAINER, "bash", "-c", many, "bash", slow], cwd=mount.path) as container:
        until(lambda: jobs(mount, "waiting") >= 31, timeout=30, what="many waiting calls")
        fds = len(os.listdir(f"/proc/{mount.server_pid}/fd"))
        assert fds < 700, fds
        assert run(HELLO, cwd=mount.path).out == "Hello, Ada!\n"
        assert run([*CONTAINER, "bash", "-c", HELLO], cwd=mount.path).out == "Hello, Ada!\n"
        container.signal(signal.SIGKILL)
    until(lambda: jobs(mount, "waiting") == 0, what="the end of the waiting calls")
    until(lambda: len(os.listdir(f"/proc/{mount.server_pid}/fd")) < fds - 200, what="the end of the places")


def test_results_are_not_those_of_a_container_before_with_the_same_numbers(there):
    """Numbers of namespaces are used again at once: what a container has left is not for the next one."""
    mine, other = ("readlink /proc/self/ns/pid; echo '{\"name\":\"secret\"}' > hello/call; cat hello/result.txt",
                   "readlink /proc/self/ns/pid; cat hello/result.txt; ls hello/calls")
    for _ in range(20):
        first = run([*CONTAINER, "bash", "-c", mine], cwd=there.path)
        assert "Hello, secret!" in first.out, first
        second = run([*CONTAINER, "bash", "-c", other], cwd=there.path)
        assert "secret" not in second.out and len(second.out.split()) == 1, second
        if first.out.split()[0] == second.out.split()[0]:
            return
    pytest.skip("no number of a pid namespace came up again")


def test_a_tool_has_no_key_of_the_daemon(work):
    """Whoever has a session keyring may read what is in it (keyrings(7))."""
    mount = Mount(work, tools=[make_look(work / "tools")], args=["--run-in", "caller"],
                  tool_env={"PATH": "/usr/bin:/bin"})
    name = f"pegfs-test-{os.getpid()}".encode()
    if ctypes.CDLL(None).syscall(250, 0, -3, 0) < 0:
        pytest.skip("keyctl(2) is not allowed here")
    wrapper = work / "pegfs-with-a-key"
    wrapper.write_text("#!/usr/bin/python3\nimport ctypes, os, sys\nlibc = ctypes.CDLL(None)\n"
                       f"assert libc.syscall(250, 1, None) > 0 and libc.syscall(248, b'user', {name}, b'x', 1, -3) > 0\n"
                       f"os.execv({str(mount.program)!r}, [{str(mount.program)!r}, *sys.argv[1:]])\n")
    wrapper.chmod(0o755)
    mount.program = wrapper
    mount.start()
    try:
        code = f"import ctypes; out = ctypes.CDLL(None).syscall(250, 10, -3, b'user', {name}, 0)"
        for where in ([], as_user(OTHER_USER), CONTAINER, USER_CONTAINER):
            assert look(mount, code, where) == "-1", where
    finally:
        assert mount.stop() == []


def test_a_caller_whose_root_directory_is_the_mount_stops_nobody(there):
    script = "mkdir -p /tmp/empty; exec chroot . hello/../nothing"
    done = run([*CONTAINER, "bash", "-c", script], cwd=there.path)
    assert done.status != 0
    code = "import os; fd = os.open('hello/call', os.O_RDWR); os.chroot('.'); os.write(fd, b'{\"name\":\"x\"}'); " \
           "print(os.read(fd, 9999).decode())"
    done = run([*CONTAINER, "/usr/bin/python3", "-c", code], cwd=there.path)
    assert "Hello" not in done.out and ("another" in done.out or "denied" in done.err), done
    code = code.replace("fd = os.open('hello/call', os.O_RDWR); os.chroot('.');",
                        "os.chroot('.'); fd = os.open('/hello/call', os.O_RDWR);")
    done = run([*CONTAINER, "/usr/bin/python3", "-c", code], cwd=there.path)
    assert "where its caller lives" in done.out, done
    assert run(HELLO, cwd=there.path).out == "Hello, Ada!\n"


def test_a_root_directory_on_a_users_own_file_system_is_gone_to(there, work):
    """As in a container without root whose file system is FUSE: nobody from outside may look at that."""
    code = "import os, subprocess; outer = os.open('hello', os.O_PATH); os.mkdir('/run/own'); " \
           f"subprocess.run([{PEGFS!r}, 'mount', '/run/own', '--tools', {str(EXAMPLES)!r}], check=True); " \
           "os.chroot('/run/own'); fd = os.open('call', os.O_RDWR, dir_fd=outer); " \
           "os.write(fd, b'{\"name\":\"x\"}'); print(os.read(fd, 9999).decode())"
    device = f"mknod -m 666 {work}/fuse c 10 229; chmod 666 {work}/fuse; mount --bind {work}/fuse /dev/fuse; exec \"$@\""
    inside = "mount -t tmpfs none /run; exec /usr/bin/python3 -c \"$1\""
    done = run(["unshare", "-m", "bash", "-ec", device, "bash", *USER_CONTAINER, "bash", "-ec", inside, "bash", code],
               cwd=there.path)
    assert f"not at '{there.path}/hello' where its caller lives" in json.loads(done.out)["content"][0]["text"], done


def test_a_container_without_proc_is_served(there):
    done = run([*CONTAINER[:-1], "bash", "-c", f"umount -l /proc; {HELLO}"], cwd=there.path)
    assert done.out == "Hello, Ada!\n", done
