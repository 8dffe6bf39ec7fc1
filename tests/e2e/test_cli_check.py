"""pegfs check, as people and CI run it; and every example of docs/checks.md."""

import json
import re
import subprocess
import time

import pytest

from lib import cli
from lib.cli import write_tool

DOCS = cli.ROOT / "docs" / "checks.md"
GOOD_CODE = "export async function execute(_id: string) {\n  return { content: [] };\n}\n"


# ---- docs/checks.md

def read_docs():
    """-> the blocks of the tool that examples change; code -> (what is said, bad, good), where
    blocks are [(language, contents)]."""
    base, entries, fence = [], {}, None
    entry, place = ["", [], []], base
    for line in DOCS.read_text().splitlines(keepends=True):
        if fence is not None and line == "```\n":
            place.append((fence[0].strip(), "".join(fence[1:])))
            fence = None
        elif fence is not None:
            fence.append(line)
        elif line.startswith("```"):
            fence = [line[3:]]
        elif line.startswith("### "):
            entry = ["", [], []]
            entries[line[4:].strip()] = entry
        elif line.startswith(("Bad:", "Good:")):
            place = entry[1 if line.startswith("Bad:") else 2]
        else:
            entry[0] += line
    return base, entries


BASE, ENTRIES = read_docs()
WITHOUT_EXAMPLE = {"unreadable", "changing", "own-mount", "too-many-directories", "too-many-inputs",
                   "too-many-values", "too-many-faults"}


def key_of(line):
    found = re.match(r"(\w+):", line)
    return found.group(1) if found else None


def chunks_of(yaml):
    """[(key or None, lines)] of a mapping: what belongs to a key is indented."""
    chunks = []
    for line in yaml.splitlines(keepends=True):
        if chunks and line[0] in " \n":
            chunks[-1][1].append(line)
        else:
            chunks.append((key_of(line), [line]))
    return chunks


def merge(yaml, changes):
    changed = {key for key, _ in chunks_of(changes)}
    kept = ["".join(lines) for key, lines in chunks_of(yaml) if key not in changed]
    return "".join(kept) + changes


