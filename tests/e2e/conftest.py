"""Fixtures of the end-to-end tests: real mounts, real programs."""

import os
import pathlib
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading

import pytest
from _pytest.runner import runtestprotocol

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lib import mount as mounts  # noqa: E402
from lib import podman  # noqa: E402
from lib.mount import Mount  # noqa: E402
from lib.programs import until  # noqa: E402

TEST_LIMIT_S = 90  # after which the mounts are aborted, so that a blocked test fails


def pytest_configure():
    os.umask(0o022)
    # A shell that starts this in the background has it ignored, and all that is started here, too.
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    mounts.isolate()


def pytest_terminal_summary(terminalreporter):
    count = {kind: len(terminalreporter.stats.get(kind, [])) for kind in
             ("passed", "failed", "error", "skipped")}
    print(f"== e2e: {count['passed']} passed, {count['failed'] + count['error']} failed, "
          f"{count['skipped']} skipped")
    for report in terminalreporter.stats.get("skipped", []):
        print(f"skipped: {report.nodeid}: {report.longrepr[2]}")


def pytest_runtest_protocol(item, nextitem):
    """With PEGFS_TRIES=2 a test that fails has a second try; one that needs it is told as flaky."""
    if os.environ.get("PEGFS_TRIES") != "2":
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    failures = [report for report in reports if report.failed]
    if failures:
        print(f"\nfirst try of {item.nodeid}:\n{failures[0].longreprtext}")
        item._initrequest()
        item.is_late = False
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if not any(report.failed for report in reports):
            print(f"flaky: {item.nodeid}")
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def new_work_dir():
    """A directory that every user may enter and write to: tools run with their callers' ids."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="pegfs-test-"))
    work.chmod(0o777)
    return work


def remove(directory):
    """Removes it, although a call that was just aborted may still write its mark there."""
    def gone():
        shutil.rmtree(directory, ignore_errors=True)
        return not directory.exists()

    until(gone, what="an empty work directory")


def complain(problems):
    assert not problems, "\n".join(problems)


LATE = f"aborted after {TEST_LIMIT_S} s, the limit of a test; what follows comes of that"


@pytest.fixture(autouse=True)
def bounded(request):
    """A test that blocks in the kernel cannot be interrupted: ending the connections frees it."""
    def abort():
        request.node.is_late = True
        mounts.abort_all()

    timer = threading.Timer(TEST_LIMIT_S, abort)
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()
    assert not is_late(request.node), LATE


def is_late(item):
    return getattr(item, "is_late", False)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if report.failed and is_late(item):
        report.longrepr = f"{LATE}\n{report.longreprtext}"


@pytest.fixture
def work():
    directory = new_work_dir()
    yield directory
    remove(directory)


@pytest.fixture
def new_mount(work):
    """Mounts of the test's own: new_mount(tools=..., env=..., args=...)."""
    made = []

    def make(**how):
        directory = work / f"mount-{len(made)}"
        directory.mkdir()
        directory.chmod(0o777)
        made.append(Mount(directory, **how))
        return made[-1].start()

    yield make
    complain([problem for mount in reversed(made) if mount in mounts.live
              for problem in mount.stop()])


@pytest.fixture(scope="module")
def module_machine():
    directory = new_work_dir()
    podman.need_podman(directory)
    with podman.Machine(directory / "machine") as made:
        yield made
    remove(directory)


@pytest.fixture
def machine(module_machine):
    """
    A host for real containers (lib/podman.py), shared by the tests of a file; each ends its own. What is
    mounted below machine.work while a container runs is seen by it: new_mount(at=machine.work / "mnt").
    """
    yield module_machine
    complain(module_machine.clear_away())


def make_database(path):
    with sqlite3.connect(path) as database:
        database.executescript("""
            CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
            INSERT INTO users VALUES (1, 'Ada', 'London'), (2, 'Grace', NULL), (3, 'Edsger', 'Austin');
            CREATE TABLE empty (id INTEGER);
        """)
    database.close()


# The environment that the platform gives (rules.md, R69 to R78).
def environment(directory):
    return {
        "HOME": directory,
        "OFFICER_USER_HOME": directory,
        "OFFICER_USER_ROOT": "/officer/user",
        "OFFICER_EMAIL_DB": "/officer/data/emails.db",
        "OFFICER_RESOURCES": '{"optical-character-recognition":{"kind":"none"}}',
        "PI_SEARXNG_URL": "http://localhost:8888",
        "OFFICER_APIFY_TOKEN": None,
        "OFFICER_BROWSER_RELAY_PORT": None,
        "OFFICER_BROWSER_RELAY_TOKEN": None,
    }


# What two fixtures want beyond it: nothing else of the daemon's own environment reaches a tool.
def asked_for(directory):
    return ["--env", f"OFFICER_TEST_MARK={directory / 'mark'}",
            "--env", f"MY_DB_PATH={directory / 'my.db'}"]


@pytest.fixture(scope="module")
def module_mount():
    directory = new_work_dir()
    make_database(directory / "my.db")
    mount = Mount(directory, env=environment(directory), args=asked_for(directory))
    yield mount
    problems = mount.stop() if mount in mounts.live else []
    remove(directory)
    complain(problems)


@pytest.fixture
def m(module_mount):
    """The examples and the fixtures, mounted once for the tests of a file; it must survive each."""
    if not module_mount.is_alive():
        if module_mount in mounts.live:
            module_mount.clear_away(killed=True)
        module_mount.start()
    yield module_mount
    problems = module_mount.log_problems()
    if not module_mount.is_alive():
        problems += ["the daemon died", *module_mount.clear_away()]
    complain(problems)
