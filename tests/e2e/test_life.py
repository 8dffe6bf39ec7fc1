"""The command line, and the life of a mount: start, end, death: T20."""

import errno
import os
import signal
import stat
import subprocess
import time

import pytest

from lib.mount import EXAMPLES, FIXTURES, PEGFS, ROOT, mount_entry
from lib.programs import (OTHER_USER, Background, check, children_of, is_alive, need, run, until)

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


# --------------------------------------------------------------------------------- command line

def test_version_and_help():
    version = check([PEGFS, "--version"])
    assert version.startswith("pegfs ") and version.count("\n") == 1
    for argv in (["--help"], ["mount", "--help"], ["umount", "--help"]):
        assert "pegfs" in check([PEGFS, *argv])
    assert "--tools" in check([PEGFS, "mount", "--help"])


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["mount"], ["mount", "--nonsense", "/tmp"],
                                  ["mount", "a", "b", "c"], ["umount"], ["--nonsense"]])
def test_wrong_usage_is_status_2_and_says_what(argv):
    done = run([PEGFS, *argv])
    assert done.status == 2
    assert done.err and done.out == ""


@pytest.mark.parametrize("path", ["/does/not/exist", "/etc/hostname"])
def test_mount_that_cannot_be_fails_with_one_clear_line(path):
    done = run([PEGFS, "mount", path, "--tools", str(EXAMPLES)])
    assert done.status == 1
    assert len(done.err.splitlines()) == 1 and path in done.err


def test_umount_of_what_is_no_mount(work):
    done = run([PEGFS, "umount", work])
    assert done.status == 1 and len(done.err.splitlines()) == 1


def test_mount_returns_when_it_is_ready_and_stays(work):
    """Without -f: the tree is there as soon as the command ends, and its output is closed."""
    point = work / "mnt"
    point.mkdir()
    try:
        done = run([PEGFS, "mount", point, "--tools", EXAMPLES], cwd=work)
        assert done.status == 0, done.err
        assert done.out == done.err == ""
        assert "hello" in os.listdir(point)
        assert mount_entry(point)[1] == "fuse.pegfs"
        check('echo \'{"name":"Ada"}\' > "$M/hello/call" && cat "$M/hello/result.txt"', env={"M": point})
    finally:
        check([PEGFS, "umount", point])
    assert mount_entry(point) is None
    until(lambda: not daemons_of(point), what="the end of the daemon")


def daemons_of(point):
    return [pid for pid in children_of(os.getpid()) if is_alive(pid) and
            str(point) in open(f"/proc/{pid}/cmdline", errors="replace").read()]


def test_tools_come_from_the_environment(work):
    point = work / "mnt"
    point.mkdir()
    try:
        check([PEGFS, "mount", point], env={"PI_TOOLS_DIRS": f"{EXAMPLES}:{FIXTURES}"})
        assert {"hello", "echo"} <= set(os.listdir(point))
        out = check('echo \'{"name":"Ada"}\' > "$M/hello/call" && cat "$M/hello/result.txt"',
                    env={"M": point})
        assert out.strip() == "Hello, Ada!"
    finally:
        check([PEGFS, "umount", point])


def test_relative_mount_point_and_tools(work):
    (work / "mnt").mkdir()
    (work / "tools").symlink_to(EXAMPLES)
    try:
        check([PEGFS, "mount", "mnt", "--tools", "tools"], cwd=work)
        assert str(work / "mnt/hello/call") in (work / "mnt/hello/prompt.md").read_text()
        check('echo \'{"name":"Ada"}\' > mnt/hello/call', cwd=work)
    finally:
        check([PEGFS, "umount", "mnt"], cwd=work)


