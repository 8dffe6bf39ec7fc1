"""What a tool may do and what becomes of it: R37 to R55, R62 to R86, R97 to R110, T3, T12."""

import errno
import json
import os
import shutil
import time

import pytest

from lib.mount import EXAMPLES, FIXTURES
from lib.programs import check, children_of, is_alive, process_state, run, until


# ----------------------------------------------------------------------------- the two examples

def test_r4_hello_by_shell(m):
    out = check('echo \'{"name":"Ada"}\' > "$M/hello/call" && cat "$M/hello/result.txt"',
                env={"M": m.path})
    assert out.strip() == "Hello, Ada!"


def test_bad_parameter_by_shell(m):
    done = run('echo \'{"nme":"Ada"}\' > "$M/hello/call"; echo "status $?"; cat "$M/hello/result.txt"',
               env={"M": m.path})
    assert "status 1" in done.out
    assert "name" in done.out.split("\n", 1)[1]


def test_r109_r110_my_db_on_a_real_database(m):
    assert m.say("my_db", {"action": "stats"}) == "Tables:\nempty: 0 rows\nusers: 3 rows"
    assert m.say("my_db", {"action": "query", "sql": "SELECT name, city FROM users ORDER BY id"}) == \
        "3 results:\n\n1. name: Ada | city: London\n2. name: Grace | city: \n3. name: Edsger | city: Austin"
    assert m.say("my_db", {"action": "query", "sql": "select id from users", "limit": 1}) == \
        "1 results:\n\n1. id: 1"
    assert m.say("my_db", {"action": "query", "sql": "SELECT * FROM empty"}) == "No results."
    assert m.fail("my_db", {"action": "query"}) == "sql parameter is required for query action."
    assert m.fail("my_db", {"action": "query", "sql": "DELETE FROM users"}) == \
        "Only SELECT statements are allowed."
    assert m.fail("my_db", {"action": "query", "sql": "SELECT nothing FROM nowhere"}).startswith("Database error: ")


def test_r110_my_db_action_outside_the_enum_is_refused_before(m):
    with pytest.raises(OSError) as caught:
        m.write("my_db", {"action": "drop"})
    assert caught.value.errno == errno.EINVAL
    assert "query" in m.text("my_db/result.txt") and "stats" in m.text("my_db/result.txt")


def test_r110_my_db_without_a_database(new_mount, work):
    mount = new_mount(tool_env={"MY_DB_PATH": work / "missing.db"})
    assert mount.fail("my_db", {"action": "stats"}) == f"Database not found at {work}/missing.db."


# --------------------------------------------------------------------------------- the contract

def test_r37_r39_r41_r42_the_four_arguments(m):
    first, second = json.loads(m.say("ids")), json.loads(m.say("ids"))
    assert first[0] and second[0] and first[0] != second[0]
    assert first[1:] == ["object", "AbortSignal", "function"]


def test_r38_several_blocks_in_order(m):
    assert [block["text"] for block in m.ask("shapes", {"shape": "several"})["content"]] == [
        "first", "second", "third"]
    m.write("shapes", {"shape": "several"})
    text = m.text("shapes/result.txt")
    assert text.index("first") < text.index("second") < text.index("third")


def test_r45_execute_is_awaited(m):
    start = time.monotonic()
    assert m.say("slow", {"ms": 1200}) == "slept 1200"
    assert time.monotonic() - start >= 1.2


def test_r42_updates_can_be_sent(m):
    assert m.say("updates", {"ms": 10}) == "function Done!"


def test_r44_a17_error_flag(m):
    assert m.fail("fail", {"text": "so it is"}) == "so it is"
    assert m.ask("shapes", {"shape": "error_false"}).get("isError") in (None, False)
    m.write("shapes", {"shape": "error_false"})


