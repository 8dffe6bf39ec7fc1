"""Tools that mean harm, by what lies in their directories and by what they do when they run."""

import contextlib
import errno
import json
import os
import shutil
import stat
import threading
import time

import pytest

from conftest import complain, new_work_dir, remove
from lib.hostile import Unharmed, make_tool, stat_of
from lib.mount import VARIANT, Mount
from lib.programs import OTHER_USER, THIRD_USER, descendants_of, is_alive, run, until

MIB = 1 << 20
GIB = 1 << 30
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
ROOM = (64 if not VARIANT else 640) * MIB


@pytest.fixture(scope="module")
def shared():
    """One mount for most of these tests: it has to survive all of them. .add() puts a tool into it."""
    directory = new_work_dir()
    make_tool(directory / "tools", "honest")
    mount = Mount(directory, tools=[directory / "tools"], args=["--timeout", 3, "--files", 64, "--log-max", 100_000, "--keep", 1],
                  tool_env={"PATH": "/usr/bin:/bin"}).start()
    yield mount
    problems = mount.stop()
    remove(directory)
    complain(problems)


@pytest.fixture
def mount(shared):
    yield shared
    shutil.rmtree(shared.work / "tools/sly", ignore_errors=True)
    until(lambda: not (shared / "sly").exists() and not errors_of(shared, "sly/"), what="the end of the tool")
    assert not shared.log_problems()


@pytest.fixture
def sly(shared):
    """Its directory; it is removed after the test."""
    return make_tool(shared.work / "tools", "sly")


def is_served(mount):
    start = time.monotonic()
    assert ask(mount, "out = 6 * 7", tool="honest") == "42"
    assert time.monotonic() - start < 8


def ask(mount, code, uid=None, tool="honest"):
    """What `out` is after the code has run in the tool."""
    done = run(f"cat >{tool}/call; cat {tool}/result.txt", cwd=mount.path, uid=uid, stdin=json.dumps({"code": code}).encode())
    assert done.status == 0, done
    return done.out.strip()


def errors_of(mount, name):
    return [line for line in mount.text(".pegfs/errors").splitlines() if name in line]


# ------------------------------------------------------------------------- what lies in a directory

@as_root
def test_a_file_that_is_swapped_while_it_is_read_never_becomes_another(mount, sly, work):
    """A file, a link to a secret, a FIFO, a device under one name, in turns."""
    secret = work / "secret"
    secret.write_text("of somebody else")
    secret.chmod(0o600)
    fresh, shown = work / "next", sly / "data"
    shown.write_text("of the tool")
    until((mount / "sly/data").exists, what="the file")
    stop = threading.Event()

    def swap():
        makers = [lambda: fresh.symlink_to(secret), lambda: os.mkfifo(fresh), lambda: fresh.write_text("of the tool"),
                  lambda: os.mknod(fresh, stat.S_IFCHR | 0o666, os.makedev(1, 5)), lambda: fresh.symlink_to("../../secret"),
                  lambda: os.link(sly / "index.py", fresh), lambda: fresh.symlink_to("/proc/self/environ")]
        while not stop.is_set():
            for make in makers:
                make()
                os.rename(fresh, shown)

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    seen = set()
    try:
        with Unharmed(mount):
            end = time.monotonic() + 3
            while time.monotonic() < end:
                with contextlib.suppress(OSError):
                    fd = os.open(mount / "sly/data", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                    with open(fd, "rb") as file:
                        seen.add(file.read(4096))
            is_served(mount)
    finally:
        stop.set()
        thread.join()
    assert b"of the tool" in seen
    assert seen <= {b"of the tool", b"", (sly / "index.py").read_bytes()}, seen


@as_root
@pytest.mark.parametrize("name", ["TOOL.md", "index.py"])
@pytest.mark.parametrize("kind", ["fifo", "device", "socket", "directory", "link out", "loop", "sparse"])
def test_what_is_no_file_in_the_place_of_one(mount, sly, work, kind, name):
    """The tool is left out, with a reason, and the start waits for nothing."""
    place = sly / name
    place.unlink()
    (work / "secret").write_text("of somebody else")
    {"fifo": lambda: os.mkfifo(place),
     "device": lambda: os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5)),
     "socket": lambda: os.mknod(place, stat.S_IFSOCK | 0o666),
     "directory": place.mkdir,
     "link out": lambda: place.symlink_to(work / "secret"),
     "loop": lambda: place.symlink_to(name),
     "sparse": lambda: (place.touch(), os.truncate(place, 10 * GIB))}[kind]()
    with Unharmed(mount, grows_by=ROOM):
        until(lambda: errors_of(mount, "sly/") or (kind == "sparse" and name == "index.py"), what="the error")
        is_served(mount)
        if kind == "sparse" and name == "index.py":  # a program may be large; that it is none is its own fault
            until((mount / "sly").exists, what="the tool")
            done = run("echo '{\"code\":\"1\"}' >sly/call; cat sly/result.txt", cwd=mount.path)
            assert done.out, done
        else:
            assert not (mount / "sly").exists()
            assert errors_of(mount, "sly/"), mount.text(".pegfs/errors")
            assert "of somebody else" not in mount.text(".pegfs/errors")


