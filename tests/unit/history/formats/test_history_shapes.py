"""What each provider's messages mean, and where a malformed one is wrong."""

from __future__ import annotations

import pytest

from floodline.errors import ConfigError, HistoryError, MalformedMessage
from floodline.history import Conversation
from floodline.history._formats.shapes import Kind, Reading, parse_provider, read

CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def assistant(**fields):
    return {"role": "assistant", "content": None, **fields}


def blocks(*content, role="user"):
    return {"role": role, "content": list(content)}


def parts(*content, role="user"):
    return {"role": role, "parts": list(content)}


@pytest.mark.parametrize(
    ("message", "reading"),
    [
        ({"role": "user", "content": "hi"}, Reading(None, Kind.user)),
        ({"role": "developer", "content": "be brief"}, Reading(None, Kind.system)),
        (assistant(), Reading(None, Kind.model)),
        (assistant(tool_calls=[CALL]), Reading("openai", Kind.model, ("a",))),
        (assistant(tool_calls=None), Reading(None, Kind.model)),
        (
            assistant(tool_calls=[{"id": "b", "type": "custom", "custom": {"name": "f"}}]),
            Reading("openai", Kind.model, ("b",)),
        ),
        (
            {"role": "tool", "tool_call_id": "a", "content": "42"},
            Reading("openai", Kind.result, (), ("a",)),
        ),
        (blocks({"type": "image_url", "image_url": {"url": "x"}}), Reading("openai", Kind.user)),
        (blocks({"type": "input_text", "text": "x"}), Reading("responses", Kind.user)),
        (
            {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "x"}]},
            Reading("responses", Kind.model),
        ),
        (
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": "x"}],
                "stop_reason": "end_turn",
            },
            Reading(None, Kind.model),
        ),
        ({"type": "reasoning", "summary": []}, Reading("responses", Kind.reasoning)),
        (
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            Reading("responses", Kind.model, ("a",)),
        ),
        (
            {"type": "custom_tool_call", "call_id": "a", "name": "f", "input": "x"},
            Reading("responses", Kind.model, ("a",)),
        ),
        (
            {"type": "function_call_output", "call_id": "a", "output": "42"},
            Reading("responses", Kind.result, (), ("a",)),
        ),
        ({"type": "web_search_call", "id": "ws"}, Reading("responses", Kind.model)),
        (
            blocks({"type": "tool_use", "id": "a", "name": "f", "input": {}}, role="assistant"),
            Reading("anthropic", Kind.model, ("a",)),
        ),
        (
            blocks(
                {"type": "tool_result", "tool_use_id": "a", "content": "42"},
                {"type": "text", "text": "go on"},
            ),
            Reading("anthropic", Kind.result, (), ("a",)),
        ),
        (parts({"text": "hi"}), Reading("gemini", Kind.user)),
        ({"parts": [{"text": "hi"}]}, Reading("gemini", Kind.user)),
        (parts({"text": "be brief"}, role="system"), Reading("gemini", Kind.system)),
        (
            parts({"functionCall": {"name": "f", "args": {}}}, {"text": "x"}, role="model"),
            Reading("gemini", Kind.model, ("f",)),
        ),
        (
            parts({"function_call": {"name": "f"}}, role="model"),
            Reading("gemini", Kind.model, ("f",)),
        ),
        (
            parts({"functionResponse": {"name": "f", "response": {}}}, role="function"),
            Reading("gemini", Kind.result, (), ("f",)),
        ),
    ],
)
def test_a_message_is_understood(message, reading):
    assert read(message, "$") == reading


