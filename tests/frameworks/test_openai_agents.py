"""Sessions of the OpenAI Agents SDK, with its own runner and a model that needs no network."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents", reason="the extra dev is not installed")

from agents import Agent, Runner, set_tracing_disabled
from agents.items import ModelResponse
from agents.memory import Session, SessionSettings
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from floodline import AsyncSessions, Conversation, Sessions
from floodline.adapters.openai_agents import FloodlineSession, agent_sessions
from floodline.errors import ConfigError
from floodline.stores import MemoryStore, SQLiteStore

set_tracing_disabled(True)


def user(number: int) -> Any:
    return {"role": "user", "content": f"question {number}"}


def call(key: str) -> Any:
    return {"type": "function_call", "call_id": key, "name": "f", "arguments": "{}"}


def output(key: str) -> Any:
    return {"type": "function_call_output", "call_id": key, "output": "42"}


class Echo(Model):
    """Answers with the number of items that it was sent."""

    async def get_response(self, *_: Any, input: Any, **__: Any) -> ModelResponse:
        text = ResponseOutputText(text=str(len(input)), type="output_text", annotations=[])
        said = ResponseOutputMessage(
            id=f"msg_{len(input)}",
            content=[text],
            role="assistant",
            status="completed",
            type="message",
        )
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("store", [None, "sqlite"])
def test_a_runner_remembers_across_loops_and_objects(store: str | None, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agents.db'}" if store else None
    agent = Agent(name="echo", model=Echo())
    with agent_sessions(url) as sessions:
        assert isinstance(FloodlineSession("alice", sessions), Session)
        seen = []
        for _ in range(2):  # each of these has an event loop of its own
            session = FloodlineSession("alice", sessions)
            seen.append(asyncio.run(Runner.run(agent, "hello", session=session)).final_output)
        with asyncio.Runner() as runner:  # the loop that `run_sync` would leave open
            asyncio.set_event_loop(runner.get_loop())
            seen.append(Runner.run_sync(agent, "hello", session=session).final_output)
        asyncio.set_event_loop(None)
        assert seen == ["1", "3", "5"]
        other = FloodlineSession("bob", sessions)
        assert asyncio.run(other.get_items()) == []
        assert "bob" not in sessions


def test_items_come_back_as_added_and_a_limit_parts_nothing() -> None:
    async def body() -> None:
        session = FloodlineSession("a", agent_sessions(MemoryStore()))
        items = [user(1), call("c1"), output("c1"), {"role": "assistant", "content": "done"}]
        await session.add_items(items)
        await session.add_items([])
        assert await session.get_items() == items
        assert await session.get_items(3) == items[1:]
        assert await session.get_items(2) == items[3:]  # not the result without its call
        assert await session.get_items(0) == []
        few = FloodlineSession("a", session._sessions, session_settings=SessionSettings(limit=1))
        assert await few.get_items() == items[3:]

    asyncio.run(body())


@pytest.mark.parametrize("opened", [MemoryStore, SQLiteStore])
def test_every_item_is_popped_as_it_was_added(opened: Any, tmp_path: Path) -> None:
    async def body() -> None:
        store = opened() if opened is MemoryStore else opened(tmp_path / "agents.db")
        sessions = agent_sessions(store, max_messages=6)
        session = FloodlineSession("a", sessions)
        items: list[Any] = []
        for number in range(8):
            key = f"c{number}"
            items += [user(number), call(key), output(key), {"role": "assistant", "content": key}]
        items.append({"role": "user", "content": "long " * 100_000, "id": "once"})
        for item in items:
            await session.add_items([item])
        assert len(await session.get_items()) <= 6
        popped = [await session.pop_item() for _ in items]
        assert popped == items[::-1]
        assert await session.pop_item() is None
        await session.add_items(items[-1:])  # an item that was taken back may come again
        assert len(await session.get_items()) == 1
        assert await session.pop_item() == items[-1]
        await session.clear_session()
        assert await session.pop_item() is None
        assert store.count("agents") == 0
        assert store.stats().log_rows == 0
        sessions.shutdown()
        store.close()

    asyncio.run(body())


def test_asynchronous_sessions_are_refused() -> None:
    with pytest.raises(ConfigError, match="changes event loops"):
        FloodlineSession("a", AsyncSessions(Conversation))  # type: ignore[arg-type]


def test_a_plain_table_of_conversations_will_do() -> None:
    async def body() -> None:
        session = FloodlineSession("a", Sessions())
        await session.add_items([user(1), user(2)])
        assert await session.pop_item() == user(2)
        assert await session.get_items() == [user(1)]

    asyncio.run(body())


def test_messages_that_share_an_id_are_all_kept() -> None:
    """Models without ids of their own give every message the same placeholder."""

    def said(number: int) -> Any:
        return {"id": "__fake_id__", "type": "message", "role": "assistant", "content": str(number)}

    async def body() -> None:
        with agent_sessions() as sessions:
            session = FloodlineSession("alice", sessions)
            for number in range(3):
                await session.add_items([user(number), said(number)])
            assert await session.get_items() == [
                one for number in range(3) for one in (user(number), said(number))
            ]
            assert await session.pop_item() == said(2)

    asyncio.run(body())


def test_settings_may_be_a_dict_and_unknown_ones_are_refused() -> None:
    with agent_sessions() as sessions:
        session = FloodlineSession("alice", sessions, session_settings={"limit": 2})
        assert session.session_settings == SessionSettings(limit=2)
        with pytest.raises(TypeError, match="limitt"):
            FloodlineSession("alice", sessions, session_settings={"limitt": 2})
