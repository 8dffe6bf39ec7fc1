"""`run`: a tool as a program. core/tools/arguments.h has the protocol and what the words mean."""

import json
import os
import pathlib
import pty
import select
import shutil
import signal
import subprocess
import time

import pytest

from lib.counter import Counter
from lib.programs import (OTHER_USER, Background, check, environment, need, run, until)

SHELLS = ["dash", "bash", "busybox sh", "zsh", "mksh", "ksh"]
SHOWN_SIZE, SHOWN_LINES = 50 * 1024, 2000
CANARY = "c4nary-S3CR3T"


@pytest.fixture(params=SHELLS, ids=lambda shell: shell.split()[0])
def shell(request):
    need(request.param.split()[0])
    return request.param.split()


@pytest.fixture
def marks(work):
    file = work / "marks"
    file.touch()
    file.chmod(0o666)
    return file


def program(m, tool):
    return m / tool / "run"


def call(m, tool, *words, stdin=b"", **how):
    """Runs a tool's `run` with words and what is on its standard input."""
    return run([program(m, tool), *words], stdin=stdin, **how)


def echoed(m, *words, **how):
    """What arrived at the tool `echo`."""
    done = call(m, "echo", *words, **how)
    assert done.status == 0, done.err
    return json.loads(done.out)


# ------------------------------------------------------------------------------------ the file

def test_run_is_an_executable_that_looks_like_one(m):
    status = os.stat(program(m, "hello"))
    text = program(m, "hello").read_bytes()
    assert status.st_mode & 0o777 == 0o555
    assert status.st_size == len(text)
    assert text.startswith(b"#!/bin/sh\n")
    assert text == program(m, "echo").read_bytes()


def test_script_is_clean_for_shellcheck(m):
    need("shellcheck")
    check(["shellcheck", program(m, "hello")])


def test_looking_at_it_runs_nothing(m, work):
    counter = Counter(work)
    check('cat "$R" >/dev/null; file "$R" >/dev/null; ls -l "$R"; cp "$R" "$W/copy"',
          env={"R": program(m, "count"), "W": work})
    assert counter.count() == 0


# ----------------------------------------------------------------------------- in every shell

def test_words_in_every_shell(m, shell):
    done = run([*shell, program(m, "hello"), "--name", "Ada"])
    assert (done.status, done.out, done.err) == (0, "Hello, Ada!\n", "")


AWKWARD = ["", " ", "it's", '"', "\\", "\\n", "$HOME `id` $(id)", "a\nb\n", "*", "-n", "--", "é😀", "%s",
           "{\"a\":1}", "\t", "\x01\x7f", "--- a\n+++ b"]


@pytest.mark.parametrize("value", AWKWARD)
def test_value_arrives_byte_for_byte_in_every_shell(m, shell, value):
    for words in (["--text=" + value], ["--text", value]):
        if words == ["--text", "--"]:
            continue  # that is the end of the options
        done = run([*shell, program(m, "echo"), *words])
        assert done.status == 0, done.err
        assert json.loads(done.out) == {"text": value}


def test_json_word_in_every_shell(m, shell):
    done = run([*shell, program(m, "hello"), '{"name":"it\'s \\"Ada\\" \\\\ \\u00e9"}'])
    assert (done.status, done.out) == (0, 'Hello, it\'s "Ada" \\ é!\n')


def test_standard_input_in_every_shell(m, shell):
    done = run([*shell, program(m, "hello")], stdin=b'{\n "name": "Ada"\n}\n')
    assert (done.status, done.out, done.err) == (0, "Hello, Ada!\n", "")


def test_large_standard_input_in_every_shell(m, shell):
    text = "0123456789abcdef" * 65536 * 2
    done = run([*shell, program(m, "echo"), "--full"], stdin=json.dumps({"text": text}).encode())
    assert done.status == 0, done.err
    assert json.loads(done.out)["text"] == text


def test_tool_that_fails_in_every_shell(m, shell):
    done = run([*shell, program(m, "fail"), "--text", "no such user"])
    assert (done.status, done.out, done.err) == (1, "", "no such user\n")


def test_bad_request_in_every_shell(m, shell):
    done = run([*shell, program(m, "hello"), "--name"])
    assert (done.status, done.out) == (2, "")
    assert "--name needs a value" in done.err and "usage: " in done.err


