"""Sessions on both drivers, into memory: the rules [S1] to [S3] of the semantics."""

# ruff: noqa: SIM117 - blocks inside blocks are what is tested

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from floodline import AsyncSessions, Conversation, Sessions
from floodline.errors import (
    ConfigError,
    SessionClosed,
    SessionError,
    SessionNotFound,
    StoreClosed,
)
from floodline.stores import MemoryStore
from session_drivers import Driver, FaultyStore, Left, refused, use_once

# ---- [S1] factories, ids, stores


async def test_s1_a_factory_gets_the_id_only_if_it_asks_for_it(driver: Driver) -> None:
    def named(id: str) -> list[str]:
        return [id]

    def optional(id: str = "none") -> list[str]:
        return [id]

    class Service:
        def __init__(self, id: str) -> None:
            self.id = id

    async def of_the_driver(id: str) -> list[str]:
        return [id, "awaited on asyncio"]

    async def made_by(factory: Any) -> Any:
        async with driver.sessions(factory) as sessions:
            return await use_once(sessions, "a")

    assert await made_by(named) == ["a"]
    assert await made_by(optional) == ["none"]
    assert await made_by(dict) == {}
    assert (await made_by(Service)).id == "a"
    assert await made_by(driver.hook(of_the_driver)) == ["a", "awaited on asyncio"]


async def test_s1_without_a_factory_a_session_is_a_conversation(driver: Driver) -> None:
    async with driver.sessions() as sessions:
        assert isinstance(await use_once(sessions, "a"), Conversation)


@pytest.mark.parametrize("bad", ["", None, 7, b"a"])
async def test_s1_an_id_is_a_string_that_is_not_empty(driver: Driver, bad: Any) -> None:
    sessions = driver.sessions(dict)
    with pytest.raises(ConfigError, match="non-empty string"):
        sessions.use(bad)
    for call in (sessions.park, sessions.close, sessions.complete):
        with pytest.raises(ConfigError, match="non-empty string"):
            await call(bad)
    assert bad not in sessions
    await sessions.shutdown()


async def test_s1_an_id_that_no_store_can_write_is_refused_at_once(driver: Driver) -> None:
    async with driver.sessions(dict) as sessions:
        await use_once(sessions, "grüße 🌊")
        with pytest.raises(ConfigError, match="lone surrogate"):
            sessions.use("a\udc80")


