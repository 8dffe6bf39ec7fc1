"""pegfs completion bash|zsh|fish: what a shell offers is what the program knows."""

import re

import pytest

from lib import mount as mounts
from lib.mount import EXAMPLES, FIXTURES, PEGFS
from lib.programs import check, need, run

COMMANDS = ["mount", "umount", "reload", "list", "show", "call", "prompt", "schema", "formats", "status", "errors", "mcp", "import",
            "new", "check", "sync"]


def script(shell):
    return check([PEGFS, "completion", shell])


def options_of(command):
    return set(re.findall(r"^ .*(--[a-z-]+)", check([PEGFS, command, "--help"]), re.M)) | {"--help"}


# As bash does it: the words are parted at colons, compopt is there while it completes.
OFFER = """
eval "$({pegfs} completion bash)"
compopt() {{ :; }}
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_pegfs
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def offered(*words):
    quoted = " ".join(f"'{word}'" for word in (PEGFS, *words))
    return check(OFFER.format(pegfs=PEGFS, words=quoted)).split()


def test_bash_offers_the_commands_and_each_ones_options():
    assert offered("") == COMMANDS + ["--help", "--version"]
    assert offered("s") == ["show", "schema", "status", "sync"]
    for command in COMMANDS:
        told = check([PEGFS, command, "--help"])
        for option in offered(command, "--"):
            assert f"{option} " in told, (command, option)
        assert "--help" in offered(command, "--")


@pytest.mark.parametrize("words, expected", [
    (("check", "--format", ""), ["text", "json", "sarif", "github"]),
    (("new", "-l", "p"), ["python"]),
    (("call", "--tools", f"{EXAMPLES}", ""), ["hello", "my_db"]),
    (("call", "--tools", f"{EXAMPLES}", ":", f"{FIXTURES}", "hel"), ["hello", "helper"]),
    (("show", "-m", "/nowhere", ""), []),
    (("mount", "--seed", "/us"), ["/usr"]),
    (("list", "--tools", "/x", ":", "/us"), ["/usr"]),
    (("mount", "--timeout", ""), []),
    (("nonsense", ""), []),
])
def test_bash_offers_values(words, expected):
    assert offered(*words) == expected


def test_bash_offers_files():
    assert "/etc/hosts" in offered("mount", "--env-file", "/etc/host")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_is_of_its_shells_language(work, shell):
    need(shell)
    (work / "script").write_text(script(shell))
    check([shell, "-n", work / "script"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_has_every_command_and_option(shell):
    text = script(shell)
    for command in COMMANDS:
        assert command in text
        for option in options_of(command):
            assert option in text or f"-l {option[2:]}" in text, (shell, command, option)


def test_zsh_completes(m):
    need("zsh")
    # zsh completes on a terminal only: zpty is one.
    out = check(["zsh", "-f", "-c", f"""
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1=; autoload -Uz compinit; compinit -u -D; path=({mounts.ROOT}/build $path)'
zpty -w z 'eval "$(pegfs completion zsh)"; echo rea""dy'
zpty -r -m z line '*ready*'
zpty -w -n z $'pegfs show --mount {m.path} my_\\t'
zpty -r -m z line '*my_db*' && print -r -- "$line"
zpty -d z
"""], timeout=60)
    assert "my_db" in out


def test_another_shell_is_refused():
    for args in ([], ["tcsh"], ["bash", "zsh"]):
        done = run([PEGFS, "completion", *args])
        assert (done.status, done.out) == (2, "") and "bash, zsh or fish" in done.err
