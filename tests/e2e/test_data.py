"""One daemon for all users (--data): each one's tree, kept apart; they come and go live."""

import errno
import json
import os
import re
import shutil
import stat
import threading
import time

import pytest

from lib.mount import EXAMPLES, FIXTURES, PEGFS, VARIANT
from lib.programs import run, until
from lib.survival import kill_server

ADA, BOB = "ada@example.org", "bob@example.org"
MANY = 200 if VARIANT else 1000


def add_tool(directory, name, text="", fixture=FIXTURES, source=None):
    """A copy of a fixture named `name`, or a bash-free tool that answers `text`."""
    place = directory / name
    if source or not text:
        shutil.copytree((EXAMPLES if source == "hello" or name == "hello" else fixture) / (source or name), place)
        return place
    new = directory / f".{name}.new"
    new.mkdir(parents=True)
    (new / "TOOL.md").write_text(f"---\nname: {name}\ndescription: Says {text}. Use this to test.\nversion: 1\n---\n# {name}\n")
    (new / "index.js").write_text(
        "export async function execute() { return { content: [{ type: 'text', text: %s }] }; }\n" % json.dumps(text))
    if place.exists():
        shutil.rmtree(place)
    new.rename(place)
    return place


@pytest.fixture
def data(work):
    """A data directory with some global tools and two users, one of whom has none of his own."""
    place = work / "data"
    (place / "tools").mkdir(parents=True)
    for name in ("hello", "env", "echo", "slow"):
        add_tool(place / "tools", name)
    (place / ADA / "tools").mkdir(parents=True)
    (place / BOB).mkdir()
    return place


def shown(mount):
    return {name for name in os.listdir(mount.path) if "@" in name}


def tools_of(mount, user):
    return {name for name in os.listdir(mount / user) if name not in
            ("README.md", "prompt.md", "tools.json", ".pegfs")}


def says(mount, user, tool, wanted):
    """While its files go, one after the other, a call may meet half of them."""
    def is_said():
        try:
            return mount.ask(f"{user}/{tool}")["content"][0]["text"] == wanted
        except OSError:
            return False
    until(is_said, what=f"{user}'s {tool} to say {wanted}")


# ------------------------------------------------------------------------------------- trees

def test_r10_each_user_has_a_tree_of_his_own(data, new_mount):
    mount = new_mount(data=data)
    assert set(os.listdir(mount.path)) == {ADA, BOB, "README.md", ".pegfs"}
    assert tools_of(mount, ADA) == tools_of(mount, BOB) == {"hello", "env", "echo", "slow"}
    assert mount.text(".pegfs/users") == f"{ADA}\n{BOB}\n"
    assert str(data) in mount.text("README.md")
    assert set(os.listdir(mount / ".pegfs")) == {"version", "errors", "stats", "config", "events", "users"}
    assert set(os.listdir(mount / ADA / ".pegfs")) == {"version", "tools", "errors", "stats", "config", "formats"}
    assert f"data={data}\n" in mount.text(".pegfs/config")
    assert f"tools={data}/tools:{data}/{ADA}/tools\n" in mount.text(f"{ADA}/.pegfs/config")
    assert re.search(r"^pegfs_users 2$", mount.text(".pegfs/stats"), re.M)
    assert re.search(r"^pegfs_tools 4$", mount.text(f"{ADA}/.pegfs/stats"), re.M)
    assert {tool["name"] for tool in mount.json(f"{ADA}/tools.json")} == {"hello", "env", "echo", "slow"}
    assert mount.say(f"{ADA}/hello", {"name": "Ada"}) == "Hello, Ada!"
    # A container has it there, whatever the place on this machine.
    assert "/officer/tools/hello/call" in mount.text(f"{ADA}/hello/prompt.md")
    assert os.path.samefile(mount.path, mount / ADA / "..")


def test_only_who_runs_the_machine_reaches_all_trees(data, new_mount):
    mount = new_mount(data=data)
    assert stat.S_IMODE(os.stat(mount.path).st_mode) == 0o500
    if os.geteuid() != 0:
        pytest.skip("needs root to become another user")
    for what in ("ls", f"ls {ADA}", f"cat {ADA}/hello/TOOL.md", f"echo '{{}}' > {ADA}/hello/call"):
        assert run(f"cd {mount.path} && {what}" if what == "ls" else
                   what.replace(ADA, f"{mount.path}/{ADA}"), uid=1234).status != 0, what