@as_root
def test_mount_by_mount_8(work):
    """mount -t fuse.pegfs, as an fstab line does it, through the helper that make install makes."""
    stage = work / "stage"
    if os.environ.get("PEGFS_VARIANT"):
        pytest.skip("make install installs the ordinary build")
    check(["make", "-s", "install", f"DESTDIR={stage}", "PREFIX=/usr"], cwd=ROOT, timeout=80)
    assert os.access(stage / "usr/bin/pegfs", os.X_OK)
    assert os.path.isdir(stage / "usr/lib/pegfs/node_modules/jiti")
    assert os.readlink(stage / "sbin/mount.fuse.pegfs") == "/usr/bin/pegfs"
    point = work / "mnt"
    point.mkdir()
    # The helper and the program in their places, in this test's own mount namespace only.
    script = f'''
        set -e
        mkdir -p "$W/upper" "$W/work"
        mount -t tmpfs none "$W/upper" && mkdir "$W/upper/u" "$W/upper/w"
        mount -t overlay none -o "lowerdir=/usr,upperdir=$W/upper/u,workdir=$W/upper/w" /usr
        cp -r "$W/stage/usr/." /usr/
        ln -sfn /usr/bin/pegfs /usr/sbin/mount.fuse.pegfs
        PI_TOOLS_DIRS={EXAMPLES} mount -t fuse.pegfs tools "$M" -o nosuid,nodev
        ls "$M"
        findmnt -n -o FSTYPE,OPTIONS "$M"
        umount "$M"
        printf 'tools %s fuse.pegfs noauto,tools={EXAMPLES} 0 0\n' "$M" > "$W/fstab"
        mount -T "$W/fstab" "$M"
        cat "$M/hello/schema.json"
        umount "$M"
    '''
    done = run(["unshare", "-m", "bash", "-c", script], env={"W": work, "M": point}, timeout=60)
    if "overlay" in done.err and "unknown filesystem" in done.err:
        pytest.skip("no overlay file system")
    assert done.status == 0, done.out + done.err
    assert "hello" in done.out and "fuse.pegfs" in done.out and '"properties"' in done.out


def test_no_path_of_the_build_is_needed(work):
    """The binary finds lib/pegfs beside itself, wherever both were put."""
    if os.environ.get("PEGFS_VARIANT"):
        pytest.skip("make install installs the ordinary build")
    check(["make", "-s", "install", f"PREFIX={work}/here"], cwd=ROOT, timeout=80)
    point = work / "mnt"
    point.mkdir()
    try:
        check([work / "here/bin/pegfs", "mount", point, "--tools", EXAMPLES])
        check('echo \'{"name":"Ada"}\' > "$M/hello/call"', env={"M": point})
    finally:
        check([PEGFS, "umount", point])
    check(["make", "-s", "uninstall", f"PREFIX={work}/here"], cwd=ROOT)
    assert not (work / "here/bin/pegfs").exists() and not (work / "here/lib/pegfs").exists()


@as_root
def test_user_without_root_can_mount_for_themselves(work):
    need("fusermount3")
    if not os.stat("/dev/fuse").st_mode & stat.S_IWOTH:
        pytest.skip("/dev/fuse is closed to users")
    point = work / "mnt"
    point.mkdir()
    os.chown(point, OTHER_USER, OTHER_USER)
    env = {"HOME": work, "TMPDIR": work, "XDG_RUNTIME_DIR": None}
    done = run([PEGFS, "mount", point, "--tools", EXAMPLES], uid=OTHER_USER, env=env, cwd=work)
    assert done.status == 0, done.err
    try:
        out = check('echo \'{"name":"Ada"}\' > "$M/hello/call" && cat "$M/hello/result.txt"',
                    env={"M": point}, uid=OTHER_USER)
        assert out.strip() == "Hello, Ada!"
    finally:
        check([PEGFS, "umount", point], uid=OTHER_USER, env=env)


# -------------------------------------------------------------------------------- end and death

def test_umount_by_others(new_mount):
    mount = new_mount()
    check(["umount", mount.path])
    assert mount.process.wait(10) == 0
    assert not mount.clear_away()