@pytest.mark.parametrize("how, words", [
    ("error", "thrown on purpose"), ("string", "a thrown string"), ("object", ""),
    ("reject", "rejected on purpose"), ("later", "thrown from a timer"), ("circular", ""),
    ("deep", ""), ("bigint", ""),
])
def test_t3_r54_r55_tool_that_throws_is_an_error_and_others_go_on(m, how, words):
    text = m.fail("throws", {"how": how})
    assert text.strip() and words in text
    with pytest.raises(OSError) as caught:
        m.write("throws", {"how": how})
    assert caught.value.errno == errno.EIO
    assert words in m.text("throws/result.txt")
    assert m.say("hello", {"name": "Ada"}) == "Hello, Ada!"


@pytest.mark.parametrize("how", ["exit", "exit0", "abort", "kill"])
def test_t3_r55_tool_that_ends_its_process_is_an_error_and_the_next_call_works(m, how):
    done = run(f'echo \'{{"how":"{how}"}}\' > "$M/exits/call"; echo "status $?"; cat "$M/exits/result.txt"',
               env={"M": m.path})
    assert "status 1" in done.out
    assert len(done.out) > len("status 1\n") + 10, "the reason can be read"
    assert m.fail("exits", {"how": how})
    assert m.say("hello", {"name": "Ada"}) == "Hello, Ada!"


def test_error_names_the_place_in_the_tools_source(m):
    assert "index.ts" in m.fail("syntax_error")
    assert "not-there" in m.fail("missing_import")


@pytest.mark.parametrize("tool", ["no_export", "class_based", "commonjs"])
def test_r100_r101_r102_missing_export_is_named(m, tool):
    text = m.fail(tool)
    assert "execute" in text and "export" in text


@pytest.mark.parametrize("shape", ["undefined", "null", "string", "number", "array", "no_content",
                                   "content_string", "no_text"])
def test_a17_what_is_no_tool_result_is_never_a_success_in_silence(m, shape):
    result = m.ask("shapes", {"shape": shape})
    assert isinstance(result["content"], list)
    assert result.get("isError") is True, result
    assert result["content"][0]["text"].strip()


def test_a18_other_blocks_pass_through(m):
    content = m.ask("shapes", {"shape": "image"})["content"]
    assert content == [{"type": "text", "text": "see"},
                       {"type": "image", "data": "aGk=", "mimeType": "image/png"}]
    m.write("shapes", {"shape": "image"})
    assert "see" in m.text("shapes/result.txt") and "image" in m.text("shapes/result.txt")


def test_odd_texts_survive(m):
    text = m.ask("shapes", {"shape": "unicode"})["content"][0]["text"]
    assert text == "\u00e9\U0001f600\n\"quoted\"\\ \x01"
    assert "lone" in m.ask("shapes", {"shape": "surrogate"})["content"][0]["text"]
    (m / "shapes/result.json").read_text(encoding="utf-8")


def test_empty_content(m):
    assert m.ask("shapes", {"shape": "empty"})["content"] == []
    m.write("shapes", {"shape": "empty"})
    assert m.text("shapes/result.txt") == ""


def test_big_result_has_its_true_size(m):
    m.write("shapes", {"shape": "big"})
    assert os.stat(m / "shapes/result.txt").st_size == len(m.text("shapes/result.txt")) >= 3_000_000
    assert len(m.json("shapes/result.json")["content"][0]["text"]) == 3_000_000


# ------------------------------------------------------------------------------------- printing

def test_r103_t12_what_a_tool_prints_goes_to_the_log(m):
    assert m.say("prints", {"name": "Ada"}) == "read 0 bytes of standard input"
    m.write("prints", {"name": "Grace"})
    log = m.text("prints/log")
    for words in ("forged", "jsonrpc", "to stderr: Grace", "from a child", "child error", "a partial line"):
        assert words in log, words
    assert "Ada" not in log
    assert "forged" not in m.text("prints/result.txt")
    assert m.say("prints", {}) == "read 0 bytes of standard input", "none of it is a later answer"


# -------------------------------------------------------------------------------------- loading

def test_r84_a19_helpers_and_the_files_own_place(m):
    upper, plain, where = m.say("helper", {"text": "abc"}).split("\n")
    assert (upper, plain) == ("ABC", "executed")
    assert os.path.samefile(where, FIXTURES / "helper") or os.path.samefile(where, m / "helper")


