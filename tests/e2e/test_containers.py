"""pegfs in and around real containers, as mountscripts/ and docs/containers.md set it up."""

import signal
import subprocess
import sys

from lib.mount import EXAMPLES, ROOT
from lib.programs import check, is_alive, until

HELLO = 'echo \'{"name":"Ada"}\' > /officer/tools/hello/call && cat /officer/tools/hello/result.txt'
INSIDE = ["--device", "/dev/fuse", "--cap-add", "SYS_ADMIN"]
TOOLS = (EXAMPLES, "/tools", "ro")


# ---------------------------------------------------------------- the containers of the tests

def test_a_container_ends_with_its_test(machine, work):
    """Also where the test process is killed."""
    (work / "other").mkdir()
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


def test_podman_of_the_machine_knows_nothing_of_it(machine):
    with machine.start() as container:
        assert container.exec("id -u").out == "0\n"
        names = check(machine.inside("podman", "ps", "-a", "--format", "{{.Names}}"))
        assert container.name not in names.split()


# ---------------------------------------------------------------- mounted on the host, bound into a container

def test_a_mount_of_the_host_is_seen_in_a_container(machine, new_mount):
    mount = new_mount(args=["--call-uid", 1000])
    done = machine.run(HELLO, volumes=[(mount.path, "/officer/tools", "rslave")])
    assert done.out == "Hello, Ada!\n", done