def test_note_and_text_part_in_every_shell(m, shell):
    done = run([*shell, program(m, "hello"), "--name", "Ada", "--nmae=Bob", "--loud"])
    assert (done.status, done.out) == (0, "Hello, Ada!\n")
    assert done.err.splitlines() == [
        'unknown parameter "nmae" is passed on as it is; did you mean "name"?',
        'unknown parameter "loud" is passed on as it is']


def test_help_in_every_shell(m, shell):
    done = run([*shell, program(m, "my_db"), "--help"])
    assert done.status == 0 and done.err == ""
    assert done.out.startswith(f"usage: {program(m, 'my_db')} --action query|stats")


def test_closed_standard_input_in_every_shell(m, shell):
    done = run(["sh", "-c", '"$@" <&-', "sh", *shell, program(m, "bare")])
    assert (done.status, done.out) == (0, "bare {}\n")


def test_with_no_program_but_busybox(m, work):
    """Alpine: its cat uses sendfile (H7), also for an answer without a call."""
    need("busybox")
    programs = work / "bin"
    programs.mkdir()
    for name in ("sh", "cat"):
        (programs / name).symlink_to(shutil.which("busybox"))
    for words, status, out in ((["--name", "Ada"], 0, "Hello, Ada!\n"), (["--help"], 0, "usage: "),
                               (["x", "y"], 2, ""), (["x" * 9000, "y"], 2, ""), ([], 2, ""),
                               (["--name", "x" * 9000], 0, "Hello, xxx"),
                               (["x" * 9000, "--help"], 0, "usage: ")):
        done = run(["sh", program(m, "hello"), *words], env={"PATH": programs})
        assert done.status == status and done.out.startswith(out), (words, done)
        assert bool(done.err.strip()) == (status == 2), (words, done)


# --------------------------------------------------------------------- how it finds its tool

@pytest.mark.parametrize("command", [
    'cd "$T" && ./run --name Ada',
    'cd "$T" && sh run --name Ada',
    'cd "$T/.." && hello/run --name Ada',
    'PATH=$T:$PATH; run --name Ada',
    'ln -s "$T/run" "$W/greet" && "$W/greet" --name Ada',
    'ln -s "$T/run" "$W/greet" && cd "$W" && ./greet --name Ada',
    'ln -s "$T/run" "$W/greet" && PATH=$W:$PATH && greet --name Ada',
    'ln -s "$T" "$W/tool" && "$W/tool/run" --name Ada',
    'CDPATH=/ ; cd "$T" && ./run --name Ada',
    'IFS=0123456789; export IFS; "$T/run" --name Ada',
])
def test_it_is_found_however_it_is_called(m, work, command):
    env = {"T": m / "hello", "W": work, "PATH": os.environ["PATH"]}
    assert check(command, shell="dash", env=env) == "Hello, Ada!\n"


def test_copy_of_it_says_that_there_is_no_call(m, work):
    shutil.copy(program(m, "hello"), work / "run")
    done = run([work / "run", "--name", "Ada"])
    assert done.status == 2 and "there is no " in done.err
    assert not (work / "call").exists()


# ------------------------------------------------------------------------------------- words

@pytest.mark.parametrize("words, arrives", [
    (["--n", "5"], {"n": 5, "d": 7}),
    (["--n=-5.5"], {"n": -5.5, "d": 7}),
    (["--n", "-5"], {"n": -5, "d": 7}),
    (["--b"], {"b": True, "d": 7}),
    (["--no-b"], {"b": False, "d": 7}),
    (["--b=false", "--s=007"], {"b": False, "s": "007", "d": 7}),
    (["--b", "false"], {"b": False, "d": 7}),
    (["--s", "true", "--e", "high"], {"s": "true", "e": "high", "d": 7}),
    (["--d", "8"], {"d": 8}),
    (["--other", "x"], {"other": "x", "d": 7}),
    (["{\"n\":\"5\"}"], {"n": 5, "d": 7}),
])
def test_r21_to_r31_words_become_values_of_the_inputs_types(m, words, arrives):
    done = call(m, "typed", *words)
    assert done.status == 0, done.err
    assert json.loads(done.out) == arrives


