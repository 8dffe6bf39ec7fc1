"""Clients that use a mount without rest, and those who kill its server meanwhile."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

CLIENT = pathlib.Path(__file__).with_name("survival_client.py")


def server_of(mount):
    """The server's pid, without asking the mount; None while there is none."""
    try:
        children = pathlib.Path(f"/proc/{mount.pid}/task/{mount.pid}/children").read_text().split()
        for pid in children:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"serve" in words[:3]:
                return int(pid)
    except OSError:
        pass
    return None


class Client:
    """A process of its own, so that one that hangs fails the test instead of hanging it."""

    def __init__(self, kind, mount, seconds, *more):
        self.kind = kind
        self.process = subprocess.Popen(
            [sys.executable, str(CLIENT), kind, str(mount.path), str(seconds), *map(str, more)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def end(self, timeout):
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise AssertionError(f"the client '{self.kind}' hangs") from None
        assert self.process.returncode == 0, f"{self.kind}: {err}"
        return json.loads(out)


class Killer:
    """kill -9 of the server, at random moments, until stop()."""

    def __init__(self, mount, shortest_s, longest_s, seed=None):
        self.mount, self.kills = mount, 0
        self.pause = (shortest_s, longest_s)
        self.random = random.Random(seed)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(self.random.uniform(*self.pause)):
            pid = server_of(self.mount)
            if pid:
                os.kill(pid, signal.SIGKILL)
                self.kills += 1

    def stop(self):
        self.ended.set()
        self.thread.join(5)
        return self.kills


def storm(mount, seconds, clients, shortest_s=0.02, longest_s=0.3, seed=None):
    """Runs clients (kind, more arguments) under kills; returns their reports and the kills."""
    running = [Client(kind, mount, seconds, *more) for kind, *more in clients]
    time.sleep(0.2)
    killer = Killer(mount, shortest_s, longest_s, seed)
    try:
        time.sleep(seconds - 0.5)
    finally:
        kills = killer.stop()
    return [client.end(30) for client in running], kills
