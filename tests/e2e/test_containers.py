"""pegfs in and around real containers, as mountscripts/ and docs/containers.md set it up."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest

import test_docs
from lib import deployed
from lib import mount as mounts
from lib.mount import EXAMPLES, PEGFS, ROOT
from lib.podman import STAY
from lib.programs import Background, check, descendants_of, is_alive, need, run, until

SCRIPTS = ROOT / "mountscripts"
HELLO = 'echo \'{"name":"Ada"}\' > /officer/tools/hello/call && cat /officer/tools/hello/result.txt'
CAPS = "; grep CapPrm /proc/self/status"
NO_CAPS, SYS_ADMIN = "CapPrm:\t0000000000000000", 1 << 21

of_scripts = pytest.mark.skipif(mounts.VARIANT != "", reason="is about scripts and pages; the plain build has shown it")


# ---------------------------------------------------------------- the containers of the tests

def test_a_container_ends_with_its_test(machine, work):
    """Also where the test process is killed."""
    script = ("import os, sys; sys.path.insert(0, sys.argv[1]); from lib import mount, podman; "
              "mount.isolate(); m = podman.Machine(sys.argv[2]); m.__enter__(); m.start(); "
              "print(*m.processes(), m.holder.pid, flush=True); input()")
    with subprocess.Popen([sys.executable, "-c", script, ROOT / "tests", work / "other"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) >= 3 and all(is_alive(pid) for pid in pids)
        process.send_signal(signal.SIGKILL)
    until(lambda: not any(is_alive(pid) for pid in pids), what="the end of the containers")
    assert machine.processes() == {}


@of_scripts
def test_podman_of_the_machine_knows_nothing_of_it(machine):
    with machine.start() as container:
        assert container.exec("id -u").out == "0\n"
        names = check(machine.inside("podman", "ps", "-a", "--format", "{{.Names}}"))
        assert container.name not in names.split()


# ---------------------------------------------------------------- mounted in the container

MAY_MOUNT = ["--device", "/dev/fuse", "--cap-add", "SYS_ADMIN"]
ENTRYPOINT = "/opt/bin/entrypoint.sh"


def given(entrypoint="container/entrypoint.sh", tools=EXAMPLES):
    """The entry point, and tools where the platform puts them: the mount is to cover them."""
    return [(SCRIPTS / entrypoint, ENTRYPOINT, "ro"), (tools, "/officer/tools", "ro")]


def inside(machine, command, *args, volumes=(), **how):
    argv = [ENTRYPOINT, "sh", "-c", command]
    return machine.run(argv, volumes=[*given(), *volumes], args=[*MAY_MOUNT, *args], **how)


def capabilities(text):
    return int(text.split("CapPrm:\t")[1].split()[0], 16)


@pytest.mark.parametrize("args", [[], ["--init"], ["--uidmap", "0:100000:65536"], ["--read-only"],
                                  ["--cap-drop", "ALL", "--cap-add", "SYS_ADMIN,SETPCAP"]],
                         ids=["plain", "init", "user namespace", "read-only", "few capabilities"])
def test_the_entry_point_mounts_and_keeps_the_right_to_mount_from_the_command(machine, args):
    done = inside(machine, HELLO + CAPS + "; exit 7", *args)
    assert done.status == 7 and done.out.startswith("Hello, Ada!\n"), done
    assert capabilities(done.out) & SYS_ADMIN == 0
    assert done.err == ""


def test_the_entry_point_runs_the_command_as_a_user(machine):
    done = inside(machine, HELLO + "; id" + CAPS, "--env", "PEGFS_USER=1000:1000")
    assert "Hello, Ada!\nuid=1000(ada) gid=1000(ada) groups=1000(ada)\n" in done.out, done
    assert NO_CAPS in done.out


def test_a_container_of_a_user_mounts_by_fusermount3(machine):
    need("fusermount3")
    argv = [ENTRYPOINT, "sh", "-c", HELLO + "; id -u" + CAPS]
    done = machine.run(argv, volumes=given(), args=[*machine.fuse_device(), "--cap-add", "SYS_ADMIN",
                                                    "--user", "1000:1000"])
    assert done.out.startswith("Hello, Ada!\n1000\n") and NO_CAPS in done.out, done


@pytest.mark.parametrize("args, words", [
    ([], "--device /dev/fuse"), (["--device", "/dev/fuse"], "--cap-add SYS_ADMIN"),
    ([*MAY_MOUNT, "--cap-drop", "SETPCAP"], "--cap-add SETPCAP"),
    ([*MAY_MOUNT, "--user", "1000"], "chmod 666"),
    ([*MAY_MOUNT, "--env", "PEGFS_OPTIONS=--run-in moon"], "--run-in 'moon'")])
@of_scripts
def test_a_container_that_cannot_mount_says_what_to_add(machine, args, words):
    done = machine.run([ENTRYPOINT, "echo", "not run"], volumes=given(), args=args)
    assert done.status == 1 and words in done.err, done
    assert done.out == ""


@of_scripts
def test_the_layout_of_the_platform(machine, work):
    """R80 to R83: tools and the user's tools read-only, the user's data and the database not."""
    for name in ("user/tools", "data"):
        (work / "ada" / name).mkdir(parents=True)
    shutil.copytree(EXAMPLES / "hello", work / "ada/user/tools/hello")
    manifest = work / "ada/user/tools/hello/TOOL.md"
    manifest.write_text(manifest.read_text().replace("version: 1", "version: 42"))
    volumes = [(work / "ada/user", "/officer/user"), (work / "ada/user/tools", "/officer/user/tools", "ro"),
               (work / "ada/data", "/officer/data")]
    script = """
        cat /officer/tools/.pegfs/tools
        echo 1 >/officer/user/note && echo 2 >/officer/data/emails.db && echo written
        for file in /officer/user/tools/hello/TOOL.md /officer/user/tools/new /officer/tools/hello/TOOL.md \
                /officer/tools/new; do
            (echo 3 >"$file") 2>/dev/null && echo "wrote $file"
        done
        echo '{"name":"Ada"}' >/officer/tools/hello/call && cat /officer/tools/hello/result.txt
    """
    done = inside(machine, script, volumes=volumes)
    assert done.out.endswith("written\nHello, Ada!\n"), done
    assert "/officer/user/tools/hello" in done.out and "42" in done.out
    assert (work / "ada/user/note").read_text() == "1\n"


def test_a_container_that_is_restarted_mounts_anew(machine):
    with machine.start([ENTRYPOINT, "sh", "-c", STAY], volumes=given(), args=MAY_MOUNT) as container:
        for _ in range(2):
            assert container.exec(HELLO).out == "Hello, Ada!\n"
            container.restart()
        assert container.exec(HELLO).out == "Hello, Ada!\n", container.logs()
        assert container.exec("grep -c fuse.pegfs /proc/mounts").out == "1\n"
        assert container.exec("ls /run/pegfs").out.count("\n") == 1, "what the mounts of before left"
        assert container.stop() == 0
        until(lambda: machine.processes() == {}, what="the end of all that was in it")


@of_scripts
def test_tools_that_come_later_are_shown(machine, work):
    """The container starts before its data directory has anything in it."""
    (work / "data").mkdir()
    volumes = [*given()[:1], (work / "data", "/data", "ro")]
    args = [*MAY_MOUNT, "--env", "PI_TOOLS_DIRS=/data/tools:/data/ada@example.org/tools"]
    with machine.start([ENTRYPOINT, "sh", "-c", STAY], volumes=volumes, args=args) as container:
        assert container.exec("ls /officer/tools").out == "README.md\nprompt.md\ntools.json\n"
        shutil.copytree(EXAMPLES, work / "data/tools")
        until(lambda: "hello" in container.exec("ls /officer/tools").out, what="the tool")
        assert container.exec(HELLO).out == "Hello, Ada!\n"


def test_the_server_of_a_container_may_die(machine):
    with machine.start([ENTRYPOINT, "sh", "-c", STAY], volumes=given(), args=MAY_MOUNT) as container:
        server = 'sed -n "s/^pegfs_server_pid //p" /officer/tools/.pegfs/stats'
        before = container.exec(server).out
        assert container.exec(f"kill -9 $({server}); " + HELLO).out == "Hello, Ada!\n"
        assert container.exec(server).out != before


# ---------------------------------------------------------------- rootless

@pytest.fixture
def rootless(machine, work):
    """in-userns.sh, for a user of this machine: what runs it, and its environment."""
    (work / "mnt").mkdir()
    script = 'mount --bind "$1" /dev/fuse && shift && exec setpriv --reuid=1000 --regid=1000 --clear-groups -- "$@"'
    argv = ["unshare", "-m", "sh", "-c", script, "sh", machine.fuse_device()[1].split(":")[0],
            SCRIPTS / "rootless/in-userns.sh"]
    env = {"PEGFS_MOUNT": work / "mnt", "PI_TOOLS_DIRS": EXAMPLES, "HOME": work, "XDG_RUNTIME_DIR": work,
           "PATH": f"{pathlib.Path(PEGFS).parent}:{os.environ['PATH']}"}
    if run(["unshare", "-U", "true"], uid=1000).status != 0:
        pytest.skip("user namespaces are closed to users")
    return argv, env


def test_a_user_mounts_in_a_user_namespace(rootless, work):
    argv, env = rootless
    hello = HELLO.replace("/officer/tools", "$PEGFS_MOUNT")
    done = run([*argv, "sh", "-c", hello + "; id -u" + CAPS + "; sleep 100 & exit 7"], env=env)
    assert done.status == 7 and done.out.startswith("Hello, Ada!\n1000\n") and NO_CAPS in done.out, done
    assert list((work / "mnt").iterdir()) == [], "nobody else sees it"
    assert list((work / "pegfs").iterdir()) == [], "its state is cleared away"


def test_two_of_a_user_mount_at_the_same_path(rootless, work):
    argv, env = rootless
    with Background([*argv, "sh", "-c", "touch $PEGFS_MOUNT/../up; sleep 100"], env=env):
        until((work / "up").exists, what="the first one")
        done = run([*argv, "sh", "-c", HELLO.replace("/officer/tools", "$PEGFS_MOUNT")], env=env)
        assert done.out == "Hello, Ada!\n", done


@of_scripts
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_user_namespace_ends_with_its_script(rootless, work, number):
    argv, env = rootless
    with Background([*argv, "sh", "-c", "touch $PEGFS_MOUNT/../up; sleep 100"], env=env) as script:
        until((work / "up").exists, what="the command")
        below = descendants_of(script.pid)
        assert len(below) > 3
        script.signal(number)
        until(lambda: not any(is_alive(pid) for pid in below), what="the end of all")


def test_root_of_a_users_namespace_mounts(rootless, work):
    """As `unshare -r` makes it: it may not set groups, also not those that it has."""
    _, env = rootless
    script = 'pegfs mount "$PEGFS_MOUNT" && cd "$PEGFS_MOUNT" && echo \'{"name":"Ada"}\' > hello/call && ' \
             'cat hello/result.txt; pegfs umount --lazy "$PEGFS_MOUNT"'
    done = run([*rootless[0][:-1], "unshare", "-Urm", "sh", "-c", script], env=env)
    assert done.out == "Hello, Ada!\n", done


@of_scripts
def test_a_user_namespace_without_a_mount_point_says_so(rootless, work):
    argv, env = rootless
    done = run([*argv, "true"], env={**env, "PEGFS_MOUNT": work / "none"})
    assert done.status == 1 and "PEGFS_MOUNT" in done.err


# ---------------------------------------------------------------- mounted on the host, bound into a container

OFFICER = pathlib.Path("/officer")
BOUND = [(OFFICER, "/officer", "rslave")]
# crun 1.8 binds only what it is told where the container has a user namespace: not the mounts below it.
BOUND_EACH = [*BOUND, *((OFFICER / name, OFFICER / name, "rslave") for name in ("tools", "user", "user/tools", "data"))]
IDS = 'echo "$(id -u):$(id -g) $(cat /officer/user/note) $(cat "$OFFICER_EMAIL_DB")"'


class Host:
    """officer.sh, or officers.sh, on a machine, with DATA_PATH below the test's directory."""

    def __init__(self, machine, data):
        self.machine, self.data, self.user, self.prefix = machine, data, "ada@example.org", []
        self.options, self.env, self.name = None, {}, "officer.sh"

    def make_user(self):
        for name in ("tools/ids", "data"):
            (self.data / self.user / name).mkdir(parents=True)
        (self.data / self.user / "note").write_text("note")
        (self.data / self.user / "data/emails.db").write_text("mail")
        (self.data / self.user / "tools/ids/TOOL.md").write_text(
            "---\nname: ids\nversion: 1\nlanguage: bash\ndescription: Shows as whom it runs.\n---\n")
        (self.data / self.user / "tools/ids/index.sh").write_text(IDS)
        for path in (self.data / self.user, *(self.data / self.user).rglob("*")):
            os.chown(path, 1000, 1000)

    def script(self, *words):
        env = {"DATA_PATH": self.data, "PEGFS_OPTIONS": self.options, "PATH": f"{pathlib.Path(PEGFS).parent}:{os.environ['PATH']}",
               **self.env}
        return run(self.machine.inside(*self.prefix, SCRIPTS / "host" / self.name, *words), env=env)

    def up(self):
        done = self.script("up", self.user)
        assert (done.status, done.out, done.err) == (0, "", "")

    def down(self, *words):
        done = self.script("down", *words)
        assert done.status == 0, done

    def mounts(self):
        lines = check(self.machine.inside("cat", "/proc/self/mounts")).splitlines()
        return [line.split()[1] for line in lines if line.split()[1].startswith("/officer")]

    def daemon(self):
        return next(pid for pid, name in self.machine.processes().items() if name == "pegfs")


