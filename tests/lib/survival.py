"""Clients that use a mount without rest, and those who kill what serves it meanwhile."""

import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

from lib import programs

CLIENT = pathlib.Path(__file__).with_name("survival_client.py")


def children(pid):
    """The children's ids, quickly."""
    with contextlib.suppress(OSError):
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        return [int(word) for word in text.split()]
    return []


def words_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return []


def server_of(mount):
    """The server's pid, without asking the mount; None while there is none."""
    return next((pid for pid in children(mount.pid) if b"serve" in words_of(pid)[:3]), None)


def hosts_of(mount):
    """(host, its warden) of each tool host that is there; where its supervisor died, this process has it."""
    found = []
    parents = (mount.pid, server_of(mount), os.getpid() if mount.is_managed else None)
    for pid in [pid for parent in parents if parent for pid in children(parent)]:
        words = words_of(pid)
        if words and words[0].endswith(b"/warden"):
            found.append((int(words[1]), pid))
    return found


class Client:
    """
    A process of its own, so that one that hangs fails the test instead of hanging it.
    more: for the classes in survival_client.py. wrap: makes the argv of a container of it.
    """

    def __init__(self, kinds, mount, seconds, more, wrap=None):
        self.kinds = kinds
        argv = [kinds, str(mount), str(seconds), json.dumps(more)]
        argv = wrap(argv) if wrap else [sys.executable, str(CLIENT), *argv]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True)
        programs.helpers.add(self.process.pid)

    def end(self, timeout):
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise AssertionError(f"the client '{self.kinds}' hangs") from None
        finally:
            programs.helpers.discard(self.process.pid)
        assert self.process.returncode == 0, f"{self.kinds}: {err}"
        return json.loads(out)


class Disturber:
    """Does something to a mount at random moments, until stop(). act() says whether it did."""

    def __init__(self, act, shortest_s, longest_s, seed=None):
        self.act, self.count = act, 0
        self.pause = (shortest_s, longest_s)
        self.random = random.Random(seed)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(self.random.uniform(*self.pause)):
            with contextlib.suppress(ProcessLookupError):
                if self.act():
                    self.count += 1

    def stop(self):
        self.ended.set()
        self.thread.join(30)
        return self.count


def kill_server(mount):
    pid = server_of(mount)
    if pid:
        os.kill(pid, signal.SIGKILL)
    return bool(pid)


def kill_host(mount):
    """Mostly a host, sometimes the warden that ends what a host leaves."""
    found = hosts_of(mount)
    if found:
        os.kill(random.choice(found)[random.random() < 0.2], signal.SIGKILL)
    return bool(found)


def storm(mount, seconds, clients, shortest_s=0.02, longest_s=0.3, seed=None):
    """Runs clients (kinds, arguments) under kills of the server; returns their reports and the kills."""
    running = [Client(kinds, mount.path, seconds, more) for kinds, more in clients]
    time.sleep(0.2)
    killer = Disturber(lambda: kill_server(mount), shortest_s, longest_s, seed)
    try:
        time.sleep(seconds - 0.5)
    finally:
        kills = killer.stop()
    return [client.end(30) for client in running], kills
