"""The command line without a mount: build/pegfs-core."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEGFS = os.environ.get("PEGFS_CORE", str(ROOT / "build" / "pegfs-core"))
LIMIT_S = 60


def start(*args, **how):
    return subprocess.Popen([PEGFS, *map(str, args)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)


def run(*args, status=0, **how):
    """Runs a command to its end; -> what it printed to (stdout, stderr)."""
    process = start(*args, **how)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == status, f"{args}: exit status {process.returncode}\n{out}{err}"
    return out, err


def write_tool(directory, name="tool", version=1, code="export async function execute() {}\n", **files):
    """A small tool; files: further ones, with __ for / in their names."""
    tool = pathlib.Path(directory) / name
    tool.mkdir(parents=True, exist_ok=True)
    (tool / "TOOL.md").write_text(
        f"---\nname: {name}\ndescription: Does it.\nversion: {version}\n---\n# T\n")
    (tool / "index.ts").write_text(code)
    for path, text in files.items():
        file = tool / path.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tool