@pytest.fixture
def host(machine, work):
    made = not OFFICER.exists()
    OFFICER.mkdir(exist_ok=True)
    (work / "data").mkdir()
    check(machine.inside("mount", "-t", "tmpfs", "-o", "mode=755", "none", OFFICER))
    shutil.copytree(EXAMPLES, work / "data/tools")
    this = Host(machine, work / "data")
    this.make_user()
    yield this
    left = this.mounts()
    run(machine.inside("umount", "-R", "-l", OFFICER))
    if made:
        with contextlib.suppress(OSError):  # another run of the tests may have it
            OFFICER.rmdir()
    assert left.count(str(OFFICER)) == len(left), "mounts were left"


def call_ids(container):
    return container.exec("echo {} > /officer/tools/ids/call && cat /officer/tools/ids/result.txt").out


def test_a_daemon_of_the_host_serves_one_user(host):
    host.up()
    host.up()  # changes nothing
    script = "; ".join([HELLO, "echo {} > /officer/tools/ids/call && cat /officer/tools/ids/result.txt",
                        "touch /officer/user/tools/new 2>&1", "touch /officer/tools/hello/new 2>&1"])
    for volumes, args in ((BOUND, []), (BOUND, ["--user", "1000"]), (BOUND_EACH, ["--uidmap", "0:100000:65536"])):
        done = host.machine.run(script, volumes=volumes, args=args)
        assert done.out.startswith("Hello, Ada!\n1000:1000 note mail\n"), done
        assert "user/tools/new': Read-only file system" in done.out and "tools/hello/new': " in done.out, done
    host.down()


