"""Trees of tools to measure with, and the file systems that pegfs is compared with."""

import contextlib
import pathlib
import shutil
import subprocess
import tempfile

from lib import mount as mounts
from lib import programs
from measure import BUILD

PASSTHROUGH = BUILD / "passthrough_ll"

MANIFEST = """---
name: {name}
label: Tool {name}
description: Returns its text. Use this to see what a call costs (this is tool {name} of a bench).
version: 1
language: typescript
inputs:
  text:
    type: string
    optional: true
    description: What is returned.
  size:
    type: number
    optional: true
    description: How many characters are returned instead.
---
# {name}

Returns its text, or as many characters as are asked for.

## Examples

    echo '{{"text":"hi"}}' > call
{more}
"""
# The same as node/tool.mjs, which the other sides run.
CODE = """export function execute(_id, { text, size }) {
  return { content: [{ type: "text", text: size ? "x".repeat(size) : text }] };
}
"""
SLOW = """export async function execute() {
  await new Promise((resolve) => setTimeout(resolve, 600000));
  return { content: [] };
}
"""
MORE = "\n".join(f"Line {number} of a page that is as long as pages of tools are." for number in range(12))


def tool_name(number):
    return f"tool_{number:05}"


def write_tool(root, name, code=CODE):
    directory = root / name
    directory.mkdir()
    (directory / "TOOL.md").write_text(MANIFEST.format(name=name, more=MORE))
    (directory / "index.js").write_text(code)


class Place:
    """A directory for all of a run's trees and mounts; gone when it ends."""

    def __init__(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="pegfs-bench-"))
        self.work.chmod(0o777)
        self.undo = contextlib.ExitStack()
        self.made = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.undo.close()
        shutil.rmtree(self.work)

    def tools(self, count):
        """A directory with that many tools, made once."""
        if count not in self.made:
            root = self.work / f"tools-{count}"
            root.mkdir()
            for number in range(count):
                write_tool(root, tool_name(number))
            self.made[count] = root
        return self.made[count]

    @contextlib.contextmanager
    def mounted(self, *tools, args=(), **how):
        work = pathlib.Path(tempfile.mkdtemp(prefix="mount-", dir=self.work))
        work.chmod(0o777)
        mount = mounts.Mount(work, tools=tools, args=args, **how)
        mount.start()
        try:
            yield mount
        finally:
            problems = mount.stop()
        if problems:
            raise RuntimeError("; ".join(problems))

    def copy(self, mount):
        """What a mount shows, as plain files."""
        to = pathlib.Path(tempfile.mkdtemp(prefix="native-", dir=self.work))
        subprocess.run(["cp", "-a", f"{mount.path}/.", to], check=True)
        return to

    @contextlib.contextmanager
    def passed_through(self, name, source):
        """source shown again by another FUSE file system: bindfs, or libfuse's own example. None: not there."""
        if name == "passthrough_ll" and not PASSTHROUGH.exists():
            yield None
            return
        at = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.work))
        argv = {"bindfs": ["bindfs", "-f", str(source), str(at)],
                "passthrough_ll": [str(PASSTHROUGH), "-f", "-o", f"source={source},cache=always", str(at)]}[name]
        process = subprocess.Popen(["setpriv", "--pdeathsig=KILL", "--", *argv])
        try:
            programs.until(lambda: mounts.mount_entry(at) is not None, what=name)
            yield at
        finally:
            subprocess.run(["umount", "-l", at], check=False)
            process.terminate()
            process.wait()