async def test_s1_a_store_given_as_a_url_is_owned_and_closed(
    driver: Driver, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    sessions = driver.sessions(dict, store=url)
    await use_once(sessions, "a", n=1)
    store = sessions._store
    await sessions.shutdown()
    with pytest.raises(StoreClosed):
        store.count("sessions")
    async with driver.sessions(dict, store=url) as again:
        assert await use_once(again, "a", {"create": False}) == {"n": 1}


async def test_s1_a_store_given_as_a_url_is_closed_when_the_last_holder_is_done(
    driver: Driver, tmp_path: Path
) -> None:
    sessions = driver.sessions(dict, store=f"sqlite:///{tmp_path / 'a.db'}")
    async with sessions.use("a") as state:
        state["n"] = 1
        assert await sessions.shutdown(grace=0) == 1
        assert not sessions._store._writer._closed
    await driver.until(lambda: sessions._store._writer._closed)


async def test_s1_a_store_given_as_an_object_stays_open(driver: Driver) -> None:
    store = MemoryStore()
    async with driver.sessions(dict, store=store) as sessions:
        await use_once(sessions, "a")
    assert store.count("sessions") == 1


@pytest.mark.parametrize("kind", [Sessions, AsyncSessions])
def test_the_environment_overrides_defaults_and_arguments_override_it(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOODLINE_MAX_SESSIONS", "2")
    assert kind(dict).stats().max_items == 2
    assert kind(dict, max_sessions=5).stats().max_items == 5


@pytest.mark.parametrize("kind", [Sessions, AsyncSessions])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"on_error": "discard"}, "needs store="),
        ({"max_bytes": "1 MiB"}, "needs weigh="),
        ({"retain": "1 h"}, "needs store="),
        ({"name": ""}, "non-empty"),
        ({"idle": None, "max_sessions": None}, "no bound at all"),
        ({"when_full": "explode"}, "when_full"),
        ({"factory": 3}, "callable"),
        ({"max_sessions": 0}, "max_sessions"),
        ({"idle": "soon"}, "idle"),
    ],
)
def test_bad_arguments_fail_at_construction(
    kind: Any, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        kind(**({"factory": dict} | arguments))


# ---- [S2] what a hold offers


async def test_s2_a_hold_saves_in_the_middle_of_its_body(driver: Driver) -> None:
    store = MemoryStore()
    async with driver.sessions(dict, store=store) as sessions:
        async with (hold := sessions.use("a")) as state:
            state["n"] = 1
            await hold.save()
            record = store.load("sessions", "a")
            assert record is not None
            assert record.version == 1
            assert hold.state is state


async def test_s2_saving_without_a_store_does_nothing(driver: Driver) -> None:
    async with driver.sessions(dict) as sessions, (hold := sessions.use("a")):
        await hold.save()
        assert "a" in sessions
    assert sessions.stats().saved == 0


async def test_s2_a_hold_discards_what_its_body_did(driver: Driver) -> None:
    left = Left()
    async with driver.sessions(dict, store=MemoryStore(), on_leave=left) as sessions:
        await use_once(sessions, "a", n=1)
        async with (hold := sessions.use("a")) as state:
            state["n"] = 2
            hold.discard()
        await driver.settle(sessions)
        assert left == [("a", {"n": 2}, "discarded")]
        assert sessions.stats().left == {"discarded": 1}
        assert "a" not in sessions
        assert await use_once(sessions, "a") == {"n": 1}


async def test_s2_discarding_without_a_store_starts_anew(driver: Driver) -> None:
    async with driver.sessions(dict) as sessions:
        async with (hold := sessions.use("a")) as state:
            state["n"] = 1
            hold.discard()
        assert await use_once(sessions, "a") == {}


async def test_s2_a_hold_replaces_its_state(driver: Driver) -> None:
    async with driver.sessions(dict, store=MemoryStore()) as sessions:
        async with (hold := sessions.use("a")):
            hold.state = {"new": True}
            assert hold.state == {"new": True}
        assert sessions.peek("a") == {"new": True}
        await sessions.park("a")
        assert await use_once(sessions, "a") == {"new": True}


async def test_s2_a_hold_does_nothing_before_and_after_its_block(driver: Driver) -> None:
    async with driver.sessions(dict) as sessions:
        hold = sessions.use("a")
        with pytest.raises(SessionError, match="not held"):
            _ = hold.state
        with pytest.raises(SessionError, match="not held"):
            hold.discard()
        with pytest.raises(SessionError, match="not held"):
            await hold.save()
        async with hold:
            with pytest.raises(SessionError, match="in progress"):
                await hold.__aenter__()
        with pytest.raises(SessionError, match="not held"):
            hold.state = {}
        await driver.balanced(sessions)


async def test_s2_a_use_can_be_entered_again_after_it_was_left(driver: Driver) -> None:
    async with driver.sessions(dict, store=MemoryStore()) as sessions:
        hold = sessions.use("a")
        async with hold as state:
            state["n"] = 1
            hold.discard()
        async with hold as state:
            assert state == {}
            state["n"] = 2
        async with hold as state:
            assert state == {"n": 2}, "a discard is of one use, not of the next"


async def test_s2_a_use_that_was_refused_can_be_entered_again(driver: Driver) -> None:
    async with driver.sessions(dict) as sessions:
        hold = sessions.use("a")

        async def enter_and_leave() -> None:
            async with hold:
                pass

        async with sessions.use("a"):
            waiter = driver.spawn(enter_and_leave)
            await driver.waiting(sessions, 1)
            await sessions.close("a")
            assert isinstance(await waiter.error(), SessionClosed)
        async with driver.holding(sessions, "a"):
            second = driver.spawn(enter_and_leave)
            await driver.waiting(sessions, 1)
        await second.result()
        await driver.balanced(sessions)


# ---- [S3] create=False


@pytest.mark.parametrize("stored", [False, True])
async def test_s3_an_unknown_id_is_refused_where_asked(driver: Driver, stored: bool) -> None:
    store = MemoryStore()
    async with driver.sessions(dict, store=store if stored else None) as sessions:
        for shared in (False, True):
            how = {"create": False, "shared": shared}
            error = await refused(sessions, "a", SessionNotFound, match="neither live nor", **how)
            assert isinstance(error, KeyError)
        assert len(sessions) == 0
        assert store.stats().leases == 0
        await use_once(sessions, "a")
        await use_once(sessions, "a", {"create": False})
        await driver.balanced(sessions)


async def test_s3_a_parked_session_is_found(driver: Driver) -> None:
    async with driver.sessions(dict, store=MemoryStore()) as sessions:
        await use_once(sessions, "a", n=1)
        await sessions.park("a")
        assert await use_once(sessions, "a", {"create": False}) == {"n": 1}


async def test_s3_those_who_would_create_it_are_not_told_that_it_is_missing(
    driver: Driver, faulty: FaultyStore
) -> None:
    gate = faulty.gates["acquire"] = driver.gate()
    async with driver.sessions(dict, store=faulty.given) as sessions:
        first = driver.spawn(use_once, sessions, "a", {"create": False})
        await driver.until(lambda: gate.reached)
        second = driver.spawn(use_once, sessions, "a")
        await driver.waiting(sessions, 1)
        third = driver.spawn(use_once, sessions, "a", {"create": False})
        await driver.waiting(sessions, 2)
        gate.open()
        for job in (first, third):
            assert isinstance(await job.error(), SessionNotFound)
        assert await second.result() == {}
        await driver.balanced(sessions)
