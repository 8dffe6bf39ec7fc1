"""survival_client.py KINDS MOUNT SECONDS ...: uses a mount and says as JSON what went wrong.

KINDS: one of the classes below, or several with `+` between them, which then take turns.
"""

import errno
import json
import mmap
import os
import pathlib
import random
import re
import select
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lib import edits  # noqa: E402

FAILURES_MAX = 20
TEXTS = ("README.md", "prompt.md", "tools.json", "hello/schema.json", "hello/TOOL.md", "hello/index.ts",
         "count/prompt.md", ".pegfs/version")


class Report:
    def __init__(self):
        self.operations, self.failures, self.slowest_s, self.slowest_what = 0, [], 0.0, ""
        self.calls, self.slowest_call_s, self.more = {}, 0.0, {}

    def fail(self, text):
        if len(self.failures) < FAILURES_MAX:
            self.failures.append(f"{text} (at {time.monotonic():.3f})")

    def timed(self, action, *args):
        """An operation that needs no tool: must not fail, and is to be quick."""
        start = time.monotonic()
        value = None
        try:
            value = action(*args)
        except OSError as error:
            self.fail(f"{action.__name__}{args}: {error}")
        self.took(time.monotonic() - start, f"{action.__name__}{args}")
        return value

    def took(self, seconds, what):
        self.operations += 1
        if seconds > self.slowest_s:
            self.slowest_s, self.slowest_what = seconds, what

    def call_took(self, seconds):
        self.slowest_call_s = max(self.slowest_call_s, seconds)


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Client:
    def __init__(self, mount, report, more):
        self.mount, self.report, self.number = mount, report, 0
        self.prepare(**more)

    def prepare(self, **_):
        pass

    def finish(self):
        pass


class Readers(Client):
    """What does not change: names, held descriptors, a map, a working directory."""

    def prepare(self, **_):
        self.is_edited = os.path.exists(f"{self.mount}/renamed")
        self.texts = [name for name in TEXTS if not self.is_edited or "/" in name]
        self.whole = {name: read(f"{self.mount}/{name}") for name in self.texts}
        self.names = self.sorted(os.listdir(self.mount))
        self.held = {name: os.open(f"{self.mount}/{name}", os.O_RDONLY) for name in self.texts}
        self.directory = os.open(self.mount, os.O_RDONLY | os.O_DIRECTORY)
        os.chdir(f"{self.mount}/hello")
        self.mapped = mmap.mmap(self.held["hello/index.ts"], 0, prot=mmap.PROT_READ)

    @staticmethod
    def sorted(names):
        return sorted(name for name in names if name != "guest")

    def same(self, what, seen, wanted):
        if seen is not None and seen != wanted:
            other = set(seen) ^ set(wanted) if isinstance(seen, list) else ""
            self.report.fail(f"{what}: not what it was {other}")

    def step(self):
        timed = self.report.timed
        name = random.choice(self.texts)
        self.same(name, timed(read, f"{self.mount}/{name}"), self.whole[name])
        name = random.choice(self.texts)
        self.same(f"held {name}", timed(os.pread, self.held[name], 1 << 20, 0), self.whole[name])
        os.posix_fadvise(self.held[name], 0, 0, os.POSIX_FADV_DONTNEED)
        for what, place in (("the list", self.mount), ("the held directory", self.directory)):
            names = timed(os.listdir, place)
            self.same(what, names and self.sorted(names), self.names)
        timed(os.stat, f"{self.mount}/{random.choice(self.texts)}")
        timed(os.stat, "TOOL.md")
        self.same("the map", self.mapped[:], self.whole["hello/index.ts"])


