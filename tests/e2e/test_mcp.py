"""pegfs mcp: through a mount and straight on directories, in each revision of the protocol."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from lib.cli import write_tool
from lib.mcp import META, SESSIONS, STATELESS, Client, meta
from lib.mount import EXAMPLES, FIXTURES, PEGFS
from lib.programs import descendants_of, is_alive, run, until

VERSIONS = [STATELESS, *SESSIONS]
PARSE, INVALID, NO_METHOD, PARAMS = -32700, -32600, -32601, -32602


DIRECTORIES = ["--tools", f"{EXAMPLES}:{FIXTURES}"]


@pytest.fixture(params=["mount", "directories"])
def where(request, m):
    return ["--mount", m.path] if request.param == "mount" else DIRECTORIES


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture(scope="module")
def shared(module_mount):
    """Clients that the tests of this file share; one that a test has left in disorder is replaced."""
    clients = {}
    yield clients
    end_all(clients)


def end_all(clients):
    while clients:
        with clients.popitem()[1] as client:
            assert client.end() == (0, [])


def lend(shared, where, version):
    key = (tuple(where), version)
    client = shared.pop(key, None) or Client(where, version)
    try:
        yield client
        give_back(shared, key, client)
    finally:
        if key not in shared:
            client.__exit__()


def give_back(shared, key, client):
    version = key[1]
    assert client.request("ping" if version != STATELESS else "server/discover") is not None
    assert client.kept == []
    shared[key] = client


@pytest.fixture
def client(shared, where, version):
    yield from lend(shared, where, version)


@pytest.fixture
def session(shared, where):
    yield from lend(shared, where, SESSIONS[0])


@pytest.fixture
def direct(shared):
    yield from lend(shared, DIRECTORIES, SESSIONS[0])


# ---- versions

@pytest.mark.parametrize("asked, agreed", [(version, version) for version in SESSIONS] + [
    (STATELESS, SESSIONS[0]), ("2024-11-05", SESSIONS[0]), ("2099-01-01", SESSIONS[0]), ("", SESSIONS[0])])
def test_a_session_agrees_on_a_revision(asked, agreed):
    with Client(DIRECTORIES) as client:
        result = client.initialize(asked)
        assert result["protocolVersion"] == agreed
        assert result["capabilities"] == {"tools": {"listChanged": True}, "logging": {}}
        assert result["serverInfo"]["name"] == "pegfs" and result["serverInfo"]["version"]
        assert client.say("hello", {"name": "Ada"}) == "Hello, Ada!"


def test_discovery_tells_all_revisions():
    with Client(DIRECTORIES, STATELESS) as client:
        result = client.request("server/discover")
        assert result["supportedVersions"] == VERSIONS
        assert result["resultType"] == "complete"
        assert result["_meta"][META + "serverInfo"] == result["serverInfo"]
        assert result["ttlMs"] >= 0 and result["cacheScope"] in ("private", "public")


def test_requests_of_both_kinds_share_a_server():
    with Client(DIRECTORIES, SESSIONS[1]) as client:
        mine = client.call("hello", {"name": "Ada"})
        assert "resultType" not in mine and "_meta" not in mine
        other = client.call("hello", {"name": "Ada"}, _meta=meta())
        assert other["resultType"] == "complete"
        assert other["content"] == mine["content"]
        assert client.refused("ping", {"_meta": meta()})[0] == NO_METHOD
        assert client.request("ping") == {}


@pytest.mark.parametrize("params, code, told", [
    ({"_meta": meta("1900-01-01")}, -32022, "Unsupported"),
    ({"_meta": {META + "protocolVersion": STATELESS}}, PARAMS, "clientCapabilities"),
    ({"_meta": {META + "protocolVersion": 7}}, PARAMS, "protocolVersion"),
    ({"_meta": meta(**{META + "logLevel": "loud"})}, PARAMS, "logLevel"),
    ({"_meta": {}}, PARAMS, "initialize first"),
    ({"_meta": 7}, PARAMS, "initialize first"),
    ({}, PARAMS, "initialize first"),
    (None, PARAMS, "initialize first"),
])
def test_a_request_without_a_session_says_its_revision(params, code, told):
    with Client(DIRECTORIES) as client:
        got, text = client.refused("tools/list", params)
        assert got == code and told in text


def test_a_revision_that_is_not_spoken_is_answered_with_those_that_are():
    with Client(DIRECTORIES) as client:
        error = client.answer(client.ask("tools/list", {"_meta": meta("1900-01-01")}))["error"]
        assert error["data"] == {"supported": VERSIONS, "requested": "1900-01-01"}


def test_ping_needs_no_session():
    with Client(DIRECTORIES) as client:
        assert client.request("ping") == {}


# ---- the list of tools

def test_the_list_is_that_of_tools_json(client, m):
    assert [{key: tool[key] for key in ("name", "title", "description", "inputSchema")} for tool in client.tools()] \
        == m.json("tools.json")
    for tool in client.tools():
        assert tool["annotations"]["title"] == tool["title"]


def test_pages_hold_each_tool_once(m):
    names = [tool["name"] for tool in m.json("tools.json")]
    for size in (1, 7, len(names) - 1, len(names), len(names) + 1):
        with Client([*DIRECTORIES, "--page", size], STATELESS) as client:
            found, params, pages = [], {}, 0
            while True:
                page = client.request("tools/list", params)
                found += [tool["name"] for tool in page["tools"]]
                pages += 1
                assert len(page["tools"]) <= size
                if "nextCursor" not in page:
                    break
                params = {"cursor": page["nextCursor"]}
            assert found == names
            assert pages == -(-len(names) // size)


def test_a_page_goes_on_where_its_last_tool_has_gone(work):
    tools = work / "tools"
    for name in "abcdef":
        write_tool(tools, name)
    with Client(["--tools", tools, "--page", 2], SESSIONS[0]) as client:
        page = client.request("tools/list")
        assert [tool["name"] for tool in page["tools"]] == ["a", "b"]
        shutil.rmtree(tools / "b")
        client.wait(lambda message: message.get("method") == "notifications/tools/list_changed")
        page = client.request("tools/list", {"cursor": page["nextCursor"]})
        assert [tool["name"] for tool in page["tools"]] == ["c", "d"]


@pytest.mark.parametrize("cursor", ["", "x", 7, None, {}, "after"])
def test_a_cursor_that_was_never_given_out_is_refused(direct, cursor):
    code, text = direct.refused("tools/list", {"cursor": cursor})
    assert code == PARAMS and "cursor" in text


@pytest.mark.parametrize("how", [["--page", "0"], ["--page", "x"], ["--page", "-1"], ["--page", ""], ["more"],
                                 ["--tools", ""], ["--mount", "/nowhere"]])
def test_a_wrong_command_line_starts_nothing(how):
    done = run([PEGFS, "mcp", *([] if how[0] in ("--tools", "--mount") else DIRECTORIES), *how])
    assert done.status in (1, 2) and done.out == "" and done.err.startswith("pegfs mcp: ")


# ---- calls

def test_a_call_has_the_tools_text(client):
    assert client.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    assert client.say("echo", {"text": "\u00e9\U0001f600\n'\"\\"}).count("\U0001f600") == 1


def test_arguments_may_be_left_out(client):
    assert "isError" in client.request("tools/call", {"name": "typed"})


def test_an_error_of_the_tool_is_a_result_that_says_so(client):
    result = client.call("throws")
    assert result["isError"] is True and result["content"][0]["type"] == "text"


def test_arguments_that_do_not_fit_are_told_to_the_model(client):
    result = client.call("hello", {})
    assert result["isError"] is True
    assert "name: missing" in result["content"][0]["text"]


@pytest.mark.parametrize("how", ["exit", "abort", "kill"])
def test_a_crash_of_the_tool_leaves_the_server_alive(session, how):
    assert session.call("exits", {"how": how})["isError"] is True
    assert session.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    session.kept.clear()  # what it printed


@pytest.mark.parametrize("params, told", [
    ({"name": "no_such_tool"}, "no tool 'no_such_tool'"), ({"name": "helo"}, "did you mean 'hello'"),
    ({"name": "../hello"}, "no tool"), ({"name": ""}, "no tool"), ({"name": 7}, "name"), ({}, "name"),
    ({"name": "hello", "arguments": [1]}, "arguments"), ({"name": "hello", "arguments": None}, "arguments"),
    ({"name": "hello", "arguments": "{}"}, "arguments")])
def test_a_call_of_nothing_is_an_error_of_the_protocol(session, params, told):
    code, text = session.refused("tools/call", params)
    assert code == PARAMS and told in text


STRUCTURED = [
    ([{"type": "text", "text": '{"a": [1, 2.5, "x"]}'}], {"a": [1, 2.5, "x"]}),
    ([{"type": "text", "text": ' {"a":{}}\n'}], {"a": {}}),
    ([{"type": "text", "text": "[1]"}], None),
    ([{"type": "text", "text": "{a"}], None),
    ([{"type": "text", "text": '{"a":1} and more'}], None),
    ([{"type": "text", "text": "{}"}, {"type": "text", "text": "{}"}], None),
]


def test_a_text_that_is_an_object_is_structured_content_as_well(client, version):
    for returned, structured in STRUCTURED:
        result = client.call("returns", {"json": json.dumps({"content": returned})})
        assert result["content"] == returned
        assert result.get("structuredContent") == (None if version == "2025-03-26" else structured), returned


def test_structured_content_of_the_tools_own_comes_first(session):
    value = {"content": [{"type": "text", "text": "{}"}], "structuredContent": {"own": True}}
    assert session.call("returns", {"json": json.dumps(value)})["structuredContent"] == {"own": True}
    value["structuredContent"] = [1]
    assert session.call("returns", {"json": json.dumps(value)})["structuredContent"] == {}
    assert session.call("returns", {"json": json.dumps(value)}, _meta=meta())["structuredContent"] == [1]


KNOWN = [
    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}},
]
UNKNOWN = [{"type": "image", "data": 7}, {"type": "video", "data": "x"}, {"type": "resource", "resource": {}}]


def test_blocks_that_clients_do_not_know_become_text(client, version):
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    shown = client.call("returns", {"json": json.dumps({"content": [*KNOWN, link, *UNKNOWN]})})["content"]
    assert shown[:len(KNOWN)] == KNOWN
    assert (shown[len(KNOWN)] == link) == (version != "2025-03-26")
    for block, given in zip(shown[len(KNOWN) + 1:], UNKNOWN):
        assert block["type"] == "text" and json.loads(block["text"]) == given


def test_calls_run_side_by_side(session):
    first = session.ask("tools/call", {"name": "slow", "arguments": {"ms": 1500}})
    start = time.monotonic()
    ids = [session.ask("tools/call", {"name": "hello", "arguments": {"name": str(i)}}) for i in range(5)]
    for i in reversed(range(5)):
        assert session.answer(ids[i])["result"]["content"][0]["text"] == f"Hello, {i}!"
    assert not any(message.get("id") == first for message in session.kept), time.monotonic() - start
    assert session.answer(first)["result"]["content"][0]["text"] == "slept 1500"


def test_ids_are_texts_or_numbers_and_come_back_as_they_are(session):
    for id in ("a", "", "\u00e9", 0, -5, 2 ** 53):
        assert session.request("tools/call", {"name": "hello", "arguments": {"name": "x"}}, id=id)


def test_an_id_that_is_in_use_is_refused(session, work):
    file = work / "f"
    session.ask("tools/call", {"name": "patient", "arguments": {"file": str(file)}}, id="twice")
    until(lambda: file.exists() and "started" in file.read_text())
    assert session.refused("ping", id="twice") == (INVALID, "a request of that id is not answered yet")
    session.cancel("twice")
    assert session.request("ping", id="twice") == {}
    until(lambda: "aborted" in file.read_text())


# ---- while a call runs

def test_progress_goes_to_who_gave_a_token(client):
    for token in ("a", 7, 0):
        client.call("updates", {"ms": 1}, _meta={**(meta() if client.version == STATELESS else {}), "progressToken": token})
        told = client.told("notifications/progress")
        assert [step["message"] for step in told] == ["Phase 1", "Phase 2", "Phase 3"]
        assert [step["progress"] for step in told] == [1, 2, 3]
        assert all(step["progressToken"] == token for step in told)
        client.kept.clear()


def test_progress_goes_to_nobody_else(client):
    client.call("updates", {"ms": 1})
    assert client.kept == []


def test_progress_comes_before_the_end(session, work):
    go = work / "go"
    id = session.ask("tools/call", {"name": "steps", "arguments": {"go": str(go), "count": 1},
                                    "_meta": {"progressToken": "t"}})
    assert session.notification("notifications/progress")["message"] == "first"
    go.touch()
    assert session.answer(id)["result"]["content"][0]["text"] == "done"
    assert [step["message"] for step in session.told("notifications/progress")] == ["line\n2 \u00e9\U0001f600"]
    session.kept.clear()


def test_progress_has_the_numbers_that_the_tool_gives(work):
    write_tool(work / "tools", "counts", code="""