def test_a_sparse_file_of_10_gb(mount, sly):
    """It has its size and its bytes, and nobody reads it as a whole."""
    large = sly / "large"
    with open(large, "wb") as file:
        file.truncate(10 * GIB)
        file.seek(9 * GIB)
        file.write(b"here")
    until((mount / "sly/large").exists, what="the file")
    with Unharmed(mount, grows_by=ROOM):
        assert (mount / "sly/large").stat().st_size == 10 * GIB
        with open(mount / "sly/large", "rb") as file:
            file.seek(9 * GIB)
            assert file.read(4) == b"here"
        is_served(mount)


def test_a_directory_of_very_many_files(mount, sly):
    """What is listed has a limit and is told; what is beyond it can be read; nobody waits for it."""
    many = sly / "many"
    many.mkdir()
    count = 70_000
    directory = os.open(many, os.O_RDONLY)
    for number in range(count):
        os.close(os.open(str(number), os.O_CREAT | os.O_WRONLY, dir_fd=directory))
    os.close(directory)
    until((mount / "sly/many").exists, what="the directory")
    with Unharmed(mount, grows_by=2 * ROOM):
        listed = os.listdir(mount / "sly/many")
        assert len(set(listed)) == len(listed) and 1000 < len(listed) <= count
        assert (mount / "sly/many" / str(count - 1)).exists()
        is_served(mount)
    if len(listed) < count:
        assert "only so many are shown" in mount.log()


def test_a_tree_that_is_deeper_than_a_path(mount, sly):
    before = os.getcwd()
    try:
        os.chdir(sly)
        for _ in range(60):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
    finally:
        os.chdir(before)
    until((mount / "sly").exists, what="the tool")
    with Unharmed(mount, grows_by=ROOM):
        done = run("find sly | wc -l", cwd=mount.path)
        assert int(done.out) > 10, done
        is_served(mount)


def front(lines):
    return "---\nname: sly\ndescription: Means harm. Use it in tests.\n" + lines + "\n---\nText.\n"


def aliases():
    lines = ['a0: &a0 ["x", "x", "x", "x", "x", "x", "x", "x", "x"]']
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    return front("\n".join(lines))


