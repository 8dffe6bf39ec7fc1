"""pegfs mcp against others' clients: the official conformance suite, the Inspector's command line."""

import json
import os
import shutil
import subprocess
from urllib.request import Request, urlopen

import pytest

from lib.mcp import NO_TREE, STATELESS, meta
from lib.mount import EXAMPLES, PEGFS, ROOT
from lib.npm import MODULES, need_packages
from lib.programs import environment, run

HERE = ROOT / "tests" / "mcp"
TOOLS = ROOT / "tests" / "tools" / "mcp"
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
INSPECTOR = MODULES / "@modelcontextprotocol" / "inspector" / "cli" / "build" / "cli.js"


@pytest.fixture(scope="module", autouse=True)
def packages():
    need_packages()


class Bridge:
    """The suite speaks HTTP; bridge.mjs carries its messages to a `pegfs mcp` and back."""

    def __init__(self, work, where):
        for name in ("bridge.mjs", "node20.mjs"):
            shutil.copy(HERE / name, work)
        (work / "node_modules").symlink_to(MODULES)
        self.process = subprocess.Popen(["node", work / "bridge.mjs", PEGFS, "mcp", *where], cwd=work,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment(NO_TREE))
        self.url = self.process.stdout.readline().strip()

    def __enter__(self):
        assert self.url
        return self

    def call(self, tool):
        body = {"jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": {"name": tool, "_meta": meta()}}
        headers = {"content-type": "application/json", "mcp-method": "tools/call", "mcp-name": tool,
                   "mcp-protocol-version": STATELESS}
        with urlopen(Request(self.url, json.dumps(body).encode(), headers), timeout=30) as answer:
            assert tool in answer.read().decode()

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            assert self.process.wait(10) == 0
        finally:
            self.process.kill()
            self.process.stdout.close()


def copy_of_tools(work):
    tools = work / "tools"
    shutil.copytree(TOOLS, tools)
    return tools


@pytest.mark.parametrize("kind, scenarios, least", [
    ("directories", ["--requirements", "2026-07-28"], 15),
    ("mount", ["--spec-version", "2025-11-25"], 14),
    ("directories", ["--spec-version", "2025-06-18"], 12),
])
def test_the_conformance_suite_passes(work, new_mount, kind, scenarios, least):
    """Scenarios of what a server of tools is not are in expected-failures.yml, with the reason."""
    tools = copy_of_tools(work)
    where = ["--tools", tools] if kind == "directories" else ["--mount", new_mount(tools=[tools]).path]
    with Bridge(work, where) as bridge:
        for name in os.listdir(tools):  # some scenarios wait for half a second only: each tool has a warm host
            bridge.call(name)
        done = run(["node", "--import", work / "node20.mjs", SUITE, "server", "--url", bridge.url, *scenarios,
                    "--expected-failures", HERE / "expected-failures.yml", "--timeout", "20000"],
                   cwd=work, timeout=80)
    summary = done.out[done.out.find("=== SUMMARY"):]
    assert done.status == 0, f"{summary}\n{done.err}"
    assert summary.count("\u2713") >= least, summary


# ---- the Inspector

def inspect(*words, where=("--tools", EXAMPLES), status=0):
    done = run(["node", INSPECTOR, "--cli", PEGFS, "mcp", *map(str, where), *words], env=NO_TREE)
    assert done.status == status, done
    return json.loads(done.out) if status == 0 else done.err


@pytest.mark.parametrize("kind", ["mount", "directories"])
def test_the_inspector_lists_and_calls(m, kind):
    where = ["--mount", m.path] if kind == "mount" else ["--tools", EXAMPLES]
    tools = inspect("--method", "tools/list", where=where)["tools"]
    hello = next(tool for tool in tools if tool["name"] == "hello")
    assert hello["inputSchema"] == m.json("hello/schema.json")
    result = inspect("--method", "tools/call", "--tool-name", "hello", "--tool-arg", "name=Ada", where=where)
    assert result == {"content": [{"type": "text", "text": "Hello, Ada!"}], "isError": False}


def test_the_inspector_shows_what_is_wrong():
    result = inspect("--method", "tools/call", "--tool-name", "hello")
    assert result["isError"] is True and "name: missing" in result["content"][0]["text"]
    assert "-32601" in inspect("--method", "prompts/list", status=1)
    assert inspect("--method", "logging/setLevel", "--log-level", "debug") == {}
