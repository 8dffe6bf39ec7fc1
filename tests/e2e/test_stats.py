""".pegfs/stats is Prometheus text, and docs/grafana.json shows what is in it."""

import json
import math
import os
import re
import shutil

import pytest

from lib.mount import ROOT
from lib.programs import run
from test_tree import put_tool

parser = pytest.importorskip("prometheus_client.parser", reason="python3-prometheus-client is not installed")

DASHBOARD = json.loads((ROOT / "docs/grafana.json").read_text())
STATES = {"done", "failed", "cancelled", "timed out", "refused"}


def text_of(mount):
    """As it is now: what is shown is up to a second old, and another size is no older one."""
    return mount.text(".pegfs/stats")


def families(mount):
    return {family.name: family for family in parser.text_string_to_metric_families(text_of(mount))}


def promtool():
    found = ROOT / "build/promtool/promtool"
    path = str(found) if found.exists() else shutil.which("promtool")
    if not path:
        pytest.skip("promtool is not to be had: Debian's package prometheus has it")
    return path


@pytest.fixture
def called(new_mount, work):
    """A mount on which calls have ended in several ways, of a tool with an awkward name as well."""
    tools = work / "tools"
    put_tool(tools, "plain", text="ok")
    tool = put_tool(tools, "awkward", text="ok")
    (tool / "TOOL.md").write_text("---\nname: 'q\"uo\\te s'\ndescription: Odd.\nversion: 1\n---\n")
    put_tool(tools, "broken")
    (tools / "broken/index.js").write_text("export function execute() { throw new Error('no'); }\n")
    put_tool(tools, "brief", timeout=1)
    (tools / "brief/index.js").write_text("export function execute() { return new Promise(() => setTimeout(() => {}, 9e6)); }\n")
    mount = new_mount(tools=(tools,))
    for _ in range(3):
        mount.ask("plain")
    mount.ask('q"uo\\te s')
    mount.ask("broken")
    mount.ask("plain", "[]")
    mount.ask("brief")
    return mount


def sample(family, suffix="", **labels):
    found = [each.value for each in family.samples if each.name == family.name + suffix and each.labels == labels]
    assert len(found) == 1, (family.name, suffix, labels, found)
    return found[0]


def test_every_metric_has_a_type_a_help_and_a_name_of_ours(called):
    found = families(called)
    assert len(found) >= 25
    for family in found.values():
        assert family.type in ("counter", "gauge", "histogram"), family
        assert family.documentation and family.name.startswith("pegfs_"), family
        assert family.samples, family
    lines = text_of(called).splitlines()
    assert len([line for line in lines if line.startswith("# TYPE")]) == len(found)


def test_promtool_takes_it(called):
    done = run([promtool(), "check", "metrics"], stdin=text_of(called).encode())
    assert done.status == 0, done.out + done.err


def test_calls_are_counted_by_tool_and_by_how_they_ended(called):
    found = families(called)
    of_tools = found["pegfs_tool_calls"]
    wanted = {("plain", "done"): 3, ("plain", "refused"): 1, ('q"uo\\te s', "done"): 1,
              ("broken", "failed"): 1, ("brief", "timed out"): 1}
    for each in of_tools.samples:
        assert each.value == wanted.pop((each.labels["tool"], each.labels["state"]), 0), each
    assert not wanted
    assert {each.labels["state"] for each in of_tools.samples} == STATES
    for state in STATES:
        in_all = sum(each.value for each in of_tools.samples if each.labels["state"] == state)
        assert sample(found["pegfs_calls"], "_total", state=state) == in_all


def test_durations_are_histograms(called):
    found = families(called)
    durations, waits = found["pegfs_call_duration_seconds"], found["pegfs_call_wait_seconds"]
    assert {each.labels["tool"] for each in durations.samples} == {"plain", 'q"uo\\te s', "broken", "brief"}
    for family, labels in [(durations, {"tool": "plain"}), (durations, {"tool": "brief"}), (waits, {})]:
        buckets = [each for each in family.samples if each.name.endswith("_bucket")
                   and {key: value for key, value in each.labels.items() if key != "le"} == labels]
        bounds, counts = [float(each.labels["le"]) for each in buckets], [each.value for each in buckets]
        assert bounds == sorted(bounds) and bounds[-1] == math.inf and len(set(bounds)) == 16
        assert counts == sorted(counts)
        assert counts[-1] == sample(family, "_count", **labels)
    assert sample(durations, "_count", tool="plain") == 3, "what was refused has not run"
    assert 1 <= sample(durations, "_sum", tool="brief") < 30
    assert sample(durations, "_bucket", tool="brief", le="0.5") == 0
    assert sample(waits, "_count") == 6
    assert 0 <= sample(waits, "_sum") <= sum(each.value for each in durations.samples if each.name.endswith("_sum"))


def test_hosts_memory_and_the_version_are_told(called):
    found = families(called)
    assert sample(found["pegfs_hosts_started"], "_total") >= 4
    assert sample(found["pegfs_hosts"]) >= 1
    assert 1 << 20 < sample(found["pegfs_resident_memory_bytes"]) < 1 << 40
    [version] = found["pegfs_build_info"].samples
    assert version.labels == {"version": called.text(".pegfs/version").strip()} and version.value == 1


def test_what_others_parse_is_not_longer_than_stat_says(called):
    size = os.stat(called / ".pegfs/stats").st_size
    assert size == len((called / ".pegfs/stats").read_bytes())


# ----------------------------------------------------------------------------------- the dashboard

def expressions():
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


def test_every_expression_of_the_dashboard_names_a_metric_that_exists(called):
    names = {each.name for family in families(called).values() for each in family.samples}
    used = {name for expression in expressions() for name in re.findall(r"\bpegfs_\w+", expression)}
    used |= {name for variable in DASHBOARD["templating"]["list"] for name in re.findall(r"\bpegfs_\w+", variable["query"])}
    assert used <= names, used - names
    labels = {"instance", "le"} | {label for family in families(called).values() for each in family.samples for label in each.labels}
    for expression in expressions():
        assert "pegfs_" in expression
        assert set(re.findall(r"[{,](\w+)(?:=~|!=|=)", expression)) <= labels, expression
    # What is counted is shown somewhere.
    unused = {name for name in names if re.search(r"_total$|_bucket$", name)} - used
    assert not unused


def test_promtool_takes_every_expression_of_the_dashboard(work):
    plain = [re.sub(r"\$__(rate_interval|range)", "5m", expression) for expression in expressions()]
    rules = work / "rules.yml"
    rules.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": [
        {"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(plain)]}]}))
    done = run([promtool(), "check", "rules", rules])
    assert done.status == 0, done.out + done.err


def test_panels_of_the_dashboard_do_not_overlap_and_have_ids():
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_promtool_takes_the_rules_of_the_page_and_their_metrics_exist(called, work):
    page = (ROOT / "docs/integrations.md").read_text()
    block = re.search(r"^    groups:\n(?:    .*\n)+", page, re.M)[0]
    (work / "rules.yml").write_text(re.sub(r"^    ", "", block, flags=re.M))
    done = run([promtool(), "check", "rules", work / "rules.yml"])
    assert done.status == 0 and "3 rules" in done.out, done
    names = {each.name for family in families(called).values() for each in family.samples}
    assert set(re.findall(r"\bpegfs_\w+", block)) <= names
