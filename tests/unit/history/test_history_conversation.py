"""Bounds, turns, pins and pairs of a conversation; the numbers are those of SEMANTICS [H]."""

from __future__ import annotations

import gc
import json
import tracemalloc
import weakref
from collections.abc import Sequence

import pytest

import floodline
from event_loops import events_of
from floodline import history
from floodline.errors import ConfigError, PinsTooLarge, TooLarge
from floodline.history import Conversation, check
from floodline.stores import Codec
from floodline.telemetry import holders
from history_messages import SHAPES, Anthropic, Gemini, OpenAI, Responses

openai, responses, anthropic, gemini = OpenAI(), Responses(), Anthropic(), Gemini()
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.provider)


def user(text="go", **fields):
    return {"role": "user", "content": text, **fields}


def said(text="done", **fields):
    return {"role": "assistant", "content": text, **fields}


def texts(conversation):
    return [message.get("content") for message in conversation]


def test_the_names_of_the_package_are_these():
    assert history.__all__ == [
        "INTERRUPTED",
        "Archive",
        "Conversation",
        "HistoryStats",
        "Message",
        "Page",
        "Problem",
        "Rule",
        "check",
        "estimate",
        "extractive_summary",
        "rules",
        "tiktoken_counter",
        "trim",
    ]
    assert floodline.Conversation is Conversation


def test_it_reads_like_a_list():
    messages = [user("1"), said("2"), user("3")]
    conversation = Conversation(messages)
    assert isinstance(conversation, Sequence)
    assert len(conversation) == 3
    assert list(conversation) == messages == conversation.messages
    assert conversation[0] is messages[0]
    assert conversation[-1] is messages[2]
    assert conversation[1:] == messages[1:]
    assert messages[1] in conversation
    with pytest.raises(IndexError, match="message 3 of 3"):
        conversation[3]
    assert repr(conversation).startswith("<Conversation 3 messages, ")


def test_whole_turns_leave_and_the_list_starts_at_a_user_turn():
    conversation = Conversation(max_messages=4)
    conversation.extend([user("1"), said("2"), said("3"), user("4")])
    conversation.append(said("5"))
    assert texts(conversation) == ["4", "5"]


@every_shape
def test_one_task_with_hundreds_of_calls_keeps_its_user_message(shape):
    """[H1]"""
    conversation = Conversation([shape.system("be brief"), shape.user("task")], max_messages=8)
    for i in range(300):
        conversation.extend(shape.calls("hm", [f"a{i}", f"b{i}"], reasoning=True))
        assert check(conversation, shape.provider) == []
        conversation.extend(shape.results("1", [f"b{i}"]) + shape.results("2", [f"a{i}"]))
        assert len(conversation) <= 8
        assert conversation[:2] == [shape.system("be brief"), shape.user("task")]
        assert check(conversation.window(), shape.provider, in_flight=False) == []
    assert len(conversation) >= 4


def test_defaults_are_fifty_messages_a_mebibyte_and_a_quarter_of_one_a_message():
    """[H4]"""
    stats = Conversation().stats()
    assert (stats.max_items, stats.max_bytes, stats.max_tokens) == (50, 1024**2, None)
    conversation = Conversation([user("x" * 300_000)])
    assert 255 * 1024 < conversation.bytes <= 256 * 1024


def test_each_bound_is_enforced_on_its_own():
    for limits in ({"max_messages": 3}, {"max_tokens": 60}, {"max_bytes": 100}):
        unbound = {"max_messages": None, "max_tokens": None, "max_bytes": None}
        conversation = Conversation(**{**unbound, **limits})
        for i in range(50):
            conversation.append(user(f"number {i}"))
        stats = conversation.stats()
        assert 0 < stats.items < 10
        assert stats.max_bytes is None or stats.bytes <= stats.max_bytes
        assert stats.max_tokens is None or stats.tokens <= stats.max_tokens
        (reason,) = stats.left
        assert reason == {"max_messages": "count", "max_tokens": "tokens"}.get(
            next(iter(limits)), "bytes"
        )
        assert stats.left[reason] + stats.items == 50