def test_imports_of_every_kind(m):
    seen = json.loads(m.say("imports"))
    assert {key: seen[key] for key in ("plain", "suffixed", "typed", "inner", "ready", "colour", "sides")} == {
        "plain": "without extension", "suffixed": "./x.js means x.ts", "typed": "with .ts",
        "inner": "a directory", "ready": "awaited", "colour": "red", "sides": 3}
    assert seen["data"] == {"answer": 42}
    assert seen["url"].endswith("/imports/index.ts") and os.path.exists(seen["url"])
    assert seen["dirname"].endswith("/imports")


def test_r7_index_js_in_both_habits(m):
    assert m.say("modern").startswith("index.js")
    assert m.say("habits") == "required in habits"


def test_a9_index_py_where_there_is_no_index_ts(m):
    assert m.say("from_python", {"text": "x"}) == "python got x"


def test_r97_loaded_again_when_its_files_change(work, new_mount):
    tool = work / "tools" / "changing"
    tool.mkdir(parents=True)
    (tool / "TOOL.md").write_text("---\nname: changing\ndescription: Changes.\n---\n")
    (tool / "helper.ts").write_text("export const word = 'one';\n")
    (tool / "index.ts").write_text("import { word } from './helper';\n"
                                   "export async function execute() {\n"
                                   "    return { content: [{ type: 'text', text: `${word} ${process.pid}` }] };\n}\n")
    mount = new_mount(tools=(work / "tools",))
    first = mount.say("changing")
    assert first.startswith("one ")
    assert mount.say("changing") == first, "the host is kept warm"
    (tool / "helper.ts").write_text("export const word = 'two';\n")
    until(lambda: mount.say("changing").startswith("two"), what="the new helper")
    (tool / "helper.ts").write_text("export const word = ;\n")
    until(lambda: mount.ask("changing").get("isError"), what="the error")
    (tool / "helper.ts").write_text("export const word = 'three';\n")
    until(lambda: not mount.ask("changing").get("isError"), what="the repaired helper")


# ---------------------------------------------------------------------------------- environment

def test_r59_r62_r69_to_r78_environment(m):
    seen = json.loads(m.say("env"))
    env = seen["env"]
    assert seen["bun"] == "undefined" and int(seen["node"].split(".")[0]) >= 18
    assert env["HOME"] == env["OFFICER_USER_HOME"] == str(m.work)
    assert env["OFFICER_USER_ROOT"] == "/officer/user"
    assert env["OFFICER_EMAIL_DB"] == "/officer/data/emails.db"
    assert json.loads(env["OFFICER_RESOURCES"]) == {"optical-character-recognition": {"kind": "none"}}
    assert env["PI_SEARXNG_URL"] == "http://localhost:8888"
    assert env["PI_TOOLS_DIRS"].split(":")
    for name in ("OFFICER_APIFY_TOKEN", "OFFICER_BROWSER_RELAY_PORT", "OFFICER_BROWSER_RELAY_TOKEN"):
        assert name not in env, "unset ones are absent, not empty"


def test_tool_has_a_clean_descriptor_table(m):
    descriptors = json.loads(m.say("env"))["descriptors"]
    assert descriptors["0"] == "/dev/null"
    assert not [target for target in descriptors.values()
                if "fuse" in target or "daemon.log" in target or "inotify" in target], descriptors


def test_tool_does_not_stand_in_the_mount(m):
    assert not json.loads(m.say("env"))["cwd"].startswith(str(m.path))


def test_request_is_not_in_the_arguments_of_the_host(m):
    seen = json.loads(m.say("env", {"x": "a-value-to-look-for"}))
    assert "a-value-to-look-for" not in json.dumps(seen["argv"])


# ------------------------------------------------------------------------------------- sensitive

SECRET = "s3cr3t-Wx91-never-to-be-seen"


def everything_in(mount):
    for directory, _, files in os.walk(mount.path):
        for name in files:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                yield path, file.read()


