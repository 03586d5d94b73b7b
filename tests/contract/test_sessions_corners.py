"""Corners of sessions that a first user meets: wrong arguments, and looking without a sweeper."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from floodline import AsyncSessions, Conversation, Reason, Sessions
from floodline.errors import (
    CodecError,
    ConfigError,
    SaveFailed,
    SessionNotFound,
    UnreadableRecord,
)
from floodline.stores import MemoryStore
from worker_threads import PATIENCE, Faulty


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("kind", [Sessions, AsyncSessions])
@pytest.mark.parametrize("key", ["weigh", "on_open", "on_leave", "clock"])
def test_a_hook_that_cannot_be_called_is_refused_at_construction(kind: Any, key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key}=3 cannot be called"):
        kind(dict, **{key: 3})


@pytest.mark.parametrize("kind", [Sessions, AsyncSessions])
@pytest.mark.parametrize("key", ["store", "scope", "pressure"])
def test_a_part_of_another_type_is_refused_at_construction(kind: Any, key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key}=3 cannot be used; give a "):
        kind(dict, **{key: 3})


def test_a_session_that_has_lingered_is_not_shown_though_no_sweeper_ran() -> None:
    clock = Clock()
    with Sessions(dict, linger=5, clock=clock, sweep_every=None) as sessions:
        with sessions.use("a"), sessions.use("b"):
            sessions.complete("a")
        clock.now += 4
        assert sessions.ids() == ["a", "b"]
        clock.now += 1
        assert "a" not in sessions
        assert sessions.peek("a") is None
        assert len(sessions) == 1
        assert sessions.ids() == ["b"]


def test_a_use_after_the_linger_finds_the_session_parked() -> None:
    clock, left = Clock(), []
    hooks: Any = {"on_leave": lambda _id, state, reason: left.append((dict(state), reason))}
    with Sessions(dict, linger=5, clock=clock, sweep_every=None, **hooks) as sessions:
        with sessions.use("a") as state:
            state["n"] = 1
        sessions.complete("a")
        clock.now += 5
        with sessions.use("a") as state:
            assert state == {}
            assert left == [({"n": 1}, Reason.completed)]


@pytest.mark.parametrize("damage", ["'text'", "envelope || 'x'", "7", "x''"])
def test_a_record_of_another_sql_type_is_quarantined_like_any_damaged_one(
    tmp_path: Path, damage: str
) -> None:
    file = tmp_path / "agent.db"
    with Sessions(dict, store=f"sqlite:///{file}") as sessions, sessions.use("a") as state:
        state["n"] = 1
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"UPDATE sessions SET envelope = {damage}")
    with Sessions(dict, store=f"sqlite:///{file}") as sessions:
        with pytest.raises(UnreadableRecord), sessions.use("a"):
            pass
        assert sessions.stats().quarantined == 1


def test_the_figures_of_a_store_are_ready_for_json() -> None:
    with MemoryStore() as store:
        assert json.loads(json.dumps(store.stats().as_dict()))["kind"] == "memory"


def test_a_state_of_another_type_than_the_factory_makes_is_told_how_to_name_it() -> None:
    with Sessions(dict, store=MemoryStore()) as sessions:
        with (
            pytest.raises(CodecError, match=r"give state_type=Conversation, .*: \$: Conv"),
            (hold := sessions.use("a")),
        ):
            hold.state = Conversation()  # type: ignore[assignment]  # what the test is about
        sessions.close("a")


@pytest.mark.parametrize("shared", [True, False])
def test_a_session_that_is_live_outlasts_the_retention_of_its_row(shared: bool) -> None:
    clock, wall = Clock(), Clock()
    with (
        MemoryStore(wall=wall) as store,
        Sessions(dict, store=store, retain="1 h", idle=None, clock=clock) as sessions,
    ):
        with sessions.use("a") as state:
            state["n"] = 1
        with sessions.use("a", shared=True) if shared else nullcontext():
            wall.now += 7200
            sessions.sweep()
            assert store.count("sessions") == 0
        with sessions.use("a") as state:
            assert state == {"n": 1}
        assert store.count("sessions") == 1
        wall.now += 7200
        sessions.sweep()
        sessions.park("a")
        assert store.count("sessions") == 1
        wall.now += 7200
        sessions.sweep()
        with pytest.raises(SessionNotFound), sessions.use("a", create=False):
            pass


class Blocking(Faulty):
    aio = None  # so that asyncio meets the faults too, in threads


def test_a_with_block_says_what_the_store_did_not_take_and_keeps_it() -> None:
    store = Blocking()
    sessions = Sessions(dict, store=store, durability="park")
    shutdown = sessions.shutdown
    sessions.shutdown = lambda: shutdown(grace=0)  # type: ignore[assignment,misc]  # no patience

    def block() -> None:
        with sessions:
            with sessions.use("alice") as state:
                state["turns"] = 1
            store.fail("save", "acquire")

    with pytest.raises(SaveFailed, match="1 sessions of 'sessions' could not be saved"):
        block()
    with pytest.raises(ZeroDivisionError) as raised, sessions:
        raise ZeroDivisionError
    assert "could not be saved" in raised.value.__notes__[0]
    store.fail()
    assert shutdown(grace=0) == 0
    assert store.load("sessions", "alice") is not None


def test_an_async_with_block_says_what_the_store_did_not_take() -> None:
    store = Blocking()

    async def block(sessions: AsyncSessions[Any]) -> None:
        async with sessions:
            async with sessions.use("alice") as state:
                state["turns"] = 1
            store.fail("save", "acquire")

    async def main() -> None:
        sessions = AsyncSessions(dict, store=store, durability="park")
        shutdown = sessions.shutdown
        sessions.shutdown = lambda: shutdown(grace=0.2)  # type: ignore[assignment,misc]  # as above
        with pytest.raises(SaveFailed, match="could not be saved"):
            await block(sessions)
        store.fail()
        assert await shutdown(grace=PATIENCE) == 0

    asyncio.run(main())
