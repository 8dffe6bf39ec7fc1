"""What the tree says about tools: schema.json, prompt.md, README.md, tools.json, the usage text."""

import json
import re

import pytest

from lib.mount import FIXTURES
from lib.programs import run, until
from test_tree import put_tool


def line_of(text, marker):
    return next(line for line in text.splitlines() if marker in line)


# ------------------------------------------------------------------------------------- schema

def test_r32_schema_of_the_sample(m):
    assert m.json("sample/schema.json") == {
        "type": "object",
        "properties": {
            "param_name": {"type": "string", "description": "What this parameter is for."},
            "optional_param": {"type": "number", "description": "May be left out."},
            "secret_param": {"type": "string", "description": "A token."},
            "mode": {"type": "string", "enum": ["single", "batch"],
                     "description": "How to run: one item or many."},
        },
        "required": ["param_name", "mode"],
    }
    assert list(m.json("sample/schema.json")["properties"]) == [
        "param_name", "optional_param", "secret_param", "mode"]


def test_r20_no_inputs_give_no_properties(m):
    assert m.json("bare/schema.json") == {"type": "object", "properties": {}}
    assert m.say("bare") == "bare {}"


def test_r21_r25_unknown_types_are_strings(m):
    properties = m.json("lenient/schema.json")["properties"]
    assert properties["when"]["type"] == properties["list"]["type"] == "string"


def test_r24_a3_values_keep_their_source_text(m):
    assert m.json("lenient/schema.json")["properties"]["pick"]["enum"] == [
        "1.0", "on", "010", "2024-01-01"]


def test_r28_r31_required_follows_optional_and_defaults_are_shown(m):
    schema = m.json("typed/schema.json")
    assert schema["required"] == ["d"]
    assert schema["properties"]["d"] == {"type": "number", "description": "Required, with a default.",
                                         "default": 7}
    assert schema["properties"]["b"]["type"] == "boolean"
    assert schema["properties"]["e"]["enum"] == ["low", "high"]


def test_r108_schema_of_my_db(m):
    schema = m.json("my_db/schema.json")
    assert schema["required"] == ["action"]
    assert schema["properties"]["action"]["enum"] == ["query", "stats"]
    assert schema["properties"]["action"]["description"] == \
        "Action to perform: query runs SQL, stats shows database overview."


def test_schema_names_no_dialect(m):
    for tool in m.json("tools.json"):
        assert "$schema" not in json.dumps(tool) and "additionalProperties" not in json.dumps(tool)


# ----------------------------------------------------------------------------------- prompt.md

def test_r16_r17_prompt_has_label_and_description(m):
    prompt = m.text("my_db/prompt.md")
    assert "My Database" in prompt
    assert "Use this to look up records, run aggregations, and search data." in prompt
    assert "bare" in m.text("bare/prompt.md").splitlines()[0], "the label defaults to the name"


def test_r27_prompt_shows_each_input(m):
    prompt = m.text("sample/prompt.md")
    for word in ("param_name", "What this parameter is for.", "optional_param", "secret_param",
                 "A token.", "mode", "single", "batch", "How to run: one item or many."):
        assert word in prompt, word
    assert "required" in prompt.lower() and "sensitive" in prompt
    assert "7" in line_of(m.text("typed/prompt.md"), "`d`"), "the default"


def test_prompt_says_how_to_call_at_this_mount_point(m):
    prompt = m.text("sample/prompt.md")
    assert str(m / "sample/call") in prompt
    assert "result.txt" in prompt


@pytest.mark.parametrize("tool", ["hello", "my_db", "sample", "typed", "bare", "lenient", "shapes"])
def test_example_in_the_prompt_can_be_called(m, tool):
    """The line that the text shows is run as it stands, by a shell."""
    prompt = m.text(f"{tool}/prompt.md")
    line = next(line.strip() for line in prompt.splitlines()
                if re.search(rf">\s*\S*/{tool}/call", line))
    done = run(line)
    # my_db and shapes want more than their schemas can say: they ran, and said so
    assert done.status == 0 or (tool in ("my_db", "shapes") and "Input/output" in done.err), done.err
    assert m.text(f"{tool}/result.json") != "null\n"