@pytest.mark.parametrize("volumes, args", [(BOUND, []), (BOUND_EACH, ["--uidmap", "0:100000:65536"])],
                         ids=["plain", "user namespace"])
def test_tools_of_the_host_run_in_the_container_on_request(host, volumes, args):
    """--run-in caller, with no more rights than the unit gives pegfs."""
    host.options = "--run-in caller"
    host.prefix = ["setpriv", "--bounding-set", ",".join(["-all", *capabilities_of_the_unit()]), "--"]
    (host.data / host.user / "tools/ids/index.sh").write_text("hostname; " + IDS)
    host.up()
    script = "echo {} > /officer/tools/ids/call; cat /officer/tools/ids/result.txt; " + HELLO
    done = host.machine.run(script, volumes=volumes, args=[*args, "--hostname", "agents-own"])
    assert done.out == "agents-own\n0:0 note mail\nHello, Ada!\n", done
    host.down()


def test_a_mount_of_the_host_is_not_taken_for_a_dead_one(host):
    """Nothing in the container tells who serves it; the entry point takes it as it is."""
    host.up()
    volumes = [*given()[:1], *BOUND]
    done = host.machine.run("pegfs mount /officer/tools --tools /none; " + HELLO, volumes=volumes, args=MAY_MOUNT)
    assert "mounted at '/officer/tools' already" in done.err and done.out == "Hello, Ada!\n", done
    done = host.machine.run([ENTRYPOINT, "sh", "-c", HELLO + CAPS], volumes=volumes, args=MAY_MOUNT)
    assert done.out.startswith("Hello, Ada!\n") and capabilities(done.out) & SYS_ADMIN == 0, done
    host.down()


