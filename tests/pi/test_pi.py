"""The pi coding agent on a mount, offline, with a model that does what a script says: once through the
extension seed/extensions/tool-loader.ts, once with nothing but its own bash, read and write."""

import json
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import subprocess
import time

import pytest

from lib.mount import EXAMPLES, FIXTURES, ROOT
from lib.programs import check, environment, kill_group, run, until

MODULES = pathlib.Path(os.environ["PEGFS_PI_MODULES"])
CLI = MODULES / "@mariozechner/pi-coding-agent/dist/cli.js"
HERE = pathlib.Path(__file__).resolve().parent
EXTENSION = ROOT / "seed/extensions/tool-loader.ts"
# No extension, skill, prompt or context file of whoever runs this.
BARE = ["--offline", "--no-session", "-ne", "-ns", "-np", "-nc", "--model", "faux/faux-1"]
LIMIT_S = 60


def put_tool(tools, name, source, **front):
    directory = pathlib.Path(tools) / name
    directory.mkdir(parents=True, exist_ok=True)
    front = {"name": json.dumps(name), "description": f"The tool {name}.", "version": 1, **front}
    (directory / "index.js").write_text(source)
    (directory / "TOOL.md").write_text("---\n" + "".join(f"{key}: {value}\n" for key, value in front.items()) + "---\n")


def says(text):
    return f"export function execute() {{ return {{ content: [{{ type: 'text', text: {json.dumps(text)} }}] }}; }}\n"


class Pi:
    """The agent on a mount. ask() runs a script; rpc() starts one that is spoken to."""

    def __init__(self, mount, work, extension=True):
        self.work = work
        self.script, self.log = work / "script.json", work / "log.jsonl"
        self.env = {"PEGFS_MOUNT": mount.path, "PI_CODING_AGENT_DIR": work / "agent", "PI_OFFLINE": "1", "PI_TELEMETRY": "0",
                    "PI_FAUX_SCRIPT": self.script, "PI_FAUX_LOG": self.log, "HOME": work}
        self.argv = ["node", CLI, *BARE, "-e", HERE / "faux.ts", *(["-e", EXTENSION] if extension else [])]

    def put_script(self, steps):
        self.script.write_text(json.dumps(steps))
        self.log.unlink(missing_ok=True)

    def ask(self, steps):
        """-> (events, results by the id of their call) of a run with one prompt."""
        self.put_script([*steps, {"text": "done"}])
        # To a file: what is still in a pipe when pi exits is lost.
        done = run(f"{shlex.join(str(word) for word in self.argv)} --mode json go > events.jsonl", env=self.env,
                   cwd=self.work, timeout=LIMIT_S)
        told = (self.work / "events.jsonl").read_text()
        assert done.status == 0, told[-2000:] + done.err
        return [json.loads(line) for line in told.splitlines()], self.results()

    def steps(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def results(self):
        return {message["toolCallId"]: message for message in self.steps()[-1]["messages"] if message["role"] == "toolResult"}

    def rpc(self, steps):
        self.put_script(steps)
        return Rpc(self)


class Rpc:
    def __init__(self, pi):
        self.pi = pi
        self.rest = b""

    def __enter__(self):
        argv = [str(word) for word in [*self.pi.argv, "--mode", "rpc"]]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=environment(self.pi.env), cwd=self.pi.work, start_new_session=True)
        return self

    def __exit__(self, *_):
        kill_group(self.process)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()

    def say(self, **command):
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, wanted):
        """Events up to the first of that type, which is the last of them."""
        heard, end = [], time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            line, found, rest = self.rest.partition(b"\n")
            if found:
                self.rest = rest
                heard.append(json.loads(line))
                if heard[-1].get("type") == wanted:
                    return heard
            elif select.select([self.process.stdout], [], [], 1)[0]:
                piece = os.read(self.process.stdout.fileno(), 1 << 16)
                assert piece, self.process.stderr.read().decode()
                self.rest += piece
        raise AssertionError(f"no {wanted}: {heard}")

    def prompt(self, text="go"):
        self.say(type="prompt", message=text)