def test_r34_the_body_is_there_byte_for_byte_but_for_its_headings(m):
    body = (FIXTURES / "echo/TOOL.md").read_text().split("---\n", 2)[2]
    expected = body.replace("# Echo\n", "## Echo\n", 1).replace("## Examples\n", "### Examples\n", 1)
    before, after = expected.split("Setext\n------\n")
    prompt = m.text("echo/prompt.md")
    assert before in prompt
    assert after in prompt, "the end, without a newline"
    assert "### Setext\n" in prompt


def test_r14_the_body_comes_without_the_front_matter(m):
    assert "version: 1" not in m.text("my_db/prompt.md")
    assert "language:" not in m.text("my_db/prompt.md")


def test_r17_root_prompt_names_every_tool(m):
    prompt = m.text("prompt.md")
    tools = m.json("tools.json")
    for tool in tools:
        assert tool["name"] in prompt
        assert tool["description"].splitlines()[0] in prompt
    assert str(m.path) in prompt


def test_tools_json_has_the_shape_of_tools_list(m):
    tools = m.json("tools.json")
    assert [tool["name"] for tool in tools] == sorted(tool["name"] for tool in tools)
    for tool in tools:
        assert set(tool) == {"name", "title", "description", "inputSchema"}
        assert tool["inputSchema"] == m.json(f"{tool['name']}/schema.json")
    by_name = {tool["name"]: tool for tool in tools}
    assert by_name["my_db"]["title"] == "My Database"
    assert by_name["bare"]["title"] == "bare"


def test_readme_is_short_and_says_how(m):
    readme = m.text("README.md")
    assert len(readme.splitlines()) < 40
    for word in ("call", "result.txt", "prompt.md", str(m.path)):
        assert word in readme, word


# --------------------------------------------------------------------------------- usage text

def test_usage_text_is_no_document(m):
    for tool in ("hello", "sample", "bare"):
        usage = m.text(f"{tool}/call")
        assert usage.startswith("#")
        assert str(m / tool / "call") in usage
        with pytest.raises(ValueError):
            json.loads(usage)


def test_usage_text_shows_an_example_request(m):
    usage = m.text("sample/call")
    example = next(found for found in re.findall(r"\{.*\}", usage) if "param_name" in found)
    assert set(json.loads(example)) >= {"param_name", "mode"}


def test_language_and_version_are_shown_somewhere(m):
    """R18, R19: the daemon's own list has the source and the version of each tool."""
    listed = m.text(".pegfs/tools")
    line = next(line for line in listed.splitlines() if "from_windows" in line)
    assert "2" in line
    assert next(line for line in listed.splitlines() if re.search(r"\bbare\b", line))


# ------------------------------------------------------------------------------ .pegfs/formats

def names_in(m, api):
    tools = m.json(f".pegfs/formats/{api}.json")
    lists = {"mcp": lambda: tools["tools"], "gemini": lambda: tools[0]["functionDeclarations"],
             "openai": lambda: [tool["function"] for tool in tools]}
    return [tool["name"] for tool in lists.get(api, lambda: tools)()]


@pytest.mark.parametrize("api", ["typebox", "mcp", "openai", "openai-responses", "anthropic", "gemini"])
def test_each_format_has_every_tool_and_names_lead_back(m, api):
    names = m.json(".pegfs/formats/names.json")
    assert [names[name] for name in names_in(m, api)] == [tool["name"] for tool in m.json("tools.json")]


def test_formats_follow_the_tools_and_note_what_they_change(new_mount, work):
    tools = work / "tools"
    put_tool(tools, "plain")
    mount = new_mount(tools=(tools,))
    assert names_in(mount, "gemini") == ["plain"] and mount.text(".pegfs/formats/notes") == ""
    put_tool(tools, "a.b")
    until(lambda: len(names_in(mount, "gemini")) == 2, what="the second tool")
    name = names_in(mount, "gemini")[0]
    assert mount.json(".pegfs/formats/names.json")[name] == "a.b"
    assert f"gemini.json: 'a.b' is called '{name}'" in mount.text(".pegfs/formats/notes")
    size = (mount / ".pegfs/formats/gemini.json").stat().st_size
    assert size == len((mount / ".pegfs/formats/gemini.json").read_bytes())