def capabilities_of_the_unit():
    unit = (SCRIPTS / "systemd/officer@.service").read_text()
    return re.search(r"^CapabilityBoundingSet=(.*)$", unit, re.M)[1].lower().replace("cap_", "+").split()


@of_scripts
def test_the_capabilities_of_the_unit_are_enough(host):
    host.prefix = ["setpriv", "--bounding-set", ",".join(["-all", *capabilities_of_the_unit()]), "--"]
    host.up()
    with host.machine.start(volumes=BOUND) as container:
        assert call_ids(container) == "1000:1000 note mail\n"
    host.down("--lazy")


def share_officer(host):
    """As everything is on a machine that systemd has booted."""
    check(host.machine.inside("sh", "-c", "cd /officer && mkdir -p tools user/tools data && "
                              "mount --bind /officer /officer && mount --make-shared /officer"))


@pytest.mark.parametrize("volumes, args", [(BOUND, []), (BOUND_EACH, ["--uidmap", "0:100000:65536"])],
                         ids=["plain", "user namespace"])
def test_a_container_and_the_daemon_start_and_end_in_any_order(host, volumes, args):
    share_officer(host)
    with host.machine.start(volumes=volumes, args=args) as container:
        assert container.exec("ls /officer/tools").out == ""
        host.up()
        assert call_ids(container) == "1000:1000 note mail\n"
        container.restart()
        assert call_ids(container) == "1000:1000 note mail\n"
        os.kill(host.daemon(), signal.SIGKILL)
        until(lambda: "not connected" in container.exec("ls /officer/tools").err, what="the end of the mount")
        host.up()
        assert call_ids(container) == "1000:1000 note mail\n", "the new mount came into the old container"
        host.down()
        assert container.exec("ls /officer/tools /officer/user").status == 0
        assert "fuse.pegfs" not in container.exec("cat /proc/mounts").out


