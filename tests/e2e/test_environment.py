"""What a tool finds in its environment: the documented variables and nothing else (R59, R69 to R78)."""

import json
import os
import time

import pytest

from lib.mount import EXAMPLES, FIXTURES, PEGFS
from lib.programs import run, until

ALWAYS = {"PATH", "LANG", "HOME", "OFFICER_USER_HOME", "OFFICER_USER_ROOT", "PI_TOOLS_DIRS", "OFFICER_EMAIL_DB", "OFFICER_RESOURCES"}
WHERE_SET = {"LC_ALL", "TZ", "TMPDIR", "PI_SEARXNG_URL", "OFFICER_APIFY_TOKEN", "OFFICER_BROWSER_RELAY_PORT", "OFFICER_BROWSER_RELAY_TOKEN"}
# None: not set for the daemon, whatever the tests were started with.
NOTHING = {name: None for name in (*WHERE_SET, "OFFICER_USER_ROOT", "OFFICER_EMAIL_DB", "OFFICER_RESOURCES", "PI_TOOLS_DIRS")}
LOOK_ALIKES = {"OFFICER_SECRET": "leak", "OFFICER_APIFY_TOKEN_OLD": "leak", "OFFICER_": "leak", "PI_KEY": "leak", "XPI_TOOLS_DIRS": "leak",
               "LD_PRELOAD_": "leak", "LD_LIBRARY_PATH": "/leak", "NODE_OPTIONS": "--trace-warnings", "NODE_PATH": "/leak",
               "PYTHONPATH": "/leak", "BASH_ENV": "/leak", "ENV": "/leak", "SECRET": "leak", "AWS_SECRET_ACCESS_KEY": "leak",
               "HTTP_PROXY": "http://leak", "PEGFS_LIB_DIR_": "leak", "BASH_FUNC_leak%%": "() { :; }"}


def environment_of(mount):
    return json.loads(mount.say("env"))["env"]


def in_python(mount):
    return json.loads(mount.say("python_kit", {"how": "seen"}))["env"]


def in_bash(mount):
    lines = mount.say("bash_kit", {"how": "env"}).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_exactly_the_documented_variables_with_their_defaults(new_mount):
    mount = new_mount(env={**NOTHING, **LOOK_ALIKES, "HOME": None, "PATH": "/usr/bin:/bin", "LANG": None, "LC_ALL": None})
    env = environment_of(mount)
    assert set(env) == ALWAYS
    assert env == {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/", "OFFICER_USER_HOME": "/", "OFFICER_USER_ROOT": "/officer/user",
                   "PI_TOOLS_DIRS": f"{EXAMPLES}:{FIXTURES}", "OFFICER_EMAIL_DB": "/officer/data/emails.db", "OFFICER_RESOURCES": "{}"}


def test_python_and_bash_get_the_same_and_no_more(new_mount):
    mount = new_mount(env={**NOTHING, **LOOK_ALIKES, "PATH": "/usr/local/bin:/usr/bin:/bin"})
    expected = environment_of(mount)
    python = in_python(mount)
    assert {name: python[name] for name in expected} == expected and set(python) - set(expected) <= {"LC_CTYPE"}
    bash = in_bash(mount)
    assert {name: bash[name] for name in expected} == expected
    assert set(bash) - set(expected) <= {"PARAM_how", "TOOL_DIR", "TOOL_CALL_ID", "PWD", "OLDPWD", "SHLVL", "_"}


def test_r69_to_r78_what_is_set_is_handed_on(new_mount):
    given = {"HOME": "/home/x", "OFFICER_USER_ROOT": "/data/user", "OFFICER_EMAIL_DB": "/data/mail.db", "OFFICER_RESOURCES": '{"a":1}',
             "PI_SEARXNG_URL": "http://searx:8080", "OFFICER_APIFY_TOKEN": "t0ken", "OFFICER_BROWSER_RELAY_PORT": "9222",
             "OFFICER_BROWSER_RELAY_TOKEN": "relay", "TZ": "Europe/Berlin", "TMPDIR": "/var/tmp", "LC_ALL": "C.UTF-8"}
    env = environment_of(new_mount(env={**NOTHING, **given, "OFFICER_USER_HOME": "/not/this"}))
    assert {name: env[name] for name in given} == given
    assert env["OFFICER_USER_HOME"] == "/home/x", "the same value as HOME"
    assert set(env) == ALWAYS | WHERE_SET


def test_r76_to_r78_what_is_empty_is_absent(new_mount):
    empty = {name: "" for name in ("OFFICER_APIFY_TOKEN", "OFFICER_BROWSER_RELAY_PORT", "OFFICER_BROWSER_RELAY_TOKEN", "PI_SEARXNG_URL")}
    assert not set(empty) & set(environment_of(new_mount(env={**NOTHING, **empty})))


