"""Real containers for a test, by podman, which end with it, however it ends.

A Machine is a host for containers: a mount and a pid namespace of its own, in which podman keeps all
that it has below a directory of the test's. When the test process dies the kernel ends the namespace
and every container with it, and nothing of it is known to the machine's own podman.

The containers' root file system is made of this machine's own programs: /usr is the machine's, read-only,
and beside it are a dozen small files. So nothing is downloaded, and what can run here can run there.

Its directory `work` is a shared mount, as everything is on a machine that systemd has booted: what is
mounted below it, by whomever, appears in containers that have it as `:rslave`.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess

import pytest

from lib import programs
from lib.mount import PEGFS, ROOT, libc
from lib.programs import until

MS_BIND, MS_SHARED, MNT_DETACH = 0x1000, 0x100000, 2
TIME_LIMIT_S = 60
BUILD = ROOT / "build"
BUILD_THERE = pathlib.Path("/opt/pegfs")  # where a container has build/
PEGFS_THERE = BUILD_THERE / pathlib.Path(PEGFS).relative_to(BUILD) if BUILD in pathlib.Path(PEGFS).parents \
    else BUILD_THERE / "pegfs"
PATH_THERE = "/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

USERS = """root:x:0:0:root:/root:/bin/sh
ada:x:1000:1000:Ada:/home/ada:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""
GROUPS = "root:x:0:\nada:x:1000:\nnogroup:x:65534:\n"
# Podman gives each of these to a container, and in a user namespace cannot make what is missing.
FILES = {"etc/passwd": USERS, "etc/group": GROUPS, "etc/hosts": "127.0.0.1 localhost\n",
         "etc/hostname": "container\n", "etc/resolv.conf": "", "etc/fuse.conf": "user_allow_other\n",
         "etc/mtab": "", "run/.containerenv": ""}
DIRECTORIES = ["dev", "etc/ssl", "home/ada", "mnt", "opt/bin", str(BUILD_THERE)[1:], "proc", "root", "sys", "usr",
               "var/tmp", "officer/tools", "officer/user/tools", "officer/data"]

# The limits that podman asks for by itself are more than a machine like this one may give.
RUN = ["--cgroups=disabled", "--network=none", "--ulimit=nofile=20000:20000",
       "--ulimit=nproc=30000:30000"]

# Ends at once when it is asked to, as the first process of a pid namespace does only where it says so.
STAY = "trap 'exit 0' TERM; sleep infinity & wait"

usable = None  # or why podman is not, once it has been tried


def make_root(root):
    """A root file system at `root`; /usr, and what is called by it, has to be mounted there."""
    for name in DIRECTORIES:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "run"):
        (root / name).mkdir(exist_ok=True)
    for name in ("tmp", "var/tmp"):
        (root / name).chmod(0o1777)
    for name, text in FILES.items():
        (root / name).write_text(text)
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        if os.path.isdir(f"/{name}"):
            (root / name).symlink_to(f"usr/{name}")
    for name in ("alternatives", "ld.so.cache", "ssl/certs"):
        source = pathlib.Path("/etc") / name
        if source.is_dir():
            shutil.copytree(source, root / "etc" / name, symlinks=True)
        elif source.exists():
            shutil.copy(source, root / "etc" / name)
    (root / "opt/bin/pegfs").symlink_to(PEGFS_THERE)
    os.chown(root / "home/ada", 1000, 1000)


def need_podman(work):
    """Skips the test where podman cannot run a container, and says why."""
    global usable
    if os.geteuid() != 0:
        pytest.skip("needs root for containers")
    programs.need("podman", "crun", "nsenter", "unshare", "setpriv")
    if usable is None:
        with Machine(work / "podman-trial") as machine:
            done = machine.run("true")
            usable = "" if done.status == 0 else (done.err.strip() or "no reason told").splitlines()[-1]
    if usable:
        pytest.skip(f"podman cannot run a container here: {usable}")


