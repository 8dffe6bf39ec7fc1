"""What the tree looks like: which tools are there, which files, and that looking is harmless."""

import hashlib
import json
import mmap
import os
import pathlib
import shutil
import stat

import pytest

from lib.mount import BROKEN, EXAMPLES, FIXTURES, USER
from lib.programs import OTHER_USER, THIRD_USER, check, need, run, until

SYNTHESIZED = ["schema.json", "prompt.md", "call", "result.json", "result.txt", "log"]
ROOT_FILES = ["README.md", "prompt.md", "tools.json"]


def put_tool(directory, name, text="never", **front):
    """A small valid tool below a source directory; it answers with a text."""
    tool = pathlib.Path(directory) / name
    tool.mkdir(parents=True)
    front = {"name": name, "description": f"The tool {name}.", "version": 1, **front}
    (tool / "TOOL.md").write_text(
        "---\n" + "".join(f"{key}: {value}\n" for key, value in front.items()) + f"---\n# {name}\n")
    (tool / "index.js").write_text("export async function execute() {\n"
                                   f"    return {{ content: [{{ type: 'text', text: {json.dumps(text)} }}] }};\n}}\n")
    return tool


def names(mount):
    return sorted(set(os.listdir(mount.path)) - set(ROOT_FILES) - {".pegfs"})


# ------------------------------------------------------------------------ which tools are there

def test_r1_r3_r4_hello_is_there_and_can_be_called(m):
    assert "hello" in names(m)
    assert m.ask("hello", {"name": "Ann"}) == {"content": [{"type": "text", "text": "Hello, Ann!"}]}


def test_r2_r5_a_tool_is_a_directory_with_its_own_and_the_made_files(m):
    assert set(os.listdir(m / "hello")) >= {"TOOL.md", "index.ts", *SYNTHESIZED}
    assert set(os.listdir(m / "helper/bin")) == {"process.py", "show.sh", "data"}


def test_root_lists_tools_and_texts(m):
    assert set(os.listdir(m.path)) >= {*ROOT_FILES, ".pegfs", "hello", "my_db"}
    assert "errors" in os.listdir(m / ".pegfs")
    assert check(["ls", m.path]).split() == sorted(ROOT_FILES + names(m))


def test_a7_the_name_of_the_tree_is_the_one_in_the_front_matter(m):
    assert "from_python" in names(m) and "python" not in names(m)


def test_r98_a7_of_equal_names_in_one_directory_the_last_in_byte_order_wins(m):
    assert m.say("twin") == "twin_b"
    assert "twin_b" in m.text("twin/prompt.md")
    assert "twin_a" in m.text(".pegfs/errors")


def test_r7_index_js_is_an_entry(m):
    assert m.say("modern").startswith("index.js")


def test_a6_index_ts_wins_over_index_js(m):
    assert m.say("both") == "index.ts"


def test_r8_further_files_do_no_harm(m):
    assert {"extra.ts", "package.json"} <= set(os.listdir(m / "imports"))
    assert json.loads(m.say("imports"))["plain"] == "without extension"


def test_r6_r97_a_directory_that_misses_a_file_is_skipped(new_mount):
    mount = new_mount(tools=(BROKEN,))
    assert names(mount) == ["good", "not_utf8"], "bytes that are no UTF-8 are shown as U+FFFD"
    assert mount.say("good") == "never"


def test_a5_broken_tools_are_reported_with_their_place(new_mount):
    mount = new_mount(tools=(BROKEN,))
    errors = mount.text(".pegfs/errors")
    for name in ("no_tool_md", "no_entry", "no_name", "no_description", "no_front_matter",
                 "unclosed", "bad_yaml", "duplicate_key", "alias", "path_name", "slash_name",
                 "hidden_name", "reserved_name", "map_name", "not_utf8"):
        assert f"/{name}" in errors, f"{name} is not in:\n{errors}"
    lines = [line for line in errors.splitlines() if "/duplicate_key/TOOL.md:" in line]
    assert any(":4:" in line for line in lines), lines
    assert any("3" in line.split("TOOL.md:", 1)[1] for line in lines), "both lines are named"
    assert [line for line in errors.splitlines() if "/bad_yaml/TOOL.md:" in line]
    assert "/good/" not in errors and "TOOLS.md" not in errors and "concealed" not in errors


