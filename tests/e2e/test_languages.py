"""Beyond the original: index.py and index.sh (A9)."""

import errno
import json
import os
import shutil
import time

import pytest

from lib.programs import Background, is_alive, until


@pytest.fixture
def marks(work):
    file = work / "marks"
    file.touch()
    file.chmod(0o666)
    return file


def run_at(m, tool, request):
    path = m / tool / "calls" / f"l{time.monotonic_ns()}"
    path.mkdir()
    try:
        (path / "call").write_text(json.dumps(request))
    except OSError:
        pass
    return path


# -------------------------------------------------------------------------------------- python

@pytest.mark.parametrize("how", ["dict", "string", "async"])
def test_python_result_is_a_dict_or_a_string_sync_or_async(m, how):
    assert m.say("python_kit", {"how": how, "text": "h\u00e9llo \U0001f600\n"}) == "h\u00e9llo \U0001f600\n"


@pytest.mark.parametrize("how, words", [
    ("error", "told to fail"),
    ("raise", "ValueError: raised on purpose\n(raised at index.py:"),
    ("exit", "sys.exit, 4"),
    ("kill", "signal 9"),
    ("none", "ToolResult"),
    ("set", "cannot be written as JSON"),
])
def test_python_failures_say_what_and_where(m, how, words):
    text = m.fail("python_kit", {"how": how})
    assert words.lower() in text.lower() or (how == "none" and "nothing" in text.lower()), text
    assert m.say("python_kit", {"how": "string", "text": "goes on"}) == "goes on"


def test_python_updates_are_progress(m):
    path = run_at(m, "python_kit", {"how": "updates"})
    assert [json.loads(line)["content"][0]["text"] for line in (path / "progress").read_text().splitlines()] == ["a dict", "a string"]
    assert "no JSON" in (path / "log").read_text()


def test_python_signal_is_told_of_a_cancel(m, marks):
    path = m / "python_kit/calls/to-cancel"
    path.mkdir()
    with Background('printf %s "$D" > "$C"', env={"C": path / "call", "D": json.dumps({"how": "signal", "text": str(marks)})}) as writer:
        until(lambda: "started" in marks.read_text(), what="the call")
        (path / "cancel").write_text("x")
        writer.end(3)
    until(lambda: marks.read_text() == "started\nTrue True True ['called']\n", what="the signal")
    assert "state: cancelled" in (path / "status").read_text()


def test_python_sees_its_parameters_id_helpers_and_files(m):
    seen = json.loads(m.say("python_kit", {"how": "seen", "number": 1.5, "more": [1, {"a": None}]}))
    assert seen["params"] == {"how": "seen", "number": 1.5, "more": [1, {"a": None}]}
    assert seen["id"] and seen["helper"] == "hello from a module, Ada"
    assert seen["file"].endswith("/python_kit/index.py")
    assert "PYTHONPATH" not in seen["env"] and not [name for name in seen["env"] if name.startswith("PARAM_")]


def test_python_host_is_warm_and_what_it_prints_is_in_the_log(m):
    pids = {json.loads(m.say("python_kit", {"how": "seen"}))["pid"] for _ in range(3)}
    assert len(pids) == 1
    path = run_at(m, "python_kit", {"how": "print"})
    assert (path / "result.txt").read_text() == "read ''\n"
    assert set((path / "log").read_text().splitlines()) == {"on standard output", "on standard error"}


def test_python_is_loaded_again_when_a_file_changes(work, new_mount, m):
    tool = work / "tools" / "python_kit"
    shutil.copytree(m / "python_kit", tool, ignore=lambda *_: ["calls", "call", "run", "schema.json", "prompt.md", "log", "result.txt", "result.json"])
    mount = new_mount(tools=(work / "tools",))
    assert "hello from a module" in mount.say("python_kit", {"how": "seen"})
    (tool / "helper.py").chmod(0o644)
    (tool / "helper.py").write_text('def greeting(name):\n    return "another"\n')
    until(lambda: '"another"' in mount.say("python_kit", {"how": "seen"}), what="the new module")


# ------------------------------------------------------------------------------------------ bash

def test_bash_gets_each_parameter_and_prints_the_text(m):
    odd = "it's \"quoted\" $HOME `x` \\ \u00e9\n second line  "
    assert m.say("bash_kit", {"how": "text", "text": odd}) == odd
    assert m.say("bash_kit", {"how": "types", "number": "5", "flag": True}) == "5|true|unset"
    assert m.say("bash_kit", {"how": "types", "number": 1.5, "flag": False, "text": None}) == "1.5|false|unset"


