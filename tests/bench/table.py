"""The rows of the table, and how they are printed."""

import dataclasses


@dataclasses.dataclass
class Row:
    """figure: ours against theirs, in unit; goal: (what is judged, "<=" or ">=", limit)."""
    figure: str
    against: str = ""
    ours: float | None = None
    theirs: float | None = None
    unit: str = ""
    ratio: float | None = None
    goal: tuple | None = None
    note: str = ""
    skipped: str = ""

    @property
    def met(self):
        if self.goal is None or self.skipped:
            return None
        what, way, limit = self.goal
        value = self.ratio if what == "ratio" else self.ours
        return value <= limit if way == "<=" else value >= limit

    @property
    def goal_text(self):
        if self.goal is None:
            return ""
        what, way, limit = self.goal
        return f"{way} {limit:g}" + (" times" if what == "ratio" else f" {self.unit}")

    def as_json(self):
        return {**dataclasses.asdict(self), "met": self.met}


def number(value):
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def cells(row):
    if row.skipped:
        return [row.figure, f"skipped: {row.skipped}", "", "", row.goal_text, ""]
    verdict = {None: "", True: "met", False: "missed"}[row.met]
    theirs = f"{number(row.theirs)} {row.unit}: {row.against}" if row.theirs is not None else row.against
    return [row.figure, f"{number(row.ours)} {row.unit}", theirs, number(row.ratio), row.goal_text, verdict]


HEAD = ["figure", "pegfs", "against", "ratio", "goal", ""]


def text(groups):
    """groups: {title: [Row, ...]}."""
    lines = [HEAD] + [cells(row) for rows in groups.values() for row in rows]
    widths = [max(len(line[at]) for line in lines if not line[1].startswith("skipped")) for at in range(len(HEAD))]
    widths[0] = max(len(line[0]) for line in lines)

    def show(line):
        return "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()

    out = [show(HEAD)]
    for title, rows in groups.items():
        out += ["", f"-- {title}"] + [show(cells(row)) for row in rows]
    return "\n".join(out)


def markdown(groups):
    out = []
    for title, rows in groups.items():
        out += [f"| {title} | pegfs | against | ratio | goal | |", "| --- | --- | --- | --- | --- | --- |"]
        out += ["| " + " | ".join(cells(row)) + " |" for row in rows] + [""]
    return "\n".join(out)