export async function execute(_id: string, _params: object, _signal?: AbortSignal, onUpdate?: (partial: unknown) => void) {
  const step = (text: string, details?: object) => onUpdate?.({ content: [{ type: 'text', text }], details });
  step('a', { progress: 2.5, total: 10 });
  step('b', { progress: 1, total: 10 });
  step('c');
  step('d', { progress: 10, total: 10 });
  return { content: [] };
}
""")
    with Client(["--tools", work / "tools"], SESSIONS[0]) as client:
        client.call("counts", _meta={"progressToken": 1})
        steps = [(step["message"], step["progress"], step.get("total"))
                 for step in client.told("notifications/progress")]
    assert steps == [("a", 2.5, 10), ("b", 3.5, None), ("c", 4.5, None), ("d", 10, 10)]


def printed(client, **more):
    client.call("prints", {"name": "Ada"}, **more)
    told = client.told("notifications/message")
    assert all(message["level"] == "info" and message["logger"] == "prints" for message in told)
    client.kept.clear()
    return [message["data"] for message in told]


def test_what_a_tool_prints_is_told_line_by_line(session):
    lines = printed(session)
    for line in ("to stderr: Ada", "from a child", "child error", "a partial line"):
        assert line in lines
    assert not any("\n" in line for line in lines)


def test_levels_above_info_hide_what_a_tool_prints(session):
    assert session.request("logging/setLevel", {"level": "warning"}) == {}
    assert printed(session) == []
    assert session.request("logging/setLevel", {"level": "debug"}) == {}
    assert printed(session) != []
    assert session.request("logging/setLevel", {"level": "info"}) == {}
    for level in ("loud", 7, None):
        assert session.refused("logging/setLevel", {"level": level})[0] == PARAMS
    assert session.refused("logging/setLevel")[0] == PARAMS


def test_a_stateless_request_says_its_own_level(where):
    with Client(where, STATELESS) as client:
        assert printed(client) == []
        assert "from a child" in printed(client, _meta=meta(**{META + "logLevel": "info"}))
        assert printed(client, _meta=meta(**{META + "logLevel": "error"})) == []
        assert client.refused("logging/setLevel", {"level": "info"})[0] == NO_METHOD


def test_no_secret_of_a_call_is_told(session):
    secret = "correct-horse-battery"
    for how in ("throw", "error", "not a result", "log", "log in pieces", "progress", "exit"):
        id = session.ask("tools/call", {"name": "leaky", "arguments": {"token": secret, "how": how},
                                        "_meta": {"progressToken": how}})
        answer = session.answer(id)
        assert secret not in json.dumps([answer, session.kept]), how
        session.kept.clear()


def test_a_cancelled_call_ends_without_an_answer(client, work):
    file = work / "f"
    id = client.ask("tools/call", {"name": "patient", "arguments": {"file": str(file)}})
    until(lambda: file.exists() and "started" in file.read_text())
    client.cancel(id)
    until(lambda: "aborted" in file.read_text())
    assert client.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    assert client.kept == []


@pytest.mark.parametrize("params", [{"requestId": "nobody"}, {"requestId": None}, {}, None])
def test_cancelling_nothing_changes_nothing(session, params):
    session.notify("notifications/cancelled", params)
    assert session.request("ping") == {}


# ---- changes

def changes(client):
    return client.wait(lambda message: message.get("method") == "notifications/tools/list_changed").get("params")


@pytest.fixture
def live(work):
    tools = work / "tools"
    write_tool(tools, "one")
    return tools


@pytest.mark.parametrize("kind", ["mount", "directories"])
def test_changes_of_the_tools_are_told(live, kind, new_mount, shared):
    end_all(shared)  # a mount that ends sees to it that no process is left
    where = ["--mount", new_mount(tools=[live]).path] if kind == "mount" else ["--tools", live]
    with Client(where, SESSIONS[0]) as client:
        assert client.names() == ["one"]
        write_tool(live, "two")
        assert changes(client) is None
        until(lambda: client.names() == ["one", "two"])
        shutil.rmtree(live / "one")
        changes(client)
        until(lambda: client.names() == ["two"])
        assert "returned nothing" in client.call("two")["content"][0]["text"]


def test_a_change_that_changes_no_tool_is_not_told(live):
    with Client(["--tools", live], SESSIONS[0]) as client:
        assert client.names() == ["one"]
        (live / "broken").mkdir()
        (live / "broken" / "TOOL.md").write_text("---\nname: [\n---\n")
        write_tool(live, "two")
        changes(client)
        until(lambda: client.names() == ["one", "two"])
        assert client.told("notifications/tools/list_changed") == []


def test_changes_are_told_to_nobody_before_the_session_is_ready(live):
    with Client(["--tools", live]) as client:
        client.request("initialize", {"protocolVersion": SESSIONS[0]})
        write_tool(live, "two")
        until(lambda: client.names() == ["one", "two"])
        assert client.kept == []


def test_stateless_clients_subscribe_to_changes(live):
    with Client(["--tools", live], STATELESS) as client:
        client.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}, id="s")
        client.ask("subscriptions/listen", {"notifications": {}}, id="t")
        for id, agreed in (("s", {"toolsListChanged": True}), ("t", {})):
            assert client.notification("notifications/subscriptions/acknowledged") == {
                "_meta": {META + "subscriptionId": id}, "notifications": agreed}
        write_tool(live, "two")
        assert changes(client) == {"_meta": {META + "subscriptionId": "s"}}
        client.cancel("s")
        assert client.names() == ["one", "two"]
        write_tool(live, "three")
        until(lambda: len(client.names()) == 3)
        assert client.kept == []
        assert client.refused("subscriptions/listen", {})[0] == PARAMS
        status, rest = client.end()
        assert status == 0
        assert [(message["id"], message["result"]["_meta"][META + "subscriptionId"]) for message in rest] == [("t", "t")]


# ---- garbage

@pytest.mark.parametrize("line, id, code", [
    (b"garbage", None, PARSE), (b"{", None, PARSE), (b'"', None, PARSE), (b"\xff\xfe{}", None, PARSE),
    (b'{"jsonrpc":"2.0","id":9,"method":"ping"', 9, PARSE),
    (b'{"jsonrpc":"2.0","id":"a\\"b","method":"ping","params":{"x":1e999}}', 'a"b', PARSE),
    (b'{"jsonrpc":"2.0","id":-4,"method":"ping","params":{"x":123456789012345678901234567890}}', -4, PARSE),
    (b'{"jsonrpc":"2.0","params":{"x":"\\ud800","id":5},"id":6,"method":"ping"}', 6, PARSE),
    (b'{"jsonrpc":"2.0","id":8,"id":8,"method":"ping"}', 8, PARSE),
    (b'{"id":3,"x":' + b"[" * 100000, 3, PARSE),
    (b"[" * 100000, None, PARSE),
    (b"7", None, INVALID), (b"null", None, INVALID), (b"[]", None, INVALID), (b'[{"jsonrpc":"2.0"}]', None, INVALID),
    (b"{}", None, INVALID), (b'{"jsonrpc":"2.0"}', None, INVALID),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 1, INVALID), (b'{"id":1,"method":"ping"}', 1, INVALID),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', 1, INVALID),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, INVALID),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, INVALID),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', None, INVALID),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 1, PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', 1, PARAMS),
    (b'{"jsonrpc":"2.0","id":1,"method":"prompts/list"}', 1, NO_METHOD),
    (b'{"jsonrpc":"2.0","id":1,"method":""}', 1, NO_METHOD),
])
def test_garbage_gets_an_error_and_the_server_goes_on(direct, line, id, code):
    direct.send(line)
    message = direct.receive()
    assert message["error"]["code"] == code and message["error"]["message"]
    assert message.get("id") == id and ("id" in message) == (id is not None)
    assert direct.request("ping") == {}


@pytest.mark.parametrize("line", [
    b"", b"  \t\r", b'{"jsonrpc":"2.0","method":"notifications/unknown"}', b'{"jsonrpc":"2.0","method":"ping","params":7}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}', b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'])
def test_what_wants_no_answer_gets_none(direct, line):
    direct.send(line)
    assert direct.request("ping") == {}
    assert direct.kept == []


def test_in_older_revisions_an_unknown_id_is_null():
    with Client(DIRECTORIES, SESSIONS[1]) as client:
        client.send(b"garbage")
        assert client.receive()["id"] is None


def test_what_json_allows_and_tools_do_not_is_told_to_the_model(direct):
    for raw in (b'{"name":"a\\u0000b"}', b'{"name":{"a":[1]}}'):
        direct.send(b'{"jsonrpc":"2.0","id":"n","method":"tools/call","params":{"name":"hello","arguments":' + raw + b"}}")
        assert direct.answer("n")["result"]["isError"] is True


def test_a_line_without_end_is_passed_over(direct):
    block = b"x" * (1 << 20)
    for _ in range(65):
        direct.process.stdin.write(block)
    message = direct.receive()
    assert message["error"]["code"] == INVALID and "64 MiB" in message["error"]["message"]
    direct.send(b"")
    assert direct.request("ping") == {}


def test_a_large_request_and_a_large_answer_pass(session):
    text = "\u00e9" * 3_000_000
    assert text in session.say("echo", {"text": text})


def test_a_client_that_reads_late_loses_nothing(direct):
    """And one that never reads does not make the server grow: it stops to read."""
    count = 3000
    for i in range(count):
        direct.send({"jsonrpc": "2.0", "id": f"r{i}", "method": "tools/list"} if i % 100 == 0 else
                    {"jsonrpc": "2.0", "id": f"r{i}", "method": "ping"})
    for i in range(count):
        assert direct.receive()["id"] == f"r{i}"


# ---- batches, of one revision only

def test_a_batch_is_answered_as_one():
    with Client(DIRECTORIES, "2025-03-26") as client:
        client.send([{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                      "params": {"name": "slow", "arguments": {"ms": 200}}},
                     {"jsonrpc": "2.0", "method": "notifications/unknown"}, 7,
                     {"jsonrpc": "2.0", "id": 2, "method": "ping"},
                     {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}])
        answers = client.receive()
        assert [answer["id"] for answer in answers] == [None, 2, 3, 1]
        assert [answer.get("error", {}).get("code") for answer in answers] == [INVALID, None, INVALID, None]
        client.send([{"jsonrpc": "2.0", "method": "notifications/unknown"}])
        client.send([{"jsonrpc": "2.0", "id": "gone", "method": "tools/call",
                      "params": {"name": "slow", "arguments": {"ms": 60000}}},
                     {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "gone"}}])
        assert client.request("ping") == {}
        client.send([])
        assert client.receive()["error"]["code"] == INVALID
        assert client.kept == []


@pytest.mark.parametrize("version", VERSIONS[:3])
def test_a_batch_is_refused_where_there_are_none(version):
    with Client(DIRECTORIES, version) as client:
        client.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
        assert client.receive()["error"]["code"] == INVALID


# ---- the end

@pytest.mark.parametrize("how", ["end of input", signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_at_its_end_what_runs_is_cancelled(where, work, how):
    file = work / "f"
    with Client(where, SESSIONS[0]) as client:
        id = client.ask("tools/call", {"name": "patient", "arguments": {"file": str(file)}})
        until(lambda: file.exists() and "started" in file.read_text())
        processes = descendants_of(client.pid)
        if how == "end of input":
            status, rest = client.end()
        else:
            os.kill(client.pid, how)
            rest = [client.answer(id)]
            status = client.process.wait(10)
        assert status == 0
        (message,) = rest
        assert message["id"] == id and message["result"]["isError"] is True
        until(lambda: "aborted" in file.read_text())
        until(lambda: not any(is_alive(pid) for pid in processes))


def test_a_tool_that_does_not_end_is_not_waited_for(work):
    pids = work / "pids"
    with Client(DIRECTORIES, SESSIONS[0]) as client:
        client.ask("tools/call", {"name": "slow", "arguments": {"ms": 60000, "pids": str(pids)}})
        until(lambda: pids.exists() and len(pids.read_text().split()) == 3)
        start = time.monotonic()
        assert client.end()[0] == 0
        assert time.monotonic() - start < 5
        for pid in pids.read_text().split():
            until(lambda pid=pid: not is_alive(int(pid)))


def test_a_client_that_has_gone_ends_it(work):
    with Client(DIRECTORIES, SESSIONS[0]) as client:
        client.process.stdout.close()
        client.notify("notifications/unknown")
        client.ask("ping")
        assert client.process.wait(10) == 0
        client.process = subprocess.Popen(["true"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


def test_requests_from_a_file_are_answered(work):
    requests, answers = work / "in", work / "out"
    requests.write_text("".join(json.dumps(message) + "\n" for message in [
        {"jsonrpc": "2.0", "id": i, "method": "tools/list", "params": {"_meta": meta()}} for i in range(20)]))
    done = run(f"{PEGFS} mcp --tools {EXAMPLES} <{requests} >{answers}")
    assert (done.status, done.err) == (0, "")
    assert [json.loads(line)["id"] for line in answers.read_text().splitlines()] == list(range(20))


def test_it_leaves_nothing_behind(work):
    where = work / "tmp"
    where.mkdir()
    with Client(DIRECTORIES, SESSIONS[0], env={"TMPDIR": where, "XDG_RUNTIME_DIR": None}) as client:
        assert client.say("hello", {"name": "Ada"}) == "Hello, Ada!"
        assert list(where.iterdir()) != []
        assert client.end()[0] == 0
    assert list(where.iterdir()) == []
