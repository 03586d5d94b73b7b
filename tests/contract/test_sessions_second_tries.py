"""What could not be done at once is done later; and nobody's error or clock is another's."""

from __future__ import annotations

import gc
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from event_loops import StillClock
from floodline.errors import SaveFailed, SessionBusy, SessionClosed, SessionNotFound
from session_drivers import Driver, FaultyStore, Left, Owner, refused, use_once


def who_and_why(left: Left) -> list[tuple[str, str]]:
    return [(one, reason) for one, _, reason in left]


# ---- the clock


@pytest.mark.parametrize("back", [-900.0, -5.0])
async def test_a_clock_that_was_set_back_hides_nobody_who_is_idle(
    driver: Driver, back: float
) -> None:
    clock, left = StillClock(), Left()
    limits: Any = {"idle": 10, "linger": 10, "sweep_every": None}
    async with driver.sessions(dict, clock=clock, on_leave=left, **limits) as sessions:
        await use_once(sessions, "a")
        clock.advance(back)
        await use_once(sessions, "b")
        await use_once(sessions, "c")
        await sessions.complete("c")
        clock.advance(9)
        assert sessions.ids() == ["a", "b", "c"]
        clock.advance(1)
        assert sessions.ids() == []
        await sessions.sweep()
        assert sorted(one for one, _, _ in left) == ["a", "b", "c"]


async def test_a_clock_that_was_set_back_prolongs_no_tombstone(driver: Driver) -> None:
    clock = StillClock()
    async with driver.sessions(dict, clock=clock, tombstone=10) as sessions:
        await sessions.close("a")
        clock.advance(-900)
        await refused(sessions, "a", SessionClosed)
        clock.advance(10)
        await use_once(sessions, "a")


# ---- wishes that the store refused


async def test_a_park_that_the_store_refused_is_done_when_it_recovers(
    driver: Driver, faulty: FaultyStore
) -> None:
    left = Left()
    async with driver.sessions(
        dict, store=faulty.given, durability="park", on_leave=left
    ) as sessions:
        for one in ("a", "b"):
            await use_once(sessions, one, n=1)
        faulty.fail("save")
        await sessions.park("a")
        await sessions.complete("b")
        await driver.settle(sessions)
        assert sorted(sessions.ids()) == ["a", "b"]
        faulty.recover()
        await sessions.sweep()
        await driver.settle(sessions)
        assert sessions.ids() == []
        assert sorted(who_and_why(left)) == [("a", "parked"), ("b", "completed")]
        assert faulty.store.stats().leases == 0
        await driver.balanced(sessions)


async def test_a_sweep_tries_again_at_once_what_the_store_refused(
    driver: Driver, faulty: FaultyStore
) -> None:
    async with driver.sessions(dict, store=faulty.given, clock=StillClock()) as sessions:
        faulty.fail("save")
        with pytest.raises(SaveFailed):
            await use_once(sessions, "a", n=1)
        await driver.settle(sessions)  # the try that the use itself has begun
        await sessions.sweep()
        assert sessions.stats().unsaved == 1
        faulty.recover()
        await sessions.sweep()
        assert sessions.stats().unsaved == 0
        assert faulty.store.count("sessions") == 1


async def test_the_owner_of_a_session_dies_only_once_but_it_is_parked_in_the_end(
    driver: Driver, faulty: FaultyStore
) -> None:
    left = Left()
    async with driver.sessions(
        dict, store=faulty.given, durability="park", on_leave=left
    ) as sessions:
        owner = Owner()
        async with sessions.use("a") as state:
            state["n"] = 1
            sessions.bind("a", owner)
        faulty.fail("save")
        del owner
        gc.collect()
        await sessions.sweep()
        await driver.until(lambda: sessions.stats().unsaved)  # the sweeper may see it out too
        assert sessions.ids() == ["a"]
        faulty.recover()
        await sessions.sweep()
        await driver.until(lambda: left)
        assert who_and_why(left) == [("a", "owner_gone")]


async def test_a_park_inside_a_hold_whose_save_fails_waits_for_the_save(
    driver: Driver, faulty: FaultyStore
) -> None:
    left = Left()
    async with driver.sessions(
        dict, store=faulty.given, on_leave=left, sweep_every=None
    ) as sessions:

        async def put_and_park() -> None:
            async with sessions.use("a") as state:
                state["n"] = 1
                await sessions.park("a")

        faulty.fail("save")
        with pytest.raises(SaveFailed):
            await put_and_park()
        assert faulty.calls.count("save") == 1
        await driver.settle(sessions)
        assert left == []
        faulty.recover()
        await sessions.sweep()
        await driver.settle(sessions)
        assert who_and_why(left) == [("a", "parked")]
        assert await use_once(sessions, "a", {"create": False}) == {"n": 1}


