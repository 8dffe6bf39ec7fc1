"""pegfs new, check and mount: from nothing to a call."""

import os
import subprocess

import pytest

from lib import cli

ENTRIES = {"typescript": "index.ts", "python": "index.py", "bash": "index.sh"}


@pytest.mark.parametrize("language", ENTRIES)
def test_r2_a_new_tool_passes_check(work, language):
    out, err = cli.run("new", "send_mail", "--language", language, cwd=work)
    assert out == "send_mail\n"
    assert f"send_mail/{ENTRIES[language]}" in err and "pegfs check send_mail" in err
    assert sorted(os.listdir(work / "send_mail")) == ["TOOL.md", ENTRIES[language]]
    out, _ = cli.run("check", "send_mail", cwd=work)
    assert out == ""


@pytest.mark.parametrize("language", ENTRIES)
def test_r2_r53_a_new_tool_works_when_it_is_mounted(work, new_mount, language):
    cli.run("new", "fresh", "--language", language, "--dir", work)
    tools = work / "tools"
    tools.mkdir()
    os.rename(work / "fresh", tools / "fresh")
    mount = new_mount(tools=[tools])
    assert mount.say("fresh", {"text": "Hello"}) == "Hello"
    assert mount.say("fresh", {"text": "a 'b' $c", "times": 2}) == "a 'b' $c\na 'b' $c"
    assert "text parameter is required." in mount.fail("fresh", {"text": ""})
    assert "times must be a whole number from 1 to 100." in mount.fail("fresh", {"text": "x", "times": 0})
    assert "times must be" in mount.fail("fresh", {"text": "x", "times": 1.5})
    assert mount.say("fresh", {"text": "x", "times": 100}).count("x") == 100


def test_new_typescript_is_the_default(work):
    out, _ = cli.run("new", "tool", "--dir", f"{work}/")
    assert out == f"{work}/tool\n" and (work / "tool" / "index.ts").is_file()


def test_new_bash_program_can_be_run_and_python_compiles(work):
    cli.run("new", "a", "-l", "bash", "-d", work)
    cli.run("new", "b", "-l", "python", "-d", work)
    assert os.access(work / "a" / "index.sh", os.X_OK)
    subprocess.run(["/usr/bin/python3", "-B", "-c", f"compile(open('{work}/b/index.py').read(), 'b', 'exec')"],
                   check=True)


def test_new_help_and_misuse(work):
    out, err = cli.run("new", "--help")
    assert out.startswith("usage: pegfs new") and err == ""
    for args in ([], ["a", "b"], ["--language", "ruby", "a"], ["--nonsense", "a"], ["MyTool"]):
        out, err = cli.run("new", *args, status=2, cwd=work)
        assert out == "" and "pegfs new --help" in err
    assert os.listdir(work) == []


def test_r13_new_never_replaces_anything(work):
    (work / "tool").mkdir()
    _, err = cli.run("new", "tool", status=1, cwd=work)
    assert "there is already something called 'tool'" in err
    _, err = cli.run("new", "tool", "--dir", work / "nothing", status=1)
    assert "cannot be opened: No such file" in err
    assert os.listdir(work) == ["tool"] and os.listdir(work / "tool") == []