class Machine:
    """
    with Machine(directory) as machine: done = machine.run("ls /officer/tools", volumes=[...])

    What is mounted below machine.work is seen by containers that have the directory above it as rslave; what they
    mount where they have it as rshared is seen here.
    """

    def __init__(self, base):
        # Apart, for the mount in which a root file system lies is made private where a container starts (crun).
        self.base, self.work, self.root = (pathlib.Path(base) / name for name in (".", "work", "root"))
        self.cgroup = f"pegfs-test-{os.getpid()}"
        self.holder = None
        self.count = 0

    def __enter__(self):
        self.work.mkdir(parents=True, exist_ok=True)
        self.base.chmod(0o777)
        self.work.chmod(0o777)
        make_root(self.root)
        share(self.work)
        # What listens to no signal and reaps is what a pid namespace wants as its first process.
        # State of pegfs and of podman that is found by a path is its own, too.
        script = ("mount -t tmpfs -o mode=755 none /run; mount -t tmpfs -o mode=1777 none /dev/shm; "
                  "mountpoint -q /sys/fs/cgroup/unified && umount /sys/fs/cgroup/unified; "
                  "echo $$; trap : TERM; while read -r _; do :; done")
        self.holder = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", "--", "unshare", "-m", "--propagation", "unchanged", "-p", "-f",
             "--mount-proc", "--kill-child", "bash", "-c", script],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        programs.helpers.add(self.holder.pid)
        assert self.holder.stdout.readline() == b"1\n"
        self.init = programs.children_of(self.holder.pid)[0]
        return self

    def __exit__(self, *_):
        self.holder.stdin.close()
        with_children = programs.descendants_of(self.holder.pid)
        os.killpg(self.holder.pid, signal.SIGKILL)
        self.holder.wait()
        self.holder.stdout.close()
        programs.helpers.discard(self.holder.pid)
        until(lambda: not any(programs.is_alive(pid) for pid in with_children), what="the containers' end")
        for top in pathlib.Path("/sys/fs/cgroup").glob(f"*/{self.cgroup}"):
            for directory, *_ in os.walk(top, topdown=False):
                os.rmdir(directory)
        unshare_mount(self.work)

    def need_shared_pids(self):
        """Skips the test where containers cannot share a pid namespace, for want of cgroups."""
        done = self.run("true", args=["--pid=host"])
        if done.status != 0:
            pytest.skip(f"containers cannot share a pid namespace here: {done.err.strip()}")

    def clear_away(self):
        """Ends the containers that a test has left; what is wrong, as sentences."""
        with contextlib.suppress(AssertionError):  # those that are about to end
            until(lambda: not self.processes(), timeout=5)
        left = self.processes()
        if left:
            programs.run(self.podman("rm", "-f", "-a", "-t", "0"), timeout=TIME_LIMIT_S)
        return [f"containers were left: {left}"] if left else []

    # ------------------------------------------------------------------ on the machine

    def inside(self, *argv):
        """The argv of a program that runs on this machine, beside the containers."""
        return ["nsenter", "-t", str(self.init), "-m", "-p", "--", *(str(word) for word in argv)]

    def podman(self, *words):
        state = self.base / "podman"
        return self.inside("podman", "--root", state / "root", "--runroot", state / "run", "--tmpdir",
                           state / "tmp", "--storage-driver=vfs", "--events-backend=none",
                           "--cgroup-manager=cgroupfs", "--runtime=crun", *words)

    def processes(self):
        """Of this machine and its containers, without its first one: names by pid."""
        found = {}
        for pid in filter(programs.is_alive, programs.descendants_of(self.init)):
            try:
                found[pid] = pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
            except OSError:
                continue
        return found

    def fuse_device(self):
        """Options of podman for a /dev/fuse that users may open, as it is on most machines."""
        node = self.work / "fuse"
        if not node.exists():
            os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(10, 229))
            node.chmod(0o666)
        return ["--device", f"{node}:/dev/fuse"]

    # ------------------------------------------------------------------ containers

    @staticmethod
    def make_mount_point(here, there):
        """Root of a user namespace may not make it in a root file system that is not its own."""
        if here.is_dir():
            there.mkdir(parents=True, exist_ok=True)
        else:
            there.parent.mkdir(parents=True, exist_ok=True)
            there.touch()

    def words(self, command, volumes=(), args=(), shell="sh"):
        """What follows `podman run`. volumes: (here, there) or (here, there, options)."""
        mounts = [("/usr", "/usr", "ro,suid"), (BUILD, BUILD_THERE, "ro"), *volumes]
        for here, there, *_ in mounts:
            self.make_mount_point(pathlib.Path(here), self.root / str(there).lstrip("/"))
        options = [word for mount in mounts for word in ("-v", ":".join(str(part) for part in mount))]
        argv = [shell, "-c", command] if isinstance(command, str) else [str(word) for word in command]
        run = list(RUN)
        if any(str(word).startswith("--pid=") for word in args):  # podman wants a cgroup to tell whose process is whose
            run[0] = f"--cgroup-parent=/{self.cgroup}"
        return [*run, "--env", f"PATH={PATH_THERE}", *options, *(str(word) for word in args),
                "--rootfs", self.root, *argv]

    def run(self, command, *, volumes=(), args=(), shell="sh", timeout=TIME_LIMIT_S):
        """A container from its start to its end; command: a list, or a string for the shell."""
        return programs.run(self.podman("run", "--rm", *self.words(command, volumes, args, shell)),
                            timeout=timeout)

    def start(self, command=STAY, *, volumes=(), args=(), shell="sh"):
        """A container that stays; it ends with the machine at the latest."""
        self.count += 1
        return Container(self, f"c{self.count}", self.words(command, volumes, args, shell))


class Container:
    def __init__(self, machine, name, words):
        self.machine, self.name = machine, name
        programs.check(machine.podman("run", "-d", "--name", name, *words), timeout=TIME_LIMIT_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        programs.check(self.machine.podman("rm", "-f", "-t", "0", self.name), timeout=TIME_LIMIT_S)

    def exec(self, command, *, args=(), shell="sh", timeout=TIME_LIMIT_S):
        argv = [shell, "-c", command] if isinstance(command, str) else [str(word) for word in command]
        return programs.run(self.machine.podman("exec", *(str(word) for word in args), self.name, *argv),
                            timeout=timeout)

    def restart(self):
        programs.check(self.machine.podman("restart", "-t", "5", self.name), timeout=TIME_LIMIT_S)

    def stop(self, limit_s=10):
        """SIGTERM, then SIGKILL after limit_s; the exit status."""
        programs.check(self.machine.podman("stop", "-t", str(limit_s), self.name), timeout=TIME_LIMIT_S)
        return self.inspect()["State"]["ExitCode"]

    def inspect(self):
        return json.loads(programs.check(self.machine.podman("inspect", self.name)))[0]

    def logs(self):
        done = programs.run(self.machine.podman("logs", self.name))
        return done.out + done.err


def share(directory):
    path = os.fsencode(directory)
    if libc.mount(path, path, None, MS_BIND, None) != 0 or libc.mount(None, path, None, MS_SHARED, None) != 0:
        raise OSError(ctypes.get_errno(), f"cannot share {directory}")


def unshare_mount(directory):
    """Takes away share(), and what was mounted below it."""
    if libc.umount2(os.fsencode(directory), MNT_DETACH) != 0:
        raise OSError(ctypes.get_errno(), f"cannot unmount {directory}")