async def test_new_work_cancels_a_park_that_the_store_refused(
    driver: Driver, faulty: FaultyStore
) -> None:
    left = Left()
    async with driver.sessions(
        dict, store=faulty.given, durability="park", on_leave=left
    ) as sessions:
        await use_once(sessions, "a", n=1)
        faulty.fail("save")
        await sessions.park("a")
        await use_once(sessions, "a", n=2)
        faulty.recover()
        await sessions.sweep()
        await driver.settle(sessions)
        assert sessions.ids() == ["a"]
        assert left == []


async def test_who_waited_for_a_park_that_failed_has_the_session_and_keeps_it(
    driver: Driver, faulty: FaultyStore
) -> None:
    left = Left()
    async with driver.sessions(
        dict, store=faulty.given, durability="park", on_leave=left
    ) as sessions:
        await use_once(sessions, "a", n=1)
        gate = faulty.gates["save"] = driver.gate()
        faulty.fail("save")
        parker = driver.spawn(sessions.park, "a")
        await driver.until(lambda: gate.reached)
        user = driver.spawn(use_once, sessions, "a")
        await driver.waiting(sessions, 1)
        gate.open()
        await parker.result()
        await user.result()
        faulty.recover()
        await sessions.sweep()
        await driver.settle(sessions)
        assert sessions.ids() == ["a"]
        assert left == []


async def test_who_could_not_lease_what_is_unsaved_waits_for_its_holder_as_others_do(
    driver: Driver, faulty: FaultyStore
) -> None:
    async with driver.sessions(dict, store=faulty.given, sweep_every=None) as sessions:
        faulty.fail("save", "written")  # so that the lease may have ended
        with pytest.raises(SaveFailed):
            await use_once(sessions, "a", n=1)
        await driver.settle(sessions)
        faulty.fail("acquire")
        await sessions.sweep()
        await driver.settle(sessions)
        assert sessions.stats().unsaved == 1
        faulty.recover()
        async with driver.holding(sessions, "a"):
            await refused(sessions, "a", SessionBusy, wait=0)
        await driver.balanced(sessions)


# ---- a close whose row could not be deleted at once


async def test_a_row_that_could_not_be_deleted_after_a_park_is_deleted_later(
    driver: Driver, faulty: FaultyStore
) -> None:
    left, gate = Left(), driver.gate()

    async def finalizer(id: str, state: Any, reason: Any) -> None:
        left(id, state, reason)
        await gate.passed()

    async with driver.sessions(
        dict, store=faulty.given, on_leave=driver.hook(finalizer), max_sessions=1
    ) as sessions:
        await use_once(sessions, "a", n=1)
        parker = driver.spawn(sessions.park, "a")
        await driver.until(lambda: gate.reached)
        assert await sessions.close("a")
        faulty.fail("delete")
        gate.open()
        await parker.result()
        assert sessions.ids() == []
        assert faulty.store.count("sessions") == 1
        assert sessions.stats().hook_errors == 1
        await use_once(sessions, "b")  # the one place is free
        assert (sessions.stats().items, sessions.stats().held) == (1, 0)
        faulty.recover()
        await sessions.close("b")
        await sessions.sweep()
        await driver.settle(sessions)  # a try that was under way
        assert faulty.store.count("sessions") == 0
        assert who_and_why(left) == [("a", "parked"), ("b", "closed")]
        await refused(sessions, "a", SessionNotFound, create=False)
        await driver.balanced(sessions)


async def test_a_row_that_could_not_be_deleted_after_a_failed_open_is_deleted_later(
    driver: Driver, faulty: FaultyStore
) -> None:
    gate, fails = driver.gate(), [False]

    async def check(id: str, state: Any) -> None:
        if fails[0]:
            await gate.passed()
            raise PermissionError(id)

    async with driver.sessions(
        dict, store=faulty.given, on_open=driver.hook(check), max_sessions=1
    ) as sessions:
        await use_once(sessions, "a", n=1)
        await sessions.park("a")
        fails[0] = True
        opener = driver.spawn(use_once, sessions, "a")
        await driver.until(lambda: gate.reached)
        assert await sessions.close("a")
        faulty.fail("delete")
        gate.open()
        assert isinstance(await opener.error(), PermissionError)
        await driver.settle(sessions)
        assert faulty.store.count("sessions") == 1
        faulty.recover()
        fails[0] = False
        await sessions.sweep()
        await driver.settle(sessions)
        assert faulty.store.count("sessions") == 0
        await use_once(sessions, "b")
        await driver.balanced(sessions)