def test_lenient_reading_keeps_the_tool_and_warns(m):
    assert "an unquoted colon" in m.text("lenient/prompt.md")
    line = next(line for line in m.text(".pegfs/errors").splitlines() if "lenient/TOOL.md:" in line)
    assert "warning" in line


def test_a13_byte_order_mark_and_carriage_returns(m):
    assert "from_windows" in names(m)
    assert m.say("from_windows") == "windows"
    assert "The rule above is no fence." in m.text("from_windows/prompt.md")


def test_r12_a_user_tool_overrides_the_global_one_as_a_whole(new_mount):
    mount = new_mount(tools=(EXAMPLES, FIXTURES, USER))
    assert list(mount.json("hello/schema.json")["properties"]) == ["who"]
    assert "overrides the global one" in mount.text("hello/prompt.md")
    assert "Greets one person" not in mount.text("hello/prompt.md")
    assert mount.say("hello", {"who": "Ann"}) == "Hi, Ann"
    assert mount.text("hello/own.txt") == "the user's\n"
    assert (mount / "hello/TOOL.md").read_bytes() == (USER / "hello/TOOL.md").read_bytes()


def test_r99_the_order_of_the_directories_decides(new_mount):
    mount = new_mount(tools=(USER, EXAMPLES))
    assert mount.say("hello", {"name": "Ann"}) == "Hello, Ann!"
    assert "own.txt" not in os.listdir(mount / "hello")


def test_t18_an_invalid_tool_hides_nothing(new_mount):
    """A user directory with only one of the two files is no tool, and a faulty one neither."""
    mount = new_mount(tools=(EXAMPLES, FIXTURES, USER))
    assert json.loads(mount.say("echo", {"text": "x"})) == {"text": "x"}
    assert mount.say("slow", {"ms": 0}) == "slept 0"
    assert mount.json("count/schema.json")["required"] == ["file"]
    errors = mount.text(".pegfs/errors")
    for name in ("user/echo", "user/count", "user/slow"):
        assert name in errors


def test_r11_r72_r96_the_directories_come_from_the_environment(work, new_mount):
    put_tool(work / "one", "first")
    put_tool(work / "two", "second")
    (work / "two" / "TOOLS.md").write_text("A plain file.\n")
    elsewhere = put_tool(work / "elsewhere", "unseen")
    mount = new_mount(tools=(f"{work}/one::{work}/missing:{work}/two:",))
    assert names(mount) == ["first", "second"]
    assert elsewhere.exists()
    assert "missing" in mount.text(".pegfs/errors")


def test_r13_a14_a_tool_that_appears_changes_and_goes_is_seen(work, new_mount):
    source = work / "tools"
    put_tool(source, "steady")
    mount = new_mount(tools=(source,))
    assert names(mount) == ["steady"]
    put_tool(work / "made", "fresh", text="new")
    os.rename(work / "made" / "fresh", source / "fresh")
    until(lambda: "fresh" in names(mount), what="the new tool")
    assert mount.say("fresh") == "new"
    assert "The tool fresh." in mount.text("prompt.md")
    assert (mount / "fresh").is_dir()

    manifest = source / "fresh" / "TOOL.md"
    manifest.write_text(manifest.read_text().replace("The tool fresh.", "Described anew."))
    until(lambda: "Described anew." in mount.text("fresh/prompt.md"), what="the new description")
    assert os.stat(mount / "fresh/prompt.md").st_size == len((mount / "fresh/prompt.md").read_bytes())

    (source / "fresh" / "index.js").write_text(
        (source / "fresh" / "index.js").read_text().replace("new", "newer"))
    until(lambda: mount.say("fresh") == "newer", what="the new entry")

    shutil.rmtree(source / "fresh")
    until(lambda: "fresh" not in names(mount), what="the end of the tool")
    with pytest.raises(FileNotFoundError):
        os.stat(mount / "fresh/schema.json")
    assert mount.say("steady") == "never"