@pytest.mark.parametrize("words, told", [
    (["--n", "five"], ["n", "expected a number", '"five"']),
    (["--e", "hihg"], ["e", '"low", "high"', 'did you mean "high"']),
    (["--b=maybe"], ["b", "true or false"]),
    (["--n"], ["--n needs a value"]),
    (["--n", "1", "--n", "2"], ["given twice"]),
    (["word"], ["belongs to no option"]),
    (["-n", "5"], ["begins with one dash"]),
    (["{\"n\": }"], ["no valid JSON", "line 1"]),
    (["{}", "--b"], ["must be the only one"]),
    (["--s", b"\xff"], ["UTF-8"]),
])
def test_bad_words_are_refused_and_told_with_the_usage(m, words, told):
    done = subprocess.run([os.fsencode(program(m, "typed")),
                           *(os.fsencode(word) for word in words)],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
    err = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b"")
    for text in [*told, f"usage: {program(m, 'typed')}", "--help` says more"]:
        assert text in err, err


def test_bad_words_run_nothing(m, work):
    counter = Counter(work)
    assert call(m, "count", "--file", counter.file, "--ms", "soon").status == 2
    assert call(m, "count", "--file", counter.file, "--file", counter.file).status == 2
    assert call(m, "count", "--file", counter.file, "--help").status == 0
    assert counter.count() == 0


def test_word_without_a_name_is_the_only_input_that_is_needed(m):
    assert call(m, "hello", "Ada Lovelace").out == "Hello, Ada Lovelace!\n"
    assert call(m, "hello", "--", "--name").out == "Hello, --name!\n"


def test_missing_input_is_named(m):
    done = call(m, "my_db")
    assert done.status == 2
    assert "action: missing" in done.err and "usage: " in done.err


def test_long_value_and_many_words_arrive(m):
    text = "x" * 130_000
    assert echoed(m, "--full", "--text", text) == {"text": text}
    names = [f"--k{number}={number}" for number in range(2000)]
    done = call(m, "echo", "--json", *names)
    assert len(json.loads(json.loads(done.out)["content"][0]["text"])) == 2000
    assert done.err.count("\n") < 40


def test_too_many_words_are_refused_with_what_to_do(m):
    done = call(m, "echo", *(["x"] * 5000))
    assert done.status == 2 and "more than 4096 words" in done.err


def test_input_of_the_tool_wins_over_ours(new_mount, work):
    tool = work / "tools" / "own"
    tool.mkdir(parents=True)
    (tool / "TOOL.md").write_text("---\nname: own\ndescription: Own names.\ninputs:\n" + "".join(
        f"  {name}:\n    type: {kind}\n    optional: true\n    description: x\n"
        for name, kind in (("full", "boolean"), ("json", "string"), ("help", "string"))) + "---\n")
    (tool / "index.js").write_text("export const execute = async (id, params) => ({ content: ["
                                   "{ type: 'text', text: JSON.stringify(params) + "
                                   "'x'.repeat(60000) }] });\n")
    mount = new_mount(tools=(work / "tools",))
    done = call(mount, "own", "--full", "--json", "a", "--help=b")
    assert done.status == 0
    assert done.out.startswith('{"full":true,"json":"a","help":"b"}xxx')
    assert "--full" not in done.out and len(done.out) <= SHOWN_SIZE
    assert call(mount, "own", "--help").out.startswith("usage: ")


# --------------------------------------------------------------------------- standard input

def test_nothing_on_standard_input_is_no_request(m):
    for stdin in (b"", b"\n \t"):
        assert call(m, "bare", stdin=stdin).out == "bare {}\n"


def test_standard_input_may_be_named(m):
    assert call(m, "hello", "-", stdin=b'{"name":"Ada"}').out == "Hello, Ada!\n"
    assert json.loads(call(m, "hello", "--json", "-", stdin=b'{"name":"Ada"}').out)["content"]


def test_standard_input_is_left_alone_where_inputs_are_given(m):
    done = run('{ "$R" --name Ada; cat; } < "$F"', env={"R": program(m, "hello"), "F": "/proc/version"})
    assert done.out.startswith("Hello, Ada!\nLinux")


def test_terminal_is_not_read(m):
    master, terminal = pty.openpty()
    try:
        done = subprocess.run([program(m, "bare")], stdin=terminal, capture_output=True, timeout=20,
                              check=False)
    finally:
        os.close(master)
        os.close(terminal)
    assert done.stdout == b"bare {}\n"


