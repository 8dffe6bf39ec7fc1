"""pegfs sync, as people and scripts run it."""

import ctypes
import fcntl
import json
import os
import pathlib
import random
import threading
import time

import pytest

from lib import cli
from lib.cli import write_tool

SEED_TOOLS = cli.ROOT / "seed" / "tools"


@pytest.fixture
def seed(work):
    directory = work / "seed"
    directory.mkdir()
    return directory


@pytest.fixture
def target(work):
    return work / "data" / "tools"


def tree(directory):
    """path -> (mode, contents or target)."""
    found = {}
    for path in sorted(directory.rglob("*")):
        mode = path.lstat().st_mode
        what = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(directory))] = mode, what
    return found


def test_r9_r87_what_ships_is_installed_into_an_empty_data_path(target):
    cli.run("sync", SEED_TOOLS, target)
    shipped = [path.parent for path in SEED_TOOLS.glob("*/TOOL.md")]
    assert shipped and sorted(os.listdir(target)) == sorted(path.name for path in shipped)
    for tool in shipped:
        assert tree(target / tool.name) == tree(tool)


def test_r9_a_second_run_has_nothing_to_do(target):
    cli.run("sync", SEED_TOOLS, target)
    out, _ = cli.run("sync", SEED_TOOLS, target)
    rows = out.splitlines()[1:]
    assert rows and all(row.endswith("left (same version)") for row in rows)


def test_r10_users_directories_are_not_touched(seed, work):
    data = work / "data"
    write_tool(data / "ann@example.org" / "tools", "t", version=1, code="ann's\n")
    write_tool(seed, "t", version=9)
    before = tree(data / "ann@example.org")
    stamps = {path: path.stat().st_ctime_ns for path in (data / "ann@example.org").rglob("*")}
    cli.run("sync", seed, data / "tools")
    assert tree(data / "ann@example.org") == before
    assert {path: path.stat().st_ctime_ns for path in stamps} == stamps


def test_r90_r93_the_table_tells_what_was_done(seed, target):
    for name, version in ("absent", 1), ("equal", 2), ("greater", 10), ("smaller", 1):
        write_tool(seed, name, version)
    for name, version in ("equal", 2), ("greater", 9), ("smaller", 3):
        write_tool(target, name, version)
    out, err = cli.run("sync", seed, target)
    assert [line.split(maxsplit=3) for line in out.splitlines()] == [
        ["TOOL", "SEED", "TARGET", "WHAT"],
        ["absent", "1", "-", "installed"],
        ["equal", "2", "2", "left (same version)"],
        ["greater", "10", "9", "updated"],
        ["smaller", "1", "3", "left (newer in target)"],
    ]
    assert err == "4 tools: 1 installed, 1 updated, 2 left, 0 failed\n"


def test_r94_a_missing_version_is_told(seed, target):
    write_tool(seed, "t")
    (seed / "t" / "TOOL.md").write_text("---\nname: t\ndescription: Does it.\n---\n")
    _, err = cli.run("sync", seed, target)
    assert f"{seed}/t/TOOL.md: warning: there is no 'version'" in err
    assert "[missing-version]" in err


def test_sync_json_can_be_read_by_programs(seed, target):
    write_tool(seed, "good", 3)
    write_tool(seed, "bad")
    os.mkfifo(seed / "bad" / "fifo")
    out, _ = cli.run("sync", "--json", seed, target, status=1)
    told = json.loads(out)
    assert told["dry_run"] is False and told["warnings"] == []
    bad, good = told["tools"]
    assert good == {"name": "good", "action": "installed", "seed_version": 3, "target_version": None}
    assert bad["action"] == "failed" and "'fifo' is a FIFO" in bad["problem"]


def test_sync_dry_run_changes_nothing(seed, target):
    write_tool(seed, "t")
    out, err = cli.run("sync", "--dry-run", seed, target)
    assert "installed" in out and "nothing was changed" in err
    assert not target.exists()


def test_sync_help_and_misuse(seed):
    out, err = cli.run("sync", "--help")
    assert out.startswith("usage: pegfs sync") and err == ""
    for args in ([], [seed], [seed, seed, seed], ["--nonsense", seed, seed],
                 ["--wait", "soon", seed, seed], ["", seed]):
        out, err = cli.run("sync", *args, status=2)
        assert out == "" and "pegfs sync --help" in err
    _, err = cli.run("sync", seed / "nothing", seed, status=1)
    assert "cannot be opened: No such file" in err