def test_at_least_one_bound_is_needed():
    with pytest.raises(ConfigError, match="all None"):
        Conversation(max_messages=None, max_bytes=None)
    for wrong in ({"max_messages": 0}, {"max_tokens": -1}, {"max_bytes": "much"}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            Conversation(**wrong)


def test_system_messages_stay_and_are_bounded_themselves():
    conversation = Conversation(max_messages=3)
    conversation.append({"role": "system", "content": "a"})
    for i in range(20):
        conversation.extend([user(str(i)), said(str(i))])
    conversation.append({"role": "developer", "content": "b"})
    assert texts(conversation) == ["a", "19", "b"]
    conversation.append({"role": "system", "content": "c"})
    with pytest.raises(PinsTooLarge, match=r"4 messages.*bounds are 3"):
        conversation.append({"role": "system", "content": "d"})
    assert texts(conversation) == ["a", "19", "b", "c"]
    assert conversation.system() == [conversation[0], *conversation[2:]]


def test_a_pinned_message_stays_with_its_call_and_the_user_who_asked():
    conversation = Conversation(max_messages=6)
    conversation.extend([openai.user("q"), *openai.calls("hm", ["a"]), *openai.results("1", ["a"])])
    conversation.pin(2)
    for i in range(20):
        conversation.extend([user(str(i)), said(str(i))])
    assert conversation[:3] == [
        openai.user("q"),
        *openai.calls("hm", ["a"]),
        *openai.results("1", ["a"]),
    ]
    assert len(conversation) <= 6
    assert check(conversation) == []
    assert conversation.stats().fixed == 3
    conversation.unpin(conversation[1])
    conversation.unpin(1)
    conversation.extend([user("x"), said("y"), user("z")])
    assert openai.user("q") not in conversation
    assert conversation.stats().fixed == 0


def test_what_need_not_stay_any_longer_can_still_be_pinned():
    conversation = Conversation([openai.user("task")], max_messages=6)
    for i in range(4):
        conversation.extend(openai.calls(f"{i}", [f"c{i}"]) + openai.results("1", [f"c{i}"]))
    conversation.append(user("next"), pin=True)
    conversation.pin(0)
    for i in range(9):
        conversation.append(user(str(i)))
    assert texts(conversation)[:2] == ["task", "next"]
    conversation.unpin(0)
    conversation.append(user("last"))
    assert texts(conversation)[0] == "next"


def test_pins_alone_above_a_bound_are_an_error_and_nothing_is_pinned():
    conversation = Conversation([user("1"), said("2"), said("3"), said("4")], max_messages=4)
    conversation.pin(conversation[0])
    conversation.pin(1)
    conversation.pin(1)
    conversation.pin(2)
    conversation.append(said("5"), pin=True)
    with pytest.raises(PinsTooLarge):
        conversation.append(said("6"), pin=True)
    assert conversation.stats().fixed <= 4
    with pytest.raises(ValueError, match="not stored"):
        conversation.pin(user("never said"))
    with pytest.raises(IndexError):
        conversation.pin(9)


def test_a_pin_can_come_with_the_message():
    conversation = Conversation(max_messages=5)
    conversation.append(user("keep me"), pin=True)
    conversation.extend(openai.calls("hm", ["a"]))
    conversation.append(openai.results("1", ["a"])[0], pin=True)
    for i in range(9):
        conversation.append(user(str(i)))
    assert texts(conversation)[:1] == ["keep me"]
    assert conversation.stats().fixed == 3


@every_shape
def test_calls_in_flight_stay_above_the_bound(shape):
    """[H2]"""
    ids = [f"c{i}" for i in range(6)]
    begun = [shape.user("go"), *shape.calls("hm", ids)]
    conversation = Conversation(begun, max_messages=3, name=f"above-{shape.provider}")
    for key in ids[:5]:
        conversation.extend(shape.results("1", [key]))
        assert conversation.stats().in_flight > 0
        assert check(conversation, shape.provider) == []
    assert len(conversation) > 3
    conversation.extend(shape.results("1", ids[5:]))
    assert conversation.messages == [shape.user("go")]
    assert conversation.stats().unread > 3
    assert events_of("history_step_above_bound", f"above-{shape.provider}")


@every_shape
def test_the_next_user_turn_closes_calls_that_never_got_an_answer(shape):
    """[H2]"""
    kept: list = []
    conversation = Conversation(archive=kept.extend)
    conversation.extend([shape.user("go"), *shape.calls("hm", ["a", "b"])])
    conversation.extend(shape.results("1", ["b"]))
    conversation.append(shape.user("never mind"))
    assert check(conversation, shape.provider, in_flight=False) == []
    assert "no result" in json.dumps(conversation[-2])
    assert conversation.stats().closed_calls == 1
    late = shape.results("too late", ["a"])
    assert conversation.extend(late) == 0
    assert kept == late
    assert conversation.stats().late == 1
    assert check(conversation, shape.provider) == []


def test_a_gemini_call_is_closed_in_the_spelling_and_with_the_id_that_it_has():
    parts = [{"text": "hm"}, {"function_call": {"name": "f", "id": "7"}}]
    conversation = Conversation([gemini.user("go"), {"role": "model", "parts": parts}])
    conversation.append(gemini.user("well?"))
    answer = conversation[2]["parts"][0]["function_response"]
    assert (answer["name"], answer["id"]) == ("f", "7")


def test_reasoning_that_led_to_nothing_leaves_with_the_next_user_turn():
    kept: list = []
    conversation = Conversation([responses.user("go")], archive=kept.extend)
    reasoning = responses.calls("hm", [], reasoning=True)
    conversation.extend([*reasoning, responses.system("x")])
    assert check(conversation) == []
    assert reasoning[0] not in conversation.window()
    conversation.append(responses.user("well?"))
    assert kept == reasoning
    assert conversation.messages == [
        responses.user("go"),
        responses.system("x"),
        responses.user("well?"),
    ]


def test_reasoning_that_was_kept_above_the_bound_leaves_too():
    conversation = Conversation([responses.user("go")], max_messages=1)
    conversation.extend(responses.calls("hm", [], reasoning=True))
    conversation.append(responses.user("well?"))
    assert conversation.messages == [responses.user("well?")]


@pytest.mark.parametrize(
    "follower",
    [
        {"type": "message", "role": "assistant", "content": "done"},
        {"role": "assistant", "content": "done"},
        {"type": "web_search_call", "id": "ws"},
        {"type": "an_item_of_next_year"},
    ],
)
def test_reasoning_stays_and_leaves_with_what_follows_it(follower):
    reasoning = responses.calls("hm", [], reasoning=True)
    conversation = Conversation([responses.user("go"), *reasoning, follower], max_messages=4)
    assert conversation.window() == conversation.messages
    conversation.extend(responses.says("1"))
    assert reasoning[0] in conversation
    conversation.extend(responses.says("2"))
    assert conversation.messages == [
        responses.user("go"),
        *responses.says("1"),
        *responses.says("2"),
    ]


def test_a_result_is_kept_beside_its_call_wherever_it_was_appended():
    first, second = openai.calls("1", ["a"])[0], openai.calls("2", ["b"])[0]
    a, b = openai.results("1", ["a"])[0], openai.results("2", ["b"])[0]
    conversation = Conversation([user(), first, openai.system("x"), second, b, a])
    assert conversation.messages == [user(), first, a, openai.system("x"), second, b]


def test_one_message_with_results_for_two_steps_is_parted():
    kept: list = []
    conversation = Conversation([anthropic.user("go")], archive=kept.extend)
    conversation.extend(anthropic.calls("1", ["a"]) + anthropic.calls("2", ["b"]))
    (both,) = anthropic.results("x", ["b", "a"])
    both["content"].append({"type": "text", "text": "and now?"})
    conversation.append(both)
    assert check(conversation, in_flight=False) == []
    assert [len(m["content"]) for m in conversation[1:]] == [2, 2, 2, 1]
    assert conversation[2]["content"][-1] == {"type": "text", "text": "and now?"}
    assert kept == [both]


@pytest.mark.parametrize("shape", [anthropic, gemini], ids=lambda s: s.provider)
def test_text_that_comes_with_a_late_result_is_a_user_turn(shape):
    conversation = Conversation([shape.user("go"), *shape.says("done")])
    (late,) = shape.results("1", ["gone"])
    name = "content" if "content" in late else "parts"
    text = {"type": "text", "text": "go on"} if name == "content" else {"text": "go on"}
    late[name].append(text)
    assert conversation.append(late) is True
    assert conversation[-1][name] == [text]
    assert late[name][0] != text
    assert check(conversation, shape.provider) == []
    assert conversation.stats().late == 1


def test_a_message_with_a_known_id_is_stored_once():
    conversation = Conversation(max_messages=4)
    assert conversation.append(user("1", id="m1")) is True
    assert conversation.append(user("1 again", id="m1")) is False
    assert conversation.extend([said("2", id=2), said("2", id=2), said("3", id=True)]) == 2
    assert texts(conversation) == ["1", "2", "3"]
    assert conversation.stats().duplicates == 2
    for i in range(20):
        conversation.append(user(str(i)))
    assert conversation.append(user("1 once more", id="m1")) is False


def test_a_known_id_is_stored_again_where_ids_are_not_unique():
    conversation = Conversation()
    same = {"role": "user", "content": "yes", "id": "placeholder"}
    assert conversation.extend([same, same], repeats=True) == 2
    assert conversation.extend([same], repeats=True) == 1
    assert conversation.append(same) is False
    assert [conversation.pop() for _ in range(4)] == [same, same, same, None]


def test_only_so_many_ids_are_remembered():
    conversation = Conversation(max_messages=10)
    for i in range(2000):
        conversation.append(user(str(i), id=f"m{i}"))
    ids = conversation.__floodline_dump__()["ids"]
    assert len(ids) <= 2 * 11 + 256
    assert ids[-1] == "m1999"
    assert conversation.append(user("x", id="m1999")) is False
    assert conversation.append(user("x", id="m0")) is True


def test_the_same_call_id_may_come_again_in_a_later_step():
    conversation = Conversation([user()])
    for i in range(3):
        conversation.extend(openai.calls(f"{i}", ["call_0"]))
        conversation.extend(openai.results(f"{i}", ["call_0"]))
    assert len(conversation) == 7
    assert check(conversation, in_flight=False) == []


def test_parallel_gemini_calls_of_one_function_pair_by_their_number():
    call = gemini.calls("hm", ["f", "f"])
    conversation = Conversation([gemini.user("go"), *call])
    conversation.extend(gemini.results("1", ["f"]))
    assert conversation.stats().in_flight == 1
    conversation.extend(gemini.results("2", ["f"]))
    assert conversation.stats().in_flight == 0
    assert len(conversation.window()) == 3
    assert check(conversation.window(), in_flight=False) == []


def test_a_user_message_that_cannot_be_made_small_enough_is_refused():
    blocks = [{"type": "text", "text": "tiny"}] * 100
    with pytest.raises(TooLarge, match=r"\$\[0\] takes .* max_bytes is 500 B"):
        Conversation([{"role": "user", "content": blocks}], max_bytes=500)


def test_clear_forgets_everything_but_the_settings():
    conversation = Conversation([user("1", id="a"), said("2")], max_messages=7)
    conversation.pin(0)
    conversation.clear()
    conversation.clear()
    assert len(conversation) == 0
    assert conversation.stats().left == {"closed": 2}
    assert conversation.append(user("1", id="a")) is True
    assert conversation.stats().max_items == 7


def test_it_comes_back_equal_from_plain_data():
    conversation = Conversation(max_tokens=400, max_messages=9, name="alice")
    conversation.append({"role": "system", "content": "be brief"})
    for i in range(30):
        conversation.extend([user(f"{i}", id=f"u{i}"), *openai.calls("hm", [f"c{i}"])])
        conversation.extend(openai.results("1", [f"c{i}"]))
    conversation.pin(2)
    conversation.observe_usage(prompt_tokens=300)
    conversation.extend([user("last"), *openai.calls("hm", ["open", "calls"])])
    data = json.loads(json.dumps(conversation.__floodline_dump__()))
    again = Conversation.__floodline_load__(data)
    assert again == conversation
    assert again.stats() == conversation.stats()
    for one in (again, conversation):
        one.extend(openai.results("2", ["calls"]))
        one.extend([user("u29", id="u29"), user("more"), said("x")])
    assert again == conversation
    assert again != Conversation()
    assert conversation != conversation.messages
    with pytest.raises(ValueError, match="format 2"):
        Conversation.__floodline_load__({**data, "format": 2})


def test_it_passes_through_the_session_codec():
    conversation = Conversation([gemini.user("hi"), *gemini.calls("hm", ["a"])])
    conversation.append({"role": "user", "parts": [{"inlineData": {"data": b"raw"}}]})
    codec = Codec(Conversation)
    payload = codec.encode(conversation)
    codec.check(conversation, payload)
    assert codec.decode(payload) == conversation


def test_a_loaded_run_of_reasoning_and_calls_goes_on_as_one_step():
    run = responses.calls("hm", ["a"], reasoning=True)
    for said_before in (run[:1], run):
        conversation = Conversation([responses.user("go"), *said_before])
        again = Conversation.__floodline_load__(conversation.__floodline_dump__())
        again.extend(responses.calls("more", ["b"]))
        assert again._keeper.ledger.rest[-1].entries[0].message == run[0]
        again.extend(responses.results("1", ["b"]))
        loaded = Conversation.__floodline_load__(again.__floodline_dump__())
        loaded.extend(responses.calls("next step", ["c"]))
        assert len(loaded._keeper.ledger.rest) == 3


def test_it_is_weakly_referable_unhashable_and_registered_nowhere():
    conversation = Conversation()
    assert weakref.ref(conversation)() is conversation
    with pytest.raises(TypeError):
        hash(conversation)
    assert conversation not in holders()


def test_stats_are_ready_for_json():
    conversation = Conversation([user(), *openai.calls("hm", ["a"])], name="alice")
    record = json.loads(json.dumps(conversation.stats().as_dict()))
    assert (record["kind"], record["name"], record["items"]) == ("history", "alice", 2)
    assert record["in_flight"] == 1


def test_a_young_conversation_costs_well_under_a_kilobyte():
    Conversation()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        conversations = [Conversation() for _ in range(200)]
        each = (tracemalloc.get_traced_memory()[0] - before) / len(conversations)
    finally:
        tracemalloc.stop()
    assert each < 800


def test_a_thousand_turns_with_default_bounds_stay_under_five_megabytes():
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        conversation = Conversation([openai.system("be brief")])
        for i in range(1000):
            conversation.append(user(f"question {i} " * 50, id=f"u{i}"))
            conversation.extend(openai.calls("hm", [f"a{i}", f"b{i}"]))
            conversation.extend(openai.results("row " * 5000, [f"b{i}", f"a{i}"]))
            conversation.append(said("answer " * 200))
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert held < 5 * 10**6
    assert len(conversation) <= 50
