"""Taking back the newest messages, and reading them without parting what belongs together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodline import Conversation
from floodline.errors import ConfigError
from floodline.history import INTERRUPTED, check
from floodline.stores import SQLiteArchive
from history_messages import SHAPES

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.provider)


def user(text: str, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **fields}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def asked(key: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    calls = [{"id": key, "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(key: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": key, "content": "42"}


@given(st.lists(st.sampled_from(["user", "said", "call", "open"]), max_size=20), st.data())
def test_what_was_appended_is_popped_in_reverse(kinds: list[str], data: st.DataObject) -> None:
    chat = Conversation(max_messages=None)
    stored: list[dict[str, Any]] = []
    for number, kind in enumerate(kinds):
        key = f"c{number}"
        new = {
            "user": [user(key)],
            "said": [said(key)],
            "call": [asked(key), result(key)],
            "open": [asked(key)],
        }[kind]
        for message in new:
            assert chat.append(message)
        stored += new
        if data.draw(st.booleans()):
            assert chat.pop() == stored.pop()
        assert not check(chat.window())
    while stored:
        assert chat.pop() == stored.pop()
        assert not check(chat.window())
    assert chat.pop() is None
    assert (len(chat), chat.bytes, chat.tokens) == (0, 0, 0)


def test_a_call_whose_result_was_popped_waits_for_it_again() -> None:
    chat = Conversation([user("a"), asked("c"), result("c")])
    assert chat.pop() == result("c")
    assert chat.stats().in_flight == 1
    assert chat.append(result("c"))
    assert chat.stats().in_flight == 0


def test_a_message_with_an_id_may_come_again_after_it_was_popped() -> None:
    chat = Conversation([user("a", id="m1")])
    assert not chat.append(user("a", id="m1"))
    chat.pop()
    assert chat.append(user("a", id="m1"))


def test_the_original_of_a_shortened_message_comes_from_the_archive(tmp_path: Any) -> None:
    archive = SQLiteArchive(tmp_path / "a.db")
    chat = Conversation(max_message_bytes="1 KiB", archive=archive)
    long = user("long " * 1000)
    chat.append(long)
    assert chat[-1] != long
    assert chat.pop() == long
    assert len(chat) == 0
    archive.close()


def test_what_an_archive_cannot_give_back_is_gone() -> None:
    sent: list[Any] = []
    chat = Conversation(max_messages=2, archive=sent.extend)
    chat.extend([user("a"), said("b"), user("c"), said("d")])
    assert [chat.pop(), chat.pop(), chat.pop()] == [said("d"), user("c"), None]
    assert sent == [user("a"), said("b")]


def test_the_newest_are_whole_atoms_without_marks() -> None:
    chat = Conversation([user("a"), asked("c"), result("c"), {**said("b"), INTERRUPTED: True}])
    assert chat.newest(1) == [said("b")]
    assert chat.newest(2) == [said("b")]
    assert chat.newest(3) == [asked("c"), result("c"), said("b")]
    assert chat.newest(100)[0] == user("a")
    with pytest.raises(ConfigError, match="limit"):
        chat.newest(0)


@every_shape
def test_every_provider_can_be_popped_empty(shape: Any) -> None:
    chat = Conversation()
    messages = [shape.user("a"), *shape.calls("b", ["c1", "c2"], reasoning=True)]
    messages += [*shape.results("d", ["c1", "c2"]), *shape.says("e"), shape.user("f")]
    chat.extend(messages)
    popped = []
    while (message := chat.pop()) is not None:
        popped.append(message)
    assert popped == messages[::-1]
    assert chat.append(messages[0])