def test_mount_at_once_after_umount_stays(work):
    """umount(8) returns before the old server has ended; it must not take the next mount away."""
    point = work / "mnt"
    point.mkdir()
    for _ in range(3):
        check([PEGFS, "mount", point, "--tools", EXAMPLES])
        check(["umount", point])
    check([PEGFS, "mount", point, "--tools", EXAMPLES])
    try:
        time.sleep(0.5)
        check('echo \'{"name":"Ada"}\' > "$M/hello/call"', env={"M": point})
    finally:
        check([PEGFS, "umount", point])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP],
                         ids=lambda number: number.name)
def test_signal_unmounts_and_ends(new_mount, number):
    mount = new_mount()
    mount.say("hello", {"name": "Ada"})
    if number == signal.SIGHUP:
        # It asks for a fresh look at the tools, as daemons have it, or ends like the others.
        os.kill(mount.pid, number)
        time.sleep(0.3)
        if mount.is_alive():
            assert mount.say("hello", {"name": "Ada"}) == "Hello, Ada!"
            return
    else:
        os.kill(mount.pid, number)
    assert mount.process.wait(10) == 0
    assert mount_entry(mount.path) is None
    assert not mount.clear_away()


def test_t20_killed_daemon_leaves_no_hanging_client_and_no_tool(new_mount, work):
    pids = work / "pids"
    pids.touch()
    pids.chmod(0o666)
    mount = new_mount()
    with Background(f'echo \'{{"ms":60000,"pids":"{pids}"}}\' > "$C"', env={"C": mount / "slow/call"}) as writer:
        until(lambda: len(pids.read_text().split()) == 3, what="the tool")
        started = [int(line) for line in pids.read_text().split()]
        os.kill(mount.pid, signal.SIGKILL)
        assert writer.end(5).status != 0, "the writer is let go"
    until(lambda: not is_alive(started[0]), what="the end of the host")
    with pytest.raises(OSError) as caught:
        os.listdir(mount.path)
    assert caught.value.errno in (errno.ENOTCONN, errno.ECONNABORTED)
    for pid in started:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
    mount.clear_away(killed=True)


def test_t20_mount_over_a_stale_mount(new_mount):
    mount = new_mount()
    os.kill(mount.pid, signal.SIGKILL)
    mount.process.wait(5)
    assert mount_entry(mount.path) is not None
    mount.start()
    assert mount.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    assert not mount.stop()
    assert mount_entry(mount.path) is None


def test_t20_umount_while_a_call_runs(new_mount):
    mount = new_mount()
    with Background('echo \'{"ms":60000}\' > "$C"', env={"C": mount / "slow/call"}) as writer:
        time.sleep(0.5)
        done = run([PEGFS, "umount", mount.path])
        if done.status != 0:
            assert "busy" in done.err
            writer.signal(signal.SIGKILL)
            writer.end(3)
            return
        assert writer.end(5).status != 0
    assert mount.process.wait(10) == 0
    assert not mount.clear_away()


@as_root
def test_t20_second_daemon_on_the_same_mount_point(new_mount):
    """It is refused with a clear line, or it covers the first one, which goes on."""
    mount = new_mount()
    done = run([PEGFS, "mount", mount.path, "--tools", EXAMPLES])
    if done.status == 0:
        check([PEGFS, "umount", mount.path])
    else:
        assert len(done.err.splitlines()) == 1
    assert mount.say("hello", {"name": "Ada"}) == "Hello, Ada!"


@as_root
def test_t20_bind_mount_into_a_private_namespace(new_mount, work):
    mount = new_mount(args=["--call-uid", OTHER_USER])
    (work / "bound").mkdir()
    out = check(["unshare", "-m", "bash", "-c",
                 'mount --bind "$M" "$W/bound" && cd "$W/bound" && '
                 'echo \'{"name":"Ada"}\' > hello/call && cat hello/result.txt'],
                env={"M": mount.path, "W": work})
    assert out.strip() == "Hello, Ada!"