def test_r12_a_users_tool_overrides_the_global_one_for_him_alone(data, new_mount):
    mount = new_mount(data=data)
    add_tool(data / "tools", "which", "the global one")
    for user in (ADA, BOB):
        until(lambda user=user: "which" in tools_of(mount, user))
        assert mount.say(f"{user}/which") == "the global one"
    add_tool(data / ADA / "tools", "which", "ada's own")
    says(mount, ADA, "which", "ada's own")
    assert mount.say(f"{BOB}/which") == "the global one"
    assert "Says ada's own" in mount.text(f"{ADA}/prompt.md")
    assert "ada's" not in mount.text(f"{BOB}/prompt.md")
    shutil.rmtree(data / ADA / "tools/which")
    says(mount, ADA, "which", "the global one")
    add_tool(data / "tools", "which", "another global one")
    for user in (ADA, BOB):
        says(mount, user, "which", "another global one")
    shutil.rmtree(data / "tools/which")
    for user in (ADA, BOB):
        until(lambda user=user: "which" not in tools_of(mount, user))


def test_r13_users_come_and_go_without_a_restart(data, new_mount):
    mount = new_mount(data=data)
    server = mount.server_pid
    eve = "eve@example.org"
    (data / eve).mkdir()
    until(lambda: eve in shown(mount), timeout=2)
    assert mount.say(f"{eve}/hello", {"name": "Eve"}) == "Hello, Eve!"
    (data / eve / "tools").mkdir()
    add_tool(data / eve / "tools", "own", "eve's own")
    until(lambda: "own" in tools_of(mount, eve), timeout=2)
    says(mount, eve, "own", "eve's own")
    # One that comes with everything at once.
    (data / ".new" / "tools").mkdir(parents=True)
    add_tool(data / ".new" / "tools", "own", "max's own")
    (data / ".new").rename(data / "max@example.org")
    until(lambda: "max@example.org" in shown(mount), timeout=2)
    assert mount.say("max@example.org/own") == "max's own"
    (data / eve).rename(data / "eva@example.org")
    until(lambda: "eva@example.org" in shown(mount) and eve not in shown(mount), timeout=2)
    assert mount.say("eva@example.org/own") == "eve's own"
    with pytest.raises(FileNotFoundError):
        os.stat(mount / eve)
    shutil.rmtree(data / "eva@example.org")
    until(lambda: shown(mount) == {ADA, BOB, "max@example.org"}, timeout=2)
    assert mount.server_pid == server


def test_who_is_gone_leaves_nothing_for_who_comes_with_his_name(data, new_mount):
    mount = new_mount(data=data)
    assert mount.say(f"{BOB}/hello", {"name": "old"}) == "Hello, old!"
    call = os.open(mount / BOB / "hello/call", os.O_RDWR)
    directory = os.open(mount / BOB, os.O_RDONLY | os.O_DIRECTORY)
    (data / BOB).rmdir()
    until(lambda: BOB not in shown(mount))
    try:
        with pytest.raises(OSError):
            os.write(call, b'{"name":"x"}')
        with pytest.raises(OSError):
            os.listdir(directory)
    finally:
        os.close(call)
        os.close(directory)
    (data / BOB).mkdir()
    until(lambda: BOB in shown(mount))
    assert mount.text(f"{BOB}/hello/result.txt") == ""
    assert os.listdir(mount / BOB / "hello/calls") == []
    assert mount.say(f"{BOB}/hello", {"name": "new"}) == "Hello, new!"


def test_a_call_that_runs_for_who_is_gone_is_cancelled(data, new_mount):
    mount = new_mount(data=data)
    fd = os.open(mount / BOB / "slow/call", os.O_RDWR)
    os.write(fd, b'{"ms":60000}')
    until(lambda: re.search(r"^pegfs_calls_running 1$", mount.text(".pegfs/stats"), re.M), what="the call to run")
    (data / BOB).rmdir()
    until(lambda: re.search(r"^pegfs_calls_running 0$", mount.text(".pegfs/stats"), re.M), what="the call to end")
    os.close(fd)


