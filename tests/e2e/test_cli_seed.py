"""pegfs mount --seed: the tools of a seed are in the first directory before anybody sees the tree."""

import concurrent.futures
import os

from lib import cli
from lib.cli import write_tool
from lib.mount import PEGFS, Mount
from lib.programs import run, until


def seeded(work, **tools):
    for name, version in tools.items():
        write_tool(work / "seed", name, version=version)
    return ["--seed", work / "seed"]


def test_r90_seed_fills_the_first_directory_before_the_tree_is_there(work, new_mount):
    write_tool(work / "user", "mine")
    mount = new_mount(tools=[work / "tools", work / "user"], args=seeded(work, one=1, two=2))
    assert {"one", "two", "mine"} <= set(os.listdir(mount.path))
    assert sorted(os.listdir(work / "tools")) == ["one", "two"]
    assert os.listdir(work / "user") == ["mine"]


def test_r93_seed_leaves_what_is_not_older(work, new_mount):
    write_tool(work / "tools", "one", version=1, code="// old\nexport async function execute() {}\n")
    write_tool(work / "tools", "two", version=2, code="// mine\nexport async function execute() {}\n")
    mount = new_mount(tools=[work / "tools"], args=seeded(work, one=2, two=2))
    assert "old" not in mount.text("one/index.ts")
    assert "mine" in mount.text("two/index.ts")


def test_two_mounts_with_one_seed_can_start_at_once(work):
    args = seeded(work, **{f"tool_{number}": 1 for number in range(40)})
    mounts = []
    for number in range(2):
        directory = work / f"m{number}"
        directory.mkdir()
        mounts.append(Mount(directory, tools=[work / "tools"], args=args))
    # A daemon dies with the thread that has started it: none ends before the mounts do.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(Mount.start, mounts))
        for mount in mounts:
            assert len([name for name in os.listdir(mount.path) if name.startswith("tool_")]) == 40
        assert [problem for mount in mounts for problem in mount.stop()] == []


def test_a_seed_that_is_not_there_mounts_nothing(work):
    (work / "mnt").mkdir()
    done = run([PEGFS, "mount", work / "mnt", "--tools", work / "tools", "--seed", work / "none"])
    assert done.status == 1 and "--seed" in done.err and "No such file" in done.err
    assert not os.path.ismount(work / "mnt")


def test_a_target_that_cannot_be_written_mounts_nothing_and_says_why(work):
    (work / "mnt").mkdir()
    (work / "file").write_text("")
    done = run([PEGFS, "mount", work / "mnt", "--tools", work / "file", *seeded(work, one=1)])
    assert done.status == 1 and done.err.startswith("pegfs mount: --seed: "), done.err
    assert not os.path.ismount(work / "mnt")


def test_what_fails_of_a_seed_is_told_and_the_rest_is_there(work, new_mount):
    args = seeded(work, one=1, two=1)
    (work / "tools").mkdir()
    (work / "tools" / "two").write_text("in the way")
    mount = new_mount(tools=[work / "tools"], args=args)
    until(lambda: "two" in mount.log(), what="a line about the tool that failed")
    assert "one" in os.listdir(mount.path)


def test_sync_of_a_mounted_directory_is_seen_at_once(work, new_mount):
    mount = new_mount(tools=[work / "tools"], args=seeded(work, one=1))
    write_tool(work / "seed", "three")
    cli.run("sync", work / "seed", work / "tools")
    until(lambda: "three" in os.listdir(mount.path), what="the new tool")
