"""pegfs call: through a mount and straight on directories, with the same outcome."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

from lib import mount as mounts
from lib.mount import EXAMPLES, FIXTURES, PEGFS
from lib.programs import Background, children_of, run, until

ENV = {"PEGFS_MOUNT": None, "PI_TOOLS_DIRS": None}


@pytest.fixture(params=["mount", "directories"])
def where(request, m):
    return ["--mount", m.path] if request.param == "mount" else ["--tools", f"{EXAMPLES}:{FIXTURES}"]


def call(where, *args, stdin=b"", env=None):
    return run([PEGFS, "call", *where, *args], stdin=stdin, env={**ENV, **(env or {})})


def echoed(done):
    assert done.status == 0, done
    return json.loads(done.out)


# ---- what is asked

def test_r53_the_text_of_the_result_goes_to_standard_output(where):
    done = call(where, "hello", "name=Ada")
    assert (done.status, done.out, done.err) == (0, "Hello, Ada!\n", "")


@pytest.mark.parametrize("words, request_", [
    ([], {"d": 7}),
    (["s=7", "n=7", "b=true", "e=low"], {"s": "7", "n": 7, "b": True, "e": "low", "d": 7}),
    (["s=", "d=1e3"], {"s": "", "d": 1000}),
    (["s=a=b c\n'\"$x"], {"s": "a=b c\n'\"$x", "d": 7}),
    (['{"s": "{}", "b": false}'], {"s": "{}", "b": False, "d": 7}),
    (['  {"d": 2}\n'], {"d": 2}),
    (["s={}"], {"s": "{}", "d": 7}),
])
def test_r24_words_become_what_the_inputs_want(work, new_mount, words, request_):
    tools = work / "tools" / "given"
    tools.mkdir(parents=True)
    manifest = (FIXTURES / "typed" / "TOOL.md").read_text().replace("name: typed", "name: given")
    (tools / "TOOL.md").write_text(manifest)
    (tools / "index.ts").write_text("export async function execute(_id: string, params: object) {\n"
                                    "  return { content: [{ type: 'text', text: JSON.stringify(params) }] };\n}\n")
    assert echoed(call(["--tools", tools.parent], "given", *words)) == request_
    mount = new_mount(tools=[tools.parent])
    assert echoed(call(["--mount", mount.path], "given", *words)) == request_


def test_json_comes_from_standard_input(where):
    done = call(where, "hello", "-", stdin=b'\n{"name": "Ada"}\n')
    assert (done.status, done.out) == (0, "Hello, Ada!\n")


@pytest.mark.parametrize("words, stdin, told", [
    (["x"], b"", "word 1 behind the tool is no KEY=VALUE"),
    (["name=a", "x"], b"", "word 2 behind the tool is no KEY=VALUE"),
    (["=x"], b"", "word 1"),
    (["name=a", '{"name":"b"}'], b"", "JSON must be the only one"),
    (["name=a", "name=b"], b"", "'name' is given twice"),
    (['{"name"'], b"", "line 1"),
    (["-"], b'{"name": "Ada"', "line 1"),
    (["-"], b"[]", "object"),
    (["-"], b"", ""),
])
def test_words_that_mean_nothing_run_nothing(where, words, stdin, told):
    done = call(where, "hello", *words, stdin=stdin)
    assert done.status == 2 and done.out == "" and told in done.err, done


def test_a_word_that_is_not_utf8_runs_nothing(m):
    done = run(f"{PEGFS} call --mount {m.path} hello name=$'\\xff'")
    assert (done.status, done.out) == (2, "") and "not UTF-8 from its byte 6" in done.err


def test_no_word_that_may_be_a_secret_is_told(where):
    for words in (["s3cret"], ["name=1", "s3cret"]):
        assert "s3cret" not in call(where, "hello", *words).err


@pytest.mark.parametrize("words, told", [
    (["nme=Ada"], 'did you mean it by "nme"?'), ([], "name: missing"), (["{}"], "name: missing"),
])
def test_r28_a_request_that_does_not_fit_is_refused(where, words, told):
    done = call(where, "hello", *words)
    assert (done.status, done.out) == (2, "") and told in done.err


# ---- what comes back

def test_a_tool_that_fails_tells_on_standard_error(where):
    done = call(where, "fail")
    assert (done.status, done.out) == (1, "") and "this tool always fails" in done.err


@pytest.mark.parametrize("tool, words", [
    ("throws", ["how=error"]), ("exits", ["how=exit"]), ("no_export", []), ("syntax_error", []),
])
def test_r55_so_does_one_that_breaks(where, tool, words):
    done = call(where, tool, *words)
    assert (done.status, done.out) == (1, "") and done.err


@pytest.mark.parametrize("words, status", [(["name=Ada"], 0), (["{}"], 2)])
def test_r38_json_is_the_whole_result_in_every_case(where, words, status):
    done = call(where, "hello", "--json", *words)
    assert done.status == status and done.err == ""
    assert bool(json.loads(done.out).get("isError")) == (status != 0)


def test_what_a_tool_prints_is_shown_where_it_is_asked_for(where):
    plain, logged = call(where, "prints"), call(where, "prints", "--log")
    assert plain.out == logged.out and plain.err == "" and logged.err


def test_r41_python_and_bash_run_as_well(where):
    assert call(where, "from_python").status == 0
    assert call(where, "bash_kit", "--", "{}").status in (0, 1, 2)


def test_nothing_is_left_of_a_call_on_directories(work):
    (work / "run").mkdir()
    env = {"XDG_RUNTIME_DIR": work / "run"}
    where = ["--tools", EXAMPLES]
    assert call(where, "hello", "name=x", env=env).status == 0
    assert call(where, "hello", env=env).status == 2
    assert os.listdir(work / "run") == []


def test_a_tool_gets_the_environment_of_the_platform_and_nothing_else():
    done = call(["--tools", FIXTURES], "env", env={"STRAY_VARIABLE": "x"})
    assert done.status == 0 and "STRAY_VARIABLE" not in done.out and "PI_TOOLS_DIRS" in done.out


# ---- progress and cancelling

class Terminal:
    """A call whose standard error is a terminal."""

    def __init__(self, args, env=None):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen([PEGFS, "call", *map(str, args)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=slave,
                                        env={**os.environ, "TERM": "xterm", **(env or {})})
        os.close(slave)
        self.shown = ""

    def read(self):
        if select.select([self.master], [], [], 0)[0]:
            try:
                self.shown += os.read(self.master, 1 << 16).decode()
            except OSError:
                pass
        return self.shown

    def end(self):
        out, _ = self.process.communicate(timeout=30)
        while select.select([self.master], [], [], 0)[0]:
            before = self.shown
            if self.read() == before:
                break
        os.close(self.master)
        return out.decode(), self.process.returncode


def test_r42_progress_is_shown_on_a_terminal_while_the_tool_runs(where, work):
    go = work / "go"
    terminal = Terminal([*where, "steps", f"go={go}"], env={"NO_COLOR": "1"})
    until(lambda: "first" in terminal.read(), what="the first update")
    assert terminal.process.poll() is None
    go.touch()
    out, status = terminal.end()
    assert (out, status) == ("done\n", 0)
    assert re.fullmatch(r"([^\r\n\033]+\r\033\[K)+", terminal.shown), terminal.shown


def test_progress_is_coloured_unless_no_color_says_otherwise(where, work):
    (work / "go").touch()
    coloured = Terminal([*where, "steps", f"go={work / 'go'}"], env={"NO_COLOR": ""})
    coloured.end()
    assert "\033[2m" in coloured.shown


def test_no_progress_where_nobody_looks_or_wants_it(where, work):
    (work / "go").touch()
    assert call(where, "steps", f"go={work / 'go'}").err == ""
    quiet = Terminal([*where, "--quiet", "steps", f"go={work / 'go'}"])
    assert quiet.end() == ("done\n", 0) and quiet.shown == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_r43_a_signal_cancels_the_call_and_ends_the_program(where, work, number):
    with Background([PEGFS, "call", *map(str, where), "steps", f"go={work / 'go'}"],
                    env={**ENV, "XDG_RUNTIME_DIR": work}) as program:
        until(lambda: is_waiting(where, program), what="the call")
        program.signal(number)
        done = program.end(timeout=10)
    assert done.status == -number and done.out == "" and "cancelled" in done.err
    assert [name for name in os.listdir(work) if name.startswith("pegfs-call")] == []


def is_waiting(where, program):
    """Whether the tool runs: it has sent its first update."""
    if where[0] == "--tools":
        return any("host" in mounts.command_line(child) for warden in children_of(program.pid)
                   for child in children_of(warden)) and time.sleep(0.5) is None
    calls = where[1] / "steps" / "calls"
    return any("first" in (calls / name / "progress").read_text()
               for name in os.listdir(calls) if name.startswith(f"cli-{program.pid}-")
               and (calls / name / "status").read_text().startswith("state: running"))


def test_a_shells_loop_ends_with_a_cancelled_call(m, work):
    with Background(f"while true; do {PEGFS} call --mount {m.path} steps go={work / 'go'}; done") as loop:
        until(lambda: any((m / "steps" / "calls" / name / "status").read_text().startswith("state: running")
                          for name in os.listdir(m / "steps" / "calls")), what="the call")
        loop.signal(signal.SIGINT, group=True)
        loop.end(timeout=10)


def test_a_mount_that_goes_away_ends_the_call(work, new_mount):
    mount = new_mount()
    with Background([PEGFS, "call", "--mount", mount.path, "steps", f"go={work / 'go'}"], env=ENV) as program:
        until(lambda: is_waiting(["--mount", mount.path], program), what="the call")
        os.kill(mount.pid, signal.SIGKILL)
        done = program.end(timeout=10)
    mount.clear_away(killed=True)
    assert done.status == 1 and "pegfs call: " in done.err


def test_another_user_calls_through_a_mount(m):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    done = run([PEGFS, "call", "--mount", m.path, "whoami"], uid=1000, env=ENV)
    assert done.status == 0 and "1000" in done.out