@asynccontextmanager
async def undeleted(driver: Driver, faulty: FaultyStore) -> AsyncIterator[Any]:
    """Sessions of which `a` was closed while it was parked, and whose store deletes nothing."""
    gate = driver.gate()

    async def finalizer(*_: Any) -> None:
        await gate.passed()

    async with driver.sessions(
        dict, store=faulty.given, on_leave=driver.hook(finalizer), sweep_every=None
    ) as sessions:
        await use_once(sessions, "a", n=1)
        parker = driver.spawn(sessions.park, "a")
        await driver.until(lambda: gate.reached)
        await sessions.close("a")
        faulty.fail("delete")
        gate.open()
        await parker.result()
        await driver.settle(sessions)
        with pytest.raises(OSError, match="out of order"):
            await sessions.close("a")
        yield sessions


async def test_a_second_close_tries_again_to_delete_the_row(
    driver: Driver, faulty: FaultyStore
) -> None:
    async with undeleted(driver, faulty) as sessions:
        faulty.recover()
        assert await sessions.close("a")
        assert faulty.store.count("sessions") == 0
        assert not await sessions.close("a")


async def test_who_could_not_delete_a_row_may_use_the_id_again(
    driver: Driver, faulty: FaultyStore
) -> None:
    """It runs nothing for the old session any more, so it waits for nobody but the store."""
    async with undeleted(driver, faulty) as sessions:
        await refused(sessions, "a", SessionBusy, wait=0)
        faulty.recover()
        await sessions.sweep()
        await driver.settle(sessions)
        assert await use_once(sessions, "a") == {}


# ---- shutting down


async def test_once_it_shuts_down_what_could_not_be_saved_is_not_used_any_more(
    driver: Driver, faulty: FaultyStore
) -> None:
    sessions = driver.sessions(dict, store=faulty.given, durability="park")
    await use_once(sessions, "a", n=1)
    faulty.fail("save")
    assert await sessions.shutdown(grace=0) == 1
    for how in ({}, {"shared": True}, {"create": False}):
        await refused(sessions, "a", SessionClosed, match="shut down", **how)
    faulty.recover()
    assert await sessions.shutdown() == 0
    assert faulty.store.count("sessions") == 1


async def test_a_body_under_way_may_look_at_its_session_while_all_shuts_down(
    driver: Driver,
) -> None:
    sessions = driver.sessions(dict)
    async with driver.holding(sessions, "a"):
        assert await sessions.shutdown(grace=0) == 1
        await use_once(sessions, "a", {"shared": True})
        await refused(sessions, "a", SessionClosed)
    await driver.until(lambda: not sessions._core.table.entries)


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


def frames(error: BaseException) -> int:
    return len(traceback.extract_tb(error.__traceback__))


async def fail_together(driver: Driver, error: Exception, number: int = 8) -> list[Any]:
    """Have so many ask for a session whose factory raises, and return what they got."""
    gate = driver.gate()

    async def factory() -> dict[str, int]:
        await gate.passed()
        raise_noted(error)
        return {}

    async with driver.sessions(driver.hook(factory)) as sessions:
        jobs = [driver.spawn(use_once, sessions, "a") for _ in range(number)]
        await driver.waiting(sessions, number - 1)
        gate.open()
        errors = [await job.error() for job in jobs]
        await driver.balanced(sessions)
    return errors


async def test_s7_each_who_waited_for_a_failed_open_has_an_error_of_its_own(
    driver: Driver,
) -> None:
    errors = await fail_together(driver, Telling("tea"))
    assert len({id(error) for error in errors}) == len(errors)
    for error in errors:
        assert (type(error), str(error), error.what) == (Telling, "no tea here", "tea")
        assert isinstance(error.__cause__, KeyError)
        assert error.__notes__ == ["seen by the factory"]
        assert "raise_noted" in "".join(traceback.format_exception(error))
        assert frames(error) < 30
    errors[0].add_note("mine")
    assert all(error.__notes__ == ["seen by the factory"] for error in errors[1:])


async def test_s7_an_error_that_cannot_be_copied_is_shared_but_does_not_grow(
    driver: Driver,
) -> None:
    errors = await fail_together(driver, Picky(code=7))
    assert {id(error) for error in errors} == {id(errors[0])}
    assert errors[0].code == 7
    assert frames(errors[0]) < 30