# ------------------------------------------------------------------------------------- kept apart

def test_calls_and_results_are_kept_apart(data, new_mount):
    """The same uid, the same process, the same tool: what one user did, the other does not see."""
    mount = new_mount(data=data)
    mount.write(f"{ADA}/hello", {"name": "of Ada"})
    assert mount.text(f"{ADA}/hello/result.txt") == "Hello, of Ada!\n"
    assert mount.text(f"{BOB}/hello/result.txt") == ""
    mount.write(f"{BOB}/hello", {"name": "of Bob"})
    assert mount.text(f"{ADA}/hello/result.txt") == "Hello, of Ada!\n"
    assert mount.text(f"{BOB}/hello/result.txt") == "Hello, of Bob!\n"
    ada, bob = (set(os.listdir(mount / user / "hello/calls")) for user in (ADA, BOB))
    assert len(ada) == len(bob) == 1 and ada != bob
    with pytest.raises(FileNotFoundError):
        os.stat(mount / BOB / "hello/calls" / ada.pop())
    os.mkdir(mount / ADA / "hello/calls/job-1")
    os.mkdir(mount / BOB / "hello/calls/job-1")  # an id of each one's own
    with open(mount / ADA / "hello/calls/job-1/call", "w", encoding="utf-8") as file:
        file.write('{"name":"named"}')
    assert mount.text(f"{ADA}/hello/calls/job-1/result.txt") == "Hello, named!\n"
    assert mount.text(f"{BOB}/hello/calls/job-1/result.txt") == ""


def seen_by(mount, user):
    return json.loads(mount.say(f"{user}/env"))


def test_r71_each_users_calls_run_in_his_environment_and_process(data, new_mount, work):
    (work / "ada@example.org.json").write_text('{"apify":{"token":"of-ada"}}')
    mount = new_mount(data=data, args=["--integrations", work / "{email}.json", "--env", "WHO=user {email}"])
    ada, bob = seen_by(mount, ADA), seen_by(mount, BOB)
    for user, seen in ((ADA, ada), (BOB, bob)):
        env = seen["env"]
        assert env["OFFICER_USER_ROOT"] == env["HOME"] == env["OFFICER_USER_HOME"] == f"{data}/{user}"
        assert env["OFFICER_EMAIL_DB"] == f"{data}/{user}/data/emails.db"
        assert env["PI_TOOLS_DIRS"] == f"{data}/tools:{data}/{user}/tools"
        assert env["WHO"] == f"user {user}"
        assert seen["cwd"] == f"{data}/{user}"
    assert ada["env"]["OFFICER_APIFY_TOKEN"] == "of-ada"
    assert "OFFICER_APIFY_TOKEN" not in bob["env"] and "of-ada" not in json.dumps(bob)
    assert ada["pid"] != bob["pid"]
    assert seen_by(mount, ADA)["pid"] == ada["pid"]  # warm
    # His file comes later, without a restart; the other's host stays.
    (work / "bob@example.org.json").write_text('{"apify":{"token":"of-bob"}}')
    assert seen_by(mount, BOB)["env"]["OFFICER_APIFY_TOKEN"] == "of-bob"
    assert seen_by(mount, ADA)["pid"] == ada["pid"]


def test_an_environment_can_be_set_for_each_user(data, new_mount):
    mount = new_mount(data=data, args=["--env", "OFFICER_EMAIL_DB=/mail/{email}.db", "--env", "HOME=/home/{email}"])
    env = seen_by(mount, BOB)["env"]
    assert env["OFFICER_EMAIL_DB"] == f"/mail/{BOB}.db"
    assert env["HOME"] == env["OFFICER_USER_HOME"] == f"/home/{BOB}"


def test_links_lead_no_user_to_what_another_has(data, new_mount):
    add_tool(data / ADA / "tools", "private", "ada's secret")
    (data / BOB / "tools").symlink_to(data / ADA / "tools")
    (data / "eve@example.org").symlink_to(data / ADA)
    (data / "max@example.org" / "tools").mkdir(parents=True)
    (data / "max@example.org" / "tools/private").symlink_to(data / ADA / "tools/private")
    mount = new_mount(data=data)
    assert shown(mount) == {ADA, BOB, "max@example.org"}
    for user in (BOB, "max@example.org"):
        assert "private" not in tools_of(mount, user)
        assert "link" in mount.text(f"{user}/.pegfs/errors")
    assert "eve@example.org" in mount.text(".pegfs/errors")


