"""What is special to `AsyncSessions`: tasks, cancellation and timers.

The rest is in the scenarios for both drivers; event loops that end are in a file of their own.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from event_loops import (
    StillClock,
    assert_balanced,
    events_of,
    gather_all,
    run_clean,
    settle,
    turns,
    until,
)
from floodline import AsyncSessions, Reason, SessionScope
from floodline.errors import SessionConflict
from floodline.stores import MemoryStore
from session_drivers import FaultyStore

KINDS = ["blocking", "awaited", "twin"]


async def use_once(sessions: AsyncSessions[Any], id: str) -> Any:
    async with sessions.use(id) as state:
        return state


async def add(sessions: AsyncSessions[Any], key: str = "a", by: int = 1) -> int:
    async with sessions.use(key) as state:
        state["n"] = state.get("n", 0) + by
        return int(state["n"])


def test_s8_a_body_that_is_cancelled_is_saved() -> None:
    async def main() -> None:
        store = MemoryStore()
        sessions = AsyncSessions(dict, store=store)

        inside = asyncio.Event()

        async def hang() -> None:
            async with sessions.use("a") as state:
                state["n"] = 1
                inside.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(hang())
        await inside.wait()
        task.cancel()
        assert [type(a) for a in await gather_all(task)] == [asyncio.CancelledError]
        await settle(sessions)
        assert store.stats().leases == 0
        await sessions.park("a")
        assert await use_once(sessions, "a") == {"n": 1}
        assert_balanced(sessions)

    run_clean(main)


def test_s8_with_on_error_discard_a_cancelled_body_goes_back_to_what_was_saved() -> None:
    async def main() -> None:
        left: list[Reason] = []
        sessions: AsyncSessions[dict[str, int]] = AsyncSessions(
            dict,
            store=MemoryStore(),
            on_error="discard",
            on_leave=lambda key, state, reason: left.append(reason),
        )
        async with sessions.use("a") as state:
            state["n"] = 1

        async def spoil() -> None:
            async with sessions.use("a") as state:
                state["n"] = 2
                await asyncio.Event().wait()

        task = asyncio.create_task(spoil())
        await turns()
        task.cancel()
        await gather_all(task)
        await settle(sessions)
        assert left == [Reason.discarded]
        assert await use_once(sessions, "a") == {"n": 1}
        assert_balanced(sessions)

    run_clean(main)


def test_s10_hooks_that_cancel_themselves_are_counted_and_stop_nothing() -> None:
    async def main() -> None:
        clock = StillClock()

        class Bad:
            tried = False

            async def aclose(self) -> None:
                self.tried = True
                raise asyncio.CancelledError("bad close")

        async def on_leave(id: str, state: Any, reason: Reason) -> None:
            raise asyncio.CancelledError("bad hook")

        scope = SessionScope()
        values: Any = scope.map("values")
        sessions = AsyncSessions(Bad, on_leave=on_leave, idle=60, clock=clock, scope=scope)
        states = [await use_once(sessions, key) for key in "abc"]
        values["a"] = 1
        clock.advance(60)
        assert await sessions.sweep() == 3
        assert len(sessions) == 0
        assert sessions.stats().hook_errors == 6
        assert [state.tried for state in states] == [True] * 3
        assert len(values) == 0
        assert_balanced(sessions)

    run_clean(main)


def test_s10_a_finalizer_runs_in_a_task_of_its_own() -> None:
    async def main() -> None:
        ran_in: list[object] = []

        async def on_leave(id: str, state: Any, reason: Reason) -> None:
            ran_in.append(asyncio.current_task())

        async with AsyncSessions(dict, on_leave=on_leave, max_sessions=1) as sessions:
            await use_once(sessions, "a")
            await use_once(sessions, "b")
            await settle(sessions)
        assert len(ran_in) == 2
        assert asyncio.current_task() not in ran_in

    run_clean(main)


def test_s11_a_linger_ends_by_its_own_timer_though_others_complete_all_the_time() -> None:
    async def main() -> None:
        async with AsyncSessions(dict, linger=0.02) as sessions:
            for number in range(12):
                await use_once(sessions, "a" if number == 0 else "b")
                await sessions.complete("a" if number == 0 else "b")
                await asyncio.sleep(0.005)
            await until(lambda: "a" not in sessions)
            assert "a" not in sessions

    run_clean(main)


def test_t6_a_blocking_store_works_in_threads_of_its_own() -> None:
    store = FaultyStore()

    async def main() -> None:
        async with AsyncSessions(dict, store=store) as sessions:
            await add(sessions)

    run_clean(main)
    assert threading.get_ident() not in store.threads


def test_t1_a_caller_that_is_cancelled_stops_asking_for_a_lease_held_elsewhere() -> None:
    async def main() -> None:
        store = MemoryStore()
        one, two = AsyncSessions(dict, store=store), AsyncSessions(dict, store=store)
        await add(two)
        async with one.use("a"), one.use("b"):
            for key in "ab":
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(add(two, key), 0.02)
            await settle(two)
            assert_balanced(two)

    run_clean(main)


def test_t1_leases_are_renewed_by_a_timer_of_the_loop() -> None:
    async def main() -> None:
        clock = StillClock()
        store = MemoryStore(clock=clock)
        async with AsyncSessions(dict, store=store, lease=0.03) as sessions:
            async with sessions.use("a") as state:
                for _ in range(4):
                    clock.advance(0.02)  # less than a lease, but in all more than two
                    before = store._table._leases["sessions", "a"].until
                    await until(lambda b=before: store._table._leases["sessions", "a"].until > b)
                state["n"] = 1
            assert sessions.stats().leases_lost == 0
            await until(lambda: sessions._driver._renew_timer is None)

    run_clean(main)


def test_t1_a_lost_lease_is_noticed_at_the_renewal() -> None:
    async def main() -> None:
        clock = StillClock()
        store = MemoryStore(clock=clock)
        one = AsyncSessions(dict, store=store, name="lost", lease=0.03)
        two = AsyncSessions(dict, store=store, name="lost", lease=1000)

        async def lose() -> None:
            async with one.use("a") as state:
                state["n"] = 100
                clock.advance(1)
                await add(two)
                await until(lambda: one.stats().leases_lost == 1)

        with pytest.raises(SessionConflict):
            await lose()
        assert events_of("lease_lost", "lost")

    run_clean(main)


@pytest.mark.parametrize("kind", KINDS)
def test_s9_a_cancelled_checkpoint_and_the_save_at_the_exit_do_not_conflict(kind: str) -> None:
    faulty = FaultyStore(kind=kind)

    async def main() -> None:
        sessions = AsyncSessions(dict, store=faulty.given)
        await add(sessions)

        async def body() -> None:
            async with (hold := sessions.use("a")) as state:
                state["n"] = 2
                saving = asyncio.ensure_future(hold.save())
                await turns(1)
                saving.cancel()
                state["n"] = 3
                await gather_all(saving)

        await body()
        await settle(sessions)
        assert faulty.store.stats().conflicts == 0
        assert await add(sessions, by=0) == 3
        assert_balanced(sessions)

    run_clean(main)


@pytest.mark.parametrize("kind", KINDS)
def test_s9_checkpoints_of_one_hold_follow_each_other(kind: str) -> None:
    faulty = FaultyStore(kind=kind)

    async def main() -> None:
        async with AsyncSessions(dict, store=faulty.given) as sessions:
            async with (hold := sessions.use("a")) as state:
                for number in range(3):
                    state["n"] = number
                    await asyncio.gather(*(hold.save() for _ in range(3)))
            assert faulty.store.stats().conflicts == 0

    run_clean(main)


def test_shutdown_keeps_up_the_lease_of_a_holder_that_stays() -> None:
    async def main() -> None:
        store = MemoryStore()
        sessions = AsyncSessions(dict, store=store)
        gate = asyncio.Event()

        async def hold() -> None:
            async with sessions.use("a") as state:
                await gate.wait()
                state["n"] = 1

        task = asyncio.create_task(hold())
        await until(lambda: sessions.stats().held == 1)
        assert await sessions.shutdown(grace=0.01) == 1
        assert sessions._driver._renew_timer is not None, "the lease of a holder is kept up"
        gate.set()
        await task
        await settle(sessions)
        assert store.stats().rows == 1
        assert len(sessions) == 0

    run_clean(main)
