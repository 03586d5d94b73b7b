"""`AsyncSessions` out of memory: the rules [S8] to [S14] of SEMANTICS."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from event_loops import (
    StillClock,
    assert_balanced,
    events_of,
    gather_all,
    own_tasks,
    run_clean,
    settle,
    turns,
    until,
)
from floodline import AsyncSessions, Reason, SessionScope
from floodline.errors import ConfigError, SessionBusy, SessionClosed, SessionNotFound
from floodline.stores import MemoryStore


class Thing:
    """A state that can be referred to weakly, and notes how it was closed."""

    def __init__(self) -> None:
        self.closed: list[str] = []

    def close(self) -> None:
        self.closed.append("close")


class AsyncThing(Thing):
    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed.append("aclose")


async def use_once(sessions: AsyncSessions[Any], id: str) -> Any:
    async with sessions.use(id) as state:
        return state


# ---- [S8]


def test_s8_a_body_that_raises_is_saved_and_its_error_goes_on() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with AsyncSessions(dict, store=store) as sessions:

            async def fail() -> None:
                async with sessions.use("a") as state:
                    state["n"] = 1
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await fail()
            assert store.stats().leases == 0
            await sessions.park("a")
            assert await use_once(sessions, "a") == {"n": 1}

    run_clean(main)


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


@pytest.mark.parametrize("how", ["raises", "cancelled"])
def test_s8_on_error_discard_goes_back_to_what_was_saved(how: str) -> None:
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
                if how == "raises":
                    raise ZeroDivisionError
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


def test_s8_discard_needs_a_store() -> None:
    with pytest.raises(ConfigError):
        AsyncSessions(dict, on_error="discard")


# ---- [S10] the finalizer


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("way", ["idle", "age", "count", "park", "complete", "close", "shutdown"])
def test_s10_the_finalizer_runs_once_with_the_reason_and_before_the_close(
    kind: str, way: str
) -> None:
    async def main() -> None:
        clock, seen = StillClock(), []

        def on_leave(id: str, state: Thing, reason: Reason) -> None:
            seen.append((id, reason, list(state.closed)))

        async def on_leave_slowly(id: str, state: Thing, reason: Reason) -> None:
            await asyncio.sleep(0)
            on_leave(id, state, reason)

        sessions = AsyncSessions(
            AsyncThing if kind == "async" else Thing,
            on_leave=on_leave_slowly if kind == "async" else on_leave,
            idle=60,
            max_age=100 if way == "age" else None,
            max_sessions=1,
            clock=clock,
        )
        state = await use_once(sessions, "a")
        if way == "idle":
            clock.advance(60)
            assert await sessions.sweep() == 1
        elif way == "age":
            clock.advance(59)
            sessions.touch("a")
            clock.advance(50)
            assert await sessions.sweep() == 1
        elif way == "count":
            await use_once(sessions, "b")
            await settle(sessions)
        elif way == "shutdown":
            assert await sessions.shutdown() == 0
        else:
            await getattr(sessions, way)("a")
        names = {"park": "parked", "complete": "completed", "close": "closed"}
        assert seen == [("a", names.get(way, way), [])]
        assert state.closed == ["aclose" if kind == "async" else "close"]
        assert "a" not in sessions
        await sessions.shutdown()

    run_clean(main)


def test_s10_close_state_false_leaves_the_state_alone() -> None:
    async def main() -> None:
        sessions = AsyncSessions(AsyncThing, close_state=False)
        state = await use_once(sessions, "a")
        await sessions.close("a")
        assert state.closed == []

    run_clean(main)


@pytest.mark.parametrize("error", [OSError, asyncio.CancelledError])
def test_s10_hooks_that_raise_are_counted_and_stop_nothing(error: type[BaseException]) -> None:
    async def main() -> None:
        clock = StillClock()

        class Bad(Thing):
            async def aclose(self) -> None:
                self.closed.append("tried")
                raise error("bad close")

        async def on_leave(id: str, state: Any, reason: Reason) -> None:
            raise error("bad hook")

        scope = SessionScope()
        values: Any = scope.map("values")
        sessions = AsyncSessions(Bad, on_leave=on_leave, idle=60, clock=clock, scope=scope)
        states = [await use_once(sessions, key) for key in "abc"]
        values["a"] = 1
        clock.advance(60)
        assert await sessions.sweep() == 3
        assert len(sessions) == 0
        assert sessions.stats().hook_errors == 6
        assert [s.closed for s in states] == [["tried"]] * 3
        assert len(values) == 0
        assert_balanced(sessions)

    run_clean(main)


@pytest.mark.parametrize("stored", [False, True])
def test_s10_a_finalizer_that_hangs_blocks_only_its_id(stored: bool) -> None:
    async def main() -> None:
        clock, gate = StillClock(), asyncio.Event()

        async def on_leave(id: str, state: Any, reason: Reason) -> None:
            if id == "a":
                await gate.wait()

        sessions: AsyncSessions[dict[str, int]] = AsyncSessions(
            dict,
            on_leave=on_leave,
            max_sessions=1,
            max_hold=60,
            clock=clock,
            name="hangs",
            store=MemoryStore() if stored else None,
        )
        await use_once(sessions, "a")
        for key in "bcb":
            await use_once(sessions, key)
        with pytest.raises(SessionBusy, match="finalized"):
            async with sessions.use("a", wait=0.01):
                raise AssertionError
        clock.advance(61)
        await sessions.sweep()
        await sessions.sweep()
        assert sessions.stats().stuck == 1
        assert [e.fields["id"] for e in events_of("stuck_leaving", "hangs")][-1] == "a"
        waiter = asyncio.create_task(use_once(sessions, "a"))
        await turns()
        assert not waiter.done()
        gate.set()
        await waiter
        await sessions.shutdown()
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


# ---- [S11]


@pytest.mark.parametrize("way", ["park", "complete", "close"])
@pytest.mark.parametrize("stored", [False, True])
def test_s11_inside_ones_own_hold_they_mark_and_act_at_the_release(way: str, stored: bool) -> None:
    async def main() -> None:
        left: list[str] = []
        store = MemoryStore()
        sessions: AsyncSessions[dict[str, int]] = AsyncSessions(
            dict,
            on_leave=lambda key, state, reason: left.append(reason),
            store=store if stored else None,
        )
        async with sessions.use("a") as state:
            await getattr(sessions, way)("a")
            state["n"] = 1
            assert left == []
        await settle(sessions)
        assert left == [{"park": "parked", "complete": "completed", "close": "closed"}[way]]
        assert "a" not in sessions
        if stored:
            assert store.stats().rows == (0 if way == "close" else 1)
            assert store.stats().leases == 0
        assert_balanced(sessions)

    run_clean(main)


def test_s11_they_do_not_wait_for_another_holder() -> None:
    async def main() -> None:
        async with AsyncSessions(dict) as sessions:
            for way in (sessions.park, sessions.complete, sessions.close):
                closed = way == sessions.close
                with pytest.raises(SessionClosed) if closed else nullcontext():
                    async with sessions.use("a") as state:
                        await asyncio.wait_for(asyncio.create_task(way("a")), 5)
                        assert sessions.peek("a") is (None if closed else state)
                await settle(sessions)
                assert "a" not in sessions

    run_clean(main)


def test_s11_a_close_wakes_those_who_wait_and_a_hold_from_before_cannot_write() -> None:
    async def main() -> None:
        store = MemoryStore()
        sessions = AsyncSessions(dict, store=store)
        async with (hold := sessions.use("a")) as state:
            state["n"] = 1
            await hold.save()
            waiters = [asyncio.create_task(use_once(sessions, "a")) for _ in range(3)]
            await turns()
            await sessions.close("a")
            assert [type(a) for a in await gather_all(*waiters)] == [SessionClosed] * 3
            with pytest.raises(SessionClosed):
                await hold.save()
            state["n"] = 2
        await settle(sessions)
        assert store.stats().rows == 0
        assert await use_once(sessions, "a") == {}
        await settle(sessions)
        assert_balanced(sessions)

    run_clean(main)


def test_s11_a_waiter_keeps_a_parked_session_in_memory() -> None:
    async def main() -> None:
        async with AsyncSessions(dict) as sessions:
            async with sessions.use("a") as state:
                waiter = asyncio.create_task(use_once(sessions, "a"))
                await turns()
                await sessions.park("a")
            assert await waiter is state
            await until(lambda: "a" not in sessions)

    run_clean(main)


def test_s11_closing_is_idempotent_and_says_whether_there_was_a_session() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with AsyncSessions(dict, store=store) as sessions:
            assert await sessions.close("a") is False
            await use_once(sessions, "a")
            assert await sessions.close("a") is True
            assert await sessions.close("a") is False
            await use_once(sessions, "b")
            await sessions.park("b")
            assert await sessions.close("b") is True, "a parked id has its row deleted"
            assert sessions.stats().loaded == 0
            assert store.stats().rows == 0

    run_clean(main)


def test_s11_any_use_cancels_the_linger() -> None:
    async def main() -> None:
        clock = StillClock()
        async with AsyncSessions(dict, linger=10, clock=clock) as sessions:
            first = await use_once(sessions, "a")
            await sessions.complete("a")
            clock.advance(9)
            assert await use_once(sessions, "a") is first
            clock.advance(9)
            assert await sessions.sweep() == 0
            await sessions.complete("a")
            clock.advance(10)
            assert await sessions.sweep() == 1
            assert sessions.stats().left == {"completed": 1}

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


def test_s11_a_close_during_the_finalizer_of_a_park_deletes_the_row() -> None:
    async def main() -> None:
        gate, store = asyncio.Event(), MemoryStore()

        async def on_leave(id: str, state: Any, reason: Reason) -> None:
            await gate.wait()

        sessions = AsyncSessions(dict, on_leave=on_leave, store=store)
        await use_once(sessions, "a")
        park = asyncio.create_task(sessions.park("a"))
        await turns()
        await sessions.close("a")
        gate.set()
        await park
        await settle(sessions)
        assert store.stats().rows == store.stats().leases == 0
        assert_balanced(sessions)

    run_clean(main)


# ---- [S12] [S13]


def test_s12_a_tombstone_refuses_a_closed_id_for_its_time() -> None:
    async def main() -> None:
        clock = StillClock()
        async with AsyncSessions(dict, tombstone=60, clock=clock) as sessions:
            await use_once(sessions, "a")
            await sessions.close("a")
            with pytest.raises(SessionClosed):
                await use_once(sessions, "a")
            assert sessions.stats().tombstones == 1
            clock.advance(60)
            assert await use_once(sessions, "a") == {}

    run_clean(main)


def test_s13_no_session_leaves_while_it_is_held_and_idle_counts_from_the_end_of_the_use() -> None:
    async def main() -> None:
        clock = StillClock()
        async with AsyncSessions(dict, idle=60, max_age=100, clock=clock) as sessions:
            async with sessions.use("a") as state:
                clock.advance(1000)
                assert await sessions.sweep() == 0
                assert sessions.peek("a") is state
            await settle(sessions)
            assert sessions.stats().left == {"age": 1}
        async with AsyncSessions(dict, idle=60, clock=clock) as sessions:
            async with sessions.use("a"):
                clock.advance(1000)
            clock.advance(59)
            assert await sessions.sweep() == 0
            assert "a" in sessions
            clock.advance(1)
            assert "a" not in sessions
            assert len(sessions) == 0
            assert sessions.ids() == []
            assert await sessions.sweep() == 1

    run_clean(main)


def test_s13_an_expired_session_is_seen_out_on_access_without_any_sweeper() -> None:
    async def main() -> None:
        clock, left = StillClock(), []
        sessions: AsyncSessions[dict[str, int]] = AsyncSessions(
            dict,
            idle=60,
            sweep_every=None,
            clock=clock,
            on_leave=lambda key, state, reason: left.append((key, reason)),
        )
        first = await use_once(sessions, "a")
        first["n"] = 1
        await use_once(sessions, "b")
        clock.advance(60)
        assert await use_once(sessions, "a") == {}
        await until(lambda: len(left) == 2)
        assert sorted(left) == [("a", "idle"), ("b", "idle")]
        await settle(sessions)
        assert_balanced(sessions)

    run_clean(main)


def test_s13_the_bound_on_bytes_binds_alone() -> None:
    async def main() -> None:
        sessions: AsyncSessions[list[int]] = AsyncSessions(
            list, weigh=len, max_bytes=10, max_sessions=None, idle=None
        )
        for number in range(5):
            async with sessions.use(f"{number}") as state:
                state.extend(range(4))
        await settle(sessions)
        assert sessions.ids() == ["3", "4"]
        assert sessions.stats().bytes == 8
        assert sessions.stats().left == {"bytes": 3}
        assert_balanced(sessions)

    run_clean(main)


def test_s13_a_session_whose_owner_died_is_parked() -> None:
    async def main() -> None:
        class Owner:
            pass

        async with AsyncSessions(dict) as sessions:
            with pytest.raises(SessionNotFound):
                sessions.bind("a", Owner())
            owners = [Owner(), Owner()]
            async with sessions.use("a"):
                for owner in owners:
                    sessions.bind("a", owner)
                del owner
            owners.pop()
            gc.collect()
            await turns()
            assert "a" in sessions
            owners.clear()
            gc.collect()
            await until(lambda: sessions.stats().left == {"owner_gone": 1})
            assert "a" not in sessions

    run_clean(main)


# ---- [S14]


def test_s14_a_state_that_stays_alive_after_it_left_is_reported() -> None:
    async def main() -> None:
        clock = StillClock()
        sessions = AsyncSessions(Thing, clock=clock, name="kept")
        keep = await use_once(sessions, "a")
        await use_once(sessions, "b")
        await sessions.close("a")
        await sessions.close("b")
        clock.advance(60)
        gc.collect()
        await sessions.sweep()
        assert sessions.stats().retained == 1
        assert events_of("retained", "kept")[-1].fields["label"] == "session a"
        del keep

    run_clean(main)


def test_s14_what_is_left_of_a_hold_keeps_no_state_alive() -> None:
    import weakref

    async def main() -> None:
        store: Any
        for store in (None,):
            sessions = AsyncSessions(Thing, store=store)
            ref: Callable[[], object] = weakref.ref(await use_once(sessions, "a"))
            await sessions.close("a")
            await turns()
            assert ref() is None
            await settle(sessions)
            assert own_tasks(sessions) == 0

    run_clean(main)


# ---- shutting down, shedding, the scope


def test_shutdown_parks_everything_and_refuses_new_uses() -> None:
    async def main() -> None:
        store = MemoryStore()
        sessions = AsyncSessions(dict, store=store, durability="park")
        for number in range(40):
            async with sessions.use(f"{number}") as state:
                state["n"] = number
        assert await sessions.shutdown() == 0
        assert store.stats().rows == 40
        assert store.stats().leases == 0
        with pytest.raises(SessionClosed):
            await use_once(sessions, "new")
        assert_balanced(sessions)
        assert own_tasks(sessions) == 0

    run_clean(main)


def test_shutdown_waits_for_holders_and_counts_those_that_stay() -> None:
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


def test_shedding_parks_the_longest_unused_first() -> None:
    async def main() -> None:
        async with AsyncSessions(dict) as sessions:
            for key in "abc":
                await use_once(sessions, key)
            await use_once(sessions, "a")
            assert await sessions.shed(2) == 2
            assert sessions.ids() == ["a"]
            assert sessions.stats().left == {"pressure": 2}

    run_clean(main)


def test_sweeping_inside_a_hold_waits_for_nobody_who_waits_for_that_hold() -> None:
    async def main() -> None:
        clock = StillClock()
        sessions = AsyncSessions(dict, max_sessions=2, idle=60, clock=clock)
        await use_once(sessions, "old")
        clock.advance(60)
        async with sessions.use("a"), sessions.use("b"):
            waiter = asyncio.create_task(use_once(sessions, "c"))
            async with asyncio.timeout(2):
                await sessions.sweep()
            assert not waiter.done()
        await waiter

    run_clean(main)


def test_a_finalizer_that_needs_what_its_caller_holds_is_told_so() -> None:
    async def main() -> None:
        async def on_leave(id: str, state: Any, reason: Reason) -> None:
            if id == "b":
                async with sessions.use("a"):
                    raise AssertionError

        sessions = AsyncSessions(dict, on_leave=on_leave)
        await use_once(sessions, "b")
        async with sessions.use("a"), asyncio.timeout(2):
            await sessions.park("b")
        assert sessions.stats().hook_errors == 1
        await sessions.shutdown()
        assert_balanced(sessions)

    run_clean(main)


def test_a_scope_is_cleared_with_its_session_on_every_way_out() -> None:
    async def main() -> None:
        scope = SessionScope()
        locks: Any = scope.map("locks")
        async with AsyncSessions(dict, scope=scope, store=MemoryStore()) as sessions:
            for way in (sessions.park, sessions.close, sessions.complete):
                async with sessions.use("a"):
                    locks["a"] = asyncio.Lock()
                await way("a")
                assert "a" not in locks
            async with (hold := sessions.use("a")):
                locks["a"] = asyncio.Lock()
                hold.discard()
            assert "a" not in locks

    run_clean(main)
