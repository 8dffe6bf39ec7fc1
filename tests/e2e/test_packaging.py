"""make install, make deb, the systemd unit: what they put in place works from there."""

import os
import pathlib
import re
import socket

import pytest

from lib import mount as mounts
from lib.mount import EXAMPLES, ROOT, Mount
from lib.programs import check, need, run

pytestmark = pytest.mark.skipif(mounts.VARIANT != "", reason="packages are made of the plain build")


def make(target, *variables):
    return check(["make", "-C", ROOT, target, *variables], timeout=85)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    need("dpkg-deb", "dpkg-shlibdeps", "cmark")
    name = re.findall(r"^/.*\.deb$", make("deb"), re.M)[-1]
    place = tmp_path_factory.mktemp("package")
    check(["dpkg-deb", "-x", name, place])
    return pathlib.Path(name), place


def test_install_puts_everything_in_its_place_and_uninstall_takes_it_away(work):
    need("cmark")
    make("install", f"DESTDIR={work}", "PREFIX=/usr/local")
    there = {str(path.relative_to(work)) for path in work.rglob("*") if not path.is_dir()}
    assert {"usr/local/bin/pegfs", "sbin/mount.fuse.pegfs", "usr/local/share/man/man1/pegfs.1",
            "usr/local/share/man/man8/mount.fuse.pegfs.8",
            "usr/local/share/bash-completion/completions/pegfs",
            "usr/local/share/zsh/site-functions/_pegfs",
            "usr/local/share/fish/vendor_completions.d/pegfs.fish",
            "usr/local/lib/systemd/system/pegfs@.service",
            "usr/local/lib/systemd/system/officer@.service",
            "usr/local/share/pegfs/mountscripts/container/entrypoint.sh",
            "usr/local/share/pegfs/mountscripts/kubernetes/pod.yaml",
            "usr/local/lib/pegfs/host/node/host.mjs"} <= there
    assert os.access(work / "usr/local/share/pegfs/mountscripts/host/officer.sh", os.X_OK)
    for unit in (work / "usr/local/lib/systemd/system").iterdir():
        assert not re.search(r"=-?/usr/(bin|share)", unit.read_text()), unit
    assert "/usr/local/bin/pegfs mount" in (work / "usr/local/lib/systemd/system/pegfs@.service").read_text()
    assert run([work / "usr/local/bin/pegfs", "call", "--tools", EXAMPLES, "hello", "name=x"]).out == "Hello, x!\n"
    make("uninstall", f"DESTDIR={work}", "PREFIX=/usr/local")
    assert [path for path in work.rglob("*") if not path.is_dir()] == []


def test_the_package_is_lintian_clean(package):
    need("lintian")
    done = run(["lintian", "--fail-on", "error,warning", package[0]], timeout=80)
    assert done.status == 0 and done.out == "", done.out


def test_the_package_works_where_it_is_unpacked(package, work):
    _, place = package
    pegfs = place / "usr" / "bin" / "pegfs"
    (work / "mnt").mkdir()
    check([pegfs, "mount", work / "mnt", "--tools", EXAMPLES])
    assert check([pegfs, "call", "--mount", work / "mnt", "hello", "name=x"]) == "Hello, x!\n"
    check([pegfs, "umount", work / "mnt"])


def test_the_package_names_what_it_needs(package):
    depends = check(["dpkg-deb", "-f", package[0], "Depends"])
    for name in "libc6", "libfuse3-3", "libjansson4", "libyaml-0-2", "libcmark", "nodejs":
        assert re.search(rf"(?:^|, ){name}", depends), depends


@pytest.mark.parametrize("name", ["pegfs@officer-tools", "officer@ada\\x40example.org", "officers"])
def test_a_systemd_unit_is_one(package, work, name):
    need("systemd-analyze")
    unit = work / f"{name}.service"
    template = package[1] / "lib/systemd/system" / re.sub("@.*", "@", f"{name}.service", 1).replace("@", "@.service")
    unit.write_text(template.read_text().replace("/usr/", f"{package[1]}/usr/"))
    done = run(["systemd-analyze", "verify", "--man=no", unit])
    assert done.status == 0 and done.err == "", done.err
    hides = r"^(Private\w+|Protect\w+|ReadOnlyPaths|ReadWritePaths|InaccessiblePaths|Bind\w*Paths|TemporaryFileSystem|" \
            r"RootDirectory|RootImage|MountFlags|DynamicUser)="
    assert not re.search(hides, unit.read_text(), re.M), "its mount would be seen by itself alone"


def test_the_lines_for_fstab_are_some(package, work):
    need("findmnt")
    lines = (package[1] / "usr/share/pegfs/mountscripts/fstab/officer.fstab").read_text()
    paths = {"/officer": work / "officer", "/data": work / "data"}
    for name in ("officer/tools", "officer/user/tools", "officer/data", "data/tools", "data/ada@example.org/tools",
                 "data/ada@example.org/data"):
        (work / name).mkdir(parents=True)
    table = work / "fstab"
    table.write_text(re.sub(r"(?<![\w.])/(?:officer|data)\b", lambda found: str(paths[found[0]]), lines))
    done = run(["findmnt", "--verify", "--tab-file", table])
    assert done.status == 0 and "0 parse errors, 0 errors" in done.err, done
    helper = work / "mount.fuse.pegfs"
    helper.symlink_to(package[1] / "usr/bin/pegfs")
    fields = next(line.split() for line in table.read_text().splitlines() if "fuse.pegfs" in line)
    try:
        check([helper, fields[0], fields[1], "-o", re.sub("x-systemd[^,]*", "rw", fields[3])])
        config = (work / "officer/tools/.pegfs/config").read_text()
        assert "call-uid=1000" in config, config
    finally:
        run([mounts.PEGFS, "umount", "--lazy", fields[1]])


def test_the_files_for_quadlet_are_some(package):
    """What they say runs in test_containers.py; this is podman's own judgement."""
    programs = [path for path in ("/usr/libexec/podman/quadlet", "/usr/lib/podman/quadlet") if os.access(path, os.X_OK)]
    if not programs:
        pytest.skip("no quadlet: it comes with podman 4.4 and later")
    done = run([programs[0], "-dryrun"], env={"QUADLET_UNIT_DIRS": package[1] / "usr/share/pegfs/mountscripts/quadlet"})
    assert done.status == 0 and "agent-inside.service" in done.out and "agent-host.service" in done.out, done


@pytest.mark.parametrize("is_abstract", [False, True])
def test_systemd_is_told_when_the_mount_is_ready(work, is_abstract):
    name = f"\0pegfs-test-{os.getpid()}" if is_abstract else str(work / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(name)
        listener.settimeout(10)
        mount = Mount(work, tools=[EXAMPLES], env={"NOTIFY_SOCKET": name.replace("\0", "@")}).start()
        # Before it come the descriptors that it is to keep: test_managed.py.
        assert b"READY=1" in [listener.recv(64) for _ in range(6)]
        assert (mount / "hello" / "call").exists()

        assert mount.stop() == []