@pytest.mark.parametrize("stdin, told", [
    (b"hello", "no valid JSON"), (b"[1]", "an array"), (b'{"name":"a"} {}', "no valid JSON"),
    (b'{"name":"a\0b"}', "NUL byte"), (b'{"name":"a"}\0', "NUL byte"), (bytes(1000), "NUL byte"),
    (b'{"name":"\xff"}', "UTF-8"),
], ids=range(7))
def test_bad_standard_input_is_refused(m, stdin, told):
    done = call(m, "hello", stdin=stdin)
    assert (done.status, done.out) == (2, "")
    assert told in done.err, done.err


def test_directory_as_standard_input_is_refused(m):
    done = run('"$R" < /', env={"R": program(m, "hello")})
    assert done.status == 2 and "standard input could not be read" in done.err


def test_endless_standard_input_is_refused(m):
    done = run('yes \'{"name":\' | "$R"', env={"R": program(m, "hello")}, timeout=60)
    assert done.status == 2 and "larger than the limit" in done.err
    assert run('"$R" < /dev/zero', env={"R": program(m, "hello")}).status == 2


def test_slow_standard_input_is_waited_for(m):
    done = run('{ printf \'{"name"\'; sleep 0.3; printf \':"Ada"}\'; sleep 0.2; } | "$R"',
               env={"R": program(m, "hello")})
    assert done.out == "Hello, Ada!\n"


# ------------------------------------------------------------------------------- the answer

def test_text_of_several_blocks_and_of_none(m):
    assert call(m, "shapes", "several").out == "first\nsecond\nthird\n"
    assert call(m, "shapes", "unicode").out == 'é😀\n"quoted"\\ \x01\n'
    assert call(m, "shapes", "empty").status == 0


def test_long_text_is_cut_and_says_where_the_rest_is(m, work):
    done = call(m, "shapes", "big")
    assert done.status == 0
    assert SHOWN_SIZE - 2048 < len(done.out) <= SHOWN_SIZE
    text, notice = done.out.rstrip("\n").rsplit("\n", 1)
    assert set(text) == {"x"}
    assert f"the first {len(text)} of 3000001 bytes" in notice and "--full" in notice
    whole = pathlib.Path(notice.split(" is in ")[1].split(";")[0])
    assert whole.read_text() == "x" * 3_000_000 + "\n"
    assert whole.is_relative_to(m / "shapes" / "calls")


def test_many_lines_are_cut_between_two(m):
    lines = "".join(f"{number}\n" for number in range(5000))
    done = call(m, "fail", stdin=json.dumps({"text": lines}).encode())
    assert done.status == 1
    shown = done.err.splitlines()
    assert SHOWN_LINES - 5 < len(shown) <= SHOWN_LINES
    assert shown[:-1] == [str(number) for number in range(len(shown) - 1)]


def test_full_and_json_are_whole(m):
    assert call(m, "shapes", "big", "--full").out == "x" * 3_000_000 + "\n"
    result = json.loads(call(m, "shapes", "--json", "big").out)
    assert result == {"content": [{"type": "text", "text": "x" * 3_000_000}]}


def test_json_of_a_failure_is_on_standard_output(m):
    done = call(m, "fail", "--json", "--text", "oops")
    assert (done.status, done.err) == (1, "")
    assert json.loads(done.out) == {"content": [{"type": "text", "text": "oops"}], "isError": True}


@pytest.mark.parametrize("tool, words", [
    ("throws", ["--how", "error"]), ("exits", ["--how", "exit"]), ("exits", ["--how", "kill"]),
    ("limited", []), ("syntax_error", []), ("no_export", []),
])
def test_every_failure_of_a_tool_is_exit_status_1_with_a_message(m, tool, words):
    done = call(m, tool, *words)
    assert (done.status, done.out) == (1, "")
    assert done.err.strip()


def test_result_txt_has_the_whole_for_the_shell_that_called(m):
    out = check('"$T/run" --name Ada >/dev/null; cat "$T/result.txt"', env={"T": m / "hello"})
    assert out == "Hello, Ada!\n"
    out = run('"$T/run" --name 2>/dev/null; cat "$T/result.txt"', env={"T": m / "hello"}).out
    assert "--name needs a value" in out


def test_tools_run_at_once_and_each_gets_its_own_answer(m):
    started = [Background([program(m, "echo"), "--text", str(number)]) for number in range(40)]
    for number, one in enumerate(started):
        assert json.loads(one.end().out) == {"text": str(number)}


