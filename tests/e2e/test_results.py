"""Whose result `result.*` shows, and that parallel callers never get another's: T1, T8, T21."""

import concurrent.futures
import json
import os
import re

import pytest

from lib.programs import (OTHER_USER, THIRD_USER, Background, check, need, process_state, run,
                          until)

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be other users")


def texts(out):
    return [json.loads(line)["text"] for line in out.splitlines()]


# ------------------------------------------------------------------- nearest in the process tree

def test_t1_eight_shells_a_hundred_calls_each_none_wrong(m):
    """echo > call && cat result.txt, in eight shells at once: 0 of 800 wrong."""
    loop = '''
        n=0
        while [ $n -lt 100 ]; do
            n=$((n + 1))
            echo "{\\"text\\":\\"$ID-$n\\"}" > "$M/echo/call" && cat "$M/echo/result.txt" && echo
        done'''
    shells = ["bash", "dash", "busybox sh", "mksh", "bash", "dash", "busybox sh", "bash"]
    need("busybox", "mksh")
    started = [Background(loop, shell=shell, env={"M": m.path, "ID": number})
               for number, shell in enumerate(shells)]
    wrong = 0
    try:
        for number, shell in enumerate(started):
            done = shell.end(85)
            assert done.status == 0, done.err
            answers = texts("\n".join(line for line in done.out.splitlines() if line))
            wrong += sum(answer != f"{number}-{n}" for n, answer in enumerate(answers, 1))
            assert len(answers) == 100
    finally:
        for shell in started:
            shell.__exit__()
    assert wrong == 0


def test_each_subshell_sees_its_own_result(m):
    out = check('''
        for n in 1 2 3 4 5 6; do
            ( echo "{\\"text\\":\\"$n\\"}" > "$M/echo/call"; sleep 0.1; echo "$n $(cat "$M/echo/result.txt")" ) &
        done
        wait''', env={"M": m.path})
    for line in out.splitlines():
        number, answer = line.split(" ", 1)
        assert json.loads(answer)["text"] == number


def test_later_command_sees_the_newest_result_of_the_user(m):
    check('echo \'{"text":"first"}\' > "$M/echo/call"', env={"M": m.path})
    check('echo \'{"text":"second"}\' > "$M/echo/call"', env={"M": m.path})
    assert texts(check(["cat", m / "echo/result.txt"])) == ["second"]


def test_nearer_call_wins_over_a_newer_one(m):
    """The shell's own call, although a child process that has gone made a newer one elsewhere."""
    out = check('''
        echo '{"text":"mine"}' > "$M/echo/call"
        setsid -f sh -c 'sleep 0.2; echo "{\\"text\\":\\"foreign\\"}" > "$M/echo/call"; echo done > "$W"'
        while ! [ -s "$W" ]; do sleep 0.02; done
        cat "$M/echo/result.txt"''', env={"M": m.path, "W": m.work / "signal"})
    (m.work / "signal").unlink()
    assert texts(out) == ["mine"]


def test_log_belongs_to_the_same_call(m):
    outs = [check(f'echo \'{{"name":"{name}"}}\' > "$M/prints/call"; sleep 0.05; cat "$M/prints/log"',
                  env={"M": m.path}) for name in ("first", "second")]
    assert "to stderr: first" in outs[0] and "second" not in outs[0]
    assert "to stderr: second" in outs[1] and "first" not in outs[1]


def test_results_of_two_tools_do_not_mix(m):
    m.write("hello", {"name": "Ada"})
    m.write("echo", {"text": "x"})
    assert m.text("hello/result.txt").strip() == "Hello, Ada!"


def test_result_after_a_failure_is_the_failures(m):
    m.write("echo", {"text": "good"})
    with pytest.raises(OSError):
        m.write("echo", "bad")
    assert "good" not in m.text("echo/result.txt")
    assert m.json("echo/result.json")["isError"] is True


# ------------------------------------------------------------------------------------- parallel

def test_t1_fifty_parallel_callers_each_get_their_own_answer(m):
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        def ask(number):
            return json.loads(m.say("echo", {"text": f"caller {number}"}))["text"]
        assert list(pool.map(ask, range(50))) == [f"caller {number}" for number in range(50)]


def test_fifty_parallel_processes_with_the_read_write_form(m):
    started = [Background('exec 3<>"$C"; echo "{\\"text\\":\\"$N\\"}" >&3; cat <&3',
                          env={"C": m / "echo/call", "N": number}) for number in range(50)]
    try:
        for number, shell in enumerate(started):
            done = shell.end(60)
            assert done.status == 0, done.err
            assert json.loads(json.loads(done.out)["content"][0]["text"]) == {"text": str(number)}
    finally:
        for shell in started:
            shell.__exit__()