@of_scripts
def test_a_plain_directory_is_made_a_shared_mount_and_is_none_afterwards(host, work):
    (work / "root").mkdir()
    host.env = {"OFFICER_ROOT": work / "root"}
    host.up()
    table = check(host.machine.inside("cat", "/proc/self/mountinfo"))
    lines = [line for line in table.splitlines() if str(work / "root") in line]
    assert len(lines) == 5 and all(" shared:" in line for line in lines), table
    assert "hello" in check(host.machine.inside("ls", work / "root/tools"))
    host.down()
    assert str(work / "root") not in check(host.machine.inside("cat", "/proc/self/mountinfo"))


def test_what_a_container_uses_is_not_unmounted_unless_lazily(host):
    host.up()
    with host.machine.start(f"cd /officer/tools/hello; {STAY}", volumes=BOUND) as container:
        done = host.script("down")
        assert done.status != 0 and "busy" in done.err and "--lazy" in done.err, done
        assert call_ids(container) == "1000:1000 note mail\n", "nothing was taken away"
        host.down("--lazy")
        assert "fuse.pegfs" not in container.exec("cat /proc/mounts").out
    until(lambda: host.machine.processes() == {}, what="the end of the daemon, with its last user")


@of_scripts
@pytest.mark.parametrize("user, words", [("nobody@example.org", "make it"), ("../data", "no name"), ("tools", "root's")])
def test_a_user_that_cannot_be_is_refused(host, user, words):
    done = host.script("up", user)
    assert done.status == 1 and words in done.err, done
    assert host.mounts() == [str(OFFICER)] and not (host.data / "tools/tools").exists()