def test_names_that_are_no_address_are_no_users(data, new_mount):
    bad = ["backup", ".hidden@example.org", "a b@example.org", "a\nb@example.org", "a\x1bb@example.org",
           "two@at@example.org", "@example.org", "nobody@", "a:b@example.org", "a$(id)@example.org", "lost+found"]
    for name in bad:
        (data / name / "tools").mkdir(parents=True)
    (data / "file@example.org").write_text("no directory")
    good = ["x@y", "Ada.Byron+tag@EXAMPLE.org", "\u0430\u0434\u0430@\u043f\u0440\u0438\u043c\u0435\u0440.\u0440\u0444"]
    for name in good:
        (data / name).mkdir()
    mount = new_mount(data=data)
    assert shown(mount) == {ADA, BOB, *good}
    errors = mount.text(".pegfs/errors")
    assert "/backup: warning: no user is shown for this directory" in errors
    assert "\x1b" not in errors and len(errors.splitlines()) == len(bad) - 1  # hidden ones are passed over
    for name in [*bad, "file@example.org", "tools", "..", "users"]:
        if name != "..":
            with pytest.raises(OSError):
                os.stat(mount / name)


# ------------------------------------------------------------------------------------- commands

def test_commands_look_at_one_users_tree(data, new_mount):
    mount = new_mount(data=data)
    listed = run([PEGFS, "list", "--names", "--mount", mount / ADA])
    assert listed.out.split() == ["echo", "env", "hello", "slow"], listed
    assert run([PEGFS, "call", "--mount", mount / ADA, "hello", "name=Ada"]).out == "Hello, Ada!\n"
    assert run([PEGFS, "status", "--mount", mount / ADA]).status == 0
    status = run([PEGFS, "status", "--mount", mount.path])
    assert status.status == 0 and str(data) in status.out, status
    refused = run([PEGFS, "list", "--mount", mount.path])
    assert refused.status != 0 and f"{mount.path}/USER" in refused.err, refused
    assert run([PEGFS, "reload", mount.path]).status == 0
    assert mount.say(f"{ADA}/hello", {"name": "Ada"}) == "Hello, Ada!"


@pytest.mark.parametrize("args, text", [
    (["--data", "/x", "--tools", "/y"], "not both"),
    (["--data", ""], "no directory"),
    (["--tools", "/y", "--integrations", "/x/{email}.json"], "--data only"),
])
def test_wrong_use_is_told(args, text, work):
    (work / "mnt").mkdir()
    done = run([PEGFS, "mount", work / "mnt", *args])
    assert done.status == 2 and text in done.err, done


def test_a_data_directory_may_come_later(work, new_mount):
    mount = new_mount(data=work / "later")
    assert shown(mount) == set()
    (work / "later" / ADA).mkdir(parents=True)
    (work / "later" / "tools").mkdir()
    add_tool(work / "later" / "tools", "hello")
    until(lambda: shown(mount) == {ADA})
    until(lambda: "hello" in tools_of(mount, ADA))
    assert mount.say(f"{ADA}/hello", {"name": "Ada"}) == "Hello, Ada!"


# ------------------------------------------------------------------------------------- survival

def test_numbers_results_and_calls_outlive_the_server(data, new_mount):
    add_tool(data / ADA / "tools", "own", "ada's own")
    mount = new_mount(data=data)
    mount.write(f"{ADA}/hello", {"name": "before"})
    held = [os.open(mount / user / "hello", os.O_RDONLY | os.O_DIRECTORY) for user in (ADA, BOB)]
    text = os.open(mount / ADA / "own/TOOL.md", os.O_RDONLY)
    numbers = {name: os.stat(mount / name).st_ino for name in
               (ADA, BOB, f"{ADA}/hello", f"{BOB}/hello", f"{ADA}/own/prompt.md", f"{ADA}/prompt.md")}
    assert len(set(numbers.values())) == len(numbers)
    slow = os.open(mount / BOB / "slow/call", os.O_RDWR)
    os.write(slow, b'{"ms":2500}')
    try:
        for _ in range(3):
            kill_server(mount)
            assert {name: os.stat(mount / name).st_ino for name in numbers} == numbers
            for directory in held:
                assert "TOOL.md" in os.listdir(directory)
            assert os.pread(text, 1 << 16, 0) == (data / ADA / "tools/own/TOOL.md").read_bytes()
            assert mount.text(f"{ADA}/hello/result.txt") == "Hello, before!\n"
            assert mount.text(f"{BOB}/hello/result.txt") == ""
        assert not json.loads(os.read(slow, 1 << 16)).get("isError")
    finally:
        for fd in (*held, text, slow):
            os.close(fd)
    assert mount.say(f"{ADA}/own") == "ada's own"