@pytest.mark.parametrize("request_", [
    {"param_name": "x", "mode": "single", "secret_param": SECRET},
    {"param_name": "x", "mode": "wrong", "secret_param": SECRET},
    {"param_name": "x", "secret_param": SECRET},
    {"param_name": "x", "mode": "single", "secret_param": {"wrong": SECRET}},
    '{"param_name": "x", "mode": "single", "secret_param": "' + SECRET + '"',
    '{"param_name": "x", "mode": "single", "secret_param": "' + SECRET + '"} trailing',
    '{"param_name": "x", "mode": "single", "secret_param": "' + SECRET + '\\x"}',
], ids=["good", "enum", "missing", "type", "incomplete", "trailing", "escape"])
def test_r29_a21_t19_sensitive_value_shows_nowhere(m, request_):
    try:
        m.write("sample", request_)
    except OSError as failure:
        assert failure.errno == errno.EINVAL
    for path, content in everything_in(m):
        assert SECRET.encode() not in content, path
    assert SECRET not in m.log()
    for pid in [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]:
        for name in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as file:
                    assert SECRET.encode() not in file.read(), (pid, name)
            except OSError:
                continue


def test_r29_sensitive_value_reaches_the_tool(m):
    text = m.say("sample", {"param_name": "x", "mode": "single", "secret_param": SECRET})
    assert text == f"a secret of {len(SECRET)} characters"


# ------------------------------------------------------------------------------------ loops (T17)

def test_t17_tool_that_calls_tools_through_the_mount(m):
    assert m.say("nested", {"mount": str(m.path), "depth": 0}) == 'object {"text":"from within"}'


def test_t17_tool_that_calls_itself_through_the_mount(m):
    text = m.say("nested", {"mount": str(m.path), "depth": 3})
    assert text == '3 2 1 object {"text":"from within"}'


def test_t17_mount_point_within_a_source_directory(work, new_mount):
    """The daemon must not walk into its own mount, nor wait for itself."""
    source = work / "tools"
    shutil.copytree(EXAMPLES, source)
    (source / "mnt").mkdir()
    mount = new_mount(tools=(source,), at=source / "mnt")
    assert mount.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    check(["ls", "-lR", source])
    assert "mnt" not in os.listdir(mount.path)


def test_t17_mount_point_within_a_tool(work, new_mount):
    """It is neither listed nor found in the tree, so whoever walks through it meets no error and no end."""
    source = work / "tools"
    shutil.copytree(EXAMPLES, source)
    (source / "hello/deep/mnt").mkdir(parents=True)
    mount = new_mount(tools=(source,), at=source / "hello/deep/mnt")
    assert mount.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    assert os.listdir(mount / "hello/deep") == [] and not (mount / "hello/deep/mnt").exists()
    check(["ls", "-lR", mount.path])


def test_t17_mount_over_a_source_directory(work, new_mount):
    """The source cannot be seen any more: no tools, a line in errors, and nobody waits."""
    source = work / "tools"
    shutil.copytree(EXAMPLES, source)
    mount = new_mount(tools=(source,), at=source)
    check(["ls", "-lR", mount.path])
    assert "hello" in os.listdir(mount.path) or str(source) in mount.text(".pegfs/errors")


def test_t17_caller_whose_working_directory_is_in_the_mount(m):
    out = check("cd hello && echo '{\"name\":\"Ada\"}' > call && cat result.txt && cd ../helper/bin && ./show.sh",
                cwd=m.path)
    assert out.split("!")[0] == "Hello, Ada"
    assert "executed" in out


def test_idle_hosts_are_no_zombies(m):
    for _ in range(3):
        m.fail("exits", {"how": "kill"})
    until(lambda: not [pid for pid in children_of(m.pid) if process_state(pid) == "Z"],
          what="the end of the zombies")
    assert all(is_alive(pid) for pid in children_of(m.pid))


def test_background_children_of_a_finished_call_do_not_hold_it(m, work):
    """A grandchild that keeps standard output open must not keep the call from ending."""
    pids = work / "pids"
    pids.touch()
    pids.chmod(0o666)
    start = time.monotonic()
    assert m.say("slow", {"ms": 200, "pids": str(pids)}) == "slept 200"
    assert time.monotonic() - start < 5