@of_scripts
def test_another_user_is_not_shown_where_one_is(host):
    host.up()
    (host.data / "eve@example.org").mkdir()
    os.chown(host.data / "eve@example.org", 1001, 1001)
    done = host.script("up", "eve@example.org")
    assert done.status == 1 and "officer.sh down" in done.err, done
    assert not (host.data / "eve@example.org/note").exists()
    host.down()


@of_scripts
def test_a_read_only_bind_says_so_and_the_page_says_why(host):
    host.up()
    done = host.machine.run(HELLO, volumes=[(OFFICER / "tools", "/officer/tools", "ro")])
    assert "Read-only file system" in done.err and done.status != 0
    host.down()


@of_scripts
def test_a_mount_that_was_not_propagated_is_only_the_directory(host):
    """rprivate, the default: what is mounted later is never seen."""
    share_officer(host)
    with host.machine.start(volumes=[(OFFICER, "/officer")]) as container:
        host.up()
        assert container.exec("ls /officer/tools").out == ""
        host.down()


# ---------------------------------------------------------------- one daemon for all users

@pytest.fixture
def all_users(host):
    """officers.sh, for Ada, who has a tool, and Eve, who has none."""
    for name in ("tools", "data"):
        (host.data / "eve@example.org" / name).mkdir(parents=True)
    host.name, host.env = "officers.sh", {"OFFICER_RUN": host.machine.work / "all"}
    yield host
    host.down("--lazy")


def words_of(host, user):
    done = host.script("args", user)
    assert done.status == 0, done
    return done.out.split()


def test_a_daemon_for_all_shows_each_user_his_own(all_users):
    host = all_users
    done = host.script("up")
    assert (done.status, done.out, done.err) == (0, "", "")
    assert host.script("up").status == 0
    (host.data / "ada@example.org/tools/ids/index.sh").write_text("hostname; " + IDS)
    script = "ls -m /officer/tools; echo {} > /officer/tools/ids/call; cat /officer/tools/ids/result.txt; " + HELLO
    done = host.machine.run(script, args=[*words_of(host, "ada@example.org"), "--hostname", "adas-own"])
    assert done.out == "README.md, hello, ids, my_db, prompt.md, tools.json\nadas-own\n0:0 note mail\nHello, Ada!\n", done
    done = host.machine.run("ls -m /officer/tools; " + HELLO, args=words_of(host, "eve@example.org"))
    assert done.out == "README.md, hello, my_db, prompt.md, tools.json\nHello, Ada!\n", done


def test_a_new_user_has_a_tree_at_once(all_users):
    host = all_users
    host.script("up")
    done = host.script("args", "new@example.org")
    assert done.status == 1 and "make it" in done.err, done
    for name in ("tools", "data"):
        (host.data / "new@example.org" / name).mkdir(parents=True)
    until(lambda: host.script("args", "new@example.org").status == 0, what="the tree of the new user")
    with host.machine.start(args=words_of(host, "new@example.org")) as container:
        assert container.exec(HELLO).out == "Hello, Ada!\n"
        container.restart()
        assert container.exec(HELLO).out == "Hello, Ada!\n"
        done = host.script("down")
        assert done.status == 0 and "still has it" in done.err, done
        assert container.exec(HELLO).out == "Hello, Ada!\n", "what a container has stays until it ends"
    until(lambda: host.machine.processes() == {}, what="the end of the daemon, with its last user")


# ---------------------------------------------------------------- the files for Compose, Quadlet, Kubernetes

def started(host, this, entrypoint=()):
    return host.machine.start([*entrypoint, *this.command], args=this.args,
                              volumes=[*given()[:1], *this.volumes] if entrypoint else this.volumes)


@of_scripts
@pytest.mark.parametrize("read, name", [(deployed.compose, "compose/inside.yaml"),
                                        (deployed.quadlet, "quadlet/agent-inside.container")])
def test_a_file_for_an_agent_that_mounts_by_itself_runs_as_written(host, read, name):
    this = read(SCRIPTS / name, {"/data": host.data})
    with started(host, this, [ENTRYPOINT]) as container:
        until(lambda: container.exec("test -e /officer/tools/hello").status == 0, what="the mount")
        as_agent = ["--user", "1000:1000"]
        assert container.exec(HELLO, args=as_agent).out == "Hello, Ada!\n", container.logs()
        assert container.exec("touch /officer/user/new && cat /officer/data/emails.db", args=as_agent).out == "mail"
        assert "Read-only" in container.exec("touch /officer/user/tools/new").err
        assert "ids" in container.exec("ls /officer/tools").out
        assert container.stop() == 0 if "--init" not in this.args else container.stop() in (0, 143)


