"""pegfs list, show, schema, prompt, errors, status: on a mount and on directories, with one result."""

import json
import os
import pty
import subprocess

import pytest

from lib import cli
from lib.mount import BROKEN, EXAMPLES, FIXTURES, PEGFS
from lib.programs import run

DIRS = f"{EXAMPLES}:{FIXTURES}"


def pegfs(*args, env=None, **how):
    return run([PEGFS, *args], env={"PEGFS_MOUNT": None, "PI_TOOLS_DIRS": None, **(env or {})}, **how)


def on_terminal(*args, env=None):
    """What a command prints on a terminal of its own."""
    master, slave = pty.openpty()
    process = subprocess.Popen([PEGFS, *map(str, args)], stdin=slave, stdout=slave, stderr=slave,
                               env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **(env or {})})
    os.close(slave)
    out = b""
    try:
        while piece := os.read(master, 1 << 16):
            out += piece
    except OSError:  # EIO: the last one has closed it
        pass
    os.close(master)
    process.wait()
    return out.decode()


# ---- where the tools are

@pytest.mark.parametrize("args", [
    ("list",), ("list", "--long"), ("list", "--names"), ("list", "--json"), ("schema", "typed"),
    ("errors",), ("show", "typed"), ("show", "lenient"),
])
def test_a_mount_and_its_directories_show_the_same(m, args):
    there, here = pegfs(*args, "--mount", m.path), pegfs(*args, "--tools", DIRS)
    assert there.status == here.status == 0, there.err + here.err
    assert there.out.replace(f"--mount {m.path}", "X") == here.out.replace(f"--tools {DIRS}", "X") != ""


def test_the_mount_is_found_by_its_variable(m):
    done = pegfs("list", "-n", env={"PEGFS_MOUNT": m.path, "PI_TOOLS_DIRS": EXAMPLES})
    assert "typed" in done.out.split()


def test_directories_are_found_by_their_variable_where_nothing_is_mounted():
    assert pegfs("list", "-n", env={"PI_TOOLS_DIRS": EXAMPLES}).out.split() == ["hello", "my_db"]


@pytest.mark.parametrize("args, env, status, told", [
    ((), {}, 2, "--tools or PI_TOOLS_DIRS"),
    (("--mount", "/nowhere"), {}, 1, "no tree is mounted at '/nowhere'; mount one with 'pegfs mount /nowhere"),
    ((), {"PEGFS_MOUNT": "/nowhere", "PI_TOOLS_DIRS": str(EXAMPLES)}, 1, "'/nowhere' (PEGFS_MOUNT)"),
    (("--mount", "/", "--tools", "/"), {}, 2, "not both"),
    (("--tools", ""), {}, 2, "--tools is empty"),
])
def test_what_cannot_be_looked_at_is_told_with_what_to_do(args, env, status, told):
    for command in (["list"], ["show", "x"], ["schema", "x"], ["prompt"], ["errors"], ["status"],
                    ["call", "x"]):
        done = pegfs(*command, *args, env=env)
        assert (done.status, done.out) == (status, "") and told in done.err, (command, done)


def test_a_tree_whose_server_was_killed_is_told(work, new_mount):
    mount = new_mount(tools=[EXAMPLES])
    os.kill(mount.pid, 9)
    mount.process.wait()
    done = pegfs("list", "--mount", mount.path)
    assert done.status == 1 and f"umount -l {mount.path}" in done.err
    mount.clear_away(killed=True)


@pytest.mark.parametrize("command", ["show", "schema", "prompt", "call"])
@pytest.mark.parametrize("name", ["hllo", "../hello", "", ".pegfs", "calls", "x" * 300])
def test_a_tool_that_is_not_there_is_told(m, command, name):
    for where in ("--mount", m.path), ("--tools", DIRS):
        done = pegfs(command, *where, "--", name)
        assert done.status == 1 and done.out == "" and f"there is no tool '{name[:50]}" in done.err, done
        assert ("did you mean 'hello'?" in done.err) == (name in ("hllo", "../hello")), done.err


# ---- what they print

def test_list_has_a_line_a_tool_with_its_description():
    head, hello, my_db = pegfs("list", "--tools", EXAMPLES).out.splitlines()
    assert head.split() == ["NAME", "VERSION", "DESCRIPTION"]
    assert hello.split()[:3] == ["hello", "1", "Say"] and my_db.startswith("my_db ")


def test_list_as_json():
    tools = json.loads(pegfs("list", "--json", "--tools", EXAMPLES).out)
    assert [tool["name"] for tool in tools] == ["hello", "my_db"]
    assert tools[0]["version"] == 1 and tools[0]["directory"] == str(EXAMPLES / "hello")
    assert tools[1]["inputSchema"]["required"] == ["action"]


def test_list_of_nothing_is_its_head():
    done = pegfs("list", "--tools", "/nonexistent")
    assert (done.status, done.out.split()) == (0, ["NAME", "VERSION", "DESCRIPTION"])


def test_r24_r28_r31_show_tells_each_input_as_it_is():
    out = pegfs("show", "typed", "--tools", FIXTURES).out
    assert "typed  (version 1, typescript)\n" in out and str(FIXTURES / "typed") in out
    assert "  e  (low | high, optional)\n      One of two.\n" in out
    assert "  d  (number, default 7)\n" in out
    assert out.endswith(f"call it:\n  pegfs call --tools {FIXTURES} typed\n")
    assert pegfs("show", "my_db", "--tools", EXAMPLES).out.endswith("my_db action=query\n")
    assert "[unknown-type]" in pegfs("show", "lenient", "--tools", FIXTURES).out


