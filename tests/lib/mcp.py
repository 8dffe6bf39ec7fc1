"""A client of the Model Context Protocol: lines of JSON on standard input and output."""

import contextlib
import itertools
import json
import os
import selectors
import subprocess
import time

from lib.mount import PEGFS
from lib.programs import TIME_LIMIT_S, environment, kill_group

META = "io.modelcontextprotocol/"
STATELESS = "2026-07-28"
SESSIONS = ["2025-11-25", "2025-06-18", "2025-03-26"]
NO_TREE = {"PEGFS_MOUNT": None, "PI_TOOLS_DIRS": None}


def meta(version=STATELESS, **more):
    return {META + "protocolVersion": version, META + "clientCapabilities": {}, **more}


class Client:
    """One `pegfs mcp`. Messages that were not waited for are kept, in `kept`."""

    def __init__(self, where, version=None, program=PEGFS, env=None, cwd=None):
        self.process = subprocess.Popen([str(word) for word in [program, "mcp", *where]], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, cwd=cwd, env=environment({**NO_TREE, **(env or {})}),
                                        start_new_session=True)
        self.pid = self.process.pid
        self.version = version
        self.ids = itertools.count(1)
        self.kept, self.bytes = [], b""
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        if version in SESSIONS:
            self.initialize(version)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        kill_group(self.process)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.selector.close()

    # ---- sending

    def send(self, message):
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(raw + b"\n")
        self.process.stdin.flush()

    def notify(self, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, **({"params": params} if params is not None else {})})

    def ask(self, method, params=None, id=None):
        """Sends a request; -> its id."""
        id = next(self.ids) if id is None else id
        if self.version == STATELESS:
            params = {**(params or {}), "_meta": {**meta(), **(params or {}).get("_meta", {})}}
        self.send({"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params is not None else {})})
        return id

    def cancel(self, id):
        self.notify("notifications/cancelled", {"requestId": id})

    # ---- receiving

    def receive(self, timeout=TIME_LIMIT_S):
        """The next message; None at the end of the stream."""
        end = time.monotonic() + timeout
        while b"\n" not in self.bytes:
            assert self.selector.select(max(end - time.monotonic(), 0)), f"no message within {timeout} s"
            got = os.read(self.process.stdout.fileno(), 65536)
            if not got:
                assert not self.bytes, f"half a message: {self.bytes!r}"
                return None
            self.bytes += got
        line, self.bytes = self.bytes.split(b"\n", 1)
        return json.loads(line)

    def wait(self, wanted, timeout=TIME_LIMIT_S):
        """The first message for which wanted(message); those before it are kept."""
        for message in self.kept:
            if wanted(message):
                self.kept.remove(message)
                return message
        while True:
            message = self.receive(timeout)
            assert message is not None, f"the stream ended; before that came {self.kept}"
            if wanted(message):
                return message
            self.kept.append(message)

    def answer(self, id, timeout=TIME_LIMIT_S):
        return self.wait(lambda message: isinstance(message, dict) and "method" not in message
                         and message.get("id") == id, timeout)

    def notification(self, method, timeout=TIME_LIMIT_S):
        return self.wait(lambda message: message.get("method") == method, timeout)["params"]

    def told(self, method):
        """What has been kept of that method."""
        return [message.get("params") for message in self.kept if message.get("method") == method]

    # ---- both

    def request(self, method, params=None, id=None):
        """-> its result."""
        message = self.answer(self.ask(method, params, id))
        assert "result" in message, message
        return message["result"]

    def refused(self, method, params=None, id=None):
        """-> (code, message) of the error."""
        message = self.answer(self.ask(method, params, id))
        assert "error" in message, message
        return message["error"]["code"], message["error"]["message"]

    def initialize(self, version):
        result = self.request("initialize", {"protocolVersion": version, "capabilities": {},
                                             "clientInfo": {"name": "test", "version": "1"}})
        self.notify("notifications/initialized")
        return result

    def call(self, tool, arguments=None, **more):
        return self.request("tools/call", {"name": tool, "arguments": arguments or {}, **more})

    def say(self, tool, arguments=None, **more):
        """The one text of a call that went well."""
        result = self.call(tool, arguments, **more)
        assert not result["isError"], result
        (block,) = result["content"]
        return block["text"]

    def tools(self, **params):
        return self.request("tools/list", params)["tools"]

    def names(self):
        return [tool["name"] for tool in self.tools()]

    def end(self, timeout=10):
        """Closes its input; -> (exit status, what else it said)."""
        self.process.stdin.close()
        rest = []
        while (message := self.receive(timeout)) is not None:
            rest.append(message)
        return self.process.wait(timeout), rest
