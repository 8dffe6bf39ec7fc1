"""A stand-in for systemd: a service of Type=notify with a descriptor store, in a few lines.

It starts `pegfs mount -f` with NOTIFY_SOCKET, keeps the descriptors that come with FDSTORE=1 by their
names, and starts it again with them (LISTEN_FDS, LISTEN_FDNAMES, in a random order) when it was killed.
"""

import array
import contextlib
import os
import random
import signal
import socket
import subprocess
import threading
import time

from lib import programs, survival
from lib.mount import Mount

RESTART_S = 0.02
FDS_MAX = 1024  # FileDescriptorStoreMax= in mountscripts/systemd
# As the first thing the started program sees itself: its own pid.
LISTEN = 'export LISTEN_PID=$$; exec "$@"'


class Store:
    """The descriptors by their names, and what else was told."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.fds, self.told = [], []  # (name, descriptor)
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        self.socket.settimeout(0.1)
        while not self.ended.is_set():
            with contextlib.suppress(TimeoutError, OSError):
                data, controls, *_ = self.socket.recvmsg(4096, socket.CMSG_SPACE(4 * 16))
                fds = array.array("i")
                for _, kind, value in controls:
                    if kind == socket.SCM_RIGHTS:
                        fds.frombytes(value[:len(value) - len(value) % 4])
                with self.lock:
                    self.hear(dict(line.split("=", 1) for line in data.decode().split("\n")), list(fds))

    def hear(self, words, fds):
        name = words.get("FDNAME", "stored")
        if words.get("FDSTORE") == "1":
            assert words.get("FDPOLL") == "0" and len(self.fds) + len(fds) <= FDS_MAX
            self.fds += [(name, fd) for fd in fds]
            return
        if words.get("FDSTOREREMOVE") == "1":
            for stored, fd in [item for item in self.fds if item[0] == name]:
                os.close(fd)
                self.fds.remove((stored, fd))
        self.told.append(words)

    def names(self):
        with self.lock:
            return sorted(name for name, _ in self.fds)

    def close(self):
        self.ended.set()
        self.thread.join()
        self.socket.close()
        for _, fd in self.fds:
            os.close(fd)
        self.fds = []


class ManagedMount(Mount):
    """A mount whose supervisor is started again by a manager, as often as it is killed."""

    is_managed = True

    def start(self):
        self.store = Store(self.work / "notify")
        self.env = {**self.env, "NOTIFY_SOCKET": self.work / "notify"}
        super().start()
        self.restarts, self.ending = 0, threading.Event()
        self.restarter = threading.Thread(target=self.restart, daemon=True)
        self.restarter.start()
        return self

    def restart(self):
        while not self.ending.is_set():
            if self.process.poll() is None:
                time.sleep(0.002)
                continue
            if self.process.returncode != -signal.SIGKILL:
                return
            time.sleep(RESTART_S)
            self.restarts += 1
            self.spawn()

    def spawn(self):
        """The next supervisor gets what is stored."""
        with self.store.lock:
            given = [(name, os.dup(fd)) for name, fd in self.store.fds]
        random.shuffle(given)
        argv = [str(self.program), "mount", str(self.path), "--tools", self.tools, "-f", *self.args]
        argv = ["setpriv", "--pdeathsig=KILL", "--", "sh", "-c", LISTEN, "sh", *argv]
        env = programs.environment({**self.env, "LISTEN_FDS": len(given),
                                    "LISTEN_FDNAMES": ":".join(name for name, _ in given)})
        high = 3 + len(given)

        def place():
            # Aside first: each may lie where another goes.
            aside = [os.dup2(fd, high + 64 + number) for number, (_, fd) in enumerate(given)]
            for number, fd in enumerate(aside):
                os.dup2(fd, 3 + number)
            os.closerange(high, high + 64 + len(aside) + 1)

        with open(self.log_path, "ab") as log:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, close_fds=False,
                                       preexec_fn=place, cwd=self.work, env=env, start_new_session=True)
        for _, fd in given:
            os.close(fd)
        self.process = process

    def kill_supervisor(self):
        """kill -9 of it; whether there was one."""
        alive = self.process.poll() is None
        if alive:
            os.kill(self.process.pid, signal.SIGKILL)
        return alive

    def stop(self):
        """What is wrong afterwards: also what is still stored."""
        deadline = time.monotonic() + 10
        while self.process.poll() is not None and time.monotonic() < deadline:
            time.sleep(0.01)  # it is being started again
        problems = []
        try:
            programs.until(lambda: survival.server_of(self), what="a server")
        except AssertionError as missing:
            problems.append(str(missing))
        problems += super().stop()
        return problems + self.end_store(expect_empty=True)

    def end_store(self, expect_empty=False):
        self.ending.set()
        self.restarter.join(10)
        if expect_empty:
            with contextlib.suppress(AssertionError):
                programs.until(lambda: not self.store.names(), timeout=3)
        left = self.store.names()
        self.store.close()
        return [f"descriptors are still stored: {left}"] if left and expect_empty else []

    def fd_problems(self):
        """A host's warden is not below a supervisor that came later."""
        allowed = self.fds_at_start + 3 * len(survival.hosts_of(self)) + 4
        end = time.monotonic() + 3
        while self.fd_count() > allowed:
            if time.monotonic() > end:
                return [f"descriptors: {self.fds_at_start} at the start, now {self.fd_count()}, at most {allowed}"]
            time.sleep(0.02)
        return []
