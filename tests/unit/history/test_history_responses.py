"""Windows for the Responses API are whole: what came together stays together."""

from __future__ import annotations

import copy

import pytest

from floodline import Conversation
from floodline.history import check
from history_messages import HOSTED, Responses

shape = Responses()
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}


def names(messages):
    return [m.get("id") or m.get("role") or m["type"] for m in messages]


def hosted(n, kind="web_search_call"):
    return {**shape.hosted(kind), "id": f"ws_{n}"}


@pytest.mark.parametrize("kind", HOSTED)
@pytest.mark.parametrize("bound", range(1, 8))
def test_reasoning_and_its_call_stay_together_whatever_stands_between(kind, bound):
    chat = Conversation(max_messages=bound)
    said = [shape.user("find it"), THOUGHT, hosted(1, kind), hosted(2, kind), CALL]
    chat.extend(said)
    chat.extend(shape.results("1", ["c1"]))
    window = chat.window()
    assert check(window, "responses", in_flight=False, original=said) == []
    assert ("fc_1" in names(window)) == ("rs_1" in names(window)) == (bound >= 6)


def test_each_reasoning_keeps_what_follows_it_up_to_the_next():
    chat = Conversation(max_messages=5)
    later = {**THOUGHT, "id": "rs_2"}
    said = [shape.user("go"), THOUGHT, hosted(1), hosted(2), later, hosted(3), CALL]
    chat.extend(said)
    assert names(chat) == ["user", "rs_2", "ws_3", "fc_1"]
    assert check(chat, original=said) == []


def test_a_message_behind_hosted_items_stays_with_its_reasoning():
    chat = Conversation(max_messages=5)
    said = [shape.user("go"), THOUGHT, hosted(1), {**shape.says("found")[0], "id": "msg_1"}]
    chat.extend(said)
    assert names(chat) == ["user", "rs_1", "ws_1", "msg_1"]
    chat.extend([shape.user("thanks"), *shape.says("welcome")])
    assert [m["role"] for m in chat] == ["user", "assistant"]


def test_text_without_an_id_stands_beside_the_response():
    chat = Conversation(max_messages=10)
    said = [shape.user("go"), THOUGHT, hosted(1), *shape.says("looking"), hosted(2), CALL]
    for message in said:
        chat.append(message)
    assert names(chat) == ["user", "rs_1", "ws_1", "ws_2", "fc_1", "assistant"]
    half = copy.copy(Conversation(said[:4]))
    half.extend(said[4:])
    assert names(half) == names(chat)


def test_what_comes_after_its_reasoning_was_cut_is_cut_too():
    kept: list = []
    chat = Conversation(max_messages=2, archive=kept.extend)
    said = [shape.user("go"), THOUGHT, hosted(1), hosted(2), CALL, *shape.results("1", ["c1"])]
    for message in said[:4]:
        chat.append(message)
    assert names(chat) == ["user"]
    chat = copy.copy(chat)
    for message in (shape.system("x"), *said[4:]):
        chat.append(message)
        assert check(chat, original=said) == []
    assert kept == said[1:]
    assert chat.stats().left == {"count": 4}
    assert chat.stats().late == 1
    chat.append({**CALL, "id": "fc_2", "call_id": "c2"})
    assert "fc_2" in names(chat)


def test_a_loaded_conversation_goes_on_in_the_same_response():
    chat = Conversation(max_messages=5)
    chat.extend([shape.user("go"), THOUGHT, hosted(1)])
    loaded = copy.copy(chat)
    loaded.extend([hosted(2), CALL, *shape.results("1", ["c1"])])
    assert names(loaded) == ["user"]


def test_a_message_of_another_provider_is_no_item_of_the_response():
    chat = Conversation(max_messages=10)
    chat.extend([shape.user("go"), THOUGHT, hosted(1)])
    chat.append({"role": "user", "content": "hi", "parts": [{"text": "hi"}]})
    assert len(chat._keeper.ledger.rest) == 3


def test_a_summary_does_not_take_what_may_still_grow():
    told: list = []

    def summarise(messages):
        told.extend(messages)
        return "they talked"

    chat = Conversation(max_messages=6, summarise=summarise)
    chat.extend([shape.user("a"), *shape.says("b"), shape.user("go"), THOUGHT])
    chat.extend([hosted(n) for n in range(4)])
    assert chat.stats().summary_running
    chat._keeper.summariser.job.done = True  # however soon it was
    assert THOUGHT not in told


@pytest.mark.parametrize("bound", range(1, 8))
def test_an_approval_and_its_request_leave_together(bound):
    chat = Conversation(max_messages=bound)
    said = [shape.user("go"), THOUGHT, hosted(1, "mcp_list_tools"), shape.asks("mcpr_1")]
    chat.extend(said)
    assert chat.stats().in_flight == 1
    chat.append(shape.approves("mcpr_1"))
    assert chat.stats().in_flight == 0
    chat.append(hosted(2, "mcp_call"))
    kept = [m["type"] for m in chat.window() if "type" in m]
    assert ("mcp_approval_request" in kept) == ("mcp_approval_response" in kept)
    assert check(chat.window(), "responses", in_flight=False, original=said) == []


def test_after_an_approval_a_new_response_begins():
    chat = Conversation([shape.user("go"), THOUGHT, shape.asks("mcpr_1")])
    chat.append(shape.approves("mcpr_1"))
    for one in (chat, copy.copy(chat)):
        one.append(hosted(2, "mcp_call"))
        assert len(one._keeper.ledger.rest) == 3


def test_a_request_that_nobody_answered_is_denied_by_the_next_turn():
    chat = Conversation([shape.user("go"), shape.asks("mcpr_1")])
    answer = chat.window()[-1]
    assert answer["type"] == "mcp_approval_response"
    assert not answer["approve"]
    assert "still running" in answer["reason"]
    chat.append(shape.user("never mind"))
    assert [m.get("approve") for m in chat] == [None, None, False, None]
    assert "went on" in chat[2]["reason"]
    assert not chat.append(shape.approves("mcpr_1"))
    assert check(chat, "responses") == []


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (
            {"type": "shell_call", "action": {"commands": ["ls"]}},
            {"type": "shell_call_output"},
        ),
        (
            {"type": "apply_patch_call", "operation": {}},
            {"type": "apply_patch_call_output", "status": "failed"},
        ),
    ],
)
def test_calls_are_closed_in_their_own_shape(call, answer):
    chat = Conversation([shape.user("go"), {**call, "call_id": "c1"}])
    closed = chat.window()[-1]
    assert closed == {**closed, **answer}
    assert check(chat.window(), "responses", in_flight=False) == []


@pytest.mark.parametrize(
    ("item", "place"),
    [
        ({"type": "mcp_approval_request"}, "$[1].id"),
        ({"type": "mcp_approval_response", "approve": True}, "$[1].approval_request_id"),
        ({"type": "mcp_approval_response", "approval_request_id": "x"}, "$[1].approve"),
    ],
)
def test_a_malformed_approval_has_a_place(item, place):
    (problem,) = check([shape.user("go"), item])
    assert problem.place == place


def test_an_applied_patch_may_say_nothing():
    patch = {"type": "apply_patch_call", "call_id": "c1", "operation": {}}
    done = {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed"}
    assert check([shape.user("go"), patch, done]) == []
