"""Starting, what the daemon takes, and how soon it sees a change."""

import os
import statistics
import subprocess
import time

from measure import PROBE, drivers, p50, probe, pss_kib, ratio
from table import Row
from trees import MANIFEST, MORE, tool_name


def start_once(place, tools):
    """Nanoseconds from the start of the program until READY, and the daemon's memory then."""
    start = time.perf_counter_ns()
    with place.mounted(tools) as mount:
        taken = time.perf_counter_ns() - start
        return taken, (pss_kib(mount.server_pid) + pss_kib(mount.pid)) / 1024


def walk_once(tools):
    start = time.perf_counter_ns()
    subprocess.run([PROBE, "walk", tools], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter_ns() - start


def start_of(place, count, rounds):
    tools = place.tools(count)
    ours, walk, memory = [], [], []
    for turn in range(rounds + 1):
        taken, mib = start_once(place, tools)
        walked = walk_once(tools)
        if turn > 0:
            ours.append([taken])
            walk.append([walked])
            memory.append(mib)
    return ours, walk, statistics.median(memory)


def start(place, scale):
    rows = []
    for count in scale.tools:
        ours, walk, mib = start_of(place, count, scale.cold_rounds)
        rows.append(Row(f"start to ready, {count:,} tools", "a C program that reads them", p50(ours) / 1e6,
                        p50(walk) / 1e6, "ms", ratio(ours, walk), ("ratio", "<=", 2.0)))
        rows.append(Row(f"memory (PSS) then, {count:,} tools", "", mib, None, "MiB", None,
                        ("value", "<=", 40.0) if count == max(scale.tools) else None))
    return rows


def rewrite(tools, name, word):
    """As editors save: a new file takes the old one's name."""
    path = tools / name / "TOOL.md"
    fresh = tools / name / ".TOOL.md.new"
    fresh.write_text(MANIFEST.format(name=name, more=MORE).replace("What is returned.", f"What {word} is returned."))
    os.rename(fresh, path)


def save_of(place, count, rounds):
    """Nanoseconds from the rename until schema.json has what was written."""
    tools, name = place.tools(count), tool_name(0)
    taken = []
    with place.mounted(tools) as mount:
        schema = mount / name / "schema.json"
        for turn in range(rounds + 1):
            word = f"number {turn} of {time.monotonic_ns()}"
            rewrite(tools, name, word)
            begun = time.perf_counter_ns()
            while word not in schema.read_text():
                if time.perf_counter_ns() - begun > 10e9:
                    raise RuntimeError("a saved TOOL.md was not seen within ten seconds")
            if turn > 0:
                taken.append(time.perf_counter_ns() - begun)
            time.sleep(0.15)  # each save by itself: a storm of them may be gathered
    rewrite(tools, name, "text")
    return taken


def save(place, scale):
    rows = []
    for count in (scale.tools[0], scale.tools[-1]):
        with drivers(noticed=probe("noticed", place.work)) as sides:
            noticed = sides["noticed"].ask(scale.samples)
        taken = save_of(place, count, scale.saves)
        rows.append(Row(f"TOOL.md saved to new schema.json, {count:,} tools", "inotify's own delay",
                        statistics.median(taken) / 1e6, statistics.median(noticed) / 1e6, "ms",
                        statistics.median(taken) / statistics.median(noticed), ("value", "<=", 20.0),
                        note=f"worst {max(taken) / 1e6:.3g} ms"))
    return rows
