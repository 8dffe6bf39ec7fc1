"""Parameters are checked and completed before anything runs: R22 to R31, T6, T14."""

import errno
import json
import os

import pytest

from lib.counter import Counter


def typed(m, **request):
    return json.loads(m.say("typed", request))


@pytest.mark.parametrize("request_, arrives", [
    ({}, {"d": 7}),
    ({"n": "5"}, {"n": 5, "d": 7}),
    ({"n": 5.5}, {"n": 5.5, "d": 7}),
    ({"n": None}, {"d": 7}),
    ({"d": None}, {"d": 7}),
    ({"b": "true"}, {"b": True, "d": 7}),
    ({"b": "false"}, {"b": False, "d": 7}),
    ({"s": 7}, {"s": "7", "d": 7}),
    ({"s": True}, {"s": "true", "d": 7}),
    ({"e": "high"}, {"e": "high", "d": 7}),
    ({"d": 8}, {"d": 8}),
    ({"unknown": {"kept": [1, 2]}}, {"unknown": {"kept": [1, 2]}, "d": 7}),
])
def test_t14_r31_a8_a10_values_arrive_completed_and_converted(m, request_, arrives):
    assert json.loads(m.say("typed", request_)) == arrives
    assert m.write("typed", request_) == len(json.dumps(request_))
    assert json.loads(m.text("typed/result.txt")) == arrives


@pytest.mark.parametrize("request_, words", [
    ({"n": "five"}, ["n", "number"]),
    ({"n": [1]}, ["n", "number"]),
    ({"b": "maybe"}, ["b", "true", "false"]),
    ({"b": 7}, ["b", "true", "false"]),
    ({"e": "middle"}, ["e", "low", "high"]),
    ({"s": {"a": 1}}, ["s", "string"]),
])
def test_t14_r22_r23_r30_value_that_does_not_fit_is_refused_by_name(m, request_, words):
    with pytest.raises(OSError) as caught:
        m.write("typed", request_)
    assert caught.value.errno == errno.EINVAL
    text = m.text("typed/result.txt")
    for word in words:
        assert word in text, text
    result = m.json("typed/result.json")
    assert result["isError"] is True and result["content"][0]["text"].strip() == text.strip()


def test_r28_missing_parameter_is_named(m):
    with pytest.raises(OSError) as caught:
        m.write("sample", {"param_name": "x"})
    assert caught.value.errno == errno.EINVAL
    assert "mode" in m.text("sample/result.txt")
    assert "param_name" not in m.text("sample/result.txt").split("mode")[0].replace("sample", "")
    text = m.fail("sample", {})
    assert "mode" in text and "param_name" in text, "all of them are named at once"


def test_unknown_parameter_is_passed_on_with_a_warning_that_suggests(m):
    m.write("typed", {"unknwon": 1, "dd": 3})
    assert json.loads(m.text("typed/result.txt"))["unknwon"] == 1
    assert "unknwon" in m.text("typed/log")


@pytest.mark.parametrize("document", [
    "{", '{"a":', '{"a":1', "[]", "[1]", "7", "null", '"text"', "true", "{]", '{"a":1,}', "{'a':1}",
    '{"a":1}}', '{"a":1} x', '{"a":1}{"a":2}', '{"a":1,"a":2}', '{"a":01}', '{"a":NaN}', "hello",
    "# comment\n{}", "<html>", '{"a":"\t"}', '{"a":"\\x"}', '{"a":"\\ud800"}', b'{"a":"\xff"}',
    b'{"a":"\xc0\xaf"}', b"{\0}", b'{"a":1}\0', b"\0\0\0\0",
    b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}", b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
], ids=lambda value: str(value)[:24])
def test_t6_bad_document_is_refused_and_runs_nothing(m, work, document):
    counter = Counter(work)
    data = document if isinstance(document, bytes) else document.encode()
    data = data.replace(b'"a"', b'"file"')
    fd = os.open(m / "count/call", os.O_WRONLY)
    try:
        with pytest.raises(OSError) as caught:
            os.write(fd, data)
            os.close(os.dup(fd))  # an incomplete document shows at the close
            raise AssertionError("neither the write nor the close failed")
        assert caught.value.errno == errno.EINVAL
    finally:
        try:
            os.close(fd)
        except OSError as late:
            assert late.errno == errno.EINVAL
    assert counter.count() == 0
    result = m.json("count/result.json")
    assert result["isError"] is True
    assert result["content"][0]["text"].strip()
    assert json.loads(m.say("echo", {"text": "alive"})) == {"text": "alive"}


@pytest.mark.parametrize("document", [
    "{}", " {} ", "\n\n{}\n", "{\r\n}\r\n", "\ufeff{}", '{"text":"\\u00e9\\ud83d\\ude00"}',
    '{"text":"\u00e9\U0001f600"}', '{"text":"a\\nb\\"c\\\\"}', '{ "text" : "x" , "n" : -1.5e3 }',
])
def test_t6_unusual_but_valid_document_is_accepted(m, document):
    request = json.loads(document.lstrip("\ufeff"))
    assert m.write("echo", document.encode()) == len(document.encode())
    assert json.loads(m.text("echo/result.txt")) == request


def test_t6_message_names_the_place(m):
    with pytest.raises(OSError):
        m.write("echo", '{\n  "text": "x",\n  "text": "y"\n}')
    assert "3" in m.text("echo/result.txt") and "text" in m.text("echo/result.txt")


def test_r40_long_and_odd_strings_arrive_unchanged(m):
    text = "\u00e9\u4e2d\U0001f600\n\t\"'\\ \u2028 %s $HOME `id` " * 20_000
    assert json.loads(m.say("echo", {"text": text})) == {"text": text}


def test_r40_numbers_arrive_unchanged(m):
    numbers = [0, -1, 1.5, 1e21, 9007199254740991, -9007199254740991, 0.1, 1e-7]
    assert json.loads(m.say("echo", {"numbers": numbers}))["numbers"] == numbers


def test_document_over_the_limit_is_too_big(m):
    fd = os.open(m / "echo/call", os.O_WRONLY)
    block = b"x" * (1 << 20)
    try:
        with pytest.raises(OSError) as caught:
            os.write(fd, b'{"text":"')
            for _ in range(2048):
                os.write(fd, block)
        assert caught.value.errno == errno.EFBIG
    finally:
        try:
            os.close(fd)
        except OSError:
            pass
    assert "MB" in m.text("echo/result.txt") or "MiB" in m.text("echo/result.txt") or \
        "bytes" in m.text("echo/result.txt")
    assert json.loads(m.say("echo", {"text": "alive"})) == {"text": "alive"}