@as_root
def test_r80_read_only_mount_can_still_be_called_where_it_is_bound_writable(new_mount, work):
    """A read-only bind mount refuses the write itself: that is the kernel's word, and is clear."""
    mount = new_mount()
    (work / "bound").mkdir()
    done = run(["unshare", "-m", "bash", "-c",
                'mount --bind "$M" "$W/bound" && mount -o remount,bind,ro "$W/bound" && '
                'echo {} > "$W/bound/hello/call"'], env={"M": mount.path, "W": work})
    assert done.status != 0 and "Read-only file system" in done.err


def test_two_mounts_at_once(new_mount):
    first, second = new_mount(tools=(EXAMPLES,)), new_mount(tools=(FIXTURES,))
    assert first.say("hello", {"name": "Ada"}) == "Hello, Ada!"
    assert second.say("echo", {}) == "{}"
    assert not first.stop()
    assert second.say("echo", {}) == "{}"


def test_daemon_that_starts_without_standard_descriptors(work):
    point = work / "mnt"
    point.mkdir()
    check('"$P" mount "$M" --tools "$T" <&- >&- 2>&-', env={"P": PEGFS, "M": point, "T": EXAMPLES})
    try:
        check('echo \'{"name":"Ada"}\' > "$M/hello/call"', env={"M": point})
    finally:
        check([PEGFS, "umount", point])


@as_root
def test_podman_like_user_namespace(new_mount):
    """H11: root of a user namespace may call, and cp -a and chmod on call succeed."""
    mount = new_mount(args=["--call-uid", OTHER_USER])
    script = ('echo \'{"name":"Ada"}\' > hello/call && cat hello/result.txt && chmod 600 hello/call && '
              'echo \'{"name":"Eve"}\' > /tmp/pegfs-userns.$$ && cp -a /tmp/pegfs-userns.$$ hello/call; '
              'status=$?; rm -f /tmp/pegfs-userns.$$; exit $status')
    done = run(["unshare", "-U", "--map-root-user", "bash", "-c", script], cwd=mount.path)
    assert done.status == 0, done.err
    assert "Hello, Ada!" in done.out


@as_root
def test_caller_in_another_pid_namespace(new_mount):
    mount = new_mount(args=["--run-in", "daemon"])
    done = run(["unshare", "-p", "-f", "--mount-proc", "setpriv", f"--reuid={OTHER_USER}",
                f"--regid={OTHER_USER}", "--clear-groups", "bash", "-c",
                'echo \'{"name":"Ada"}\' > hello/call && cat hello/result.txt; sleep 0.1 & '
                'echo \'{"name":"Eve"}\' > hello/call && cat hello/result.txt'], cwd=mount.path)
    assert done.status == 0, done.err
    assert "Hello, Ada!" in done.out and "Hello, Eve!" in done.out


def test_memory_limit_of_the_daemon_is_not_needed_for_many_open_calls(new_mount):
    """Waiting calls are cheap: two hundred open handles with half a document each."""
    mount = new_mount()
    handles = [os.open(mount / "echo/call", os.O_WRONLY) for _ in range(200)]
    try:
        for fd in handles:
            os.write(fd, b'{"text":"')
        for fd in handles[:5]:
            os.write(fd, b'x"}')
        assert mount.say("echo", {}) == "{}"
    finally:
        for fd in handles:
            try:
                os.close(fd)
            except OSError:
                pass


def test_h13_request_time_out_of_the_kernel_is_refused_or_respected():
    limit = "/proc/sys/fs/fuse/default_request_timeout"
    if not os.path.exists(limit):
        pytest.skip("a kernel before 6.15")
    assert subprocess.run(["cat", limit], capture_output=True, check=True).stdout.strip() == b"0"