def test_closed_pipe_behind_it_is_no_trouble(m):
    done = run('set -o pipefail; "$R" big --full | head -c 5; echo " ${PIPESTATUS[*]}"',
               env={"R": program(m, "shapes")})
    assert done.out.split() == ["xxxxx", "141", "0"] and done.err == ""


def test_full_disk_behind_it_is_told(m):
    done = run('"$R" --name Ada > /dev/full', env={"R": program(m, "hello")})
    assert done.status == 1 and "space" in done.err


# ----------------------------------------------------------------------------------- secrets

def test_r29_secret_reaches_the_tool_and_nothing_else(m):
    done = call(m, "sample", "--param_name", "x", "--mode", "single", "--secret-param", CANARY)
    assert done.out == f"a secret of {len(CANARY)} characters\n"
    for words in (["--secret_param=" + CANARY], ["--secret-parm", CANARY, "--mode=x"],
                  ["--secret_param", CANARY, "--secret_param", CANARY], [CANARY, CANARY],
                  ["-" + CANARY], ["--mode", "single", "--param-name=x", CANARY]):
        done = call(m, "sample", *words)
        assert done.status == 2 and CANARY not in done.out + done.err, words
    for path in sorted((m / "sample").rglob("*")):
        if path.is_file() and path.name != "cancel":
            assert CANARY not in path.read_text(errors="replace"), path
    assert CANARY not in m.log()


# ----------------------------------------------------------------------------------- signals

def start_waiting(m, marks, argv):
    writer = Background([*argv, program(m, "patient"), "--file", marks])
    until(lambda: "started" in marks.read_text(), what="the call")
    time.sleep(0.1)
    return writer


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL],
                         ids=lambda number: number.name)
def test_t7_signal_ends_it_and_cancels_the_call(m, marks, shell, number):
    with start_waiting(m, marks, shell) as waiting:
        waiting.signal(number)
        sent = time.monotonic()
        done = waiting.end(5)
        assert done.status in (-number, 128 + number) or (shell[0] == "zsh" and done.status == 1)
        assert time.monotonic() - sent < 2
    until(lambda: "aborted" in marks.read_text(), what="the abort")


def test_t7_ctrl_c_at_a_terminal_cancels_the_call(m, marks):
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(environment({"PS1": "", "ENV": "", "HISTFILE": ""}))
        os.execvp("bash", ["bash", "--norc", "-i"])
    try:
        os.write(terminal, f"{program(m, 'patient')} --file {marks}\n".encode())
        until(lambda: "started" in marks.read_text(), what="the call")
        time.sleep(0.2)
        os.write(terminal, b"\x03")
        os.write(terminal, b"echo back-$((40+2))\n")
        seen = b""
        while b"back-42" not in seen:
            assert select.select([terminal], [], [], 5)[0], seen
            seen += os.read(terminal, 4096)
        until(lambda: "aborted" in marks.read_text(), what="the abort")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def test_child_that_ends_meanwhile_disturbs_nothing(m):
    done = run('sleep 0.1 & exec bash "$R" --ms 500', env={"R": program(m, "slow")})
    assert (done.status, done.out) == (0, "slept 500\n")


# ------------------------------------------------------------------------------------ others

@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_other_user_runs_it_as_himself(m):
    done = call(m, "whoami", uid=OTHER_USER)
    assert done.status == 0, done.err
    assert str(OTHER_USER) in done.out


def test_end_of_the_daemon_while_it_waits_is_told(new_mount, marks):
    mount = new_mount()
    with Background('"$R" --file "$F"; echo "status $?"',
                    env={"R": program(mount, "patient"), "F": marks}) as waiting:
        until(lambda: "started" in marks.read_text(), what="the call")
        mount.kill()
        done = waiting.end(10)
    assert done.out == "status 1\n" and "no answer came" in done.err, done


def test_python_and_node_start_it_as_any_program(m):
    script = ("import subprocess,sys; print(subprocess.run([sys.argv[1], '--name', 'Ada'], "
              "capture_output=True, text=True, check=True).stdout)")
    assert check(["/usr/bin/python3", "-c", script, program(m, "hello")]) == "Hello, Ada!\n\n"
    need("node")
    script = ("const { execFileSync } = require('child_process');"
              "process.stdout.write(execFileSync(process.argv[1], ['--name', 'Ada']))")
    assert check(["node", "-e", script, program(m, "hello")]) == "Hello, Ada!\n"
