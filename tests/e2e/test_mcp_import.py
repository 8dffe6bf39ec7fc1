"""pegfs import mcp: others' MCP servers as tool directories."""

import json
import os
import sys
import time

import pytest

from lib.mcp import NO_TREE, SESSIONS, Client
from lib.mount import EXAMPLES, PEGFS, ROOT
from lib.npm import MODULES, need_packages
from lib.programs import run

ODD = ROOT / "tests" / "mcp" / "odd_server.py"
EVERYTHING = MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"


def imported(into, *command, options=(), status=0, env=None):
    done = run([PEGFS, "import", "mcp", "--into", str(into), *map(str, options), *map(str, command)], env={**NO_TREE, **(env or {})})
    assert done.status == status, done
    return done.out.splitlines() if status == 0 else done.err


def odd(work, tools, *how):
    definitions = work / "definitions.json"
    definitions.write_text(json.dumps(tools))
    return [sys.executable, ODD, definitions, *how]


def definition(name, schema=None, **more):
    return {"name": name, "description": "Does it. Use this to do it.", "inputSchema": schema or {"type": "object"}, **more}


COMPLEX = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "here", "type": "object", "properties": {"street": {"type": "string"}}}},
    "properties": {
        "name": {"type": "string", "minLength": 1, "description": "It's \"quoted\": # no comment\u2028\u0085\ufeff \u00e9\U0001f600\n- x"},
        "count": {"type": "integer", "default": 3, "maximum": 1e21},
        "kind": {"type": "string", "enum": ["a", "b,c", "yes"]},
        "exact": {"type": "boolean", "default": False},
        "level": {"type": "number", "enum": [1, 2.5]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "address": {"$ref": "#/$defs/address"},
        "any": {},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "null": {"type": "string"}, "1": {"type": "string"}, "a: b": {"type": "string"},
    },
    "required": ["name", "tags"],
    "additionalProperties": False,
    "if": {"properties": {"kind": {"const": "a"}}}, "then": {"required": ["count"]},
}


@pytest.fixture
def tools(work):
    return work / "tools"


def test_a_schema_that_inputs_cannot_say_is_shown_word_for_word(work, tools, new_mount):
    annotations = {"readOnlyHint": True, "title": "Of theirs"}
    output = {"type": "object", "properties": {"a": {}}}
    given = definition("hard", COMPLEX, title="Hard: one", annotations=annotations, outputSchema=output)
    assert imported(tools, *odd(work, [given])) == ["hard"]
    mount = new_mount(tools=[tools])
    assert mount.text(".pegfs/errors").count("error") == 0, mount.text(".pegfs/errors")
    assert mount.json("hard/schema.json") == COMPLEX
    assert json.loads((tools / "hard" / "mcp.json").read_text())["tool"] == given
    with Client(["--mount", mount.path], SESSIONS[0]) as client:
        (shown,) = client.tools()
        assert shown == {"name": "hard", "title": "Hard: one", "description": given["description"],
                         "inputSchema": COMPLEX, "annotations": annotations}
        arguments = {"name": "x", "tags": ["a"], "address": {"street": "y"}, "level": 2.5, "any": [None], "maybe": None, "1": "z"}
        expected = {**arguments, "count": 3, "exact": False}
        assert client.call("hard", arguments)["structuredContent"] == {"name": "hard", "given": expected}
        assert client.told("notifications/message") == []
        assert "name: missing" in client.call("hard", {"tags": []})["content"][0]["text"]
    prompt = mount.text("hard/prompt.md")
    for name in ("name", "count", "kind", "tags", "address", "maybe"):
        assert name in prompt
    example = json.loads(run(["sed", "-n", "s/^echo '\\(.*\\)' > .*/\\1/p", f"{mount.path}/hard/prompt.md"]).out.splitlines()[0])
    assert example["tags"] == [] and "name" in example


@pytest.mark.parametrize("how", [(), ("stateless",), ("chatty",)])
def test_servers_of_all_kinds_are_called_by_writing_json(work, tools, new_mount, how):
    names = ["plain", "crash", "refuse", "ask"]
    assert imported(tools, *odd(work, [definition(name) for name in names], *how)) == names
    mount = new_mount(tools=[tools])
    assert json.loads(mount.say("plain", {"a": [1]})) == {"a": [1]}
    assert json.loads(mount.say("ask", {})) == {"answered": -32601}
    assert "ended with status 7 before it answered" in mount.fail("crash", {})
    assert "not today" in mount.fail("refuse", {})
    assert json.loads(mount.say("plain", {"b": 2})) == {"b": 2}


def test_names_are_made_fit_and_may_have_a_prefix(work, tools):
    odd_names = ["a/b", "../up", ".hidden", "with space", "\u00e9", "x.y"]
    assert imported(tools, *odd(work, [definition(name) for name in odd_names]), options=["--prefix", "their_"]) == [
        "their_a_b", "their____up", "their__hidden", "their_with_space", "their__", "their_x_y"]
    listed = run([PEGFS, "list", "--names", "--tools", str(tools)]).out.splitlines()
    assert listed == sorted(["their_a_b", "their____up", "their__hidden", "their_with_space", "their__", "their_x_y"])
    done = run([PEGFS, "call", "--tools", str(tools), "their_a_b", "{}"], env=NO_TREE)
    assert done.status == 0 and done.out == "{}\n"