@of_scripts
@pytest.mark.parametrize("read, name", [(deployed.compose, "compose/host.yaml"),
                                        (deployed.quadlet, "quadlet/agent-host.container")])
def test_a_file_for_an_agent_with_the_tools_of_its_host_runs_as_written(host, read, name):
    share_officer(host)
    with started(host, read(SCRIPTS / name, {})) as container:
        host.up()
        assert call_ids(container) == "1000:1000 note mail\n"
        host.down()


def test_a_pod_with_a_sidecar_runs_as_written(host):
    host.machine.need_shared_pids()
    file = SCRIPTS / "kubernetes/pod.yaml"
    empty = host.machine.work / "empty"
    empty.mkdir()
    pod = deployed.kubernetes(file, {"/data": host.data}, empty)
    with host.machine.start() as pause:  # shareProcessNamespace
        for container in pod.values():
            container.args.append(f"--pid=container:{pause.name}")
        with started(host, pod["pegfs"]) as sidecar:
            probe = deployed.probe(file, "pegfs", "startupProbe")
            until(lambda: sidecar.exec(probe).status == 0, what="the start of the sidecar")
            with started(host, pod["agent"]) as agent:
                assert agent.exec(HELLO).out == "Hello, Ada!\n"
                assert call_ids(agent) == "1000:1000 note mail\n"
                assert agent.exec("touch /officer/user/new").status == 0
                assert "Read-only" in agent.exec("touch /officer/user/tools/new").err
                sidecar.restart()
                until(lambda: agent.exec(HELLO).out == "Hello, Ada!\n", what="the mount of the new sidecar")
            assert sidecar.stop() == 0
    assert str(empty) not in check(host.machine.inside("cat", "/proc/self/mounts")), "mounts were left on the node"


@of_scripts
def test_a_daemon_set_and_an_agents_pod_run_as_written(host):
    host.machine.need_shared_pids()
    file, run_dir = SCRIPTS / "kubernetes/daemonset.yaml", host.machine.work / "run-officer"
    run_dir.mkdir()
    pods = deployed.kubernetes(file, {"/data": host.data, "/run/officer": run_dir}, None)
    agents = deployed.kubernetes(SCRIPTS / "kubernetes/agent.yaml", {"/run/officer": run_dir}, None)
    alive = deployed.probe(SCRIPTS / "kubernetes/agent.yaml", "agent", "livenessProbe")

    def start_daemon():
        clear = pods["clear"]
        assert host.machine.run(clear.command, volumes=clear.volumes, args=clear.args).status == 0
        container = started(host, pods["pegfs"])
        until(lambda: container.exec(deployed.probe(file, "pegfs", "readinessProbe")).status == 0, what="the daemon")
        return container

    with start_daemon() as daemon, started(host, agents["agent"]) as agent:
        assert agent.exec(alive).status == 0
        assert agent.exec(HELLO).out == "Hello, Ada!\n"
        check(host.machine.podman("kill", "-s", "KILL", daemon.name))
        until(lambda: agent.exec(alive).status != 0, what="the end of the mount")
        with start_daemon() as other:
            assert agent.exec(HELLO).out == "Hello, Ada!\n", "the new mount came into the old container"
            assert other.exec(deployed.probe(file, "pegfs", "preStop")).status == 0
    assert "fuse.pegfs" not in check(host.machine.inside("cat", "/proc/self/mounts"))


# ---------------------------------------------------------------- docs/containers.md

PAGE = ROOT / "docs/containers.md"
INSTALLED = "/usr/share/pegfs/mountscripts"
# As the page has it, on the machine of the tests: the images are its root file system, `officer` with the entry point.
PODMAN = """#!/usr/bin/env python3
import json, os, sys
start, run, volumes = json.loads({setting!r})
words = sys.argv[1:]
image = next(i for i, word in enumerate(words) if word in ("officer", "debian:bookworm-slim"))
entry = [{entrypoint!r}] if words[image] == "officer" else []
os.execv(start[0], [*start, *words[:1], *run, *volumes, *words[1:image], "--rootfs", {root!r}, *entry, *words[image + 1:]])
"""


