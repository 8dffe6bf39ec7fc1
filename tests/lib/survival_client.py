"""survival_client.py KIND MOUNT SECONDS ...: uses a mount and says as JSON what went wrong."""

import errno
import json
import mmap
import os
import random
import select
import sys
import time

kind, mount, seconds, *more = sys.argv[1:]
end = time.monotonic() + float(seconds)
report = {"kind": kind, "operations": 0, "failures": [], "slowest_s": 0.0}
TEXTS = ("README.md", "prompt.md", "tools.json", "hello/schema.json", "hello/TOOL.md", "hello/index.ts",
         "count/prompt.md", ".pegfs/version")


def timed(action, *args):
    start = time.monotonic()
    try:
        value = action(*args)
    except OSError as error:
        report["failures"].append(f"{action.__name__}{args}: {error}")
        value = None
    report["slowest_s"] = max(report["slowest_s"], time.monotonic() - start)
    report["operations"] += 1
    return value


def read(path):
    with open(path, "rb") as file:
        return file.read()


def differs(what, seen, wanted):
    if seen is not None and seen != wanted:
        report["failures"].append(f"{what}: not what it was")


def readers():
    whole = {name: read(f"{mount}/{name}") for name in TEXTS}
    names = sorted(os.listdir(mount))
    held = {name: os.open(f"{mount}/{name}", os.O_RDONLY) for name in TEXTS}
    directory = os.open(mount, os.O_RDONLY | os.O_DIRECTORY)
    os.chdir(f"{mount}/hello")
    mapped = mmap.mmap(held["hello/index.ts"], 0, prot=mmap.PROT_READ)
    while time.monotonic() < end:
        name = random.choice(TEXTS)
        differs(name, timed(read, f"{mount}/{name}"), whole[name])
        name = random.choice(TEXTS)
        differs(f"held {name}", timed(os.pread, held[name], 1 << 20, 0), whole[name])
        os.posix_fadvise(held[name], 0, 0, os.POSIX_FADV_DONTNEED)
        names_now = timed(os.listdir, mount)
        differs("the list", names_now and sorted(names_now), names)
        names_now = timed(os.listdir, directory)
        differs("the held directory", names_now and sorted(names_now), names)
        timed(os.stat, f"{mount}/{random.choice(TEXTS)}")
        timed(os.stat, "TOOL.md")
        differs("the map", mapped[:], whole["hello/index.ts"])
    return {}


def writers():
    """Write-only calls, each with a number of its own."""
    file, first = more
    done = {}
    number = 0
    while time.monotonic() < end:
        number += 1
        data = f"{first}-{number}"
        request = json.dumps({"file": file, "ms": random.choice((0, 0, 5, 100)), "data": data})
        start = time.monotonic()
        try:
            with open(f"{mount}/mark/call", "w") as call:
                call.write(request)
            done[data] = "done"
        except OSError as error:
            done[data] = errno.errorcode[error.errno]
        report["slowest_s"] = max(report["slowest_s"], time.monotonic() - start)
        report["operations"] += 1
    return {"calls": done}


def askers():
    """Read-write calls: the write is acknowledged, the answer read."""
    file, first = more
    done = {}
    number = 0
    while time.monotonic() < end:
        number += 1
        data = f"{first}-{number}"
        request = json.dumps({"file": file, "ms": random.choice((0, 5, 100)), "data": data})
        fd = os.open(f"{mount}/mark/call", os.O_RDWR)
        start = time.monotonic()
        try:
            os.write(fd, request.encode())
            poller = select.poll()
            poller.register(fd, select.POLLIN)
            if random.random() < 0.5 and not poller.poll(10000):
                report["failures"].append(f"{data}: the poller was not woken")
            answer = json.loads(os.read(fd, 1 << 20))
            text = answer["content"][0]["text"]
            done[data] = text if answer.get("isError") else "done"
            if not answer.get("isError") and text != f"marked {data}":
                report["failures"].append(f"{data}: the answer of another call: {text}")
        except (OSError, ValueError) as error:
            done[data] = errno.errorcode.get(getattr(error, "errno", 0), str(error))
        finally:
            os.close(fd)
        report["slowest_s"] = max(report["slowest_s"], time.monotonic() - start)
        report["operations"] += 1
    return {"calls": done}


report.update({"readers": readers, "writers": writers, "askers": askers}[kind]())
report["failures"] = report["failures"][:20]
print(json.dumps(report))
