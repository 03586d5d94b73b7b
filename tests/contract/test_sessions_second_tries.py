"""What could not be done at once is done later; and nobody's error or clock is another's."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from event_loops import settle
from floodline import AsyncSessions, BoundedMap, Reason, Sessions
from floodline.errors import SaveFailed, SessionBusy, SessionClosed, SessionNotFound
from worker_threads import (
    PATIENCE,
    Faulty,
    StillClock,
    Worker,
    assert_balanced,
    holding,
    until,
    waiting,
)


class Left:
    """A finalizer that notes what it was told."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Reason]] = []

    def __call__(self, id: str, _state: Any, reason: Reason) -> None:
        self.seen.append((id, reason))


class Owner:
    """Something that can die."""


def put(sessions: Sessions[Any], id: str, **values: Any) -> None:
    with sessions.use(id) as state:
        state.update(values)


def put_and_park(sessions: Sessions[Any], id: str, **values: Any) -> None:
    with sessions.use(id) as state:
        state.update(values)
        sessions.park(id)


def frames(error: BaseException) -> int:
    return len(traceback.extract_tb(error.__traceback__))


# ---- the clock


@pytest.mark.parametrize("back", [-900.0, -5.0])
def test_a_clock_that_was_set_back_hides_nobody_who_is_idle(back: float) -> None:
    clock, left = StillClock(), Left()
    limits: Any = {"idle": 10, "linger": 10, "sweep_every": None}
    with Sessions(dict, clock=clock, on_leave=left, **limits) as sessions:
        put(sessions, "a")
        clock.advance(back)
        put(sessions, "b")
        put(sessions, "c")
        sessions.complete("c")
        clock.advance(9)
        assert sessions.ids() == ["a", "b", "c"]
        clock.advance(1)
        assert sessions.ids() == []
        sessions.sweep()
        assert sorted(one for one, _ in left.seen) == ["a", "b", "c"]


def test_a_clock_that_was_set_back_prolongs_no_tombstone() -> None:
    clock = StillClock()
    with Sessions(dict, clock=clock, tombstone=10) as sessions:
        sessions.close("a")
        clock.advance(-900)
        with pytest.raises(SessionClosed):
            put(sessions, "a")
        clock.advance(10)
        put(sessions, "a")


# ---- wishes that the store refused


def test_a_park_that_the_store_refused_is_done_when_it_recovers() -> None:
    store, left = Faulty(), Left()
    with Sessions(dict, store=store, durability="park", on_leave=left) as sessions:
        for one in ("a", "b"):
            put(sessions, one, n=1)
        store.fail("save")
        sessions.park("a")
        sessions.complete("b")
        assert sorted(sessions.ids()) == ["a", "b"]
        store.recover()
        sessions.sweep()
        assert sessions.ids() == []
        assert sorted(left.seen) == [("a", Reason.parked), ("b", Reason.completed)]
        assert store.stats().leases == 0
        assert_balanced(sessions)


def test_the_owner_of_a_session_dies_only_once_but_it_is_parked_in_the_end() -> None:
    store, left = Faulty(), Left()
    with Sessions(dict, store=store, durability="park", on_leave=left) as sessions:
        owner = Owner()
        with sessions.use("a") as state:
            state["n"] = 1
            sessions.bind("a", owner)
        store.fail("save")
        del owner
        gc.collect()
        sessions.sweep()
        assert sessions.ids() == ["a"]
        store.recover()
        sessions.sweep()
        assert left.seen == [("a", Reason.owner_gone)]


def test_a_park_inside_a_hold_whose_save_fails_waits_for_the_save() -> None:
    store, left = Faulty(), Left()
    with Sessions(dict, store=store, on_leave=left) as sessions:
        store.fail("save")
        with pytest.raises(SaveFailed):
            put_and_park(sessions, "a", n=1)
        assert store.calls.count("save") == 1
        store.recover()
        sessions.sweep()
        assert left.seen == [("a", Reason.parked)]
        with sessions.use("a", create=False) as state:
            assert state == {"n": 1}


def test_new_work_cancels_a_park_that_the_store_refused() -> None:
    store, left = Faulty(), Left()
    with Sessions(dict, store=store, durability="park", on_leave=left) as sessions:
        put(sessions, "a", n=1)
        store.fail("save")
        sessions.park("a")
        put(sessions, "a", n=2)
        store.recover()
        sessions.sweep()
        assert sessions.ids() == ["a"]
        assert left.seen == []


def test_who_waited_for_a_park_that_failed_has_the_session_and_keeps_it() -> None:
    store, left = Faulty(), Left()
    came, go = threading.Event(), threading.Event()

    def entering(method: str) -> None:
        if method == "save" and not came.is_set():
            came.set()
            assert go.wait(PATIENCE)

    store.entering = entering
    with Sessions(dict, store=store, durability="park", on_leave=left) as sessions:
        put(sessions, "a", n=1)
        store.fail("save")
        parker = Worker(sessions.park, "a")
        assert came.wait(PATIENCE)
        user = Worker(put, sessions, "a")
        waiting(sessions, 1)
        go.set()
        parker.result()
        user.result()
        store.recover()
        sessions.sweep()
        assert sessions.ids() == ["a"]
        assert left.seen == []


