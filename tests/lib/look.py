"""A tool that runs what it is given, to see from inside of it what a tool can do."""

import json

LOOK_MD = """---
name: look
version: 1
language: python
description: Runs a piece of Python and shows what it says.
inputs:
  code:
    type: string
    description: What to run.
---
Use it in tests.
"""
LOOK_PY = """
def execute(call_id, params):
    found = {}
    exec(params["code"], found)
    return str(found.get("out"))
"""


def make_look(directory, *names):
    """Tools of these names that do so, in a directory that everybody may read."""
    for name in names or ("look",):
        tool = directory / name
        tool.mkdir(parents=True)
        (tool / "TOOL.md").write_text(LOOK_MD.replace("name: look", f"name: {name}"))
        (tool / "index.py").write_text(LOOK_PY)
    return directory


def asking(code, tool="look"):
    """A shell command that runs the code in the tool and prints `out`, or why not, with its status."""
    request = json.dumps({"code": code}).replace("'", "'\\''")
    return f"printf %s '{request}' > {tool}/call; status=$?; cat {tool}/result.txt; exit $status"


def can(code):
    """Whether it raises an OSError, as code."""
    body = "".join(f"    {line}\n" for line in code.splitlines())
    return f"try:\n{body}    out = 'could'\nexcept OSError as error:\n    out = error.strerror\n"
