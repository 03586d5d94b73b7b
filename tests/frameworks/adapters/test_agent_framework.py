"""Histories and sessions of the Agent Framework in the stores of floodline, with its own agent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_framework", reason="the extra frameworks is not installed")

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    SessionStore,
    tool,
)

from floodline.adapters._agent_framework.messages import MESSAGES
from floodline.adapters._upkeep import LOOK_EVERY
from floodline.adapters.agent_framework import FloodlineHistoryProvider, FloodlineSessionStore
from floodline.errors import CodecError, ConfigError, SessionIdMissing, TooLarge
from floodline.stores import MemoryStore, SQLiteStore


class Parrot(FunctionInvocationLayer, BaseChatClient):
    """Calls the tool if asked to, then says how many messages it was given."""

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Any, **kwargs: Any
    ) -> ChatResponse:
        if messages[-1].role == "user" and "tool" in messages[-1].text:
            call = Content.from_function_call("c1", "look", arguments={"what": "it"})
            return ChatResponse(messages=[Message("assistant", [call])])
        return ChatResponse(messages=[Message("assistant", [f"seen {len(messages)}"])])


@tool(approval_mode="never_require")
def look(what: str) -> str:
    return f"saw {what}"


def an_agent(history: FloodlineHistoryProvider) -> Agent:
    return Agent(Parrot(), tools=[look], context_providers=[history])


async def say(history: FloodlineHistoryProvider, id: str, text: str) -> str:
    answer = await an_agent(history).run(text, session=AgentSession(session_id=id))
    return str(answer.text)


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if message.text]


STORES = ["memory", "sqlite", "redis", pytest.param("postgres", marks=pytest.mark.long)]


@pytest.mark.parametrize("kind", STORES)
def test_an_agent_goes_on_where_another_worker_stopped(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    local = {"memory": MemoryStore, "sqlite": lambda: SQLiteStore(tmp_path / "chats.db")}
    begin: Any = local.get(kind) or request.getfixturevalue(kind)

    async def body() -> None:
        place = begin()
        first, second = FloodlineHistoryProvider(place), FloodlineHistoryProvider(place)
        assert await say(first, "alice", "use the tool") == "seen 3"
        assert await say(second, "alice", "and now?") == "seen 5"
        assert await say(first, "bob", "hello") == "seen 1"
        read = await first.get_messages("alice")
        assert [message.role for message in read] == [
            *("user", "assistant", "tool", "assistant"),
            *("user", "assistant"),
        ]
        assert [message.to_dict() for message in read[:1]] == [
            Message("user", ["use the tool"]).to_dict()
        ]
        await first.clear("alice")
        await first.clear("alice")
        assert await second.get_messages("alice") == []
        place.close()

    asyncio.run(body())


def test_a_window_begins_with_a_turn_and_loses_nothing() -> None:
    async def body() -> None:
        place = MemoryStore()
        history = FloodlineHistoryProvider(place, max_messages=5)
        for number in range(3):
            await say(history, "a", f"tool {number}")
        assert texts(await history.get_messages("a")) == ["tool 2", "seen 7"]
        whole = FloodlineHistoryProvider(place, max_messages=None)
        assert len(await whole.get_messages("a")) == 12
        audit = FloodlineHistoryProvider(place, source_id="audit", load_messages=False)
        assert await audit.get_messages("a") == []  # another provider has other messages
        hidden = Message("user", ["old"], additional_properties={"_excluded": True})
        await history.save_messages("b", [hidden, Message("assistant", ["x"])])
        skipping = FloodlineHistoryProvider(place, skip_excluded=True)
        assert texts(await skipping.get_messages("b")) == ["x"]
        assert texts(await history.get_messages("b")) == ["old", "x"]

    asyncio.run(body())


def messages(*said: str) -> list[Message]:
    return [Message("assistant" if one.isupper() else "user", [one]) for one in said]


@pytest.mark.parametrize(
    ("stored", "given", "expected"),
    [
        (["a", "B"], ["a", "B", "c"], ["a", "B", "c"]),  # the whole conversation again
        (["a", "B"], ["s", "a", "B", "c"], ["a", "B", "c"]),  # after what was never stored
        (["a", "B", "c", "D"], ["c", "D", "e"], ["a", "B", "c", "D", "e"]),  # its end again
        (["a", "B", "c", "D"], ["D", "e"], ["a", "B", "c", "D", "e"]),
        (["a", "B"], ["a", "B"], ["a", "B"]),
        (["a"], ["a"], ["a", "a"]),  # a question that is asked twice
        (["a", "B", "c"], ["c", "D"], ["a", "B", "c", "c", "D"]),
        (["a", "B"], ["c"], ["a", "B", "c"]),
    ],
)
def test_what_is_sent_again_is_stored_once(
    stored: list[str], given: list[str], expected: list[str]
) -> None:
    async def body() -> None:
        history = FloodlineHistoryProvider()
        await history.save_messages("a", messages(*stored))
        await history.save_messages("a", messages(*given))
        await history.save_messages("a", [])
        assert texts(await history.get_messages("a")) == expected

    asyncio.run(body())


def test_a_message_with_an_id_is_the_same_message() -> None:
    async def body() -> None:
        history = FloodlineHistoryProvider()
        one = Message("user", ["yes"], message_id="m1")
        await history.save_messages("a", [one])
        await history.save_messages("a", [one, *messages("GOOD")])
        assert texts(await history.get_messages("a")) == ["yes", "GOOD"]

    asyncio.run(body())


def test_what_memory_keeps_is_bounded() -> None:
    async def body() -> None:
        place = MemoryStore()
        history = FloodlineHistoryProvider(place, keep=8, max_sessions=3)
        for number in range(10):
            await say(history, "a", f"turn {number}")
        assert place.count_rows("agent-framework:floodline", "a", MESSAGES) == 8
        for number in range(20):
            await say(history, f"user {number}", "hello")
        assert len(place.ids("agent-framework:floodline")) <= 3 + LOOK_EVERY
        store = FloodlineSessionStore(place, max_sessions=3)
        for number in range(20):
            await store.set(f"user {number}", AgentSession())
        assert len(place.ids("agent-framework-sessions")) <= 3 + LOOK_EVERY
        for wrong in ("keep", "max_sessions", "max_messages"):
            with pytest.raises(ConfigError, match=wrong):
                FloodlineHistoryProvider(**{wrong: 0})
        with pytest.raises(ConfigError, match="max_sessions"):
            FloodlineSessionStore(max_sessions=0)

    asyncio.run(body())


def test_workers_that_save_at_once_lose_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        url = f"sqlite:///{tmp_path / 'chats.db'}"
        workers = [FloodlineHistoryProvider(url) for _ in range(4)]
        turns = [(worker, number) for number, worker in enumerate(workers * 3)]
        await asyncio.gather(*(say(worker, "a", f"turn {number}") for worker, number in turns))
        found = texts(await workers[0].get_messages("a"))
        asked = [text for text in found if text.startswith("turn")]
        assert sorted(asked) == sorted(f"turn {number}" for number in range(12))
        assert len(found) == 24
        for worker in workers:
            worker.close()

    asyncio.run(body())


def test_a_history_says_what_it_cannot_do() -> None:
    async def body() -> None:
        history = FloodlineHistoryProvider()
        for missing in (None, ""):
            with pytest.raises(SessionIdMissing, match="create_session"):
                await history.get_messages(missing)
        odd = Message("user", ["x"], additional_properties={"odd": object()})
        await history.save_messages("a", [odd])  # the framework leaves out what JSON cannot say
        assert texts(await history.get_messages("a")) == ["x"]
        history.close()

    asyncio.run(body())


@pytest.mark.parametrize("url", [None, "sqlite"])
def test_a_session_comes_back_equal_and_as_a_copy(url: str | None, tmp_path: Path) -> None:
    async def body() -> None:
        place = None if url is None else f"sqlite:///{tmp_path / 'sessions.db'}"
        store = FloodlineSessionStore(place)
        assert isinstance(store, SessionStore)
        assert await store.get("x") is None
        session = AgentSession(session_id="s", service_session_id={"thread": "t1"})
        session.state = {"n": 1, "big": 2**70, "said": [Message("user", ["hello"])], "no": None}
        await store.set("x", session)
        session.state["n"] = 2
        found = await store.get("x")
        assert found is not None
        assert (found.session_id, found.service_session_id) == ("s", {"thread": "t1"})
        assert (found.state["n"], found.state["big"], found.state["no"]) == (1, 2**70, None)
        assert isinstance(found.state["said"][0], Message)
        found.state["n"] = 3
        again = await store.get("x")
        assert again is not None
        assert again.state["n"] == 1
        await store.delete("x")
        await store.delete("x")
        assert await store.get("x") is None
        store.close()

    asyncio.run(body())


def test_a_session_that_cannot_be_stored_leaves_what_was_there() -> None:
    class Mine(AgentSession):
        pass

    async def body() -> None:
        store = FloodlineSessionStore(max_bytes=1000)
        session = AgentSession(session_id="s")
        await store.set("x", session)
        with pytest.raises(ValueError, match="non-empty"):
            await store.set("", session)
        with pytest.raises(TypeError, match="Mine would come back as AgentSession"):
            await store.set("x", Mine())
        session.state = {"odd": object()}
        with pytest.warns(RuntimeWarning, match="odd"), pytest.raises(CodecError, match="register"):
            await store.set("x", session)
        session.state = {"text": "x" * 1000}
        with pytest.raises(TooLarge, match="FloodlineHistoryProvider"):
            await store.set("x", session)
        found = await store.get("x")
        assert found is not None
        assert found.state == {}
        session.state = {"text": "x" * 10_000}
        await FloodlineSessionStore(max_bytes=None).set("x", session)

    asyncio.run(body())