def test_parallel_write_only_callers_in_threads_of_one_process(m):
    """Threads share a process: each sees its own thread's result, the newest of the process else."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        lengths = list(pool.map(lambda number: m.write("echo", {"text": str(number)}), range(40)))
    assert lengths == [len(json.dumps({"text": str(number)})) for number in range(40)]


def test_t8_slow_call_holds_nothing_else_up(m):
    with Background('echo \'{"ms":30000}\' > "$C"', env={"C": m / "slow/call"}) as slow:
        until(lambda: process_state(slow.pid) == "S", what="the slow call")
        os.listdir(m.path)
        m.text("slow/schema.json")
        m.say("hello", {"name": "Ada"})
        m.say("slow", {"ms": 1})
        assert slow.is_running(), "all of it while the slow call ran"


def test_many_calls_leak_no_descriptor(m):
    m.say("echo", {"text": "warm"})
    before = m.fd_count()
    for number in range(150):
        m.write("echo", {"text": str(number)})
        m.ask("echo", {"text": str(number)})
    until(lambda: m.fd_count() <= before + 2, what="the old number of descriptors")


def test_memory_does_not_grow_with_calls(m):
    def resident_kib():
        with open(f"/proc/{m.server_pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))

    if os.environ.get("PEGFS_VARIANT"):
        pytest.skip("a sanitizer keeps freed memory")
    for number in range(100):
        m.ask("shapes", {"shape": "several"})
    before = resident_kib()
    for number in range(600):
        m.ask("shapes", {"shape": "several"})
    assert resident_kib() - before < 8 * 1024


# ----------------------------------------------------------------------------------------- users

@as_root
def test_t21_each_user_sees_only_their_own_results(m):
    secret = "only for the first user"
    command = f'echo \'{{"text":"{secret}"}}\' > "$M/echo/call"; cat "$M/echo/result.txt"'
    assert secret in check(command, env={"M": m.path}, uid=OTHER_USER)
    for name in ("result.txt", "result.json", "log"):
        assert secret not in check(["cat", m / "echo" / name], uid=THIRD_USER)
    assert secret not in check('grep -r "only for" "$M" || true', env={"M": m.path}, uid=THIRD_USER)
    assert secret in check(["cat", m / "echo/result.txt"], uid=OTHER_USER)


@as_root
def test_users_in_parallel_never_see_anothers_result(m):
    loop = '''
        n=0
        while [ $n -lt 25 ]; do
            n=$((n + 1))
            echo "{\\"text\\":\\"$ID\\"}" > "$M/echo/call" && busybox cat "$M/echo/result.txt" && echo
        done'''
    need("busybox")
    started = [Background(loop, shell="dash", uid=uid, env={"M": m.path, "ID": uid})
               for uid in (1000, 1001, 1002, 1003)]
    try:
        for shell in started:
            done = shell.end(80)
            uid = done.out.split('"text":"')[1][:4]
            assert done.status == 0, done.err
            assert set(texts("\n".join(line for line in done.out.splitlines() if line))) == {uid}
    finally:
        for shell in started:
            shell.__exit__()


@as_root
def test_a_call_runs_with_its_callers_ids(m):
    out = check('echo {} > "$M/whoami/call"; cat "$M/whoami/result.txt"', env={"M": m.path}, uid=OTHER_USER)
    uid, gid, groups = json.loads(out)
    assert (uid, gid) == (OTHER_USER, OTHER_USER) and 0 not in groups
    assert json.loads(m.say("whoami"))[0] == 0


@as_root
def test_call_file_belongs_to_whoever_looks(m):
    out = check(["stat", "-c", "%u %g %a", m / "echo/call"], uid=OTHER_USER)
    assert out.split() == [str(OTHER_USER), str(OTHER_USER), "666"]
    assert check(["stat", "-c", "%u", m / "echo/result.json"], uid=OTHER_USER).strip() == str(OTHER_USER)


@as_root
def test_other_user_can_read_and_call_everything(m):
    done = run(f"cat {m.path}/*/schema.json {m.path}/*/prompt.md {m.path}/*.md > /dev/null && "
               f"echo '{{\"name\":\"Ada\"}}' > {m.path}/hello/call && cat {m.path}/hello/result.txt",
               uid=OTHER_USER)
    assert (done.status, done.out.strip()) == (0, "Hello, Ada!"), done.err