class Example:
    """The tool of docs/checks.md in work/tools/example, changed by blocks."""

    def __init__(self, work):
        self.work, self.tools = work, work / "tools"
        self.tool = self.tools / "example"
        self.tool.mkdir(parents=True)

    def write(self, blocks):
        parts = dict(BASE)
        scripts, whole = [], None
        for language, text in blocks:
            if language == "yaml":
                parts["yaml"] = merge(parts["yaml"], text)
            elif language == "markdown":
                whole = text
            elif language == "sh":
                scripts.append(text)
            elif language in ("js", "python"):
                parts.pop("ts")
                parts[language] = text
            else:
                assert language in ("ts", "markdown body")
                parts[language] = text
        manifest = whole or f"---\n{parts['yaml']}---\n{parts['markdown body']}"
        (self.tool / "TOOL.md").write_text(manifest)
        for language, name in ("ts", "index.ts"), ("js", "index.js"), ("python", "index.py"):
            if language in parts:
                (self.tool / name).write_text(parts[language])
        for script in scripts:
            subprocess.run(["sh", "-ec", script], cwd=self.tool, check=True)

    def codes(self):
        """What is found in the tool and in the directory above it."""
        before = self.work / "before"
        args = ["--against", before] if before.exists() else []
        out = subprocess.run([cli.PEGFS, "check", "--format", "json", *args, self.tool, self.tools],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        return {finding["code"] for finding in json.loads(out.stdout)["findings"]}


def listed():
    out, _ = cli.run("check", "--list")
    return [line.split()[:2] for line in out.splitlines()]


def test_docs_tell_each_code_and_its_level():
    assert [code for code, _ in listed()] == list(ENTRIES)
    for code, level in listed():
        assert re.match(rf"\n\*{level}\b", ENTRIES[code][0]), code
    assert {code for code, entry in ENTRIES.items() if not entry[1]} == WITHOUT_EXAMPLE


def test_every_fault_of_the_core_has_its_place_in_the_docs():
    header = (cli.ROOT / "core" / "tools" / "faults.h").read_text()
    codes = {code for line in re.findall(r"^ \*     (?:E|W|EW) ([a-z0-9-]+(?:, [a-z0-9-]+)*)", header, re.M)
             for code in line.split(", ")}
    assert len(codes) > 50
    assert codes - set(ENTRIES) <= {"not-watched"}  # told by a mount alone


def test_r107_the_tool_that_examples_change_is_good(work):
    example = Example(work)
    example.write([])
    assert example.codes() == set()


@pytest.mark.parametrize("code", [code for code in ENTRIES if ENTRIES[code][1]])
def test_each_bad_example_gives_its_code_and_each_good_one_none(work, code):
    _, bad, good = ENTRIES[code]
    example = Example(work / "bad")
    example.write(bad)
    assert code in example.codes()
    example = Example(work / "good")
    example.write(good)
    assert example.codes() == set()


# ---- what ships

def test_r104_to_r107_what_ships_has_no_findings():
    tools = [path.parent for path in cli.ROOT.glob("seed/*/*/TOOL.md")]
    out, err = cli.run("check", *tools)
    assert out == "" and err == f"{len(tools)} tools: 0 errors, 0 warnings\n"


def test_r33_r104_an_older_state_tells_what_was_not_bumped(work):
    write_tool(work / "now", "same", version=1)
    write_tool(work / "now", "new", version=1)
    write_tool(work / "now", "bumped", version=2, bin__x="new")
    write_tool(work / "now", "forgotten", version=1, bin__x="new")
    for name in "same", "bumped", "forgotten":
        write_tool(work / "before", name, version=1)
    out, _ = cli.run("check", "--against", work / "before", work / "now", status=1)
    told = [line for line in out.splitlines() if "[unbumped-version]" in line]
    assert len(told) == 1 and told[0].startswith(f"{work}/now/forgotten/TOOL.md: error: ")


# ---- paths

def test_check_names_files_as_they_were_named(work):
    tool = write_tool(work / "tools", "tool", code="Bun.x();\n")
    expected = "index.ts:1:1: error: 'Bun' does not exist"
    for path, cwd, shown in [
        (tool, None, f"{tool}/"), ("tools/tool", work, "tools/tool/"), ("tools/", work, "tools/tool/"),
        ("tools//tool//", work, "tools//tool/"), (".", tool, ""), (".", work / "tools", "tool/"),
        ("..", tool, "../tool/"), ("index.ts", tool, ""), ("TOOL.md", tool, ""),
        ("tools/tool/TOOL.md", work, "tools/tool/"), ("../tool", tool, "../tool/"),
    ]:
        out, _ = cli.run("check", path, status=1, cwd=cwd)
        assert f"\n{shown}{expected}" in f"\n{out}", path


def test_check_of_several_paths_tells_each_finding_once(work):
    tool = write_tool(work, "tool", code="Bun.x();\n")
    out, err = cli.run("check", work, tool, tool, status=1)
    assert out.count("[bun-api]") == 1
    assert out.splitlines() == sorted(out.splitlines())


def test_check_help_and_misuse(work):
    out, err = cli.run("check", "--help")
    assert out.startswith("usage: pegfs check") and err == ""
    for args in ([], ["--format", "xml", work], ["--ignore", "no-such-code", work],
                 ["--fail-on", "panic", work], ["--nonsense", work]):
        out, err = cli.run("check", *args, status=2)
        assert out == "" and err


def test_check_exit_status_and_ignored_codes(work):
    warned = write_tool(work, "tool")
    cli.run("check", warned, status=1)
    cli.run("check", "--fail-on", "error", warned)
    broken = write_tool(work, "tool", code="")
    cli.run("check", "--fail-on", "error", broken, status=1)
    out, _ = cli.run("check", "--fail-on", "nothing", broken)
    codes = set(re.findall(r"\[([a-z-]+)\]$", out, re.M))
    out, err = cli.run("check", "--ignore", ",".join(codes), broken)
    assert out == "" and err == "1 tool: 0 errors, 0 warnings\n"


def test_nothing_of_a_tool_is_run_or_changed(work):
    tool = write_tool(work, "tool", code=f"require('fs').writeFileSync('{work}/ran', '');\n")
    before = {path: path.stat().st_ctime_ns for path in tool.rglob("*")}
    cli.run("check", tool, status=1)
    assert not (work / "ran").exists()
    assert {path: path.stat().st_ctime_ns for path in tool.rglob("*")} == before


# ---- formats

@pytest.fixture
def spoilt(work):
    tool = write_tool(work, "odd, 100%: tool", code="Bun.x();\n" + GOOD_CODE)
    (tool / "TOOL.md").write_text("---\nname: tool\ndescription: x\nlabel: 'a\u00e9'\n---\n")
    return tool


def test_text_is_what_compilers_write(spoilt):
    out, _ = cli.run("check", spoilt, status=1)
    for line in out.splitlines():
        assert re.fullmatch(r".+?(:\d+(:\d+)?)?: (error|warning): .+ \[[a-z0-9-]+\]", line), line


def test_json_has_every_finding(spoilt):
    out, _ = cli.run("check", "--format", "json", spoilt, status=1)
    told = json.loads(out)
    assert told["tools"] == 1 and told["errors"] == 1
    assert told["errors"] + told["warnings"] == len(told["findings"])
    found = [finding for finding in told["findings"] if finding["code"] == "bun-api"][0]
    assert found["file"] == f"{spoilt}/index.ts" and found["line"] == found["column"] == 1
    assert found["level"] == "error" and found["rules"] == "R62 R105"


def test_sarif_has_its_required_parts(spoilt):
    out, _ = cli.run("check", "--format", "sarif", spoilt, status=1)
    log = json.loads(out)
    assert log["version"] == "2.1.0" and "sarif-schema-2.1.0" in log["$schema"]
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(rules) == len(set(rules)) == len(ENTRIES)
    for result in run["results"]:
        assert result["ruleId"] in rules and result["level"] in ("error", "warning")
        assert result["message"]["text"]
        (location,) = result["locations"]
        uri = location["physicalLocation"]["artifactLocation"]["uri"]
        assert uri.startswith("file:///") and "odd%2C%20100%25%3A%20tool/" in uri
        region = location["physicalLocation"].get("region")
        assert region is None or region["startLine"] > 0


def test_github_commands_cannot_be_broken_out_of(spoilt):
    out, _ = cli.run("check", "--format", "github", spoilt.name, status=1, cwd=spoilt.parent)
    assert "::error file=odd%2C 100%25%3A tool/index.ts,line=1,col=1,title=bun-api::'Bun'" in out
    for line in out.splitlines():
        assert re.fullmatch(r"::(error|warning) file=[^,:]+(,line=\d+)?(,col=\d+)?,title=[a-z0-9-]+::.+", line)


# ---- size

def test_ten_thousand_tools_take_seconds(work):
    model = cli.ROOT / "seed" / "tools" / "email_db"
    manifest, code = (model / "TOOL.md").read_text(), (model / "index.ts").read_bytes()
    for number in range(2000):
        tool = work / "tools" / f"tool_{number}"
        tool.mkdir(parents=True)
        (tool / "TOOL.md").write_text(manifest.replace("name: email_db", f"name: tool_{number}", 1))
        (tool / "index.ts").write_bytes(code)
    start = time.monotonic()
    _, err = cli.run("check", work / "tools")
    assert err == "2000 tools: 0 errors, 0 warnings\n"
    assert time.monotonic() - start < 60  # a guard against the absurd: 2 s here
