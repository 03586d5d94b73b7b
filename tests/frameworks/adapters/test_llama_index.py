"""The chat store of LlamaIndex, compared with its own, and under its memory."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="the extra llama-index is not installed")

from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.storage.chat_store import SimpleChatStore

from floodline.adapters.llama_index import FloodlineChatStore
from floodline.stores import MemoryStore, SQLiteStore


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def answer(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


class Async:
    """Answers the blocking calls by the async ones."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        twin = "async_add_message" if name == "add_message" else f"a{name}"
        return lambda *args: asyncio.run(getattr(self._store, twin)(*args))


@pytest.mark.parametrize("calls", ["blocking", "async"])
@pytest.mark.parametrize("where", ["memory", "sqlite"])
def test_it_answers_as_the_simple_store_does(where: str, calls: str, tmp_path: Path) -> None:
    url = None if where == "memory" else f"sqlite:///{tmp_path / 'chats.db'}"
    opened = FloodlineChatStore(url)
    ours: Any = opened if calls == "blocking" else Async(opened)
    theirs = SimpleChatStore()
    rich = ChatMessage(
        role="tool",
        blocks=[TextBlock(text="é"), ImageBlock(image=b"picture")],
        additional_kwargs={"tool_call_id": "c1", "deep": {"a": [1]}},
    )
    asked: list[tuple[Any, ...]] = [
        ("get_messages", "a"),
        ("add_message", "a", user("q1")),
        ("add_message", "a", answer("a1")),
        ("add_message", "a", rich),
        ("get_messages", "a"),
        ("delete_message", "a", 1),
        ("delete_message", "a", 9),
        ("delete_message", "none", 0),
        ("get_messages", "a"),
        ("delete_last_message", "a"),
        ("delete_last_message", "none"),
        ("set_messages", "a", [answer("n1"), user("n2"), answer("n3")]),
        ("delete_message", "a", 0),
        ("get_messages", "a"),
        ("set_messages", "b", []),
        ("get_messages", "b"),
        ("get_keys",),
        ("delete_messages", "a"),
        ("delete_messages", "a"),
        ("get_messages", "a"),
        ("add_message", "a", user("again")),
        ("set_messages", "a", [user("other")]),
        ("set_messages", "a", [user("another")]),
        ("get_messages", "a"),
    ]
    for name, *args in asked:
        expected = getattr(theirs, name)(*args)
        got = getattr(ours, name)(*args)
        assert (sorted(got) if name == "get_keys" else got) == expected, (name, args)
    assert opened._flows._store.stats().leases == 0
    assert len(opened._flows._store.logs("llama-index", "a")) == 1
    opened.close()


def test_a_chat_keeps_its_newest_messages_and_begins_at_a_question() -> None:
    store = FloodlineChatStore(max_messages=6)
    for number in range(20):
        store.add_message("a", user(f"q{number}"))
        store.add_message("a", answer(f"a{number}"))
    assert [one.content for one in store.get_messages("a")] == [
        "q17", "a17", "q18", "a18", "q19", "a19",
    ]  # fmt: skip
    store.add_message("a", user("q20"))
    assert [one.content for one in store.get_messages("a")][:2] == ["q18", "a18"]
    store.delete_message("a", 0)  # no longer full: what was deleted on purpose hides nothing
    assert store.get_messages("a")[-1].content == "q20"
    store.set_messages("a", [user(str(number)) for number in range(10)])
    assert len(store.get_messages("a")) == 6
    small = FloodlineChatStore(max_bytes=1000, max_messages=None)
    for _ in range(50):
        small.add_message("a", user("x" * 100))
    assert 2 < len(small.get_messages("a")) < 10
    small.add_message("a", user("x" * 5000))
    assert len(small.get_messages("a")) == 1


def test_chats_in_memory_are_bounded_and_workers_lose_nothing(tmp_path: Path) -> None:
    few = FloodlineChatStore(MemoryStore(), max_keys=10)
    for number in range(50):
        few.add_message(f"u{number}", user("x"))
    assert len(few.get_keys()) < 20
    stores = [FloodlineChatStore(SQLiteStore(tmp_path / "chats.db")) for _ in range(2)]

    def talk(number: int) -> None:
        for turn in range(5):
            stores[number % 2].add_message("a", user(f"{number} {turn}"))

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len({one.content for one in stores[0].get_messages("a")}) == 20
    for store in stores:
        store._flows._store.close()


def test_a_read_sees_the_old_messages_or_the_new_ones() -> None:
    store = FloodlineChatStore()
    store.set_messages("a", [user("old")])
    call, asked = store._flows._call, []

    def between(step: Any) -> Any:
        asked.append(step)
        if len(asked) == 2:  # after the log was named, before it is read
            store._flows._call = call  # type: ignore[method-assign]
            store.set_messages("a", [user("new")])
        return call(step)

    store._flows._call = between  # type: ignore[method-assign]
    assert [one.content for one in store.get_messages("a")] == ["new"]


def test_a_memory_buffer_remembers_in_another_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    for expected in (1, 2):
        store = FloodlineChatStore(url)
        memory = ChatMemoryBuffer.from_defaults(
            chat_store=store, chat_store_key="alice", token_limit=100, tokenizer_fn=str.split
        )
        memory.put(user("hello"))
        assert len(memory.get()) == expected
        assert store.class_name() == "FloodlineChatStore"
        store.close()
