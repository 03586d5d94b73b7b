"""[S11] Closing a session that somebody uses, or is about to; and calls after `shutdown`."""

from __future__ import annotations

import asyncio
import math
import sys
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from floodline import AsyncSessions, Sessions
from floodline.errors import ConfigError, SessionClosed, WrongLoop
from floodline.stores import MemoryStore
from worker_threads import Worker


class Watched(MemoryStore):
    """Names the calls it gets, and may have something done inside one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.during: dict[str, Any] = {}

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        names = ("acquire", "save", "load", "delete", "release", "renew", "purge", "count", "stats")
        if name in names:
            self.calls.append(name)
            action = self.during.pop(name, None)
            if action is not None:
                action()
        return value


def elsewhere(function: Any, *args: Any) -> None:
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join()


def write_while_it_is_closed(sessions: Sessions[Any], error: Exception | None = None) -> None:
    with sessions.use("a") as state:
        elsewhere(sessions.close, "a")
        state["n"] = 2
        if error is not None:
            raise error


@pytest.mark.parametrize("stored", [False, True])
def test_s11_a_use_that_somebody_else_closed_leaves_with_an_error(stored: bool) -> None:
    store = MemoryStore() if stored else None
    with Sessions(dict, store=store) as sessions:
        with pytest.raises(SessionClosed, match="another caller"):
            write_while_it_is_closed(sessions)
        with sessions.use("a") as state:
            assert state == {}


@pytest.mark.parametrize("stored", [False, True])
def test_s11_a_use_that_closed_itself_leaves_quietly(stored: bool) -> None:
    store = MemoryStore() if stored else None
    with Sessions(dict, store=store) as sessions:
        with sessions.use("a"):
            assert sessions.close("a")
            elsewhere(sessions.close, "a")  # closing what is closed does nothing
        assert "a" not in sessions


def test_s11_a_body_that_raises_keeps_its_error_and_gets_a_note() -> None:
    with Sessions(dict) as sessions:
        with pytest.raises(KeyError) as caught:
            write_while_it_is_closed(sessions, KeyError("own"))
        assert "another caller" in caught.value.__notes__[0]


def test_s11_readers_of_a_closed_session_leave_quietly() -> None:
    with Sessions(dict) as sessions:
        with sessions.use("a", shared=True):
            elsewhere(sessions.close, "a")
        assert "a" not in sessions


@pytest.mark.parametrize("how", [{}, {"shared": True}])
@pytest.mark.parametrize("live", [False, True])
def test_s11_no_body_begins_after_a_close_with_the_state_of_before(
    live: bool, how: dict[str, Any]
) -> None:
    store = Watched()
    with Sessions(dict, store=store) as sessions:
        with sessions.use("a") as state:
            state["before"] = True
        if not live:
            sessions.park("a")
        elif how:
            pytest.skip("a reader of a live session asks nobody")
        store.during["load" if how else "acquire"] = lambda: elsewhere(sessions.close, "a")
        with pytest.raises(SessionClosed), sessions.use("a", **how):
            raise AssertionError("the body began")
        with sessions.use("a") as state:
            assert state == {}


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(main)


@pytest.mark.parametrize("stored", [False, True])
def test_s11_the_same_on_an_event_loop(stored: bool) -> None:
    async def main() -> None:
        async with AsyncSessions(dict, store=MemoryStore() if stored else None) as sessions:
            with pytest.raises(SessionClosed, match="another caller"):
                async with sessions.use("a"):
                    await asyncio.create_task(sessions.close("a"))
            async with sessions.use("a") as state:
                assert state == {}
                await sessions.close("a")

    run(main())


def test_s11_no_body_begins_after_a_close_on_an_event_loop() -> None:
    async def main() -> None:
        opening, go_on = asyncio.Event(), asyncio.Event()

        async def factory() -> dict[str, int]:
            opening.set()
            await go_on.wait()
            return {}

        async def body() -> None:
            async with sessions.use("a"):
                raise AssertionError("the body began")

        async with AsyncSessions(factory) as sessions:
            task = asyncio.create_task(body())
            await opening.wait()
            assert await sessions.close("a")
            go_on.set()
            with pytest.raises(SessionClosed):
                await task

    run(main())


# ---- after a shutdown


def test_nothing_calls_the_store_after_shutdown() -> None:
    store = Watched()
    sessions = Sessions(dict, store=store, retain="1 h", name="over")
    with sessions.use("a"):
        pass
    sessions.shutdown()
    store.calls.clear()
    sessions._tick()
    sessions._renew_tick()
    sessions.sweep()
    with pytest.raises(SessionClosed, match="shut down"):
        sessions.close("a")
    with pytest.raises(SessionClosed, match="shut down"), sessions.use("a"):
        pass
    assert store.calls == []


def test_a_shutdown_waits_for_an_upkeep_that_calls_the_store() -> None:
    store, inside, go_on = Watched(), threading.Event(), threading.Event()
    sessions = Sessions(dict, store=store, retain="1 h")
    with sessions.use("a"):
        pass

    def block() -> None:
        inside.set()
        go_on.wait(100)

    store.during["purge"] = block
    tick = Worker(sessions._tick)
    assert inside.wait(100)
    shutdown = Worker(sessions.shutdown)
    while sessions._core.table.entries:
        threading.Event().wait(0.001)
    assert shutdown.running()
    go_on.set()
    assert shutdown.result() == 0
    tick.result()


# ---- arguments


@pytest.mark.parametrize("option", ["idle", "wait", "lease", "max_bytes", "max_sessions"])
def test_numbers_that_no_float_can_hold_are_our_errors(option: str) -> None:
    with pytest.raises(ConfigError, match=option):
        Sessions(dict, weigh=len, **{option: 10**400})
    with Sessions(dict) as sessions, pytest.raises(ConfigError, match="wait"):
        sessions.use("a", wait=10**400)


@pytest.mark.parametrize("says", [None, "noon", math.nan, math.inf, True])
def test_a_clock_that_tells_no_seconds_is_our_error(says: Any) -> None:
    with pytest.raises(ConfigError, match="clock"):
        Sessions(dict, clock=lambda: says)


@pytest.mark.parametrize("id", [[], {}, None, 7, b"a", ""])
@pytest.mark.parametrize(
    "call", ["use", "close", "park", "complete", "peek", "touch", "bind"], ids=str
)
def test_ids_that_are_no_strings_are_our_errors(id: Any, call: str) -> None:
    with Sessions(dict) as sessions:
        with pytest.raises(ConfigError, match="session id"):
            getattr(sessions, call)(id, *([object()] if call == "bind" else []))
        assert id not in sessions


def test_an_id_with_a_hash_of_its_own_is_taken_as_the_string_it_is() -> None:
    class Odd(str):
        def __hash__(self) -> int:
            raise AssertionError("user code ran inside the lock")

        __eq__ = str.__eq__

    with Sessions(dict) as sessions:
        with sessions.use(Odd("a")) as state:
            state["n"] = 1
        assert sessions.peek("a") == {"n": 1}


def test_without_an_asyncio_loop_the_error_names_asyncio() -> None:
    sessions = AsyncSessions(dict)
    for call in (sessions.use("a").__aenter__(), sessions.close("a"), sessions.shutdown()):
        with pytest.raises(WrongLoop, match="asyncio"):
            call.send(None)  # as another framework drives a coroutine


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks_are_forgotten_and_a_shutdown_returns_at_once() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_task_factory(asyncio.eager_task_factory)
        sessions: AsyncSessions[Any] = AsyncSessions(dict, store=MemoryStore())
        for n in range(20):
            async with sessions.use(f"s{n}"):
                pass
            await sessions.close(f"s{n}")
        turns = 0

        def count() -> None:
            nonlocal turns
            turns += 1
            loop.call_soon(count)

        loop.call_soon(count)
        assert await sessions.shutdown(grace=100) == 0
        assert turns < 1000
        assert not sessions._driver._tasks

    run(main())