def test_sync_beside_another_one(seed, target):
    write_tool(seed, "t")
    target.mkdir(parents=True)
    lock = os.open(target, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    _, err = cli.run("sync", seed, target, status=1)
    assert f"another sync is at work on '{target}'" in err
    waiting = cli.start("sync", "--wait", "30", seed, target)
    time.sleep(0.1)
    assert waiting.poll() is None
    os.close(lock)
    assert waiting.wait(cli.LIMIT_S) == 0 and (target / "t").is_dir()
    waiting.communicate()


def test_a16_parallel_syncs_leave_one_whole_copy(seed, target):
    for number in range(20):
        write_tool(seed, f"t{number}", bin__x="x" * 10000)
    many = [cli.start("sync", "--wait", "30", seed, target) for _ in range(4)]
    for process in many:
        process.communicate(timeout=cli.LIMIT_S)
        assert process.returncode == 0
    assert tree(target) == tree(seed)


@pytest.mark.skipif(os.geteuid() != 0, reason="changes its user")
def test_r91_a_directory_without_write_permission_is_replaced_by_its_owner(seed, target, work):
    for version in 1, 2:
        write_tool(seed, "t", version, bin__deep__x="x")
        for path in "t/bin/deep", "t/bin":
            (seed / path).chmod(0o555)
        cli.run("sync", seed, target, user=65534, group=65534) if version > 1 else None
        if version == 1:
            target.mkdir(parents=True)
            for path in (target.parent, target):
                os.chown(path, 65534, 65534)
            cli.run("sync", seed, target, user=65534, group=65534)
        assert tree(target) == tree(seed)
        for path in "t/bin", "t/bin/deep":
            (seed / path).chmod(0o755)


# ---- crashes, readers, a full disk

FILES = {f"part{number}": 20_000 for number in range(6)}


def write_version(seed, name, version):
    """Each file holds its version, so that a mixture shows."""
    files = {f"bin__{part}": f"{version}\n" + "x" * size for part, size in FILES.items()}
    write_tool(seed, name, version, code=f"{version}\n", **files)


def look(tool):
    """The versions of a tool's files, through one descriptor of its directory."""
    fd = os.open(tool, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = []
        for name in ["index.ts", *(f"bin/{part}" for part in FILES)]:
            with open(os.open(name, os.O_RDONLY, dir_fd=fd), encoding="utf-8") as file:
                found.append(file.readline().strip())
        return found
    finally:
        os.close(fd)


def assert_whole(tool):
    """One version in all of its files; a reader whose directory was replaced looks once more."""
    for _ in range(100):
        try:
            found = look(tool)
        except FileNotFoundError:
            assert tool.is_dir(), f"{tool} is gone"
            continue
        assert len(set(found)) == 1, f"{tool}: {found}"
        return found[0]
    raise AssertionError(f"{tool} never holds still")


def test_a16_killed_at_random_points(seed, target):
    names = [f"t{number}" for number in range(4)]
    for name in names:
        write_version(seed, name, 1)
    cli.run("sync", seed, target)
    chance = random.Random(16)
    killed = 0
    for version in range(2, 42):
        for name in names:
            write_version(seed, name, version)
        process = cli.start("sync", seed, target)
        time.sleep(chance.uniform(0, 0.012))
        process.kill()
        process.communicate()
        killed += process.returncode != 0
        for name in names:
            assert assert_whole(target / name) in (str(version), str(version - 1))
        cli.run("sync", seed, target)
        assert tree(target) == tree(seed)
    assert killed > 5


def test_a16_readers_see_one_version_or_the_other(seed, target):
    write_version(seed, "t", 1)
    cli.run("sync", seed, target)
    seen, problems, done = set(), [], threading.Event()

    def read():
        while not done.is_set():
            try:
                seen.add(assert_whole(target / "t"))
            except (AssertionError, OSError) as problem:
                problems.append(problem)
                return

    reader = threading.Thread(target=read)
    reader.start()
    for version in range(2, 32):
        write_version(seed, "t", version)
        cli.run("sync", seed, target)
    done.set()
    reader.join()
    assert not problems and len(seen) > 2


@pytest.fixture
def small_disk(work):
    """A file system of 1 MB."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    path = work / "disk"
    path.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mount(b"tmpfs", bytes(path), b"tmpfs", 0, b"size=1m") == 0
    yield path
    assert libc.umount2(bytes(path), 2) == 0


def test_a16_a_full_disk_loses_nothing(seed, small_disk):
    target = small_disk / "tools"
    write_tool(seed, "big", 1, data="1" * 600_000)
    write_tool(seed, "small", 1)
    cli.run("sync", seed, target)
    before = tree(target / "big")
    write_tool(seed, "big", 2, data="2" * 600_000)
    write_tool(seed, "small", 2, data="2")
    out, err = cli.run("sync", seed, target, status=1)
    assert "'data' cannot be copied: No space left on device" in out
    assert "1 updated" in err and "1 failed" in err
    assert tree(target / "big") == before
    assert tree(target / "small") == tree(seed / "small")
    assert sorted(os.listdir(target)) == ["big", "small"]


def test_a16_what_a_crash_left_is_cleared(seed, target):
    write_tool(seed, "t")
    half = target / ".pegfs-sync-new"
    write_tool(target, ".pegfs-sync-new", bin__x="half")
    half.chmod(0o500)
    cli.run("sync", seed, target)
    assert os.listdir(target) == ["t"]


def test_sync_is_fast(seed, target):
    for number in range(1000):
        write_tool(seed, f"t{number:04}")
    cli.run("sync", seed, target)
    start = time.monotonic()
    cli.run("sync", seed, target)
    assert time.monotonic() - start < 20  # a guard against the absurd: 0.1 s here
    assert len(os.listdir(target)) == 1000
    assert not [name for name in os.listdir(target) if name.startswith(".")]
    assert pathlib.Path(target / "t0999" / "index.ts").is_file()


def test_a14_r92_a_mounted_tree_follows_at_once(seed, target, new_mount):
    answer = ("export async function execute() {\n"
              "  return { content: [{ type: 'text', text: '%d' }] };\n}\n")
    write_tool(seed, "t", 1, code=answer % 1)
    cli.run("sync", seed, target)
    mount = new_mount(tools=[target])
    assert mount.say("t") == "1"
    write_tool(seed, "t", 2, code=answer % 2)
    write_tool(seed, "u", 1, code=answer % 7)
    cli.run("sync", seed, target)
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        names = set(os.listdir(mount.path))
        assert "t" in names, "the tool was gone for a moment"
        if "u" in names and mount.say("t") == "2":
            break
        time.sleep(0.02)
    assert mount.say("t") == "2" and mount.say("u") == "7"