@pytest.mark.parametrize(
    "message",
    [
        {"role": "function", "name": "f", "content": "42"},
        {"type": "an_item_of_next_year", "id": "x"},
        {"role": "user", "content": "hi", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [], "tool_calls": []},
        parts({"text": "x"}, role="function"),
        assistant(
            tool_calls=[CALL],
            content=[{"type": "tool_use", "id": "b", "name": "f", "input": {}}],
        ),
    ],
)
def test_mixed_and_unknown_shapes_are_opaque_and_kept(message):
    assert read(message, "$").kind is Kind.opaque
    assert Conversation([{"role": "user", "content": "hi"}, message])[1] is message


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ("hello", "$[3]"),
        (None, "$[3]"),
        ({}, "$[3].role"),
        ({"content": "x"}, "$[3].role"),
        ({"type": None, "content": "x"}, "$[3].role"),
        ({"type": "", "content": "x"}, "$[3].role"),
        ({"type": 7, "content": "x"}, "$[3].role"),
        ({"role": 7, "content": "x"}, "$[3].role"),
        ({"role": 7, "parts": []}, "$[3].role"),
        ({"role": "", "content": "x"}, "$[3].role"),
        ({"role": "critic", "content": "hm"}, "$[3].role"),
        ({"role": "model", "content": "hm"}, "$[3].role"),
        ({"type": "message", "role": "tools", "content": "hm"}, "$[3].role"),
        (parts({"text": "x"}, role="narrator"), "$[3].role"),
        (parts({"text": "x"}, role="assistant"), "$[3].role"),
        ({"role": "narrator", "content": "x", "parts": []}, "$[3].role"),
        ({"content": "x", "parts": []}, "$[3].role"),
        (
            {"role": "developer", "content": [{"type": "document", "source": {}}]},
            "$[3].role",
        ),
        ({"role": "user"}, "$[3].content"),
        ({"role": "user", "content": 7}, "$[3].content"),
        ({"role": "user", "content": ""} | {"content": {}}, "$[3].content"),
        (assistant(tool_calls={}), "$[3].tool_calls"),
        (assistant(tool_calls=["x"]), "$[3].tool_calls[0]"),
        (assistant(tool_calls=[CALL | {"id": None}]), "$[3].tool_calls[0].id"),
        (assistant(tool_calls=[CALL | {"id": ""}]), "$[3].tool_calls[0].id"),
        (assistant(tool_calls=[CALL, CALL | {"id": 5}]), "$[3].tool_calls[1].id"),
        (assistant(tool_calls=[CALL, CALL]), "$[3].tool_calls[1].id"),
        (assistant(tool_calls=[CALL | {"function": None}]), "$[3].tool_calls[0].function"),
        (
            assistant(tool_calls=[CALL | {"function": {"arguments": "{}"}}]),
            "$[3].tool_calls[0].function.name",
        ),
        (
            assistant(tool_calls=[CALL | {"function": {"name": "f", "arguments": {}}}]),
            "$[3].tool_calls[0].function.arguments",
        ),
        ({"role": "tool", "content": "42"}, "$[3].tool_call_id"),
        (blocks("text"), "$[3].content[0]"),
        (blocks({"text": "x"}), "$[3].content[0].type"),
        (blocks({"type": "text", "text": None}), "$[3].content[0].text"),
        (blocks({"type": "tool_use", "id": "a", "name": "f"}), "$[3].content[0]"),
        (blocks({"type": "tool_use", "name": "f"}, role="assistant"), "$[3].content[0].id"),
        (blocks({"type": "tool_use", "id": "a"}, role="assistant"), "$[3].content[0].name"),
        (blocks({"type": "tool_result", "content": "x"}), "$[3].content[0].tool_use_id"),
        (
            blocks(
                {"type": "tool_result", "tool_use_id": "a"},
                {"type": "tool_result", "tool_use_id": "a"},
            ),
            "$[3].content[1].tool_use_id",
        ),
        (
            blocks({"type": "tool_result", "tool_use_id": "a"}, role="assistant"),
            "$[3].content[0]",
        ),
        ({"type": "message", "content": "x"}, "$[3].role"),
        ({"type": "function_call", "name": "f", "arguments": ""}, "$[3].call_id"),
        ({"type": "function_call", "call_id": "a", "arguments": ""}, "$[3].name"),
        ({"type": "function_call", "call_id": "a", "name": "f"}, "$[3].arguments"),
        ({"type": "function_call_output", "output": "42"}, "$[3].call_id"),
        ({"type": "function_call_output", "call_id": "a"}, "$[3].output"),
        ({"role": "model"}, "$[3].parts"),
        (parts("text"), "$[3].parts[0]"),
        (parts({"functionCall": {"name": "f"}}), "$[3].parts[0]"),
        (parts({"functionCall": {}}, role="model"), "$[3].parts[0].functionCall.name"),
        (parts({"functionResponse": {}}), "$[3].parts[0].functionResponse.name"),
        (
            parts({"functionResponse": {"name": "f", "response": "42"}}),
            "$[3].parts[0].functionResponse.response",
        ),
    ],
)
def test_a_malformed_message_is_refused_with_its_place_and_nothing_is_stored(message, place):
    conversation = Conversation([{"role": "user", "content": "hi"}] * 3)
    with pytest.raises(MalformedMessage) as caught:
        conversation.append(message)
    assert str(caught.value).endswith(f": {place}")
    assert caught.value.place == place
    assert isinstance(caught.value, HistoryError)
    assert isinstance(caught.value, ValueError)
    assert len(conversation) == 3


def test_extend_stores_all_or_nothing():
    conversation = Conversation()
    good = {"role": "user", "content": "hi"}
    with pytest.raises(MalformedMessage, match=r"\$\[1\]\.content$"):
        conversation.extend([good, {"role": "user"}, good])
    assert len(conversation) == 0
    assert conversation.stats().appended == 0


def test_what_cannot_be_stored_is_refused_with_its_place():
    with pytest.raises(MalformedMessage, match=r"\$\[0\]\.content\[0\]\.extra\[1\]$"):
        Conversation([blocks({"type": "text", "text": "x", "extra": [1, object()]})])
    with pytest.raises(MalformedMessage, match="stored"):
        Conversation([{"role": "user", "content": "\ud800"}])


def test_objects_of_an_sdk_are_refused_with_what_to_do():
    class TextBlock:
        def model_dump(self): ...

    with pytest.raises(MalformedMessage, match=r"not TextBlock; append its model_dump\(\)"):
        Conversation([blocks(TextBlock())])
    with pytest.raises(MalformedMessage, match=r"not TextBlock; append its model_dump\(\)"):
        Conversation([TextBlock()])


def test_what_is_no_json_is_refused():
    with pytest.raises(MalformedMessage, match=r"not JSON .*: \$\[0\]$"):
        Conversation([{"role": "user", "content": "x", "meta": {(1, 2): 3}}])


def test_what_nests_for_ever_is_refused():
    ring: list = []
    ring.append(ring)
    with pytest.raises(MalformedMessage, match=r"\$\[0\]\.extra\[0\]"):
        Conversation([{"role": "user", "content": "x", "extra": ring}])


@pytest.mark.parametrize(
    ("name", "family"),
    [
        (None, None),
        ("openai", "openai"),
        ("OpenAI-Responses", "responses"),
        ("openai chat", "openai"),
        ("claude", "anthropic"),
        ("google", "gemini"),
    ],
)
def test_providers_are_known_by_their_usual_names(name, family):
    assert parse_provider(name) == family


def test_an_unknown_provider_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="provider='acme' is unknown; choose one of 'openai'"):
        parse_provider("acme")
