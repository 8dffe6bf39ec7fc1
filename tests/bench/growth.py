"""How figures grow: with tools, callers, users, and the size of a result; numbers for plots."""

import math
import statistics
import subprocess
import time

from lib.mount import PEGFS
from measure import drivers, interleave, interleave_acts, node, p50, p99, probe, program, pss_kib
from rows_calls import BUSY_ARGS, REQUEST, line_server
from rows_start import save_of, start_of
from table import Row
from trees import tool_name, write_tool


def exponent(xs, ys):
    """The slope between the last two points in logarithms: 1 is linear."""
    return math.log(ys[-1] / ys[-2]) / math.log(xs[-1] / xs[-2])


def linear(figure, xs, ys, unit):
    """Linear or better: the last step may not grow by more than it would, give or take noise."""
    return Row(f"{figure}, growth from {xs[-2]:,} to {xs[-1]:,}", "1 is linear", exponent(xs, ys), None, "", None,
               ("value", "<=", 1.15), note=f"{ys[-2]:.4g} to {ys[-1]:.4g} {unit}")


def tools(place, scale):
    columns = {"tools": [], "start ms": [], "C walk ms": [], "memory MiB": [], "ls -l ms": [], "save ms": []}
    for count in scale.tools:
        ours, walk, mib = start_of(place, count, scale.cold_rounds)
        with place.mounted(place.tools(count)) as mount:
            ls = interleave_acts({"ls": program(["ls", "-l"], cwd=mount.path)}, scale.rounds)["ls"]
        saved = save_of(place, count, max(2, scale.saves // 3))
        for name, value in zip(columns, (count, p50(ours) / 1e6, p50(walk) / 1e6, mib, p50(ls) / 1e6,
                                         statistics.median(saved) / 1e6)):
            columns[name].append(value)
    rows = [linear("start", columns["tools"], columns["start ms"], "ms"),
            linear("memory", columns["tools"], columns["memory MiB"], "MiB"),
            linear("ls -l", columns["tools"], columns["ls -l ms"], "ms")]
    return rows, columns


def callers(place, scale):
    columns = {"callers": [], "calls a second": [], "p50 ms": [], "p99 ms": []}
    with place.mounted(place.tools(10), args=BUSY_ARGS) as mount:
        for count in scale.callers:
            with drivers(ours=probe("many", count, mount / tool_name(0) / "call", REQUEST)) as sides:
                sides["ours"].ask(scale.calls)
                whole, *each = sides["ours"].ask(max(scale.calls * 2, count * 4))
            rate = len(each) / (whole / 1e9)
            for name, value in zip(columns, (count, rate, p50([each]) / 1e6, p99([each]) / 1e6)):
                columns[name].append(value)
    return [linear("time a call with callers", columns["callers"], columns["p50 ms"], "ms")], columns


def samples_of(driver, count):
    """Nanoseconds, after as many for warmth; NaN where the other side cannot do it."""
    try:
        with drivers(it=driver) as sides:
            sides["it"].ask(count)
            return p50([sides["it"].ask(count)])
    except RuntimeError:
        return float("nan")


def sizes(place, scale):
    columns = {"bytes": [], "pegfs ms": [], "SDK ms": [], "line to a warm Node ms": []}
    with place.mounted(place.tools(10)) as mount:
        for size in scale.sizes:
            request, count = f'{{"size":{size}}}', max(3, min(scale.calls, (8 << 20) // size // 2))
            with drivers(ours=probe("call", mount / tool_name(0) / "call", request), pipe=line_server(request)) as sides:
                taken = interleave(sides, 3, count)
            values = size, p50(taken["ours"]), samples_of(node("sdk-client.mjs", request), count), p50(taken["pipe"])
            columns["bytes"].append(size)
            for name, value in zip(list(columns)[1:], values[1:]):
                columns[name].append(value / 1e6)
    row = Row(f"a result of {columns['bytes'][-1] >> 10:,} KiB", "SDK client and server", columns["pegfs ms"][-1],
              columns["SDK ms"][-1], "ms", columns["pegfs ms"][-1] / columns["SDK ms"][-1])
    if math.isnan(row.theirs):
        row.theirs = row.ratio = None
        row.against = "the SDK closes the connection"
    return [linear("time a call with the size of its result", columns["bytes"], columns["pegfs ms"], "ms"), row], columns


def data_of(place, count):
    """A data directory with ten global tools, and as many users as asked for, each with a tool of his own."""
    data = place.work / f"data-{count}"
    for directory, names in [(data, [tool_name(number) for number in range(10)]),
                             *((data / f"u{number}@example.org", ["own"]) for number in range(count))]:
        (directory / "tools").mkdir(parents=True)
        for name in names:
            write_tool(directory / "tools", name)
    return data


def users(place, scale):
    shown = subprocess.run([PEGFS, "mount", "--help"], capture_output=True, text=True, check=True).stdout
    if "--data " not in shown:
        return [Row("growth with users", skipped="pegfs mount has no --data")], {}
    columns = {"users": [], "start ms": [], "memory MiB": [], "ls -l of a user ms": [], "a call ms": []}
    for count in scale.users:
        data, user = data_of(place, count), f"u{count - 1}@example.org"
        begun = time.perf_counter_ns()
        with place.mounted(data=data) as mount:
            ready = time.perf_counter_ns() - begun
            mib = (pss_kib(mount.server_pid) + pss_kib(mount.pid)) / 1024
            ls = interleave_acts({"ls": program(["ls", "-l"], cwd=mount / user)}, scale.rounds)["ls"]
            with drivers(ours=probe("call", mount / user / "own" / "call", REQUEST)) as sides:
                sides["ours"].ask(scale.calls)
                called = interleave(sides, 3, scale.calls)["ours"]
        for name, value in zip(columns, (count, ready / 1e6, mib, p50(ls) / 1e6, p50(called) / 1e6)):
            columns[name].append(value)
    return [linear("start", columns["users"], columns["start ms"], "ms"),
            linear("memory", columns["users"], columns["memory MiB"], "MiB"),
            linear("a call", columns["users"], columns["a call ms"], "ms")], columns


GROWTHS = {"tools": tools, "callers": callers, "users": users, "result size": sizes}