class Watchers(Client):
    """What is edited meanwhile (edits.py): never too old, never from the future, never a mix."""

    def prepare(self, board, **_):
        self.board = edits.Board(board)
        self.newest = {}

    def step(self):
        kind = random.choice(edits.KINDS)
        name = random.choice(("TOOL.md", "prompt.md", "index.ts", "tools.json"))
        if name == "index.ts" and kind in ("renamed", "written"):
            return  # it is not edited
        oldest = self.board.oldest(kind, time.monotonic_ns())
        start = time.monotonic()
        found = self.versions(kind, name)
        self.report.took(time.monotonic() - start, f"{kind}/{name}")
        self.judge(kind, name, oldest, found)

    def versions(self, kind, name):
        """What is seen; None: the tool is not there."""
        try:
            if name == "tools.json":
                tools = json.loads(read(f"{self.mount}/{name}"))
                mine = [tool for tool in tools if tool["name"] == kind]
                return edits.versions_in(json.dumps(mine).encode()) if mine else None
            return edits.versions_in(read(f"{self.mount}/{kind}/{name}"))
        except (OSError, ValueError) as error:
            # It went, or was another, in two looks of one open(2): what comes and goes may be so.
            gone = (errno.ENOENT, errno.ESTALE) if kind == "guest" else (errno.ENOENT,)
            if getattr(error, "errno", 0) in gone:
                return None
            self.report.fail(f"{kind}/{name}: {error}")
            return {"error"}

    def judge(self, kind, name, oldest, found):
        newest = self.board.begun(kind)
        allowed = {edits.shown(kind, version) for version in range(oldest, newest + 1)}
        seen = None if found is None else next(iter(found)) if len(found) == 1 else sorted(found, key=str)
        if seen == "error":
            return
        if not (seen is None or isinstance(seen, int)) or seen not in allowed:
            self.report.fail(f"{kind}/{name}: saw {seen}, allowed were {oldest} to {newest}")
            return
        if kind == "overlaid" or seen is None:
            return
        if seen < self.newest.get((kind, name), 0):
            self.report.fail(f"{kind}/{name}: saw {seen} after {self.newest[kind, name]}")
        self.newest[kind, name] = seen


class Editors(Client):
    """Edits, and measures how long it takes until the mount shows it."""

    def prepare(self, board, top, shortest=0.05, longest=0.6, **_):
        self.board, self.tree = edits.Board(board), edits.Tree(top)
        self.pause = (shortest, longest)
        self.lags = []

    def step(self):
        time.sleep(random.uniform(*self.pause))
        kind = random.choice(edits.KINDS)
        wanted = edits.shown(kind, self.tree.edit(kind, self.board))
        start = time.monotonic()
        while self.seen(kind) != wanted:
            if time.monotonic() - start > 3:
                self.report.fail(f"{kind}: an edit is not shown after 3 s: {self.seen(kind)}, not {wanted}")
                break
            time.sleep(0.002)
        self.lags.append((time.monotonic() - start, kind))
        self.report.operations += 1

    def seen(self, kind):
        try:
            found = edits.versions_in(read(f"{self.mount}/{kind}/prompt.md"))
        except OSError:
            return None
        return next(iter(found)) if len(found) == 1 else found

    def finish(self):
        self.lags.sort()
        self.report.more["lags"] = self.lags


class Callers(Client):
    """Common to those who call: each call has a number of its own, which the tool writes down."""

    def prepare(self, marks, first, **_):
        self.marks, self.first = marks, first

    def next_request(self, pauses):
        self.number += 1
        data = f"{type(self).__name__[0]}{self.first}-{self.number}"
        return data, json.dumps({"file": self.marks, "ms": random.choice(pauses), "data": data}).encode()


def write_once(path, data):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


class Writers(Callers):
    """Write-only calls."""

    def step(self):
        data, request = self.next_request((0, 0, 5, 100))
        start = time.monotonic()
        try:
            write_once(f"{self.mount}/mark/call", request)
            self.report.calls[data] = "done"
        except OSError as error:
            self.report.calls[data] = errno.errorcode[error.errno]
        self.report.call_took(time.monotonic() - start)