def test_bash_gets_json_on_standard_input(m):
    request = {"how": "stdin", "text": "h\u00e9 \"x\"\n", "number": 3, "more": {"deep": [1, None]}}
    assert json.loads(m.say("bash_kit", request)) == request


def test_bash_gets_large_parameters(m):
    text = "y" * 300_000
    assert m.say("bash_kit", {"how": "text", "text": text}) == text


@pytest.mark.parametrize("how, text", [
    ("fail", "half an answer\nand an error\n(exit status 7)"),
    ("silent", "The tool failed without a word (exit status 3)."),
    ("kill", "The tool failed without a word (ended by SIGKILL)."),
])
def test_bash_exit_status_other_than_0_is_an_error(m, how, text):
    assert m.fail("bash_kit", {"how": how}) == text
    with pytest.raises(OSError) as failure:
        m.write("bash_kit", {"how": how})
    assert failure.value.errno == errno.EIO


def test_bash_descriptor_3_is_progress_and_standard_error_the_log(m):
    path = run_at(m, "bash_kit", {"how": "updates"})
    lines = [json.loads(line) for line in (path / "progress").read_text().splitlines()]
    assert [line["content"][0]["text"] for line in lines] == ["one", 'two with "quotes"', "three without an end"]
    path = run_at(m, "bash_kit", {"how": "log"})
    assert (path / "log").read_text() == "to the log\n" and (path / "result.txt").read_text() == "answer\n"


def test_bash_script_is_told_of_a_cancel_by_sigterm(m, marks):
    path = m / "bash_kit/calls/to-cancel"
    path.mkdir()
    with Background('printf %s "$D" > "$C"', env={"C": path / "call", "D": json.dumps({"how": "trap", "text": str(marks)})}) as writer:
        until(lambda: "started" in marks.read_text(), what="the call")
        (path / "cancel").write_text("x")
        writer.end(4)
    until(lambda: "ended by TERM" in marks.read_text(), what="the trap")


def test_bash_background_jobs_do_not_hold_the_call_and_end_with_it(m, marks):
    start = time.monotonic()
    assert m.say("bash_kit", {"how": "background", "text": str(marks)}) == "left one behind"
    assert time.monotonic() - start < 5
    until(lambda: not is_alive(int(marks.read_text())), what="the end of the job")


def test_bash_knows_where_it_is(m):
    where, call_id, _ = m.say("bash_kit", {"how": "where"}).split("|")
    assert os.path.isfile(os.path.join(where, "index.sh")) and call_id


def test_r29_bash_gets_a_secret_and_its_children_do_not(m):
    assert m.say("bash_kit", {"how": "secret", "token": "s3cr3t-t0k3n"}) == "12|0"


# ----------------------------------------------------------------------------------- which is taken

def make(directory, name, language, **files):
    tool = directory / name
    tool.mkdir(parents=True)
    (tool / "TOOL.md").write_text(f"---\nname: {name}\ndescription: Says which it is.\n"
                                  + (f"language: {language}\n" if language else "") + "---\n")
    for file, text in files.items():
        (tool / file.replace("_", ".")).write_text(text)


def test_a9_entry_that_does_not_match_its_language(work, new_mount):
    js = "export async function execute() { return { content: [{ type: 'text', text: 'js' }] }; }\n"
    py, sh = "def execute():\n    return 'py'\n", "echo sh\n"
    tools = work / "tools"
    make(tools, "js_and_py", "python", index_js=js, index_py=py)
    make(tools, "sh_as_bash", "bash", index_sh=sh, index_py=py)
    make(tools, "py_unsaid", None, index_py=py)
    make(tools, "py_as_bash", "bash", index_py=py)
    make(tools, "js_as_bash", "bash", index_js=js)
    mount = new_mount(tools=(tools,))
    assert mount.say("js_and_py") == "js", "index.js wins whatever the language"
    assert mount.say("sh_as_bash") == "sh"
    assert mount.say("js_as_bash") == "js"
    listed = os.listdir(mount.path)
    assert "py_unsaid" not in listed and "py_as_bash" not in listed
    errors = mount.text(".pegfs/errors")
    assert "py_unsaid" in errors and "py_as_bash" in errors
