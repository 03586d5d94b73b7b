"""What is sent: a list that the provider's API accepts."""

from __future__ import annotations

import pytest

from floodline.errors import ConfigError
from floodline.history import Conversation, check, trim
from history_messages import SHAPES, Anthropic, Gemini, OpenAI, Responses

openai, responses, anthropic, gemini = OpenAI(), Responses(), Anthropic(), Gemini()
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.provider)


def long_talk(shape, turns=20):
    messages = [shape.system("be brief")]
    for i in range(turns):
        messages.append(shape.user(f"question {i}"))
        messages += shape.calls("hm", [f"a{i}", f"b{i}"], reasoning=True)
        messages += shape.results("x" * 40, [f"b{i}", f"a{i}"])
        messages += shape.says(f"answer {i}")
    return messages


def test_the_window_is_a_list_of_the_stored_dicts():
    messages = [openai.system("x"), openai.user("hi"), *openai.says("hello")]
    window = Conversation(messages).window()
    assert type(window) is list
    assert all(one is other for one, other in zip(window, messages, strict=True))


@every_shape
def test_a_smaller_window_follows_the_same_rules_and_changes_nothing(shape):
    conversation = Conversation(long_talk(shape), max_messages=1000)
    before = conversation.messages
    sizes = set()
    for tokens in (1, 100, 300, 600, 10_000):
        window = conversation.window(tokens, provider=shape.provider)
        sizes.add(len(window))
        assert check(window, shape.provider, in_flight=False) == []
        assert window[-1] in before
        first = next(m for m in window if m.get("role") != "system")
        assert first.get("role") == "user"
    assert len(sizes) >= 4
    assert conversation.messages == before


@every_shape
def test_a_call_in_flight_gets_a_result_that_says_so_in_the_window_only(shape):
    conversation = Conversation([shape.user("go"), *shape.calls("hm", ["a", "b"])])
    conversation.extend(shape.results("1", ["b"]))
    stored = len(conversation)
    window = conversation.window()
    assert "still running" in str(window[-1])
    assert check(window, shape.provider, in_flight=False) == []
    assert len(conversation) == stored


@pytest.mark.parametrize("shape", [anthropic, gemini], ids=lambda s: s.provider)
def test_system_messages_and_greetings_are_left_out_where_the_api_takes_none(shape):
    messages = [shape.system("be brief"), *shape.says("hello"), shape.user("hi")]
    conversation = Conversation(messages)
    assert conversation.window(provider=shape.provider) == [shape.user("hi")]
    assert conversation.system() == [shape.system("be brief")]


def test_openai_gets_its_system_messages_in_the_list():
    messages = [openai.system("be brief"), openai.user("hi")]
    assert Conversation(messages).window(provider="openai") == messages


def test_anthropic_gets_alternating_roles():
    conversation = Conversation([anthropic.user("one"), {"role": "user", "content": "two"}])
    conversation.extend([*anthropic.says("a"), *anthropic.says("b")])
    window = conversation.window(provider="anthropic")
    assert [m["role"] for m in window] == ["user", "assistant"]
    assert [block["text"] for block in window[0]["content"]] == ["one", "two"]
    assert conversation[0] == anthropic.user("one")


def test_results_and_the_text_behind_them_are_one_message_for_anthropic_but_not_for_gemini():
    for shape, count in ((anthropic, 3), (gemini, 4)):
        conversation = Conversation([shape.user("go"), *shape.calls("hm", ["a", "b"])])
        conversation.extend(shape.results("1", ["a"]) + shape.results("2", ["b"]))
        conversation.append(shape.user("and?"))
        window = conversation.window()
        assert len(window) == count
        assert check(window, shape.provider, in_flight=False) == []


def test_an_answer_without_content_is_not_sent_to_anthropic():
    silent = {"role": "assistant", "content": []}
    conversation = Conversation([anthropic.user("hi"), silent, anthropic.user("well?")])
    assert silent not in conversation.window(provider="anthropic")
    assert silent in conversation.window()
    joined = conversation.window(provider="anthropic")
    assert len(joined) == 1


def test_what_another_provider_wrote_is_left_out():
    conversation = Conversation([openai.user("go"), *openai.calls("hm", ["a"])])
    conversation.extend(openai.results("1", ["a"]))
    conversation.extend([openai.user("next"), *anthropic.calls("hm", ["b"])])
    conversation.extend(anthropic.results("2", ["b"]))
    for provider in ("openai", "anthropic"):
        assert check(conversation.window(provider=provider), provider, in_flight=False) == []
    assert conversation.window() == conversation.window(provider="anthropic")
    assert conversation.window(provider="gemini") == []


def test_an_empty_message_is_joined_with_nothing():
    conversation = Conversation([gemini.user("hi"), {"role": "user", "parts": []}])
    assert len(conversation.window(provider="gemini")) == 2


def test_a_window_needs_a_positive_number_and_a_known_provider():
    with pytest.raises(ConfigError, match="max_tokens=0"):
        Conversation().window(max_tokens=0)
    with pytest.raises(ConfigError, match="provider"):
        Conversation().window(provider="acme")


@every_shape
def test_trim_is_the_rule_for_a_list_of_ones_own(shape):
    messages = long_talk(shape)
    before = [dict(message) for message in messages]
    for limits in ({"max_messages": 9}, {"max_tokens": 200}, {"max_bytes": 900}):
        trimmed = trim(messages, provider=shape.provider, **limits)
        assert 0 < len(trimmed) < len(messages)
        assert check(trimmed, shape.provider, in_flight=False) == []
        assert trimmed[-1] == messages[-1]
    assert messages == before


def test_trim_drops_results_whose_call_is_gone_and_needs_a_bound():
    orphan = openai.results("1", ["gone"])
    assert trim([*orphan, openai.user("hi")], max_messages=5) == [openai.user("hi")]
    with pytest.raises(ConfigError, match="at least one"):
        trim([openai.user("hi")])


def test_trim_shortens_single_messages_if_asked():
    (short,) = trim([openai.user("x" * 5000)], max_messages=5, max_message_bytes=1000)
    assert len(short["content"]) < 1000