def test_under_load_killed_servers_mix_nobody_up(data, new_mount):
    mount = new_mount(data=data)
    wrong, done, end = [], [0], time.monotonic() + 4

    def work_as(user):
        while time.monotonic() < end:
            try:
                got = mount.say(f"{user}/hello", {"name": user})
                done[0] += 1
                if got != f"Hello, {user}!":
                    wrong.append((user, got))
                result = mount.text(f"{user}/hello/result.txt")  # or that an outcome is unknown
                if (BOB if user == ADA else ADA) in result:
                    wrong.append((user, result))
            except OSError as error:
                if error.errno not in (errno.EIO,):
                    wrong.append((user, repr(error)))
            except AssertionError as error:
                if "unknown" not in str(error) and "not run" not in str(error):
                    wrong.append((user, str(error)))

    threads = [threading.Thread(target=work_as, args=(user,)) for user in (ADA, BOB, ADA, BOB)]
    for thread in threads:
        thread.start()
    while time.monotonic() < end:
        kill_server(mount)
        time.sleep(0.3)
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:5]
    assert done[0] > 0


# ------------------------------------------------------------------------------------- many

def pss_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return int(re.search(r"^Pss:\s+(\d+)", file.read(), re.M)[1])


def watches_of(pid):
    count = 0
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as file:
            count += sum(line.startswith("inotify ") for line in file)
    return count


def test_a_thousand_users_share_what_is_global(data, new_mount, capsys):
    shutil.rmtree(data / ADA)
    shutil.rmtree(data / BOB)
    for name in ("count", "fail", "steps", "typed", "updates", "whoami"):
        add_tool(data / "tools", name)
    few = new_mount(data=data)
    until(lambda: watches_of(few.server_pid) >= 10, what="the global tools to be watched")
    time.sleep(0.3)
    few_watches = watches_of(few.server_pid)
    few_kib = pss_kib(few.server_pid)
    few.stop()
    users = [f"user-{i:04}@example.org" for i in range(MANY)]
    for user in users:
        (data / user / "tools").mkdir(parents=True)
    begin = time.monotonic()
    mount = new_mount(data=data)
    start_s = time.monotonic() - begin
    assert shown(mount) == set(users)
    until(lambda: watches_of(mount.server_pid) >= few_watches + 2 * MANY, timeout=30, what="all to be watched")
    # His directory and his tools/; nothing of what is global is watched again.
    assert watches_of(mount.server_pid) <= few_watches + 2 * MANY + 8
    idle_kib = pss_kib(mount.server_pid)
    begin = time.monotonic()
    for user in users:
        assert len(tools_of(mount, user)) == 10
    walk_s = time.monotonic() - begin
    used_kib = pss_kib(mount.server_pid)
    assert mount.say(f"{users[-1]}/hello", {"name": "Zoe"}) == "Hello, Zoe!"
    begin = time.monotonic()
    add_tool(data / "tools", "late", "for all")
    for user in (users[0], users[-1]):
        until(lambda user=user: "late" in tools_of(mount, user), timeout=30)
    late_s = time.monotonic() - begin
    with capsys.disabled():
        print(f"\n[{MANY} users, 10 global tools: start {start_s * 1000:.0f} ms; PSS of the server {idle_kib} KiB, "
              f"{used_kib} KiB after a look into each tree ({few_kib} KiB without users); {walk_s:.1f} s for these looks; "
              f"a new global tool in all of them after {late_s * 1000:.0f} ms] ", end="")
    if not VARIANT:
        assert idle_kib - few_kib < 4 * MANY
        assert used_kib - few_kib < 32 * MANY