# ---- a close whose row could not be deleted at once


def test_a_row_that_could_not_be_deleted_after_a_park_is_deleted_later() -> None:
    store, left = Faulty(), Left()
    came, go = threading.Event(), threading.Event()

    def finalizer(*args: Any) -> None:
        left(*args)
        came.set()
        assert go.wait(PATIENCE)

    with Sessions(dict, store=store, on_leave=finalizer, max_sessions=1) as sessions:
        put(sessions, "a", n=1)
        parker = Worker(sessions.park, "a")
        assert came.wait(PATIENCE)
        assert sessions.close("a")
        store.fail("delete")
        go.set()
        parker.result()
        assert sessions.ids() == []
        assert store.count("sessions") == 1
        assert sessions.stats().hook_errors == 1
        put(sessions, "b")  # the one place is free
        assert (sessions.stats().items, sessions.stats().held) == (1, 0)
        store.recover()
        sessions.close("b")
        sessions.sweep()
        assert store.count("sessions") == 0
        assert left.seen == [("a", Reason.parked), ("b", Reason.closed)]
        with pytest.raises(SessionNotFound), sessions.use("a", create=False):
            pass
        assert_balanced(sessions)


def test_a_row_that_could_not_be_deleted_after_a_failed_open_is_deleted_later() -> None:
    store, opening, go = Faulty(), threading.Event(), threading.Event()
    fails = [False]

    def check(id: str, _state: Any) -> None:
        if fails[0]:
            opening.set()
            assert go.wait(PATIENCE)
            raise PermissionError(id)

    with Sessions(dict, store=store, on_open=check, max_sessions=1) as sessions:
        put(sessions, "a", n=1)
        sessions.park("a")
        fails[0] = True
        opener = Worker(put, sessions, "a")
        assert opening.wait(PATIENCE)
        assert sessions.close("a")
        store.fail("delete")
        go.set()
        assert isinstance(opener.wait().error, PermissionError)
        assert store.count("sessions") == 1
        store.recover()
        fails[0] = False
        sessions.sweep()
        assert store.count("sessions") == 0
        put(sessions, "b")
        assert_balanced(sessions)


@pytest.fixture
def undeleted() -> Iterator[tuple[Sessions[Any], Faulty]]:
    """Sessions of which `a` was closed while it was parked, and whose store deletes nothing."""
    store, came, go = Faulty(), threading.Event(), threading.Event()

    def finalizer(*_: Any) -> None:
        came.set()
        assert go.wait(PATIENCE)

    with Sessions(dict, store=store, on_leave=finalizer) as sessions:
        put(sessions, "a", n=1)
        parker = Worker(sessions.park, "a")
        assert came.wait(PATIENCE)
        sessions.close("a")
        store.fail("delete")
        go.set()
        parker.result()
        with pytest.raises(OSError, match="out of order"):
            sessions.close("a")
        yield sessions, store


def test_a_second_close_tries_again_to_delete_the_row(
    undeleted: tuple[Sessions[Any], Faulty],
) -> None:
    sessions, store = undeleted
    store.recover()
    assert sessions.close("a")
    assert store.count("sessions") == 0
    assert not sessions.close("a")


def test_who_could_not_delete_a_row_may_use_the_id_again(
    undeleted: tuple[Sessions[Any], Faulty],
) -> None:
    """It runs nothing for the old session any more, so it waits for nobody but the store."""
    sessions, store = undeleted
    with pytest.raises(SessionBusy), sessions.use("a", wait=0):
        pass
    store.recover()
    sessions.sweep()
    with sessions.use("a") as state:
        assert state == {}


def test_who_could_not_lease_what_is_unsaved_waits_for_its_holder_as_others_do() -> None:
    store = Faulty()
    with Sessions(dict, store=store, sweep_every=None) as sessions:
        store.fail("save", "written")  # so that the lease may have ended
        with pytest.raises(SaveFailed):
            put(sessions, "a", n=1)
        store.fail("acquire")
        sessions.sweep()
        assert sessions.stats().unsaved == 1
        store.recover()
        with holding(sessions, "a"), pytest.raises(SessionBusy), sessions.use("a", wait=0):
            pass
        assert_balanced(sessions)


def test_an_async_close_during_a_park_deletes_the_row_later_too() -> None:
    async def play() -> None:
        store, came, go = Faulty(), asyncio.Event(), asyncio.Event()

        async def finalizer(*_: Any) -> None:
            came.set()
            await go.wait()

        async with AsyncSessions(dict, store=Blocking(store), on_leave=finalizer) as sessions:
            async with sessions.use("a") as state:
                state["n"] = 1
            parker = asyncio.ensure_future(sessions.park("a"))
            await came.wait()
            assert await sessions.close("a")
            store.fail("delete")
            go.set()
            await parker
            assert store.count("sessions") == 1
            store.recover()
            await sessions.sweep()
            await settle(sessions)  # a try that was under way
            assert store.count("sessions") == 0

    asyncio.run(play())


