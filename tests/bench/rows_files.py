"""Looking: what the kernel's caches give, and walks over the whole tree."""

from measure import drivers, drop_caches, interleave, interleave_acts, p50, p99, probe, program, ratio
from table import Row
from trees import tool_name

WARM = ("ratio", "<=", 1.10)
SECOND = ("ratio", "<=", 1.15)
FIRST = ("ratio", "<=", 1.0)


def row_of(figure, against, taken, unit, goal, theirs="native"):
    scale = {"us": 1e3, "ms": 1e6}[unit]
    return Row(figure, against, p50(taken["ours"]) / scale, p50(taken[theirs]) / scale, unit,
               ratio(taken["ours"], taken[theirs]), goal, note=f"p99 {p99(taken['ours']) / scale:.3g} {unit}")


def compare_calls(figure, kind, mount, native, path, scale):
    with drivers(ours=probe(kind, mount / path), native=probe(kind, native / path)) as sides:
        taken = interleave(sides, scale.rounds, scale.samples if kind != "list" else scale.samples // 10)
    return row_of(figure, "native", taken, "us", WARM)


def compare_programs(figure, command, mount, native, scale):
    sides = {"ours": program(command, cwd=mount.path), "native": program(command, cwd=native)}
    return row_of(figure, "native", interleave_acts(sides, scale.rounds), "ms", WARM)


def warm_files(place, scale):
    """The same files here and on the native file system, all of them in the kernel's caches."""
    tool = tool_name(1)
    with place.mounted(place.tools(scale.many)) as mount:
        native = place.copy(mount)
        names = [tool_name(number) for number in range(scale.many)]
        rows = []
        for kind, what in (("stat", "stat"), ("cat", "open, read, close")):
            for name in ("schema.json", "TOOL.md"):
                sort = "made" if name == "schema.json" else "passed on"
                rows.append(compare_calls(f"{what}: {name} ({sort})", kind, mount, native, f"{tool}/{name}", scale))
        rows.append(compare_calls("list a tool and stat each", "list", mount, native, tool, scale))
        for figure, command in (
                (f"ls -l of {scale.many} tools", ["ls", "-l"]),
                ("ls -l of one tool", ["ls", "-l", tool]),
                (f"stat of {scale.many} schema.json", ["stat", *(f"{name}/schema.json" for name in names)]),
                (f"cat of {scale.many} schema.json", ["cat", *(f"{name}/schema.json" for name in names)]),
                (f"cat of {scale.many} TOOL.md", ["cat", *(f"{name}/TOOL.md" for name in names)])):
            rows.append(compare_programs(figure, command, mount, native, scale))
    return rows


WALKS = {
    "grep -r": ["grep", "-r", "no such words", "."],
    "find -size": ["find", ".", "-size", "+100k"],
    "tar": ["tar", "-cf", "-", "."],
}


def walks(place, scale):
    """The whole tree: first with dropped caches, then once more. Other FUSE file systems show the copy."""
    rows = []
    with place.mounted(place.tools(scale.many)) as mount:
        native = place.copy(mount)
        with place.passed_through("bindfs", native) as bindfs, \
                place.passed_through("passthrough_ll", native) as passthrough:
            places = {"ours": mount.path, "native": native, "bindfs": bindfs, "passthrough_ll": passthrough}
            for name, command in WALKS.items():
                sides = {side: program(command, cwd=path) for side, path in places.items() if path}
                first = interleave_acts(sides, scale.walk_rounds, before=drop_caches if scale.drops else None, warm=False)
                rows.append(row_of(f"{name}, {scale.many} tools, first", "bindfs", first, "ms", FIRST, "bindfs"))
                if passthrough:
                    rows.append(row_of(f"{name}, first", "passthrough_ll", first, "ms", FIRST, "passthrough_ll"))
                else:
                    rows.append(Row(f"{name}, first", skipped="libfuse3-dev came without its examples"))
                rows.append(row_of(f"{name}, first", "native", first, "ms", None))
                second = interleave_acts({side: sides[side] for side in ("ours", "native", "passthrough_ll") if side in sides},
                                         scale.walk_rounds * 2)
                rows.append(row_of(f"{name}, second", "native", second, "ms", SECOND))
                if passthrough:
                    rows.append(row_of(f"{name}, second", "passthrough_ll", second, "ms", None, "passthrough_ll"))
    return rows
