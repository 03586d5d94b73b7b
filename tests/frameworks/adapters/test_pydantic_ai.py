"""Conversations of Pydantic AI in the stores of floodline, with its own agent and a fake model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the extra frameworks is not installed")

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationRecord
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from floodline.adapters._pydantic_ai.entries import ENTRIES, surplus
from floodline.adapters._upkeep import LOOK_EVERY
from floodline.adapters.pydantic_ai import FloodlineConversationStore
from floodline.stores import MemoryStore, SQLiteStore


def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
    """Call the tool once, then answer with the number of messages."""
    last = messages[-1].parts[-1]
    if last.part_kind == "user-prompt" and "tool" in str(last.content):
        return ModelResponse([ToolCallPart("look", {"what": "it"})])
    return ModelResponse([TextPart(str(len(messages)))])


agent = Agent(FunctionModel(answer))


@agent.tool_plain
def look(what: str) -> dict[str, str]:
    return {"saw": what}


async def say(store: FloodlineConversationStore, id: str, text: str, **terms: Any) -> Conversation:
    chat = await store.load(id, **terms) or Conversation(conversation_id=id)
    result = await agent.run(text, conversation=chat)
    await store.save(result)
    return result.conversation


def texts(chat: Any) -> list[str]:
    return [
        str(part.content)
        for message in chat.messages
        for part in message.parts
        if part.part_kind == "user-prompt"
    ]


@pytest.mark.parametrize("opened", [MemoryStore, SQLiteStore])
def test_an_agent_goes_on_where_another_worker_stopped(opened: Any, tmp_path: Path) -> None:
    async def body() -> None:
        place = opened() if opened is MemoryStore else opened(tmp_path / "chats.db")
        first, second = FloodlineConversationStore(place), FloodlineConversationStore(place)
        assert await first.load("alice") is None
        said = await say(first, "alice", "use the tool")
        loaded = await second.load("alice")
        assert loaded is not None
        assert loaded == said
        assert loaded.usage.requests == 2
        await say(second, "alice", "and now?")
        stale = await first.load("alice")
        await say(second, "alice", "again")
        assert stale is not None
        stale.messages.append(ModelRequest.user_text_prompt("late"))
        with pytest.raises(ConversationConflict):
            await first.save(stale)
        loaded = await first.load("alice")
        assert texts(loaded) == ["use the tool", "and now?", "again"]
        assert [len(one.messages) for one in (await first.load("alice", limit=2),) if one] == [2]
        entries = await first.load_entries("alice")
        assert entries is not None
        assert [one.message for one in entries] == loaded.messages if loaded else []
        third = FloodlineConversationStore(place)  # knows nothing of these entries yet
        assert await third.read_entry(entries[3].id) == entries[3]
        with pytest.raises(KeyError):
            await third.read_entry("unknown")
        place.close()

    asyncio.run(body())


def test_a_window_begins_with_a_turn_and_loses_nothing() -> None:
    async def body() -> None:
        store = FloodlineConversationStore(max_messages=5)
        for number in range(6):
            await say(store, "a", f"tool {number}")
        chat = await store.load("a")
        assert chat is not None
        assert texts(chat) == ["tool 5"]
        assert len(chat.messages) == 4
        whole = await store.load("a", limit=100)
        assert len(texts(whole)) == 6
        # one that was put together by hand is compared with everything that is stored
        bare = Conversation(conversation_id="a", messages=whole.messages, revision=whole.revision)
        bare.messages.append(ModelRequest.user_text_prompt("more"))
        assert len(await store.save(bare)) == 1
        # one turn that is longer than the window is not cut
        small = FloodlineConversationStore(store._store._store, max_messages=2)
        await say(small, "a", "tool 6")
        assert len((await small.load("a")).messages) == 4
        with pytest.raises(UserError, match="negative"):
            await small.load("a", limit=-1)

    asyncio.run(body())


def test_forks_and_branches_share_a_past_and_outlive_each_other() -> None:
    async def body() -> None:
        place = MemoryStore()
        store = FloodlineConversationStore(place)
        await say(store, "a", "one")
        chat = await say(store, "a", "two")
        fork = await store.fork("a", at=2, new_conversation_id="b", scope="team")
        assert texts(fork) == ["one"]
        await say(store, "b", "else")
        branched = await store.branch("a", at=2, expected_revision=chat.revision)
        await store.save(await agent.run("instead", conversation=branched))
        assert texts(await store.load("a")) == ["one", "instead"]
        record = await store.read_record("a")
        back = await store.branch(
            "a", from_entry=record.branches[0], expected_revision=record.revision
        )
        assert texts(back) == ["one", "two"]
        assert [one.conversation_id for one in await store.list_conversations()] == ["a", "b"]
        listed = await store.list_conversations(scope="team", limit=1)
        assert [one.forked_from for one in listed] == ["a"]
        await store.delete("a", scope="team")  # not of that scope
        await store.delete("a")
        assert await store.load("a") is None
        assert texts(await store.load("b")) == ["one", "else"]
        assert place.stats().log_rows == 4
        with pytest.raises(ConversationConflict):
            await store.delete_record("a", expected_revision="x")
        with pytest.raises(ConversationConflict):  # what it points at is gone
            await store.write_record(
                ConversationRecord(conversation_id="c", head_id="gone"), expected_revision=None
            )
        with pytest.raises(ConversationConflict):
            await store.fork("b", new_conversation_id="b")

    asyncio.run(body())


def test_what_memory_keeps_is_bounded() -> None:
    async def body() -> None:
        place = MemoryStore()
        store = FloodlineConversationStore(place, keep=8, max_conversations=3)
        for number in range(20):
            await say(store, "a", f"turn {number}")
        assert place.count_rows("pydantic-ai", "a", ENTRIES) <= 9
        assert texts(await store.load("a"))[-1] == "turn 19"
        for number in range(20):
            await say(store, f"user {number}", "hello")
        left = place.ids("pydantic-ai")
        assert len(left) <= 3 + LOOK_EVERY
        assert "user 19" in left

    asyncio.run(body())


def test_branches_that_were_left_last_stay_longest() -> None:
    parents = {"1": None, "2": "1", "x": "1", "y": "1", "3": "2"}
    assert surplus(parents, "3", ["x", "y"], 4) == (["y"], ["x"])
    assert surplus(parents, "3", ["x", "y"], 2) == ([], ["1", "x", "y"])


def test_two_workers_that_save_at_once_do_not_overwrite_each_other(tmp_path: Path) -> None:
    async def body() -> None:
        url = f"sqlite:///{tmp_path / 'chats.db'}"
        stores = [FloodlineConversationStore(url) for _ in range(4)]
        await say(stores[0], "a", "begin")

        async def turn(store: FloodlineConversationStore, number: int) -> None:
            while True:
                try:
                    await say(store, "a", f"turn {number}")
                    return
                except ConversationConflict:
                    continue

        await asyncio.gather(*(turn(store, number) for number, store in enumerate(stores)))
        chat = await stores[0].load("a")
        assert sorted(texts(chat)) == ["begin", *(f"turn {number}" for number in range(4))]
        for store in stores:
            store.close()

    asyncio.run(body())