def test_source_that_comes_later_is_seen(work, new_mount):
    mount = new_mount(tools=(work / "later",))
    assert names(mount) == []
    put_tool(work / "made", "first")
    os.rename(work / "made", work / "later")
    until(lambda: names(mount) == ["first"], what="the new source")


# --------------------------------------------------------------------------- the files themselves

def walk(mount):
    for directory, _, files in os.walk(mount.path):
        for name in files:
            yield os.path.join(directory, name)


def test_every_size_is_the_true_size(m):
    m.ask("hello", {"name": "Ada"})
    seen = 0
    for path in walk(m):
        with open(path, "rb") as file:
            content = file.read()
        assert os.stat(path).st_size == len(content), path
        seen += 1
    assert seen > 200


def test_listing_agrees_with_look_up(m):
    for directory, subdirectories, files in os.walk(m.path):
        with os.scandir(directory) as entries:
            for entry in entries:
                status = os.lstat(entry.path)
                assert entry.is_dir(follow_symlinks=False) == stat.S_ISDIR(status.st_mode), entry.path
        assert len(set(subdirectories + files)) == len(subdirectories + files), directory


def test_large_directory_is_listed_whole(work, new_mount):
    for number in range(500):
        put_tool(work / "many", f"tool_with_a_rather_long_name_{number:04}")
    mount = new_mount(tools=(work / "many",))
    expected = [f"tool_with_a_rather_long_name_{number:04}" for number in range(500)]
    assert names(mount) == expected
    assert len(mount.json("tools.json")) == 500
    assert check(["ls", "-U", mount.path]).split().count(expected[300]) == 1


def test_modes_are_truthful(m):
    assert stat.S_IMODE(os.stat(m / "hello/call").st_mode) == 0o666
    for name in SYNTHESIZED:
        status = os.stat(m / "hello" / name)
        assert stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        assert name == "call" or stat.S_IMODE(status.st_mode) == 0o444, name
    assert stat.S_IMODE(os.stat(m / "hello").st_mode) == 0o555
    assert stat.S_IMODE(os.stat(m / "helper/bin/show.sh").st_mode) & 0o555 == 0o555
    assert stat.S_IMODE(os.stat(m / "helper/bin/process.py").st_mode) & 0o222 == 0


def test_call_is_one_file_for_stat(m):
    assert {os.stat(m / "hello/call").st_ino for _ in range(5)} == {os.stat(m / "hello/call").st_ino}
    assert len({os.stat(m / "hello/call").st_mtime for _ in range(5)}) == 1


def test_times_are_no_epoch(m):
    for path in walk(m):
        assert os.lstat(path).st_mtime > 1_000_000_000, path


def test_before_any_call_the_result_says_so(m):
    assert m.text("ids/result.json") == "null\n"
    assert m.text("ids/result.txt") == ""


def test_statfs_and_df(m):
    assert os.statvfs(m.path).f_namemax >= 255
    check(["df", m.path])
    assert check(["stat", "-f", "-c", "%T", m.path]).strip().startswith("fuse")


# ------------------------------------------------------------------------------- passed through

def test_passed_through_files_are_the_same_bytes(m):
    for path in ("hello/TOOL.md", "hello/index.ts", "helper/bin/process.py", "imports/lib/index.ts",
                 "helper/bin/data/table.txt"):
        source = (EXAMPLES if path.startswith("hello/") else FIXTURES) / path
        assert (m / path).read_bytes() == source.read_bytes(), path


def test_r84_helpers_can_be_executed_and_mapped(m):
    assert check([m / "helper/bin/show.sh"]) == "executed\n"
    with open(m / "helper/bin/process.py", "rb") as file, \
            mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ) as mapped:
        assert mapped[:] == (FIXTURES / "helper/bin/process.py").read_bytes()


