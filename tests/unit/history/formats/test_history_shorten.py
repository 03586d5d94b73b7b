"""One message that is too heavy."""

from __future__ import annotations

import copy
import json
import re

import pytest

from floodline.history import Conversation, check
from floodline.history._formats.shorten import cut_text, shorten, weigh
from history_messages import SHAPES, OpenAI

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.provider)
openai = OpenAI()


def cut_numbers(message):
    return [int(n) for n in re.findall(r"\[… (\d+) characters cut …\]", _text(message))]


def _text(message):
    return json.dumps(message, ensure_ascii=False)


@every_shape
@pytest.mark.parametrize("nested", [False, True])
def test_a_result_keeps_head_tail_and_pair(shape, nested):
    text = "START" + "ä漢" * 4000 + "END"
    kept: list = []
    conversation = Conversation(
        [shape.user("go"), *shape.calls("hm", ["a"])], max_message_bytes=2000, archive=kept.extend
    )
    (result,) = shape.results(text, ["a"], nested=nested)
    before = copy.deepcopy(result)
    conversation.append(result)
    stored = conversation[-1]
    assert weigh(stored, "$") <= 2000
    assert result == before
    assert kept == [result]
    assert "START" in _text(stored)
    assert "END" in _text(stored)
    (cut,) = cut_numbers(stored)
    kept_characters = len(text) - cut
    assert 500 < kept_characters < 1500
    assert check(conversation, shape.provider, in_flight=False) == []
    assert conversation.stats().shortened == 1


def test_the_number_of_characters_cut_is_exact():
    for text in ("abc" * 1000, "漢" * 1000, "x" * 999 + "ä"):
        for room in (0, 10, 60, 61, 62, 63, 300):
            short = cut_text(text, room)
            (n,) = re.findall(r"\n\[… (\d+) characters cut …\]\n", short)
            head, tail = short.split(f"\n[… {n} characters cut …]\n")
            assert len(head) + len(tail) + int(n) == len(text)
            assert text.startswith(head)
            assert text.endswith(tail)
            assert len(short.encode()) <= max(room, 40)


def test_the_arguments_of_a_call_stay_json():
    (call,) = openai.calls("hm", ["a"])
    function = call["tool_calls"][0]["function"]
    function["arguments"] = json.dumps({"path": "a.py", "text": "x" * 5000, "deep": ["y" * 3000]})
    short, size = shorten(call, 1000, "$")
    assert size <= 1000
    arguments = json.loads(short["tool_calls"][0]["function"]["arguments"])
    assert arguments["path"] == "a.py"
    assert cut_numbers(arguments)
    assert short["tool_calls"][0]["id"] == "a"
    assert len(function["arguments"]) > 8000


@pytest.mark.parametrize(
    "arguments",
    ["not json " * 1000, json.dumps(list(range(3000))), json.dumps({"n": list(range(3000))})],
)
def test_arguments_that_hold_no_long_text_are_wrapped(arguments):
    (call,) = openai.calls("hm", ["a"])
    call["tool_calls"][0]["function"]["arguments"] = arguments
    short, size = shorten(call, 600, "$")
    assert size <= 600
    assert "shortened" in json.loads(short["tool_calls"][0]["function"]["arguments"])


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        ({"type": "image_url", "image_url": {"url": "data:" + "A" * 9000}}, "text"),
        ({"type": "image", "source": {"type": "base64", "data": "A" * 9000}}, "text"),
        ({"type": "input_image", "image_url": "data:" + "A" * 9000}, "input_text"),
    ],
)
def test_an_image_becomes_a_line_of_text(part, kept):
    message = {"role": "user", "content": [part, {"type": kept, "text": "what is this?"}]}
    short, size = shorten(message, 1000, "$")
    assert size < 1000
    assert short["content"][0]["type"] == kept
    assert re.fullmatch(r"\[\w+ of 8\.\d+ KiB removed\]", short["content"][0]["text"])
    assert short["content"][1]["text"] == "what is this?"


@pytest.mark.parametrize("name", ["inlineData", "inline_data"])
def test_inline_data_of_gemini_becomes_a_text_part(name):
    message = {"role": "user", "parts": [{name: {"mimeType": "image/png", "data": b"A" * 9000}}]}
    short, _ = shorten(message, 1000, "$")
    assert re.fullmatch(r"\[data of 8\.\d+ KiB removed\]", short["parts"][0]["text"])


def test_signed_thinking_and_ids_are_never_touched():
    blocks = [
        {"type": "thinking", "thinking": "t" * 3000, "signature": "s" * 300},
        {"type": "text", "text": "x" * 3000},
        {"type": "tool_use", "id": "i" * 100, "name": "f", "input": {"text": "y" * 3000}},
    ]
    message = {"role": "assistant", "content": blocks}
    short, size = shorten(message, 2000, "$")
    assert size > 2000
    assert short["content"][0] == blocks[0]
    assert short["content"][2]["id"] == "i" * 100
    assert len(cut_numbers(short)) == 2
    thought = {"role": "model", "parts": [{"thought": True, "text": "t" * 3000}]}
    assert shorten(thought, 100, "$")[0] == thought


def test_a_message_that_cannot_be_shortened_is_stored_as_it_is():
    thinking = {"type": "thinking", "thinking": "t" * 3000, "signature": "s"}
    message = {"role": "assistant", "content": [thinking]}
    kept: list = []
    conversation = Conversation(
        [openai.user("go"), message], max_message_bytes=100, archive=kept.extend
    )
    assert conversation[-1] is message
    assert kept == []
    assert conversation.stats().shortened == 0


def test_without_an_archive_the_short_text_is_what_a_later_archive_gets():
    kept: list = []
    conversation = Conversation([openai.user("x" * 5000)], max_messages=1, max_message_bytes=500)
    short = conversation[0]
    conversation.configure(archive=kept.extend)
    conversation.append(openai.user("next"))
    assert kept == [short]


def test_a_message_must_fit_the_whole_bound_too():
    conversation = Conversation([openai.user("x" * 5000)], max_bytes=1000)
    assert conversation.bytes <= 1000