def calls(*wanted):
    return {"calls": [{"id": call_id, "name": name, "args": args} for call_id, name, args in wanted]}


def text_of(message):
    assert [block["type"] for block in message["content"]] == ["text"], message
    return message["content"][0]["text"]


@pytest.fixture
def tools(work):
    (work / "tools").mkdir()
    return work / "tools"


@pytest.fixture
def mount(new_mount, tools):
    return new_mount(tools=(EXAMPLES, FIXTURES, tools))


# --------------------------------------------------------------------------- through the extension

def test_several_calls_at_once_with_progress_errors_and_defaults(mount, work):
    pi = Pi(mount, work)
    image = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    shape = {"content": [{"type": "text", "text": "first"}, image, {"type": "text", "text": "second"}], "isError": True, "details": {"a": 1}}
    other = {"content": [{"type": "resource", "uri": "x:y"}], "details": "text"}
    events, results = pi.ask([calls(
        ("c1", "hello", {"name": "World"}), ("c2", "updates", {"ms": 60}), ("c3", "fail", {"text": None}),
        ("c4", "hello", {}), ("c5", "throws", {"how": "error"}), ("c6", "returns", {"json": json.dumps(shape)}),
        ("c7", "typed", {"n": "5", "b": None}), ("c8", "no_such_tool", {}), ("call|of:nobody's", "ids", {}),
        ("c10", "exits", {"how": "kill"}), ("c11", "returns", {"json": json.dumps(other)}))])
    assert text_of(results["c1"]) == "Hello, World!" and results["c1"]["isError"] is False
    assert results["c1"]["details"]["call"] == str(mount / "hello/calls/c1")
    assert mount.text("hello/calls/c1/status").startswith("state: done")
    updates = [event["partialResult"]["content"][0]["text"] for event in events
               if event["type"] == "tool_execution_update" and event["toolCallId"] == "c2"]
    assert updates == ["Phase 1", "Phase 2", "Phase 3"]
    assert (text_of(results["c3"]), results["c3"]["isError"]) == ("this tool always fails", True), "null is not given: the default"
    assert results["c4"]["isError"] and "name" in text_of(results["c4"])
    assert results["c5"]["isError"] and text_of(results["c5"])
    # What an error says stays whole: pi's own way, to throw, would leave its first text.
    assert results["c6"]["isError"] is True and results["c6"]["content"] == shape["content"]
    assert results["c6"]["details"]["a"] == 1
    typed = json.loads(re.search(r"\{.*\}", text_of(results["c7"]), re.S)[0])
    assert typed["n"] == 5 and typed["d"] == 7 and "b" not in typed, typed
    assert results["c8"]["isError"] and "not found" in text_of(results["c8"])
    assert text_of(results["call|of:nobody's"]).startswith('["call_of_nobody_s"'), "its id, as far as it can be one"
    assert results["c10"]["isError"] and text_of(results["c10"])
    assert json.loads(text_of(results["c11"])) == other["content"][0] and results["c11"]["details"]["details"] == "text"


def test_what_the_model_is_told_of_the_tools(mount, work, tools):
    put_tool(tools, "bash", says("ours"))
    put_tool(tools, "it's odd", says("odd"))
    put_tool(tools, "keyed", says("keyed"), inputs="{ 'weird key!': { type: string, optional: true, description: x }, good: { type: string, description: y } }")
    until(lambda: (mount / "keyed").exists())
    pi = Pi(mount, work)
    _, results = pi.ask([calls(("c1", "bash", {"command": "echo theirs"}), ("c2", "bash_tool", {}), ("c3", "keyed", {"good": "x"}))])
    assert text_of(results["c1"]) == "theirs\n", "pi's own tools stay"
    assert text_of(results["c2"]) == "ours" and text_of(results["c3"]) == "keyed"
    first = pi.steps()[0]
    told = {tool["name"]: tool for tool in first["tools"]}
    names = mount.json(".pegfs/formats/names.json")
    assert {names.get(name, name) for name in told if name not in ("read", "bash", "edit", "write", "bash_tool")} | {"bash"} == \
        {tool["name"] for tool in mount.json("tools.json")}
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name) for name in told)
    assert told["sample"]["parameters"] == mount.json("sample/schema.json")
    assert told["my_db"]["description"] == next(tool for tool in mount.json("tools.json") if tool["name"] == "my_db")["description"]
    assert "required" not in told["typed"]["parameters"], "d has a default, which pegfs fills in"
    assert list(told["keyed"]["parameters"]["properties"]) == ["good"]
    assert "- hello: Say hello to somebody." in first["systemPrompt"]
    assert first["systemPrompt"].count(f"read {mount.path}/NAME/prompt.md") == 1


