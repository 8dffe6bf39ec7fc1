"""Everything but `call` is read-only: R80, R81, T21."""

import errno
import os
import pathlib

import pytest

from lib.programs import OTHER_USER, check, need, run

CREATE, REMOVE, CHANGE = {errno.EROFS}, {errno.EPERM}, {errno.EROFS, errno.EPERM}

CASES = [
    ("create_at_the_root", lambda m: os.open(m / "new", os.O_CREAT | os.O_WRONLY), CREATE),
    ("create_in_a_tool", lambda m: os.open(m / "hello/new", os.O_CREAT | os.O_WRONLY), CREATE),
    ("create_deeper", lambda m: os.open(m / "helper/bin/new", os.O_CREAT | os.O_WRONLY), CREATE),
    ("create_in_pegfs", lambda m: os.open(m / ".pegfs/new", os.O_CREAT | os.O_WRONLY), CREATE),
    ("mkdir_at_the_root", lambda m: os.mkdir(m / "new"), CREATE),
    ("mkdir_in_a_tool", lambda m: os.mkdir(m / "hello/new"), CREATE),
    ("symlink", lambda m: os.symlink("x", m / "hello/new"), CREATE),
    ("mkfifo", lambda m: os.mkfifo(m / "hello/new"), CREATE),
    ("hard_link", lambda m: os.link(m / "hello/TOOL.md", m / "hello/new"), CHANGE),
    ("write_schema", lambda m: os.open(m / "hello/schema.json", os.O_WRONLY), CREATE | {errno.EACCES}),
    ("write_prompt", lambda m: os.open(m / "hello/prompt.md", os.O_RDWR), CREATE | {errno.EACCES}),
    ("write_tool_md", lambda m: os.open(m / "hello/TOOL.md", os.O_WRONLY), CREATE | {errno.EACCES}),
    ("write_result", lambda m: os.open(m / "hello/result.txt", os.O_WRONLY), CREATE | {errno.EACCES}),
    ("write_root", lambda m: os.open(m / "README.md", os.O_WRONLY | os.O_TRUNC), CREATE | {errno.EACCES}),
    ("truncate", lambda m: os.truncate(m / "hello/TOOL.md", 0), CHANGE | {errno.EACCES}),
    ("chmod", lambda m: os.chmod(m / "hello/TOOL.md", 0o777), CHANGE),
    ("chown", lambda m: os.chown(m / "hello/schema.json", 1, 1), CHANGE),
    ("utimes", lambda m: os.utime(m / "hello/schema.json", (1, 1)), CHANGE),
    ("chmod_directory", lambda m: os.chmod(m / "hello", 0o777), CHANGE),
    ("unlink", lambda m: os.unlink(m / "hello/TOOL.md"), REMOVE),
    ("unlink_call", lambda m: os.unlink(m / "hello/call"), REMOVE),
    ("unlink_schema", lambda m: os.unlink(m / "hello/schema.json"), REMOVE),
    ("rename_file", lambda m: os.rename(m / "hello/TOOL.md", m / "hello/x"), REMOVE),
    ("rename_over", lambda m: os.rename(m / "hello/TOOL.md", m / "hello/index.ts"), REMOVE),
    ("rename_tool", lambda m: os.rename(m / "hello", m / "other"), REMOVE),
    ("rmdir", lambda m: os.rmdir(m / "hello"), REMOVE),
    ("rmdir_deeper", lambda m: os.rmdir(m / "helper/bin"), REMOVE),
    ("setxattr", lambda m: os.setxattr(m / "hello/TOOL.md", "user.x", b"1"),
     CHANGE | {errno.EOPNOTSUPP, errno.EACCES}),
]


def fingerprint(m):
    return {path: os.lstat(path).st_mode for directory, subdirectories, files in os.walk(m.path)
            for path in (os.path.join(directory, name) for name in subdirectories + files)}


@pytest.mark.parametrize("act, errors", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_r80_r81_t21_nothing_can_be_changed(m, act, errors):
    if os.geteuid() != 0:
        errors = errors | {errno.EACCES}
    before = (m / "hello/TOOL.md").read_bytes()
    with pytest.raises(OSError) as caught:
        act(m)
    assert caught.value.errno in errors, errno.errorcode[caught.value.errno]
    assert (m / "hello/TOOL.md").read_bytes() == before


PROGRAMS = [
    'sed -i s/a/b/ hello/TOOL.md', 'rm -rf hello', 'rm -f hello/schema.json', 'mv hello other',
    'cp /etc/hostname hello/TOOL.md', 'cp /etc/hostname hello/new', 'mkdir -p x/y', 'touch new',
    'echo x > README.md', 'echo x >> hello/prompt.md', 'ln -s a b', 'ln hello/TOOL.md copy',
    'chmod 777 hello', 'chmod u+w hello/TOOL.md', 'install /etc/hostname hello/installed',
    'tee prompt.md < /etc/hostname', 'truncate -s 0 tools.json', 'dd if=/dev/zero of=hello/index.ts count=1',
    'tar -xf "$W/t.tar"', 'vim -u NONE -es -c "normal ix" -c wq! hello/TOOL.md',
]


@pytest.mark.parametrize("command", PROGRAMS)
@pytest.mark.parametrize("uid", [None, OTHER_USER])
def test_t21_program_that_changes_the_tree_fails(m, work, command, uid):
    if uid is not None and os.geteuid() != 0:
        pytest.skip("needs root, to be another user")
    need(command.split()[0])
    (work / "inside.txt").write_text("from a tar file")
    check('tar -C "$W" -cf "$W/t.tar" inside.txt', env={"W": work})
    before = fingerprint(m)
    done = run(command, cwd=m.path, uid=uid, env={"W": work, "HOME": work})
    assert done.status != 0, done
    assert fingerprint(m) == before


def test_no_temporary_files_appear(m):
    run("vim -u NONE -es -c 'normal ix' -c wq! hello/call", cwd=m.path)
    assert not [name for name in os.listdir(m / "hello") if name.endswith((".swp", "~"))]


def test_attributes_of_call_can_be_set_without_effect(m):
    """cp -p, tar and rsync set them; they must not fail, and nothing may change."""
    before = os.stat(m / "hello/call")
    os.chmod(m / "hello/call", 0o600)
    os.utime(m / "hello/call", (1, 1))
    if os.geteuid() == 0:
        os.chown(m / "hello/call", 12, 34)
    os.truncate(m / "hello/call", 5)
    after = os.stat(m / "hello/call")
    assert (after.st_mode, after.st_mtime, after.st_size, after.st_uid) == \
        (before.st_mode, before.st_mtime, before.st_size, before.st_uid)


def test_user_who_owns_the_request_may_set_attributes_too(m):
    """H11: call belongs to whoever asks."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to be another user")
    check("chmod 600 hello/call && touch hello/call && test -O hello/call", cwd=m.path, uid=OTHER_USER)


def test_result_cannot_be_touched(m):
    for act in (lambda path: os.chmod(path, 0o777), lambda path: os.utime(path, (1, 1)),
                lambda path: os.truncate(path, 0)):
        with pytest.raises(OSError):
            act(pathlib.Path(m / "hello/result.json"))