BOMBS = {
    "aliases": aliases,
    "alias of itself": lambda: front("inputs: &a\n  x: *a"),
    "merge keys": lambda: front("base: &b {<<: [{}, {}]}\nother: {<<: *b}"),
    "depth of lists": lambda: front("x: " + "[" * 100_000),
    "depth of maps": lambda: front("x: " + "{a: " * 100_000),
    "depth of blocks": lambda: front("\n".join(" " * n + f"k{n}:" for n in range(5000))),
    "one long line": lambda: front("x: " + "y" * 50 * MIB),
    "many lines": lambda: front("\n".join(f"k{n}: v" for n in range(1_000_000))),
    "many inputs": lambda: front("inputs:\n" + "\n".join(f"  p{n}:\n    type: string" for n in range(100_000))),
    "never closed": lambda: "---\nname: sly\n" + "x: y\n" * 4_000_000,
    "quotes": lambda: front('x: "' + "\\" * 1_000_001),
    "nested quotes of the text": lambda: front("version: 1") + ">" * 1_000_000,
    "nested lists of the text": lambda: front("version: 1") + "- " * 500_000,
    "links of the text": lambda: front("version: 1") + "[" * 1_000_000,
    "emphasis of the text": lambda: front("version: 1") + "*a **a " * 100_000,
    "tags": lambda: front("x: !!python/object/apply:os.system [id]"),
    "NULs": lambda: front("x: \0\0\0") + "\0" * MIB,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_tool_md_bombs(mount, bomb):
    """Read in no time and little memory, shown or told of."""
    with Unharmed(mount, grows_by=2 * ROOM) as harm:
        start = time.monotonic()
        make_tool(mount.work / "tools", "sly", text=BOMBS[bomb]())
        until(lambda: (mount / "sly").exists() or errors_of(mount, "sly/"), timeout=20, what="its tool or its error")
        assert time.monotonic() - start < 20
        if (mount / "sly").exists():
            assert len(mount.text("sly/prompt.md")) < 4 * MIB
            mount.json("sly/schema.json")
        for line in errors_of(mount, "sly/"):
            assert len(line) < 4096
        is_served(mount)
        harm.check()


# ------------------------------------------------------------------------------------ what they do

def attempt(code):
    """`out` is what the code gives, or the name of the error."""
    body = "".join(f"    {line}\n" for line in code.splitlines())
    return f"import os, ctypes, errno\ntry:\n{body}except OSError as error:\n    out = errno.errorcode[error.errno]\n"


PTRACE = """libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, {pid}, 0, 0) < 0: raise OSError(ctypes.get_errno(), 'ptrace')
out = 'attached'"""


@as_root
@pytest.mark.parametrize("code", [
    "out = open('/proc/{pid}/mem', 'rb')", "out = open('/proc/{pid}/maps').read() or 'empty'", "out = os.listdir('/proc/{pid}/fd')",
    "out = open('/proc/{pid}/environ').read()", "out = os.readlink('/proc/{pid}/exe')", PTRACE,
    "for s in (9, 15, 19, 10): os.kill({pid}, s)", "os.setpriority(os.PRIO_PROCESS, {pid}, 19)", "os.sched_setaffinity({pid}, [0])",
    "open('/proc/{pid}/oom_score_adj', 'w').write('1000')", "import resource; resource.prlimit({pid}, resource.RLIMIT_NOFILE, (3, 3))",
    "out = libc = ctypes.CDLL(None, use_errno=True).syscall(438, os.pidfd_open({pid}), 3, 0)\nif out < 0: raise OSError(ctypes.get_errno(), '')",
], ids=["mem", "maps", "fd", "environ", "exe", "ptrace", "kill", "nice", "cpus", "oom", "limits", "getfd"])
def test_a_users_tool_can_do_nothing_to_the_daemon_or_a_neighbours_host(mount, code):
    assert ask(mount, "out = 1", uid=THIRD_USER) == "1"
    hosts = [pid for pid in descendants_of(mount.pid)
             if is_alive(pid) and os.stat(f"/proc/{pid}").st_uid == THIRD_USER]
    assert hosts, "a warm host of the other user"
    with Unharmed(mount):
        for pid in (mount.pid, mount.server_pid, *hosts):
            assert ask(mount, attempt(code.replace("{pid}", str(pid))), uid=OTHER_USER) in ("EPERM", "EACCES"), pid
        assert all(is_alive(pid) for pid in hosts)
        is_served(mount)


def test_a_tool_has_no_descriptor_of_the_daemon(mount):
    code = "import os\nout = sorted(os.readlink(f'/proc/self/fd/{fd}').split(':')[0] for fd in os.listdir('/proc/self/fd') " \
           "if os.path.exists(f'/proc/self/fd/{fd}'))"
    held = ask(mount, code)
    assert "/dev/fuse" not in held and "memfd" not in held and "inotify" not in held and str(mount.path) not in held, held


def test_what_a_tool_leaves_behind_is_ended_with_its_descriptors(mount):
    """Daemons of its own, in sessions of their own, that hold all it was given."""
    code = "import os\nfor _ in range(5):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n" \
           "            os.execv('/bin/sleep', ['sleep', '987655'])\n        os._exit(0)\nout = 'left'"
    with Unharmed(mount):
        for _ in range(3):
            assert ask(mount, code) == "left"
        is_served(mount)
        until(lambda: run(["pgrep", "-f", "sleep 98765[5]"]).status == 1, what="the end of what was left")
    # more is found by the harness, which fails where processes or descriptors are left


def test_many_calls_that_fill_the_log_fill_no_disk(mount):
    """Of each call no more than --log-max; of a tool and caller at most 16 times --keep, and that for seconds."""
    with Unharmed(mount, grows_by=ROOM):
        for _ in range(20):
            assert ask(mount, f"import sys\nsys.stderr.write('x' * {MIB})\nout = 'full'") == "full"
        is_served(mount)
    kept = [path for path in (mount / "honest/calls").iterdir() if path.is_dir()]
    sizes = [(path / "log").stat().st_size for path in kept]
    sizes = [size for size in sizes if size > 1000]  # without those of other users and tests
    assert 0 < len(sizes) <= 17 and all(size < 101_000 for size in sizes), sizes


def test_a_tool_that_takes_all_it_can_open(mount):
    code = "import os\nfds = []\ntry:\n    while True: fds.append(os.open('/dev/null', os.O_RDONLY))\nexcept OSError as e:\n" \
           "    out = e.errno\nfor fd in fds: os.close(fd)"
    with Unharmed(mount):
        assert ask(mount, code) == str(errno.EMFILE)
        is_served(mount)


@pytest.mark.parametrize("code", [
    "import os\nfor fd in range(3, 1000):\n    try: os.write(fd, b'x' * 100)\n    except OSError: pass\nout = 'wrote'",
    "import os\nfor fd in range(3, 1000):\n    try: os.write(fd, b'{\"type\":\"result\",\"id\":\"1\",\"seq\":1}\\n')\n    except OSError: pass\nout = 'wrote'",
    "import os\nfor fd in range(3, 1000):\n    try: os.close(fd)\n    except OSError: pass\nout = 'closed'",
    "import os\nos.closerange(0, 1000)\nout = 'closed'",
    "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nout = 'killed'",
    "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nout = 'stopped'",
    "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nout = 'went on'",
    "import os, signal\nos.killpg(0, signal.SIGKILL)",
    "import os, signal\nos.kill(-1, signal.SIGTERM)",
    "import os, socket\nfor fd in range(3, 1000):\n    try: socket.socket(fileno=os.dup(fd)).shutdown(2)\n    except OSError: pass\nout = 'shut'",
], ids=["noise", "forged", "closed", "all closed", "warden killed", "warden stopped", "stopped", "group", "all", "shut down"])
@as_root
def test_a_tool_that_breaks_its_own_host_costs_its_own_call_only(mount, code):
    """As a user, since what root kills is everything."""
    request = json.dumps({"code": code}).encode()
    with Unharmed(mount, grows_by=ROOM):
        start = time.monotonic()
        run("cat >honest/call; cat honest/result.txt", cwd=mount.path, uid=OTHER_USER, stdin=request, timeout=20)
        assert time.monotonic() - start < 15
        assert ask(mount, "out = 6 * 7", uid=OTHER_USER) == "42"
        is_served(mount)
        until(lambda: stat_of(mount, "calls_running") == 0, what="the end of it")