def test_a_long_text_is_cut_and_says_where_the_whole_is(mount, work, tools):
    put_tool(tools, "lines", "export function execute() { return { content: [{ type: 'text', text: Array.from({ length: 3000 }, (_, i) => `line ${i}`).join('\\n') }] }; }\n")
    put_tool(tools, "wide", "export function execute() { return { content: [{ type: 'text', text: 'ä'.repeat(60000) }] }; }\n")
    until(lambda: (mount / "wide").exists())
    pi = Pi(mount, work)
    _, results = pi.ask([calls(("c1", "lines", {}), ("c2", "wide", {}))])
    cut = text_of(results["c1"])
    assert "line 1999\n" in cut and "line 2000\n" not in cut
    whole = re.search(r"The whole text: (\S+)\]$", cut)[1]
    assert pathlib.Path(whole).read_text().rstrip("\n").endswith("line 2999")
    cut = text_of(results["c2"])
    assert cut.startswith("ä" * 25000) and len(cut.encode()) < 52 * 1024


def test_many_calls_at_once_need_no_thread_each(mount, work):
    pi = Pi(mount, work)
    wanted = [(f"c{number}", "slow", {"ms": 1000}) for number in range(24)]
    events, results = pi.ask([calls(*wanted)])
    assert len(results) == 24 and {text_of(result) for result in results.values()} == {"slept 1000"}
    starts = [event for event in events if event["type"].startswith("tool_execution")]
    assert [event["type"] for event in starts[:24]] == ["tool_execution_start"] * 24
    # Node has four threads for files: more calls than that had been made before the first one ended.
    told = [json.loads(line)["event"] for line in mount.text(".pegfs/events").splitlines() if '"tool":"slow"' in line]
    assert told.count("call") == told.count("end") == 24
    assert told.index("end") > 8, told


def test_a_call_is_cancelled_when_the_user_aborts(mount, work):
    pi = Pi(mount, work)
    with pi.rpc([calls(("c1", "slow", {"ms": 60000}), ("c2", "patient", {"file": str(work / "mark")}))]) as rpc:
        rpc.prompt()
        until(lambda: (mount / "slow/calls/c1/status").exists() and mount.text("slow/calls/c1/status").startswith("state: running"), timeout=30)
        until(lambda: (work / "mark").exists(), timeout=30)
        rpc.say(type="abort")
        heard = rpc.hear("agent_end")
    for call in ("slow/calls/c1", "patient/calls/c2"):
        until(lambda call=call: mount.text(f"{call}/status").startswith("state: cancelled"))
    ends = {event["toolCallId"]: event for event in heard if event["type"] == "tool_execution_end"}
    assert ends["c1"]["isError"] and "cancelled" in ends["c1"]["result"]["content"][0]["text"], ends
    assert len((work / "mark").read_text().splitlines()) == 2, "its AbortSignal fired"


def test_a_call_is_cancelled_when_pi_is_killed(mount, work):
    pi = Pi(mount, work)
    with pi.rpc([calls(("c1", "slow", {"ms": 60000}))]) as rpc:
        rpc.prompt()
        until(lambda: (mount / "slow/calls/c1/status").exists() and mount.text("slow/calls/c1/status").startswith("state: running"), timeout=30)
        os.kill(rpc.process.pid, signal.SIGKILL)
        until(lambda: mount.text("slow/calls/c1/status").startswith("state: cancelled"))