def test_what_was_imported_is_replaced_where_it_changed_and_nothing_else(work, tools):
    def versions():
        rows = [row.split() for row in run([PEGFS, "list", "--tools", str(tools)]).out.splitlines()[1:]]
        return {row[0]: row[1] for row in rows}

    assert imported(tools, *odd(work, [definition("a"), definition("b")])) == ["a", "b"]
    assert imported(tools, *odd(work, [definition("a", title="New"), definition("b")])) == ["a", "b (unchanged)"]
    assert versions() == {"a": "2", "b": "1"}
    (tools / "own").mkdir()
    (tools / "own" / "TOOL.md").write_text("mine")
    assert "is there already and was not imported" in imported(tools, *odd(work, [definition("own")]), status=1)
    assert (tools / "own" / "TOOL.md").read_text() == "mine"
    assert not [name for name in os.listdir(tools) if name.startswith(".")]


def test_a_schema_too_large_for_a_manifest_is_kept_beside_it(work, tools):
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"enum": ["x" * 100 + str(i) for i in range(700)]}}}
    assert imported(tools, *odd(work, [definition("large", schema)])) == ["large"]
    assert json.loads((tools / "large" / "mcp.json").read_text())["tool"]["inputSchema"] == schema
    done = run([PEGFS, "call", "--tools", str(tools), "large", "a=x"], env=NO_TREE)
    assert json.loads(done.out) == {"a": "x"}


@pytest.mark.parametrize("command, told", [
    (["/nowhere/server"], "cannot be started"), (["false"], "ended with status 1"), (["true"], "ended with status 0"),
    ([sys.executable, ODD, "/nowhere"], "ended with status 1")])
def test_a_server_that_does_not_serve_gives_no_tools(tools, command, told):
    assert told in imported(tools, *command, status=1)
    assert not tools.exists()


@pytest.mark.parametrize("words", [[], ["mcp"], ["other", "x"], ["mcp", "--nonsense", "x"], ["--into"]])
def test_wrong_use_is_told(words):
    done = run([PEGFS, "import", *words])
    assert done.status == 2 and done.err.startswith("pegfs import: ")


def test_the_servers_own_options_are_its_own(work, tools):
    assert imported(tools, PEGFS, "mcp", "--tools", EXAMPLES) == ["hello", "my_db"]
    if os.environ.get("PEGFS_VARIANT"):
        pytest.skip("AddressSanitizer wants more memory than a tool's process may have")
    done = run([PEGFS, "call", "--tools", str(tools), "hello", "name=Ada"], env=NO_TREE)
    assert (done.status, done.out) == (0, "Hello, Ada!\n")


# ---- a server from npm

@pytest.fixture(scope="module")
def everything():
    need_packages()
    return ["node", EVERYTHING]


def test_a_server_from_npm_is_called_on_a_mount(work, tools, new_mount, everything):
    names = imported(tools, *everything)
    assert {"echo", "get-sum", "get-tiny-image", "get-structured-content"} <= set(names)
    mount = new_mount(tools=[tools])
    for name in names:
        assert mount.json(f"{name}/schema.json") == json.loads((tools / name / "mcp.json").read_text())["tool"]["inputSchema"]
    assert mount.say("get-sum", {"a": 2, "b": 3}) == "The sum of 2 and 3 is 5."
    assert mount.say("echo", {"message": "\u00e9\u2028x"}) == "Echo: \u00e9\u2028x"
    mount.write("get-tiny-image", {})
    image = next(block for block in mount.json("get-tiny-image/result.json")["content"] if block["type"] == "image")
    assert image["mimeType"] == "image/png" and image["data"]
    mount.write("get-structured-content", {"location": "Chicago"})
    assert set(mount.json("get-structured-content/result.json")["structuredContent"]) == {"temperature", "conditions", "humidity"}


def test_its_progress_and_cancelling_reach_it(work, tools, new_mount, everything):
    imported(tools, *everything)
    with Client(["--mount", new_mount(tools=[tools]).path], SESSIONS[0]) as client:
        arguments = {"duration": 1, "steps": 2}
        result = client.call("trigger-long-running-operation", arguments, _meta={"progressToken": "t"})
        assert not result["isError"]
        assert [(step["progress"], step["total"]) for step in client.told("notifications/progress")] == [(1, 2), (2, 2)]
        start = time.monotonic()
        id = client.ask("tools/call", {"name": "trigger-long-running-operation", "arguments": {"duration": 60, "steps": 60},
                                       "_meta": {"progressToken": "u"}})
        client.wait(lambda message: message.get("method") == "notifications/progress" and message["params"]["progressToken"] == "u")
        client.cancel(id)
        assert client.say("get-sum", {"a": 1, "b": 1}).startswith("The sum")
        assert time.monotonic() - start < 30