@pytest.mark.parametrize("api", ["openai", "openai-responses", "anthropic", "gemini", "mcp", "typebox"])
def test_formats_are_those_of_the_tree_and_of_directories_alike(m, api):
    told = pegfs("formats", api, "--mount", m.path).out
    assert told == m.text(f".pegfs/formats/{api}.json")
    assert pegfs("formats", api, "--tools", f"{EXAMPLES}:{FIXTURES}").out == told


def test_a_format_that_there_is_not_is_told():
    done = pegfs("formats", "nobody", "--tools", EXAMPLES)
    assert done.status == 1 and "'nobody' is none of typebox, mcp, openai" in done.err
    done = pegfs("formats", "--tools", EXAMPLES)
    assert done.status == 2 and "an argument is missing" in done.err


def test_prompt_of_one_of_several_and_of_all(m):
    one = pegfs("prompt", "hello", "--mount", m.path).out
    assert one == m.text("hello/prompt.md")
    assert pegfs("prompt", "hello", "my_db", "--mount", m.path).out == one + m.text("my_db/prompt.md")
    assert pegfs("prompt", "--mount", m.path).out == m.text("prompt.md")
    assert "/officer/tools/hello/call" in pegfs("prompt", "hello", "--tools", EXAMPLES).out


def test_errors_are_those_of_the_tree(m):
    assert pegfs("errors", "--mount", m.path).out == m.text(".pegfs/errors")
    assert "error: " in pegfs("errors", "--tools", BROKEN).out


def test_status_of_a_mount(m):
    m.say("hello", {"name": "Ada"})
    status = json.loads(pegfs("status", "--json", "--mount", m.path).out)
    assert status["supervisor_pid"] == m.pid != status["server_pid"] and status["directories"] == m.tools
    assert status["tools"] == len([name for name in os.listdir(m.path) if (m.path / name).is_dir()]) - 1
    assert status["calls_running"] == 0 and status["uptime_seconds"] >= 0
    text = pegfs("status", "--mount", m.path).out
    assert f"mount        {m.path}\n" in text and f"process {status['server_pid']}, version" in text
    assert "see 'pegfs errors'" in text


def test_status_of_directories():
    out = pegfs("status", "--tools", EXAMPLES).out
    assert out == f"mount        none\ndirectories  {EXAMPLES}\ntools        2; 0 faults\n"


# ---- terminals

def test_colour_only_on_a_terminal_and_never_with_no_color():
    for args in ("list", "--tools", EXAMPLES), ("show", "hello", "--tools", EXAMPLES), \
                ("errors", "--tools", BROKEN):
        assert "\033[" in on_terminal(*args)
        assert "\033[" not in on_terminal(*args, env={"NO_COLOR": "1"})
        assert "\033[" not in on_terminal(*args, env={"TERM": "dumb"})
        assert "\033[" not in pegfs(*args).out


def test_colours_change_nothing_else():
    strip = lambda text: text.replace("\r", "").replace("\033[31m", "").replace("\033[33m", "").replace("\033[0m", "")
    assert strip(on_terminal("errors", "--tools", BROKEN)) == pegfs("errors", "--tools", BROKEN).out


# ---- every command

COMMANDS = ["mount", "umount", "reload", "list", "show", "call", "prompt", "schema", "formats", "status", "errors", "mcp", "import",
            "new", "check", "sync", "completion"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_help_and_knows_no_others(command):
    done = pegfs(command, "--help")
    assert done.status == 0 and done.err == ""
    assert done.out.startswith(f"usage: pegfs {command} ") and "--help" in done.out + "--help"
    assert max(map(len, done.out.splitlines())) <= 100
    assert pegfs("help", command).out == done.out
    wrong = pegfs(command, "--no-such-option")
    assert wrong.status == 2 and "there is no option '--no-such-option'" in wrong.err, wrong
    assert f"pegfs {command} --help" in wrong.err


def test_the_list_of_commands_is_complete():
    out = pegfs("--help").out
    listed = [line.split()[0] for line in out.splitlines() if line.startswith("  ")]
    assert listed == [command for command in COMMANDS if command != "completion"]
    assert pegfs("nonsense").status == pegfs().status == pegfs("help", "nonsense").status == 2


def test_version_names_the_libraries():
    out = pegfs("--version").out
    for library in "jansson 2.", "libyaml 0.", "cmark 0.", "libfuse 3.":
        assert library in out
    assert "fuse" not in run([cli.PEGFS, "--version"]).out


@pytest.mark.parametrize("args", [("--help",), ("--version",), ("list", "--tools", EXAMPLES),
                                  ("show", "--help"), ("call", "hello", "name=x", "--tools", EXAMPLES)])
def test_a_full_disk_is_an_error(args):
    with open("/dev/full", "wb") as full:
        process = subprocess.run([PEGFS, *map(str, args)], stdout=full, stderr=subprocess.PIPE, check=False)
    assert process.returncode == 1


def test_a_tool_in_the_place_of_its_directory_is_told(new_mount):
    """The mistake that everybody makes once; the message says what to name instead."""
    told = f"'{EXAMPLES / 'hello'}' is a tool itself", f"name the directory that holds the tool, '{EXAMPLES}'"
    done = pegfs("list", "--tools", EXAMPLES / "hello")
    assert all(words in done.err for words in told), done
    log = new_mount(tools=[EXAMPLES / "hello"]).log()
    assert all(words in log for words in told), log
    assert not pegfs("list", "--tools", EXAMPLES).err
