"""Calling: one after the other, the first of a tool, many at once, and many that wait."""

import json
import re
import subprocess

from lib import programs
from measure import NODE_DIR, drivers, interleave, interleave_acts, node, p50, p99, pooled, probe, program, pss_kib, \
    ratio, ratio_p99
from table import Row
from trees import SLOW, tool_name, write_tool

REQUEST = '{"text":"hi"}'
EACH = ["node", "--input-type=module", "-e",
        f'import {{ execute }} from "{NODE_DIR}/tool.mjs"; console.log(JSON.stringify(execute("1", {REQUEST})));']
BUSY_ARGS = ["--queue", 20000, "--queue-per-user", 20000]


def line_server(request=REQUEST):
    return probe("pipe", request, "node", NODE_DIR / "line-server.mjs")


def times(figure, against, taken, theirs, goal, goal_p99=None, ours="ours"):
    """Two rows: the median and the slowest percent."""
    a, b = taken[ours], taken[theirs]
    return [Row(f"{figure}, p50", against, p50(a) / 1e3, p50(b) / 1e3, "us", ratio(a, b), goal),
            Row(f"{figure}, p99", against, p99(a) / 1e3, p99(b) / 1e3, "us", ratio_p99(a, b), goal_p99)]


def warm_calls(place, scale):
    with place.mounted(place.tools(10)) as mount:
        tool = mount / tool_name(0)
        with drivers(ours=probe("call", tool / "call", REQUEST), sdk=node("sdk-client.mjs", REQUEST), pipe=line_server(),
                     opened=probe("open-call", tool / "call", REQUEST),
                     written=probe("write-call", tool / "call", tool / "result.txt", REQUEST)) as sides:
            for driver in sides.values():  # until V8 has compiled what is hot
                driver.ask(scale.calls)
            taken = interleave(sides, scale.rounds, scale.calls)
        process = interleave_acts({"node": program(EACH)}, scale.cold_rounds)["node"]
        taken["node"] = [pooled(process)] * len(taken["ours"])
    rows = times("a warm call", "SDK client and server", taken, "sdk", ("ratio", "<=", 1.0), ("ratio", "<=", 1.0))
    rows += times("a warm call", "a line to a warm Node", taken, "pipe", ("ratio", "<=", 1.5), ("ratio", "<=", 1.5))
    rows += times("a warm call", "node -e for each", taken, "node", ("ratio", "<=", 0.01))[:1]
    rows += times("the same, opened each time", "SDK client and server", taken, "sdk", None, ours="opened")
    rows += times("written, then cat result.txt", "SDK client and server", taken, "sdk", None, ours="written")
    return rows


def spare_is_ready(mount):
    """All warm hosts serve a tool; one that waits for its first has loaded nothing yet."""
    return re.search(r"^pegfs_hosts_spare [1-9]", mount.text(".pegfs/stats"), re.M)


def ask_once(mount, number):
    answer = mount.ask(tool_name(number), {"text": "hi"})
    if answer.get("isError"):
        raise RuntimeError(json.dumps(answer))


def cold_calls(place, scale):
    """Each of a tool that was never called; a spare host is waited for, as in ordinary use."""
    numbers = iter(range(10_000))
    with place.mounted(place.tools(scale.many), args=["--hosts", scale.cold_calls + 4]) as mount:
        def before():
            programs.until(lambda: spare_is_ready(mount), what="a spare host", timeout=30)
        sides = {"ours": lambda: ask_once(mount, next(numbers)), "node": program(["node", "-e", "0"])}
        taken = interleave_acts(sides, scale.cold_calls, before=before)
    return [Row("a cold call, p50", "node -e 0", p50(taken["ours"]) / 1e6, p50(taken["node"]) / 1e6, "ms",
                ratio(taken["ours"], taken["node"]), ("ratio", "<=", 1.0), note=f"p99 {p99(taken['ours']) / 1e6:.3g} ms")]


def rate(driver, line, rounds):
    """Calls a second and each call's nanoseconds; one round is for warmth."""
    rates, taken = [], []
    for turn in range(rounds + 1):
        whole, *each = driver.ask(line)
        if turn > 0:
            rates.append(len(each) / (whole / 1e9))
            taken.append(each)
    return rates, taken


def throughput(place, scale):
    callers, count = 64, scale.calls * 4
    with place.mounted(place.tools(10), args=BUSY_ARGS) as mount:
        with drivers(ours=probe("many", callers, mount / tool_name(0) / "call", REQUEST),
                     sdk=node("sdk-client.mjs", REQUEST)) as sides:
            lines = {"ours": f"{count}", "sdk": f"{count} {callers}"}
            rates = {name: [] for name in sides}
            for turn in range(scale.rounds + 2):
                for name, driver in sides.items():
                    whole = driver.ask(lines[name])[0]
                    if turn > 1:
                        rates[name].append([count / (whole / 1e9)])
    return [Row(f"calls a second, {callers} callers", "SDK client and server", p50(rates["ours"]), p50(rates["sdk"]),
                "calls/s", ratio(rates["ours"], rates["sdk"]), ("ratio", ">=", 2.0))]


# ---- calls that wait

STRUCTS = ("call", "callfile", "handle", "parked", "order", "work", "share", "kept")


def struct_sizes():
    """Bytes of the structs that a waiting call has, from the debugging information of the program."""
    from lib.mount import PEGFS
    out = subprocess.run(["readelf", "--debug-dump=info", PEGFS], capture_output=True, text=True, check=True).stdout
    sizes = {}
    for name, size in re.findall(r"DW_TAG_structure_type\)\n.*DW_AT_name.*: (\w+)\n.*DW_AT_byte_size.*: (\d+)", out):
        if name in STRUCTS:
            sizes[name] = int(size)
    return sizes


def waiting(place, scale):
    """Calls of a tool that is busy, from two users since one may not open all there is."""
    root = place.work / "slow"
    if not root.exists():
        root.mkdir()
        write_tool(root, "slow", SLOW)
    each = scale.waiting // 2
    args = [*BUSY_ARGS, "--hosts-per-tool", 1]
    with place.mounted(root, args=args) as mount:
        server = mount.server_pid
        with drivers(warm=probe("hold", 2, mount / "slow" / "call", "{}")) as sides:
            sides["warm"].take()
            before = pss_kib(server) + pss_kib(mount.pid)
        with drivers(one=probe("hold", each, mount / "slow" / "call", "{}", uid=1000),
                     two=probe("hold", each, mount / "slow" / "call", "{}", uid=1001)) as sides:
            taken = sides["one"].take() + sides["two"].take()
            inside, supervisor = pss_kib(server), pss_kib(mount.pid)
    kib = (inside + supervisor - before) / scale.waiting
    sizes = struct_sizes()
    early, late = sorted(taken[:each // 4]), sorted(taken[-each // 4:])
    return [Row(f"memory a waiting call, {2 * each} waiting", "its structs: " + ", ".join(sizes), kib,
                sum(sizes.values()) / 1024, "KiB", kib * 1024 / sum(sizes.values()), ("value", "<=", 4.0)),
            Row("time to take one in, the last quarter", "the first quarter", late[len(late) // 2] / 1e3,
                early[len(early) // 2] / 1e3, "us", late[len(late) // 2] / early[len(early) // 2], None)]
