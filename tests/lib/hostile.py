"""Tools made for one test, and what of the daemon must not grow."""

import pathlib
import re

from lib.programs import children_of

RUN_MD = """---
name: {name}
version: 1
language: python
description: Runs a piece of Python and shows what it says.
inputs:
  code:
    type: string
    description: What to run.
---
Use it in tests.
"""
RUN_PY = """
def execute(call_id, params):
    found = {}
    exec(params["code"], found)
    return str(found.get("out"))
"""


def make_tool(source, name, text=None, entry="index.py", code=RUN_PY):
    """A tool directory; without a text one that runs what it is told."""
    directory = pathlib.Path(source) / name
    directory.mkdir(parents=True)
    (directory / "TOOL.md").write_text(text or RUN_MD.format(name=name))
    (directory / entry).write_text(code)
    return directory


def resident(pid):
    """Bytes of memory that a process has."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M)[1]) * 1024


def stat_of(mount, name):
    return int(re.search(rf"^pegfs_{re.escape(name)} (\d+)$", mount.text(".pegfs/stats"), re.M)[1])


class Unharmed:
    """Within it the server stays the one that it was, and serves others."""

    def __init__(self, mount, grows_by=None):
        self.mount, self.grows_by = mount, grows_by

    def __enter__(self):
        self.pid = self.mount.server_pid
        self.before = resident(self.pid)
        return self

    def __exit__(self, kind, *_):
        if not kind:
            self.check()

    def check(self):
        assert self.mount.server_pid == self.pid, "the server was replaced"
        assert self.pid in children_of(self.mount.pid)
        grown = resident(self.pid) - self.before
        assert self.grows_by is None or grown < self.grows_by, f"the server grew by {grown} bytes"