class Askers(Callers):
    """Read-write calls: the write is acknowledged, then the answer has to come."""

    def step(self):
        data, request = self.next_request((0, 5, 100))
        fd = os.open(f"{self.mount}/mark/call", os.O_RDWR)
        start = time.monotonic()
        try:
            os.write(fd, request)
        except OSError as error:
            self.report.calls[data] = errno.errorcode[error.errno]
            os.close(fd)
            return
        try:
            self.hear(fd, data)
        except (OSError, ValueError, LookupError) as error:
            self.report.fail(f"{data}: acknowledged, and lost: {error!r}")
        finally:
            os.close(fd)
        self.report.call_took(time.monotonic() - start)

    def hear(self, fd, data):
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        if random.random() < 0.5 and not poller.poll(10000):
            self.report.fail(f"{data}: the poller was not woken")
        answer = json.loads(os.read(fd, 1 << 20))
        text = answer["content"][0]["text"]
        self.report.calls[data] = text if answer.get("isError") else "done"
        if not answer.get("isError") and text != f"marked {data}":
            self.report.fail(f"{data}: the answer of another call: {text}")


class Namers(Callers):
    """Calls with a name: what calls/ID says afterwards is what the writer was told."""

    def step(self):
        data, request = self.next_request((0, 5))
        place = f"{self.mount}/mark/calls/{data}"
        self.report.timed(os.mkdir, place)
        start = time.monotonic()
        try:
            write_once(f"{place}/call", request)
            outcome = "done"
        except OSError as error:
            outcome = errno.errorcode[error.errno]
        self.report.call_took(time.monotonic() - start)
        status = (self.report.timed(read, f"{place}/status") or b"").decode()
        text = (self.report.timed(read, f"{place}/result.txt") or b"").decode()
        state = re.search(r"^state: (\w+)$", status, re.M)
        self.report.calls[data] = outcome if outcome == "done" else text or outcome
        if (outcome == "done") != (state is not None and state[1] == "done"):
            self.report.fail(f"{data}: the writer was told {outcome}, its status says {status!r}")
        if outcome == "done" and text != f"marked {data}\n":
            self.report.fail(f"{data}: its result says {text!r}")


class Users(Client):
    """Calls of a tool that is edited: the answer is from the code of then."""

    def prepare(self, board, **_):
        self.board, self.next_s = edits.Board(board), 0

    def step(self):
        if time.monotonic() < self.next_s:
            return
        oldest, start = self.board.oldest("swapped", time.monotonic_ns()), time.monotonic()
        fd = os.open(f"{self.mount}/swapped/call", os.O_RDWR)
        try:
            os.write(fd, b"{}")
            answer = json.loads(os.read(fd, 1 << 20))
        except OSError:
            return  # its host was killed, or the tool replaced while it came up: judged by Askers
        finally:
            os.close(fd)
        self.report.call_took(time.monotonic() - start)
        found = edits.versions_in(json.dumps(answer).encode())
        newest = self.board.begun("swapped")
        if not answer.get("isError") and not found <= set(range(oldest, newest + 1)):
            self.report.fail(f"swapped: called {found}, allowed were {oldest} to {newest}")
        self.next_s = time.monotonic() + 0.7


class Others(Client):
    """What a program needs for 20 ms of work on this machine, which has other work as well."""

    def step(self):
        time.sleep(0.3)
        start, begun = time.monotonic(), time.thread_time()
        while time.thread_time() - begun < 0.02:
            pass
        self.report.took(time.monotonic() - start, "20 ms of work")


def main(kinds, mount, seconds, more):
    report = Report()
    clients = [globals()[kind.capitalize()](mount, report, json.loads(more)) for kind in kinds.split("+")]
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        for client in clients:
            client.step()
    for client in clients:
        client.finish()
    print(json.dumps({"kinds": kinds, **vars(report)}))


main(*sys.argv[1:])
