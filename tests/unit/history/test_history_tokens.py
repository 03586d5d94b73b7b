"""How many tokens a message costs, and how the provider's figures correct that."""

from __future__ import annotations

import sys
import types
from collections import Counter

import pytest

from floodline.errors import ConfigError
from floodline.history import Conversation, check, estimate, tiktoken_counter
from history_messages import SHAPES, OpenAI

openai = OpenAI()
ENGLISH = "The quick brown fox jumps over the lazy dog. " * 40


def test_english_text_is_estimated_at_four_characters_a_token_and_a_tenth():
    tokens = estimate({"role": "user", "content": ENGLISH})
    assert len(ENGLISH) / 4 < tokens < len(ENGLISH) / 4 * 1.25


def test_other_scripts_cost_more_a_character():
    latin = estimate({"role": "user", "content": "a" * 900})
    cyrillic = estimate({"role": "user", "content": "д" * 900})
    chinese = estimate({"role": "user", "content": "漢" * 900})
    assert latin < cyrillic < chinese
    assert chinese > 900


@pytest.mark.parametrize(
    "message",
    [
        {"content": [{"type": "image_url", "image_url": {"url": "data:" + "A" * 10**6}}]},
        {"content": [{"type": "image", "source": {"type": "base64", "data": "A" * 10**6}}]},
        {"parts": [{"inlineData": {"mimeType": "image/png", "data": "A" * 10**6}}, "odd"]},
        {
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [{"type": "image", "source": {"data": "A" * 10**6}}],
                }
            ]
        },
        {"output": [{"type": "input_image", "image_url": "data:" + "A" * 10**6}]},
    ],
)
def test_an_image_costs_the_same_whatever_its_size(message):
    assert 1500 < estimate({"role": "user", **message}) < 1700


def test_a_document_of_text_costs_its_text():
    source = {"type": "text", "data": "word " * 8000}
    document = {"role": "user", "content": [{"type": "document", "source": source}]}
    assert estimate(document) > 10_000


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.provider)
def test_each_message_is_counted_once_ever(shape):
    seen: Counter[str] = Counter()

    def count(message):
        seen[str(message)] += 1
        return 10

    conversation = Conversation(max_tokens=100, count_tokens=count)
    for i in range(40):
        conversation.append(shape.user(f"question {i}"))
        conversation.extend(shape.calls(f"hm {i}", [f"a{i}"]))
        conversation.extend(shape.results(f"row {i}", [f"a{i}"]))
        conversation.window(60)
        conversation.observe_usage(prompt_tokens=70)
    again = Conversation.__floodline_load__(conversation.__floodline_dump__())
    again.configure(count_tokens=count)
    again.window(50)
    again.append(shape.user("last"))
    assert len(seen) == 121
    assert set(seen.values()) == {1}


def test_a_counter_that_raises_stores_nothing():
    def count(message):
        raise RuntimeError("no such model")

    conversation = Conversation(count_tokens=count)
    with pytest.raises(RuntimeError, match="no such model"):
        conversation.append(openai.user("hi"))
    assert len(conversation) == 0


@pytest.mark.parametrize("answer", [None, -1, 1.5, True, "7"])
def test_a_counter_must_return_a_whole_number(answer):
    conversation = Conversation(count_tokens=lambda message: answer)
    with pytest.raises(ConfigError, match="count_tokens returned"):
        conversation.append(openai.user("hi"))


def test_only_what_can_be_called_can_count():
    with pytest.raises(ConfigError, match="cannot be called"):
        Conversation(count_tokens=7)


def test_usage_that_the_provider_reports_corrects_the_counts():
    conversation = Conversation(max_messages=None, max_tokens=1000, count_tokens=lambda m: 10)
    conversation.extend([openai.user(f"{i}") for i in range(50)])
    window = conversation.window(200)
    assert len(window) == 20
    conversation.observe_usage(prompt_tokens=400)
    assert conversation.stats().correction == 2.0
    assert conversation.tokens == 1000
    assert len(conversation.window(200)) == 10
    conversation.append(openai.user("more"))
    assert len(conversation) == 50
    conversation.window(200)
    conversation.observe_usage(prompt_tokens=100)
    assert conversation.stats().correction == 1.75
    assert check(conversation) == []


def test_a_correction_trims_at_once_and_has_limits():
    conversation = Conversation(max_tokens=100, count_tokens=lambda m: 10)
    conversation.extend([openai.user(f"{i}") for i in range(10)])
    conversation.observe_usage(prompt_tokens=10**9)
    assert conversation.stats().correction == 8.0
    assert len(conversation) == 1
    conversation.observe_usage(prompt_tokens=0)
    assert conversation.stats().correction == 8.0
    with pytest.raises(ConfigError, match="prompt_tokens='many'"):
        conversation.observe_usage(prompt_tokens="many")
    Conversation().observe_usage(prompt_tokens=5)


def test_tiktoken_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(ConfigError, match=r"install floodline\[tokens\]"):
        tiktoken_counter()


def test_an_encoding_that_is_not_on_this_machine_is_a_clear_error(monkeypatch):
    def get_encoding(name):
        raise OSError("no network")

    monkeypatch.setitem(sys.modules, "tiktoken", types.SimpleNamespace(get_encoding=get_encoding))
    with pytest.raises(ConfigError, match=r"no encoding 'o200k_base' here.*TIKTOKEN_CACHE_DIR"):
        tiktoken_counter()


def test_tiktoken_counts_every_text_of_a_message(monkeypatch):
    encoding = types.SimpleNamespace(encode_ordinary=lambda text: text.split())
    fake = types.SimpleNamespace(get_encoding=lambda name: encoding)
    monkeypatch.setitem(sys.modules, "tiktoken", fake)
    count = tiktoken_counter("cl100k_base")
    assert count({"role": "user", "content": "one two three"}) == 4 + 1 + 3
    parts = [{"type": "text", "text": "four five", "n": 7, "odd": None}]
    assert count({"role": "user", "content": parts}) == 4 + 1 + 1 + 2 + 1
    conversation = Conversation([openai.user("one two")], max_tokens=50, count_tokens=count)
    assert conversation.tokens == 7