def test_tools_come_change_and_go_without_a_restart(mount, work, tools):
    pi = Pi(mount, work)
    steps = [calls(("c1", "late", {})), {"text": "a"}, calls(("c2", "late", {})), {"text": "b"}, {"text": "c"}, calls(("c3", "late", {})), {"text": "d"}]
    put_tool(tools, "stays", says("x"))
    until(lambda: (mount / "stays").exists())
    with pi.rpc(steps) as rpc:
        def prompt():
            rpc.prompt()
            rpc.hear("agent_end")
            return {tool["name"]: tool for tool in pi.steps()[-1]["tools"]}

        assert "late" not in prompt() and "not found" in text_of(pi.results()["c1"])
        put_tool(tools, "late", says("one"))
        until(lambda: (mount / "late").exists())
        assert "late" in prompt() and text_of(pi.results()["c2"]) == "one"
        shutil.rmtree(tools / "late")
        until(lambda: not (mount / "late").exists())
        there = prompt()
        assert "late" not in there and "stays" in there
        put_tool(tools, "late", says("two"), description="Another one.", version=2)
        until(lambda: (mount / "late").exists())
        assert prompt()["late"]["description"] == "Another one."
        assert text_of(pi.results()["c3"]) == "two"


def test_a_call_of_a_tool_that_has_just_gone_says_so(mount, work, tools):
    put_tool(tools, "brief", says("x"))
    until(lambda: (mount / "brief").exists())
    pi = Pi(mount, work)
    step = {**calls(("c1", "brief", {})), "first": f"rm -r '{tools}/brief'; while [ -e '{mount.path}/brief' ]; do sleep 0.05; done"}
    _, results = pi.ask([step])
    assert results["c1"]["isError"] and text_of(results["c1"]) == f"The tool brief is no longer in {mount.path}."


def test_a_server_that_dies_in_a_call_disturbs_nobody(mount, work):
    pi = Pi(mount, work)
    with pi.rpc([calls(("c1", "slow", {"ms": 2000})), {"text": "done"}]) as rpc:
        rpc.prompt()
        until(lambda: (mount / "slow/calls/c1/status").exists() and mount.text("slow/calls/c1/status").startswith("state: running"), timeout=30)
        os.kill(mount.server_pid, signal.SIGKILL)
        rpc.hear("agent_end")
    assert text_of(pi.results()["c1"]) == "slept 2000" and not pi.results()["c1"]["isError"]


def test_without_a_tree_pi_works_as_ever(mount, work):
    pi = Pi(mount, work)
    pi.env["PEGFS_MOUNT"] = work / "nowhere"
    _, results = pi.ask([calls(("c1", "bash", {"command": "echo hi"}))])
    assert text_of(results["c1"]) == "hi\n"
    assert {tool["name"] for tool in pi.steps()[0]["tools"]} == {"read", "bash", "edit", "write"}


def test_the_page_s_commands_install_it(mount, work):
    """docs/integrations.md, as it stands, with a prefix, a home and a model of the test's own."""
    block = re.search(r"^    mkdir -p ~/.pi/agent/extensions\n(?:    .*\n)+", (ROOT / "docs/integrations.md").read_text(), re.M)[0]
    prefix = work / "prefix"
    check(["make", "-s", "install", f"PREFIX={prefix}", "MOUNT_HELPER_DIR=" + str(prefix / "sbin")], cwd=ROOT, timeout=LIMIT_S)
    assert (prefix / "share/pegfs/extensions/tool-loader.ts").read_text() == EXTENSION.read_text()
    pi = Pi(mount, work)
    pi.put_script([calls(("c1", "hello", {"name": "Ada"})), {"text": "Said hello."}])
    shim = work / "bin/pi"
    shim.parent.mkdir()
    shim.write_text(f"#!/bin/sh\nexec node '{CLI}' --offline --no-session -ns -np -nc --model faux/faux-1 -e '{HERE}/faux.ts' \"$@\"\n")
    shim.chmod(0o755)
    env = {**pi.env, "PI_CODING_AGENT_DIR": None, "PATH": f"{shim.parent}:{os.environ['PATH']}"}
    done = run("set -e\n" + block.replace("/usr/local", str(prefix)), env=env, cwd=work, timeout=LIMIT_S)
    assert (done.status, done.out) == (0, "Said hello.\n"), done
    assert text_of(pi.results()["c1"]) == "Hello, Ada!"