def test_shared_library_can_be_loaded_from_a_tool(work, new_mount):
    tool = put_tool(work / "tools", "library")
    shutil.copy(pathlib.Path("/lib/x86_64-linux-gnu/libcmark.so.0.30.2")
                if os.path.exists("/lib/x86_64-linux-gnu/libcmark.so.0.30.2")
                else next(pathlib.Path("/usr/lib").glob("**/libjansson.so.4")), tool / "it.so")
    shutil.copy("/bin/true", tool / "true")
    mount = new_mount(tools=(work / "tools",))
    check(["/usr/bin/python3", "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])",
           mount / "library/it.so"])
    check([mount / "library/true"])


def test_nothing_outside_a_tool_can_be_reached(work, new_mount):
    tool = put_tool(work / "tools", "sly")
    (work / "secret.txt").write_text("secret of another")
    (tool / "absolute").symlink_to(work / "secret.txt")
    (tool / "relative").symlink_to("../../secret.txt")
    (tool / "inner").symlink_to("index.js")
    (tool / "directory").symlink_to("/etc")
    (tool / "dangling").symlink_to("nowhere")
    os.mkfifo(tool / "fifo")
    if os.geteuid() == 0:
        os.mknod(tool / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    mount = new_mount(tools=(work / "tools",))
    assert os.readlink(mount / "sly/absolute") == str(work / "secret.txt")
    assert os.readlink(mount / "sly/relative") == "../../secret.txt"
    assert (mount / "sly/inner").read_bytes() == (tool / "index.js").read_bytes()
    # A link is resolved by the reader's kernel, in the reader's tree: never by the daemon.
    with pytest.raises(FileNotFoundError):
        (mount / "sly/relative").read_text()
    listed = set(os.listdir(mount / "sly"))
    assert not {"fifo", "device"} & listed
    for name in ("fifo", "device"):
        with pytest.raises(OSError):
            os.open(mount / "sly" / name, os.O_RDONLY | os.O_NONBLOCK)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_files_in_a_directory_that_others_may_not_enter_are_closed_to_them(work, new_mount):
    tool = put_tool(work / "tools", "private")
    (tool / "token").write_text("of the owner")
    (tool / "token").chmod(0o644)
    os.chown(tool, THIRD_USER, THIRD_USER)
    tool.chmod(0o700)
    mount = new_mount(tools=(work / "tools",))
    read = ["cat", mount / "private/token"]
    assert run(read, uid=OTHER_USER).status != 0
    assert run(read, uid=THIRD_USER).out == run(read).out == "of the owner"
    assert run(["cat", mount / "private/prompt.md"], uid=OTHER_USER).status == 0
    tool.chmod(0o755)
    until(lambda: run(read, uid=OTHER_USER).out == "of the owner", what="the file that is open to all again")


def test_tool_directory_that_is_a_link_out_of_the_source_is_no_way_out(work, new_mount):
    outside = put_tool(work / "outside", "outsider")
    source = work / "tools"
    source.mkdir()
    (source / "linked").symlink_to(outside)
    put_tool(source, "honest")
    (source / "half").mkdir()
    (source / "half" / "TOOL.md").symlink_to("/etc/passwd")
    (source / "half" / "index.js").symlink_to(outside / "index.js")
    mount = new_mount(tools=(source,))
    assert "honest" in names(mount)
    assert "outsider" not in names(mount)
    assert "root:" not in mount.text(".pegfs/errors")


def test_own_file_of_a_reserved_name_is_hidden_and_reported(m):
    assert m.text("reserved/call").startswith("#")
    assert "properties" in m.json("reserved/schema.json")
    errors = [line for line in m.text(".pegfs/errors").splitlines() if "reserved/" in line]
    assert any("call" in line for line in errors) and any("schema.json" in line for line in errors)


def test_changed_file_is_served_as_it_is(work, new_mount):
    tool = put_tool(work / "tools", "moving")
    (tool / "data.txt").write_text("before\n")
    mount = new_mount(tools=(work / "tools",))
    assert mount.text("moving/data.txt") == "before\n"
    (tool / "data.txt").write_text("afterwards\n")
    until(lambda: mount.text("moving/data.txt") == "afterwards\n", what="the new content")
    assert os.stat(mount / "moving/data.txt").st_size == len("afterwards\n")
    (tool / "more.txt").write_text("more\n")
    until(lambda: "more.txt" in os.listdir(mount / "moving"), what="the new file")
    assert mount.text("moving/more.txt") == "more\n"


# ------------------------------------------------------------------------- looking is harmless

WALKS = [
    ("ls", 'ls -lR "$M"', ()), ("find", 'find "$M" -type f -size +0', ()),
    ("grep", 'grep -r "Ada" "$M" || test $? = 1', ()),
    ("grep_D", 'grep -rn --devices=read Ada "$M" || test $? = 1', ()),
    ("tar", 'tar -C "$M" -cf "$W/all.tar" . && tar -tf "$W/all.tar" > "$W/list"', ()),
    ("tar_wc", 'test "$(tar c -C "$M" . | wc -c)" -gt 100000', ()),
    ("cp_r", 'cp -r "$M" "$W/copy"', ()), ("cp_a", 'cp -a "$M" "$W/copy-a"', ()),
    ("busybox_cp", 'busybox cp -r "$M" "$W/copy-b"', ("busybox",)), ("du", 'du -a "$M"', ()),
    ("rsync", 'rsync -a "$M/" "$W/rsynced"', ("rsync",)),
    ("find_cat", 'find "$M" -type f -exec cat {} + > "$W/cat"', ()),
    ("find_wc", 'find "$M" -type f -exec wc -c {} +', ()),
    ("file", 'find "$M" -type f -exec file {} + > /dev/null', ("file",)),
    ("md5sum", 'find "$M" -type f -exec md5sum {} + > /dev/null', ()),
    ("zip", 'cd "$M" && zip -q -r "$W/all.zip" .', ("zip",)),
    ("git_diff", 'git diff --no-index --stat "$M" "$W/document" > /dev/null; test $? = 1', ("git",)),
    ("less", 'less -E "$M/hello/call" > /dev/null', ("less",)),
    ("diff", 'diff -r "$M/hello" "$M/hello"', ()),
    ("python", '/usr/bin/python3 -c "import shutil,os;shutil.copytree(os.environ[\'M\'],'
     'os.environ[\'W\']+\'/tree\',symlinks=True)"', ()),
    ("node", "node -e 'fs.cpSync(process.env.M, process.env.W + \"/node\", {recursive: true})'", ()),
]


@pytest.mark.parametrize("command, needs", [walk[1:] for walk in WALKS], ids=[walk[0] for walk in WALKS])
def test_t2_looking_at_all_ends_and_runs_nothing(m, work, command, needs):
    need(*needs)
    (work / "document").mkdir()
    done = run(command, env={"M": m.path, "W": work}, timeout=60)
    assert done.status == 0, done.err
    assert not (m.work / "mark").exists(), "a tool was loaded"
    assert m.text("at_import/result.json") == "null\n"


def test_t2_copies_are_equal_to_what_cat_shows(m, work):
    need("rsync")
    check('tar -C "$M" -cf - . | tar -C "$W" -xf - --one-top-level=tar; rsync -a "$M/" "$W/rsync"; '
          'cp -r "$M" "$W/cp"', env={"M": m.path, "W": work})
    for path in walk(m):
        relative = os.path.relpath(path, m.path)
        # what moves by itself is left out: other tests of this mount may have run in between
        if relative.startswith(".pegfs/"):
            continue
        content = pathlib.Path(path).read_bytes()
        for copy in ("tar", "rsync", "cp"):
            assert (work / copy / relative).read_bytes() == content, f"{copy}: {relative}"


READERS = [
    ("cat", 'cat "$F"', ()), ("busybox_cat", 'busybox cat "$F"', ("busybox",)),
    ("head", 'head -c 1000000000 "$F"', ()), ("dd", 'dd status=none bs=7 if="$F"', ()),
    ("dd_direct", 'dd status=none bs=4096 iflag=direct if="$F"', ()),
    ("cp", 'cp "$F" "$W/x" && cat "$W/x"', ()),
    ("busybox_cp", 'busybox cp "$F" "$W/x" && cat "$W/x"', ("busybox",)),
    ("tail", 'tail -c +1 "$F"', ()), ("tac", 'tac "$F" | tac', ()), ("sed", 'sed "" "$F"', ()),
    ("awk", 'cat "$F" | cat; test "$(wc -c < "$F")" = "$(stat -c %s "$F")"', ()),
    ("node_readFile", "node -e 'process.stdout.write(fs.readFileSync(process.env.F))'", ()),
    ("node_copyFile", 'node -e "fs.copyFileSync(process.env.F, process.env.W + \'/x\')" && cat "$W/x"', ()),
    ("python_copyfile", '/usr/bin/python3 -c "import shutil,os;shutil.copyfile(os.environ[\'F\'],'
     'os.environ[\'W\']+\'/x\')" && cat "$W/x"', ()),
    ("python_fstat", '/usr/bin/python3 -c "import os\nf=os.open(os.environ[\'F\'],os.O_RDONLY)\n'
     'os.write(1,os.read(f,os.fstat(f).st_size))"', ()),
    ("sendfile", '/usr/bin/python3 -c "import os\nf=os.open(os.environ[\'F\'],os.O_RDONLY)\n'
     'o=os.open(os.environ[\'W\']+\'/x\',os.O_CREAT|os.O_WRONLY)\n'
     'os.sendfile(o,f,0,os.fstat(f).st_size)" && cat "$W/x"', ()),
    ("mmap", '/usr/bin/python3 -c "import os,mmap\nf=os.open(os.environ[\'F\'],os.O_RDONLY)\n'
     'n=os.fstat(f).st_size\nos.write(1,mmap.mmap(f,n,mmap.MAP_PRIVATE,mmap.PROT_READ)[:] if n else b\'\')"', ()),
    ("perl", "perl -e 'open(F,$ENV{F}); local $/; print <F>'", ()),
    ("tar", 'tar -C "$(dirname "$F")" -cf - "$(basename "$F")" | tar -xOf -', ()),
    ("rsync", 'rsync "$F" "$W/x" && cat "$W/x"', ("rsync",)),
]


@pytest.mark.parametrize("command, needs", [reader[1:] for reader in READERS],
                         ids=[reader[0] for reader in READERS])
def test_every_reader_gets_every_byte(m, work, command, needs):
    need(*needs)
    m.ask("shapes", {"shape": "several"})
    m.ask("prints", {"name": "x"})
    files = [m / name for name in ROOT_FILES] + [m / "shapes" / name for name in SYNTHESIZED] + \
        [m / "prints/log", m / "helper/bin/process.py", m / ".pegfs/errors"]
    for file in files:
        if "tac" in command and file.name in ("log", "result.txt"):
            continue  # tac joins a last line without a newline to the one before
        (work / "x").unlink(missing_ok=True)
        out = check(command, env={"F": file, "W": work})
        assert hashlib.md5(out.encode("utf-8", "surrogateescape")).digest() == \
            hashlib.md5(file.read_bytes()).digest(), file


def test_r97_reading_the_texts_does_not_load_the_entry(m):
    """Lazy: an entry with a syntax error, or with a side effect, is only loaded by a call."""
    for name in ("at_import", "syntax_error"):
        assert m.json(f"{name}/schema.json")["type"] == "object"
        assert name in m.text(f"{name}/prompt.md")
    assert not (m.work / "mark").exists()
    assert m.fail("syntax_error")
    assert m.say("at_import") == "imported"
    assert (m.work / "mark").read_text() == "imported"
    (m.work / "mark").unlink()