def podman_of_the_page(machine, directory):
    start = machine.podman()[len(machine.inside()) + 1:]
    *run_words, _, _, _ = machine.words(["true"], volumes=given()[:1])
    (directory / "podman").write_text(PODMAN.format(setting=json.dumps([[shutil.which("podman"), *start], run_words, []]),
                                                    entrypoint=ENTRYPOINT, root=str(machine.root)))
    (directory / "podman").chmod(0o755)


@of_scripts
def test_commands_of_the_page_print_what_it_says(host, work):
    machine = host.machine
    shutil.rmtree(host.data / host.user / "tools/ids")
    for name in ("bin", "home"):
        (work / name).mkdir()
    podman_of_the_page(machine, work / "bin")
    made = not pathlib.Path("/data").exists()
    pathlib.Path("/data").mkdir(exist_ok=True)
    check(machine.inside("mount", "--bind", host.data, "/data"))
    env = {"HOME": work / "home", "PATH": f"{work}/bin:{pathlib.Path(PEGFS).parent}:{os.environ['PATH']}"}
    wrong = []
    for command, expected in test_docs.blocks(PAGE):
        script = command.replace(INSTALLED, str(SCRIPTS))
        done = run(machine.inside("bash", "-c", f"set -e\nexport PATH='{work}/bin':\"$PATH\"\n{script}"), env=env, timeout=60)
        if (done.status, done.out) != (0, expected):
            wrong.append(f"$ {command}--- the page says\n{expected}--- it prints\n{done.out}{done.err}")
    run(machine.inside("umount", "-l", "/data"))
    if made:
        with contextlib.suppress(OSError):
            pathlib.Path("/data").rmdir()
    assert not wrong, "\n".join(wrong)
    assert len(test_docs.blocks(PAGE)) == 5


@of_scripts
def test_the_page_names_what_there_is():
    text = PAGE.read_text()
    for name in re.findall(r"`((?:container|rootless|host|compose|quadlet|kubernetes|fstab)/[\w.-]+)`", text):
        assert (SCRIPTS / name).is_file(), name
    for name in re.findall(r"`(\w+@?\.service)`|now (\w+\.service)", text):
        assert (SCRIPTS / "systemd" / "".join(name)).is_file(), name
    named = [path for path in SCRIPTS.glob("*/*") if path.parent.name not in ("debian", "systemd")]
    assert [path for path in named if path.name not in text] == []
    for option in set(re.findall(r"`(--(?:call|run|callers|sandbox)[a-z-]*)", text)):
        assert option + " " in run([PEGFS, "mount", "--help"]).out, option


# What programs other than pegfs say.
OF_OTHERS = ["fusermount3:", "option allow_other", "Read-only file system", "Permission denied", "Transport endpoint",
             "ContainerCreating", "failed to stat volume", "not connected", "rslave", "result.txt", "/officer/tools",
             "ausearch", ":z"]


@of_scripts
def test_the_messages_of_the_page_are_those_of_the_program():
    """Whoever sees one finds it there: each line of the table begins with what is seen."""
    table = PAGE.read_text().split("## When it does not work")[1].split("\n## ")[0]
    said = "".join(path.read_text() for path in [*ROOT.glob("core/*/*.[ch]"), *ROOT.glob("core/host/*/*.[ch]"),
                                                 *ROOT.glob("fs/*.[ch]"), *SCRIPTS.glob("*/*.sh")])
    said = re.sub(r'"\s*\n\s*(?:FUSE_DEVICE\s*)?"', "", said).replace('" FUSE_DEVICE "', "/dev/fuse")
    rows = re.findall(r"^\| (?!-|what you see)(.*?) \|", table, re.M)
    assert len(rows) > 15
    for row in rows:
        for message in re.findall(r"`([^`]+)`", row):
            if not any(word in message for word in OF_OTHERS):
                for wanted in re.split(r"'?\.\.\.'?|: No such.*|: Operation.*", message):
                    assert wanted.strip() in said, message