# ----------------------------------------------------------------------- with its own tools alone

def test_bash_read_and_write_are_enough(mount, work):
    pi = Pi(mount, work, extension=False)

    def bash(tool, request):
        return {"command": f"echo '{json.dumps(request)}' > {mount / tool}/call && cat {mount / tool}/result.txt || {{ cat {mount / tool}/result.txt; false; }}"}

    _, results = pi.ask([
        calls(("r1", "read", {"path": str(mount / "README.md")}), ("r2", "read", {"path": str(mount / "hello/prompt.md")}),
              ("r3", "read", {"path": str(mount / "hello/call")})),
        calls(("b1", "bash", bash("hello", {"name": "Ada"})), ("b2", "bash", bash("hello", {"name": "Bob"})),
              ("b3", "bash", bash("slow", {"ms": 700})), ("b4", "bash", bash("fail", {"text": "it broke"})),
              ("b5", "bash", bash("hello", {"nme": "x"})), ("b6", "bash", {"command": f"{mount.path}/hello/run --name Eve"})),
        calls(("w1", "write", {"path": str(mount / "hello/call"), "content": '{"name":"Write"}'})),
        calls(("w2", "read", {"path": str(mount / "hello/result.txt")})),
        calls(("w3", "write", {"path": str(mount / "hello/call"), "content": '{"nme":"x"}'})),
        calls(("w4", "read", {"path": str(mount / "hello/result.txt")})),
    ])
    assert text_of(results["r1"]) == mount.text("README.md")
    assert "Who to greet." in text_of(results["r2"]) and str(mount / "hello/call") in text_of(results["r2"])
    assert text_of(results["r3"]).startswith("# hello")
    # Each in parallel sees its own.
    assert text_of(results["b1"]).rstrip() == "Hello, Ada!" and text_of(results["b2"]).rstrip() == "Hello, Bob!"
    assert text_of(results["b3"]).rstrip() == "slept 700"
    assert results["b4"]["isError"] and "it broke" in text_of(results["b4"])
    assert results["b5"]["isError"] and 'did you mean it by "nme"?' in text_of(results["b5"])
    assert text_of(results["b6"]).rstrip() == "Hello, Eve!"
    assert not results["w1"]["isError"] and text_of(results["w2"]).rstrip() == "Hello, Write!"
    assert results["w3"]["isError"] and "missing" in text_of(results["w4"])
    assert {name: results[name]["isError"] for name in ("r1", "r2", "r3", "b1", "b2", "b3", "b6", "w2", "w4")} == \
        dict.fromkeys(("r1", "r2", "r3", "b1", "b2", "b3", "b6", "w2", "w4"), False)


def test_a_command_that_is_out_of_time_or_aborted_cancels_its_call(mount, work):
    pi = Pi(mount, work, extension=False)
    command = f"echo '{{\"ms\":60000}}' > {mount.path}/slow/call"
    _, results = pi.ask([calls(("b1", "bash", {"command": command, "timeout": 2}))])
    assert results["b1"]["isError"] and "timed out" in text_of(results["b1"])
    until(lambda: all("cancelled" in (mount / f"slow/calls/{call}/status").read_text() for call in os.listdir(mount / "slow/calls")))
    with pi.rpc([calls(("b2", "bash", {"command": command}))]) as rpc:
        rpc.prompt()
        until(lambda: "pegfs_calls_running 1" in mount.text(".pegfs/stats"), timeout=30)
        rpc.say(type="abort")
        rpc.hear("agent_end")
        until(lambda: all("cancelled" in (mount / f"slow/calls/{call}/status").read_text() for call in os.listdir(mount / "slow/calls")))
    assert len(os.listdir(mount / "slow/calls")) == 2
