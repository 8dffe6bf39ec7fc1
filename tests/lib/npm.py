"""The packages of tests/mcp, which `make` installs from npm."""

import os
import pathlib

import pytest

from lib.mount import ROOT
from lib.programs import run

MODULES = pathlib.Path(os.environ.get("PEGFS_MCP_MODULES", ROOT / "build" / "mcp" / "node_modules"))
NODE_MIN = 20


def need_packages():
    """Skips where npm could not reach its registry, or Node is too old for what it brought."""
    reason = MODULES.parent / "unreachable"
    if reason.exists():
        pytest.skip(f"the packages of tests/mcp are not installed: {reason.read_text().strip()}")
    version = run(["node", "--version"]).out
    if int(version[1:].split(".")[0]) < NODE_MIN:
        pytest.skip(f"they need Node {NODE_MIN}, this is {version.strip()}")
