"""A pegfs mount for a test: starts, watches and ends it, and finds what it leaves behind.

All mounts live in a mount namespace of the test process, made once (isolate()): none shows on the
machine, and none outlives the tests. The daemon dies with the test process (--pdeathsig).
"""

import contextlib
import ctypes
import errno
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time

from lib import programs

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tests" / "tools"
EXAMPLES, FIXTURES = TOOLS / "examples", TOOLS / "fixtures"
USER, BROKEN = TOOLS / "user", TOOLS / "broken"
PEGFS = os.environ.get("PEGFS", str(ROOT / "build" / "pegfs"))
VARIANT = os.environ.get("PEGFS_VARIANT", "")

READY_LIMIT_S = 30
END_LIMIT_S = 20
# What a sanitizer, an assertion or the daemon itself says when something went wrong.
TROUBLE = re.compile(r"^pegfs: error:|Sanitizer|runtime error:|[Aa]ssertion|double free|corrupted",
                     re.M)

CLONE_NEWNS, MS_REC, MS_PRIVATE, PR_SET_CHILD_SUBREAPER = 0x20000, 0x4000, 0x40000, 36
libc = ctypes.CDLL(None, use_errno=True)
live = []  # mounts that have been started and not yet ended


def isolate():
    """A private mount namespace with fusectl; orphans of a daemon become this process's children."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    programs.on_wedged.append(abort_all)
    if os.geteuid() != 0:
        return
    if libc.unshare(CLONE_NEWNS) != 0 or \
            libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        raise OSError(ctypes.get_errno(), "no private mount namespace")
    if not os.path.ismount("/sys/fs/fuse/connections"):
        libc.mount(b"none", b"/sys/fs/fuse/connections", b"fusectl", 0, None)


def abort_all():
    for mount in list(live):
        mount.abort()


def mount_entry(path):
    """(device minor, fs type, options) of the mount at path, the topmost one; or None."""
    found = None
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        for line in table:
            fields, rest = line.split(" - ")
            fields = fields.split()
            if fields[4] == str(path):
                found = int(fields[2].split(":")[1]), rest.split()[0], fields[5] + "," + rest.split()[2]
    return found


class Mount:
    """env: the daemon's environment; tool_env: what its tools get besides (--env)."""

    is_managed = False  # whether its supervisor is started again when it was killed (manager.py)

    def __init__(self, work, tools=(EXAMPLES, FIXTURES), env=None, tool_env=None, args=(), uid=None,
                 at=None, program=PEGFS, data=None):
        self.work = pathlib.Path(work)
        self.path = pathlib.Path(at or self.work / "mnt")
        self.tools = ":".join(str(directory) for directory in tools)
        self.sources = ["--data", str(data)] if data else ["--tools", self.tools]
        self.env, self.uid = dict(env or {}), uid
        self.args = [str(argument) for argument in args]
        for name, value in (tool_env or {}).items():
            self.args += ["--env", f"{name}={value}"]
        self.program = program
        self.log_path = self.work / "daemon.log"
        self.process = None
        self.log_seen = 0

    # ------------------------------------------------------------------ start, end

    def start(self):
        if mount_entry(self.path) is None:  # one whose server is gone cannot be looked at
            self.path.mkdir(exist_ok=True)
        reader, writer = os.pipe()
        argv = [str(self.program), "mount", str(self.path), *self.sources, "-f",
                "--ready-fd", str(writer), *self.args]
        argv = programs.argv_of(["setpriv", "--pdeathsig=KILL", "--", *argv], uid=self.uid)
        with open(self.log_path, "ab") as log, open(reader, "rb", buffering=0) as ready:
            try:
                self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log,
                                                stderr=log, pass_fds=[writer], cwd=self.work,
                                                env=programs.environment(self.env),
                                                start_new_session=True)
            finally:
                os.close(writer)
            live.append(self)
            select.select([ready], [], [], READY_LIMIT_S)
            if not select.select([ready], [], [], 0)[0] or ready.read(64) != b"READY\n":
                programs.kill_group(self.process)
                live.remove(self)
                raise AssertionError("pegfs did not become ready:\n" + self.log())
        self.device = (mount_entry(self.path) or (None,))[0]
        self.fds_at_start = self.fd_count()
        return self

    @property
    def pid(self):
        return self.process.pid

    @property
    def server_pid(self):
        """Of the server below the supervisor, as it is now."""
        stats = (self.path / ".pegfs/stats").read_text(encoding="ascii")
        return int(re.search(r"^pegfs_server_pid (\d+)$", stats, re.M)[1])

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """Unmounts; returns what is wrong afterwards, as sentences."""
        problems = []
        if self.is_alive():
            problems += self.fd_problems()
            done = programs.run([PEGFS, "umount", str(self.path)], timeout=END_LIMIT_S)
            if done.status != 0:
                problems.append(f"umount failed: {done.err}")
            try:
                self.process.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                problems.append("the daemon did not end after umount")
        return problems + self.clear_away()

    def kill(self):
        """kill -9, as a test of its own; what the kernel keeps of the mount is cleared away."""
        programs.kill_group(self.process)
        return self.clear_away(killed=True)

    def clear_away(self, killed=False):
        problems = []
        if self.is_alive():
            self.abort()
            programs.kill_group(self.process)
        status = self.process.wait()
        if status != 0 and not killed:
            problems.append(f"the daemon ended with status {status}")
        while mount_entry(self.path):
            if not killed:
                problems.append("the mount was still there")
            subprocess.run(["umount", "-l", str(self.path)], check=False, capture_output=True)
        if self in live:
            live.remove(self)
        return problems + self.process_problems() + self.log_problems()

    def abort(self):
        """Ends the FUSE connection: every program that waits on the mount gets an error."""
        if self.device is not None:
            with contextlib.suppress(OSError):
                pathlib.Path(f"/sys/fs/fuse/connections/{self.device}/abort").write_text("1")

    # ------------------------------------------------------------------ what it leaves

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_problems(self):
        fresh = self.log()[self.log_seen:]
        self.log_seen += len(fresh)
        return ["in the daemon's log:\n" + fresh] if TROUBLE.search(fresh) else []

    def fd_count(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def fd_problems(self):
        """The daemon keeps a socket, a pipe and a control socket of each host; nothing else stays open."""
        below = programs.children_of(self.pid)
        below += [pid for child in below for pid in programs.children_of(child)]
        allowed = self.fds_at_start + 6 * len(below) + 4
        end = time.monotonic() + 3
        while self.fd_count() > allowed:
            if time.monotonic() > end:
                held = [os.readlink(f"/proc/{self.pid}/fd/{fd}")
                        for fd in os.listdir(f"/proc/{self.pid}/fd")]
                return [f"descriptors: {self.fds_at_start} at the start, now {sorted(held)}"]
            time.sleep(0.02)
        return []

    def process_problems(self):
        """Orphans come to this process, its subreaper. A moment is granted to those being killed."""
        mine = {mount.pid for mount in live if mount.process} | programs.helpers
        end = time.monotonic() + 5
        while True:
            left = []
            for pid in set(programs.children_of(os.getpid())) - mine:
                if programs.is_alive(pid):
                    left.append(pid)
                else:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)
            if not left:
                return []
            if time.monotonic() > end:
                names = [(pid, command_line(pid)) for pid in left]
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                return [f"processes were left: {names}"]
            time.sleep(0.02)

    # ------------------------------------------------------------------ use

    def __truediv__(self, name):
        return self.path / name

    def text(self, name):
        return (self.path / name).read_text()

    def json(self, name):
        return json.loads(self.text(name))

    def write(self, tool, request):
        """The write-only form. Raises the call's OSError."""
        fd = os.open(self.path / tool / "call", os.O_WRONLY)
        try:
            return os.write(fd, encode(request))
        finally:
            os.close(fd)

    def ask(self, tool, request=None):
        """The read-write form: the ToolResult, that of a refused request too."""
        fd = os.open(self.path / tool / "call", os.O_RDWR)
        try:
            try:
                os.write(fd, encode(request if request is not None else {}))
            except OSError as refused:
                if refused.errno != errno.EINVAL:
                    raise
            return json.loads(read_all(fd))
        finally:
            os.close(fd)

    def say(self, tool, request=None):
        """The text of the result's only block; the call must succeed."""
        result = self.ask(tool, request)
        assert not result.get("isError"), result
        assert [block["type"] for block in result["content"]] == ["text"], result
        return result["content"][0]["text"]

    def fail(self, tool, request=None):
        """The text of a result that is an error."""
        result = self.ask(tool, request)
        assert result.get("isError") is True, result
        return result["content"][0]["text"]


def encode(request):
    if isinstance(request, bytes):
        return request
    return (request if isinstance(request, str) else json.dumps(request)).encode()


def read_all(fd):
    pieces = []
    while True:
        piece = os.read(fd, 1 << 20)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return "?"
