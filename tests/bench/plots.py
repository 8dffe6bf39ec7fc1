"""SVG plots of growth, drawn by gnuplot: one for each, with logarithmic axes."""

import shutil
import subprocess

SCRIPT = """set terminal svg size 720,420 font "sans,13" background "white"
set output "{out}"
set title "{title}"
set logscale xy
set xlabel "{x}"
set key outside right
set grid
set format x "%.0f"
set datafile separator tab
set datafile missing "nan"
plot {lines}
"""


def draw(directory, title, columns):
    """Writes directory/growth-TITLE.tsv and .svg. Returns the plot's path, or None without gnuplot."""
    stem = directory / f"growth-{title.replace(' ', '-')}"
    names = list(columns)
    with open(f"{stem}.tsv", "w", encoding="utf-8") as table:
        print(*names, sep="\t", file=table)
        for values in zip(*columns.values()):
            print(*values, sep="\t", file=table)
    if shutil.which("gnuplot") is None:
        return None
    lines = ", ".join(f'"{stem}.tsv" using 1:{at + 2} skip 1 with linespoints title "{name}"'
                      for at, name in enumerate(names[1:]))
    script = SCRIPT.format(out=f"{stem}.svg", title=f"growth: {title}", x=names[0], lines=lines)
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    return f"{stem}.svg"