def test_env_and_env_file_add_and_override(new_mount, work):
    file = work / "more.env"
    file.write_text('# a comment\n\nFROM_FILE="with spaces"\nTWICE=file\r\nHOME=/from/file\nEQUALS=a=b=c\nEMPTY=\n')
    mount = new_mount(env={**NOTHING, "HOME": "/home/x"},
                      args=["--env-file", file, "--env", "TWICE=option", "--env", "MINE=1", "--env", "OFFICER_APIFY_TOKEN=asked"])
    env = environment_of(mount)
    assert env["FROM_FILE"] == "with spaces" and env["TWICE"] == "option" and env["MINE"] == "1"
    assert env["EQUALS"] == "a=b=c" and env["EMPTY"] == "" and env["OFFICER_APIFY_TOKEN"] == "asked"
    assert env["HOME"] == env["OFFICER_USER_HOME"] == "/from/file"
    assert set(env) - ALWAYS - WHERE_SET == {"FROM_FILE", "TWICE", "MINE", "EQUALS", "EMPTY"}


@pytest.mark.parametrize("args, words", [
    (["--env", "=x"], "NAME=VALUE"), (["--env", "NAME"], "NAME=VALUE"), (["--env-file", "/nonexistent"], "/nonexistent"),
    (["--integrations", "/nonexistent.json"], "/nonexistent.json"),
], ids=lambda value: value[0] + "=" + value[1] if isinstance(value, list) else None)
def test_wrong_options_are_refused(args, words):
    done = run([PEGFS, "mount", "/nonexistent", "--tools", "/nonexistent", *args])
    assert done.status != 0 and words in done.err and len(done.err.splitlines()) <= 2


def test_bad_line_of_an_env_file_is_named_and_not_shown(work):
    (work / "bad.env").write_text("GOOD=1\nc4nary without an equals sign\n")
    done = run([PEGFS, "mount", str(work), "--tools", "/nonexistent", "--env-file", str(work / "bad.env")])
    assert done.status != 0 and "bad.env:2" in done.err and "c4nary" not in done.err


# -------------------------------------------------------------------------------- integrations

FIRST = {"searxng": {"url": "http://searx:1"}, "apify": {"token": "ap1fy"}, "browser-relay": {"port": 9222, "token": "r3lay"},
         "optical-character-recognition": {"kind": "tesseract", "languages": ["de", "en"]}}
DERIVED = {"PI_SEARXNG_URL": "http://searx:1", "OFFICER_APIFY_TOKEN": "ap1fy", "OFFICER_BROWSER_RELAY_PORT": "9222",
           "OFFICER_BROWSER_RELAY_TOKEN": "r3lay"}


@pytest.fixture
def file(work):
    return work / "integrations.json"


def mounted_with(new_mount, file, settings, **how):
    file.write_text(json.dumps(settings, indent=2))
    return new_mount(env={**NOTHING, **how.pop("env", {})}, args=["--integrations", file], **how)


def test_r59_r74_integrations_become_resources_and_what_follows(new_mount, file):
    env = environment_of(mounted_with(new_mount, file, FIRST))
    assert json.loads(env["OFFICER_RESOURCES"]) == FIRST
    assert {name: env.get(name) for name in DERIVED} == DERIVED


def test_r76_what_is_not_configured_is_not_set(new_mount, file):
    env = environment_of(mounted_with(new_mount, file, {"apify": {"token": ""}, "browser-relay": {}}))
    assert not set(DERIVED) & set(env)


def test_integrations_are_read_anew_when_they_change(new_mount, file, work):
    mount = mounted_with(new_mount, file, FIRST)
    assert environment_of(mount)["OFFICER_APIFY_TOKEN"] == "ap1fy"
    assert in_python(mount)["OFFICER_APIFY_TOKEN"] == "ap1fy"
    time.sleep(0.02)
    file.write_text(json.dumps({"apify": {"api_token": "an0ther"}}))
    env = environment_of(mount)
    assert env["OFFICER_APIFY_TOKEN"] == "an0ther" and "PI_SEARXNG_URL" not in env
    assert in_python(mount)["OFFICER_APIFY_TOKEN"] == "an0ther"
    replacement = work / "new.json"
    replacement.write_text(json.dumps({"apify": {"token": "th1rd"}}))
    os.replace(replacement, file)
    assert environment_of(mount)["OFFICER_APIFY_TOKEN"] == "th1rd", "a replaced file too"


def test_running_call_keeps_what_it_began_with(new_mount, file, work):
    mount = mounted_with(new_mount, file, FIRST)
    fd = os.open(mount / "count/call", os.O_RDWR)
    os.write(fd, json.dumps({"file": str(work / "runs"), "ms": 600}).encode())
    until((work / "runs").exists, what="the call")
    file.write_text(json.dumps({"apify": {"token": "an0ther"}}))
    assert environment_of(mount)["OFFICER_APIFY_TOKEN"] == "an0ther"
    assert b"counted" in os.read(fd, 4096)
    os.close(fd)


def test_broken_integrations_are_reported_without_a_value_and_the_old_ones_count(new_mount, file):
    mount = mounted_with(new_mount, file, FIRST)
    time.sleep(0.02)
    file.write_text('{"apify": {"token": "c4nary"')
    assert environment_of(mount)["OFFICER_APIFY_TOKEN"] == "ap1fy"
    assert "integrations" in mount.log() and "c4nary" not in mount.log()
    time.sleep(0.02)
    file.write_text('{"apify": {"token": "m3nded"}}')
    assert environment_of(mount)["OFFICER_APIFY_TOKEN"] == "m3nded"
