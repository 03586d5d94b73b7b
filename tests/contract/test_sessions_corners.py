"""Corners of sessions that a first user meets: wrong arguments, and looking without a sweeper."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from event_loops import StillClock
from floodline import AsyncSessions, Conversation, Sessions
from floodline.errors import (
    CodecError,
    ConfigError,
    SaveFailed,
    SessionNotFound,
    UnreadableRecord,
)
from floodline.stores import MemoryStore
from session_drivers import Driver, FaultyStore, Left, refused, use_once
from worker_threads import PATIENCE


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


async def test_a_session_that_has_lingered_is_not_shown_though_no_sweeper_ran(
    driver: Driver,
) -> None:
    clock = StillClock()
    async with driver.sessions(dict, linger=5, clock=clock, sweep_every=None) as sessions:
        async with sessions.use("a"), sessions.use("b"):
            await sessions.complete("a")
        clock.advance(4)
        assert sessions.ids() == ["a", "b"]
        clock.advance(1)
        assert "a" not in sessions
        assert sessions.peek("a") is None
        assert len(sessions) == 1
        assert sessions.ids() == ["b"]


async def test_a_use_after_the_linger_finds_the_session_parked(driver: Driver) -> None:
    clock, left = StillClock(), Left()
    async with driver.sessions(
        dict, linger=5, clock=clock, sweep_every=None, on_leave=left
    ) as sessions:
        await use_once(sessions, "a", n=1)
        await sessions.complete("a")
        clock.advance(5)
        assert await use_once(sessions, "a") == {}
        assert left == [("a", {"n": 1}, "completed")]


@pytest.mark.parametrize("damage", ["'text'", "envelope || 'x'", "7", "x''"])
async def test_a_record_of_another_sql_type_is_quarantined_like_any_damaged_one(
    driver: Driver, tmp_path: Path, damage: str
) -> None:
    file = tmp_path / "agent.db"
    async with driver.sessions(dict, store=f"sqlite:///{file}") as sessions:
        await use_once(sessions, "a", n=1)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"UPDATE sessions SET envelope = {damage}")
    async with driver.sessions(dict, store=f"sqlite:///{file}") as sessions:
        await refused(sessions, "a", UnreadableRecord)
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
async def test_a_session_that_is_live_outlasts_the_retention_of_its_row(
    driver: Driver, store: Any, wall: StillClock, shared: bool
) -> None:
    async with driver.sessions(
        dict, store=store, retain="1 h", idle=None, clock=StillClock()
    ) as sessions:
        await use_once(sessions, "a", n=1)
        async with sessions.use("a", shared=True) if shared else nullcontext():
            wall.advance(7200)
            await sessions.sweep()
            assert store.count("sessions") == 0
        assert await use_once(sessions, "a") == {"n": 1}
        assert store.count("sessions") == 1
        wall.advance(7200)
        await sessions.sweep()
        await sessions.park("a")
        assert store.count("sessions") == 1
        wall.advance(7200)
        await sessions.sweep()
        await refused(sessions, "a", SessionNotFound, create=False)


async def test_a_with_block_says_what_the_store_did_not_take_and_keeps_it(
    driver: Driver, faulty: FaultyStore
) -> None:
    sessions = driver.sessions(dict, store=faulty.given, durability="park")
    impatient = getattr(sessions, "blocking", sessions)
    impatient.shutdown = partial(impatient.shutdown, grace=0.05)

    async def block() -> None:
        async with sessions:
            await use_once(sessions, "alice", turns=1)
            faulty.fail("save", "acquire")

    with pytest.raises(SaveFailed, match="1 sessions of 'sessions' could not be saved"):
        await block()
    with pytest.raises(ZeroDivisionError) as raised:
        async with sessions:
            raise ZeroDivisionError
    assert "could not be saved" in raised.value.__notes__[0]
    faulty.recover()
    assert await sessions.shutdown(grace=PATIENCE) == 0
    assert faulty.store.load("sessions", "alice") is not None
