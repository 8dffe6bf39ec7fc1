"""What becomes of whatever execute returns: the table at the head of core/tools/result.c, by rows (A17, A18)."""

import errno
import json

import pytest

TEXT = {"type": "text", "text": "one"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}

# returned, is it an error, result.json where it is unchanged (else None), what is in result.txt
ROWS = {
    "a ToolResult": ({"content": [TEXT]}, False, True, "one"),
    "several blocks": ({"content": [TEXT, {"type": "text", "text": "two"}, {"type": "text", "text": "three"}]}, False, True, "one\ntwo\nthree"),
    "isError true": ({"content": [TEXT], "isError": True}, True, True, "one"),
    "isError true, no text": ({"content": [], "isError": True}, True, True, ""),
    "isError false": ({"content": [TEXT], "isError": False}, False, True, "one"),
    "isError null": ({"content": [TEXT], "isError": None}, False, True, "one"),
    "isError a string": ({"content": [TEXT], "isError": "yes"}, True, None, "one"),
    "isError 0": ({"content": [TEXT], "isError": 0}, True, None, "one"),
    "isError an object": ({"content": [TEXT], "isError": {}}, True, None, "one"),
    "no blocks": ({"content": []}, False, True, ""),
    "an image": ({"content": [TEXT, IMAGE]}, False, True, "one\n["),
    "only an image": ({"content": [IMAGE]}, False, True, "["),
    "a resource": ({"content": [{"type": "resource", "resource": {"uri": "file:///x", "text": "inside"}}]}, False, True, ""),
    "an unknown type": ({"content": [{"type": "hologram", "data": [1, 2]}]}, False, True, "hologram"),
    "a text block without a text": ({"content": [{"type": "text"}, TEXT]}, True, None, "one"),
    "a text that is a number": ({"content": [{"type": "text", "text": 42}, TEXT]}, True, None, "42"),
    "a block that is a string": ({"content": ["loose", TEXT]}, True, None, "loose"),
    "a block that is null": ({"content": [None, TEXT]}, True, None, "one"),
    "a block that is an array": ({"content": [[1, 2], TEXT]}, True, None, "[1,2]"),
    "a block without a type": ({"content": [{"text": "untyped"}, TEXT]}, True, None, "untyped"),
    "further keys": ({"content": [TEXT], "details": {"rows": 3}, "structuredContent": [1]}, False, True, "one"),
    "further keys of a block": ({"content": [{**TEXT, "annotations": {"priority": 1}}]}, False, True, "one"),
    "a string": ("just a string", True, None, "just a string"),
    "an empty string": ("", True, None, '""'),
    "a number": (42, True, None, "42"),
    "a real": (1.5e300, True, None, "1.5"),
    "true": (True, True, None, "true"),
    "null": (None, True, None, "null"),
    "an array": ([TEXT], True, None, "one"),
    "an object without content": ({"answer": 42}, True, None, "42"),
    "content that is a string": ({"content": "loose"}, True, None, "loose"),
    "content that is an object": ({"content": {"a": "deep"}}, True, None, "deep"),
    "content that is null": ({"content": None}, True, None, "null"),
}


@pytest.mark.parametrize("row", ROWS)
def test_a17_a18_shape(m, row):
    returned, is_error, unchanged, words = ROWS[row]
    result = m.ask("returns", {"json": json.dumps(returned)})
    assert result.get("isError", False) in (is_error, None) and bool(result.get("isError")) == is_error
    assert isinstance(result["content"], list)
    if unchanged:
        assert result == returned, "no key and no block is lost"
    else:
        assert all(isinstance(block, dict) and isinstance(block["type"], str) for block in result["content"])
        blocks = returned["content"] if isinstance(returned, dict) and isinstance(returned.get("content"), list) else None
        if blocks is not None:
            assert len(result["content"]) == len(blocks) + 1, "one more, before the others, says what was wrong"
            assert result["content"][-1] == blocks[-1]
    try:
        m.write("returns", {"json": json.dumps(returned)})
        assert not is_error, "the write-only form succeeds"
    except OSError as failure:
        assert is_error and failure.errno == errno.EIO
    text = m.text("returns/result.txt")
    assert words in text
    assert not is_error or text.strip(), "an error is never without a word"
    assert m.json("returns/result.json") == result


def test_a17_undefined(m):
    text = m.fail("returns")
    assert "ToolResult" in text or "nothing" in text or "undefined" in text


@pytest.mark.parametrize("how", ["circular", "deep", "bigint"])
def test_a17_what_is_no_json(m, how):
    assert m.fail("throws", {"how": how})
    assert m.say("hello", {"name": "Ada"}) == "Hello, Ada!"


def test_result_of_very_many_blocks_is_whole(m):
    blocks = [{"type": "text", "text": f"b{i}"} for i in range(50_000)]
    assert m.ask("returns", {"json": json.dumps({"content": blocks})})["content"] == blocks


def test_result_with_keys_that_javascript_treats_specially(m):
    returned = '{"content":[{"type":"text","text":"x","__proto__":{"a":1},"constructor":1}],"toString":2}'
    assert m.ask("returns", {"json": returned}) == json.loads(returned)


def test_numbers_and_texts_of_a_result_are_not_changed(m):
    returned = {"content": [TEXT], "details": [0, -1, 1.5, 1e21, 9007199254740991, "\u0000\u001f\u2028\U0001f600", True, None]}
    assert m.ask("returns", {"json": json.dumps(returned)}) == returned