def test_an_async_sweep_tries_again_at_once_what_the_store_refused() -> None:
    async def play() -> None:
        store, clock = Faulty(), StillClock()
        async with AsyncSessions(dict, store=Blocking(store), clock=clock) as sessions:
            store.fail("save")
            with pytest.raises(SaveFailed):
                async with sessions.use("a") as state:
                    state["n"] = 1
            await settle(sessions)  # the try that the use itself has begun
            await sessions.sweep()
            assert sessions.stats().unsaved == 1
            store.recover()
            await sessions.sweep()
            assert sessions.stats().unsaved == 0
            assert store.count("sessions") == 1

    asyncio.run(play())


class Blocking:
    """A store without a coroutine twin."""

    aio = None

    def __init__(self, store: Faulty) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


# ---- shutting down


def test_once_it_shuts_down_what_could_not_be_saved_is_not_used_any_more() -> None:
    store = Faulty()
    sessions = Sessions(dict, store=store, durability="park")
    put(sessions, "a", n=1)
    store.fail("save")
    assert sessions.shutdown(grace=0) == 1
    for how in ({}, {"shared": True}, {"create": False}):
        with pytest.raises(SessionClosed, match="shut down"), sessions.use("a", **how):
            pass
    store.recover()
    assert sessions.shutdown(grace=0) == 0
    assert store.count("sessions") == 1


def test_a_body_under_way_may_look_at_its_session_while_all_shuts_down() -> None:
    sessions = Sessions(dict)
    with holding(sessions, "a"):
        assert sessions.shutdown(grace=0) == 1
        with sessions.use("a", shared=True):
            pass
        with pytest.raises(SessionClosed), sessions.use("a"):
            pass
    until(lambda: not sessions._core.table.entries)


# ---- errors


class Picky(Exception):
    """An error that cannot be made again from its arguments."""

    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class Telling(Exception):
    """An error whose argument is not what it was made of."""

    def __init__(self, what: str) -> None:
        super().__init__(f"no {what} here")
        self.what = what


def raise_noted(error: Exception) -> None:
    error.add_note("seen by the factory")
    raise error from KeyError("cause")


def fail_together(error: Exception, number: int = 8) -> list[Any]:
    """Have so many threads ask for a session whose factory raises, and return what they got."""
    asked, go = threading.Event(), threading.Event()

    def factory() -> dict[str, int]:
        asked.set()
        assert go.wait(PATIENCE)
        raise_noted(error)
        return {}

    with Sessions(factory) as sessions:
        workers = [Worker(put, sessions, "a") for _ in range(number)]
        assert asked.wait(PATIENCE)
        waiting(sessions, number - 1)
        go.set()
        errors = [worker.wait().error for worker in workers]
        assert_balanced(sessions)
    return errors


def test_s7_each_who_waited_for_a_failed_open_has_an_error_of_its_own() -> None:
    errors = fail_together(Telling("tea"))
    assert len({id(error) for error in errors}) == len(errors)
    for error in errors:
        assert (type(error), str(error), error.what) == (Telling, "no tea here", "tea")
        assert isinstance(error.__cause__, KeyError)
        assert error.__notes__ == ["seen by the factory"]
        assert "raise_noted" in "".join(traceback.format_exception(error))
        assert frames(error) < 30
    errors[0].add_note("mine")
    assert all(error.__notes__ == ["seen by the factory"] for error in errors[1:])


def test_s7_an_error_that_cannot_be_copied_is_shared_but_does_not_grow() -> None:
    errors = fail_together(Picky(code=7))
    assert {id(error) for error in errors} == {id(errors[0])}
    assert errors[0].code == 7
    assert frames(errors[0]) < 30


def test_who_waits_for_one_value_of_a_map_has_an_error_of_its_own() -> None:
    cache: BoundedMap[str, int] = BoundedMap(9)
    asked, go = threading.Event(), threading.Event()

    def factory() -> int:
        asked.set()
        assert go.wait(PATIENCE)
        raise Telling("tea")

    workers = [Worker(cache.get_or_create, "a", factory) for _ in range(8)]
    assert asked.wait(PATIENCE)
    until(lambda: cache._flights._flying["a"].waiters == 7)
    go.set()
    errors = [worker.wait().error for worker in workers]
    assert len({id(error) for error in errors}) == 8
    assert all(isinstance(error, Telling) and frames(error) < 15 for error in errors)


def test_coroutines_that_wait_for_one_value_have_errors_of_their_own() -> None:
    async def fail() -> int:
        await asyncio.sleep(0)
        raise Telling("tea")

    async def play() -> list[Any]:
        cache: BoundedMap[str, int] = BoundedMap(9)
        asked = [cache.aget_or_create("a", fail) for _ in range(20)]
        return await asyncio.gather(*asked, return_exceptions=True)

    errors = asyncio.run(play())
    assert len({id(error) for error in errors}) == 20
    assert all(isinstance(error, Telling) and frames(error) < 15 for error in errors)
