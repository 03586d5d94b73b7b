"""`AsyncSessions` with a store: [S9] and the rules [T1] to [T7] of SEMANTICS, on every kind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
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
from floodline import AsyncSessions, Reason
from floodline.errors import (
    CodecError,
    SaveFailed,
    SessionBusy,
    SessionConflict,
    SessionNotFound,
    StoreUnavailable,
    UnreadableRecord,
)
from floodline.stores import MemoryStore, SQLiteStore


class Faulty:
    """A user's own blocking store around a real one: no `aio`, and faults on demand.

    `faults` maps a method to "before" (nothing was done) or "after" (the answer was lost).
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.faults: dict[str, str] = {}
        self.calls: list[str] = []
        self.threads: set[int] = set()

    def __getattr__(self, method: str) -> Any:
        if method in ("aio", "is_writer_thread"):
            raise AttributeError(method)
        inner = getattr(self.inner, method)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(method)
            self.threads.add(threading.get_ident())
            fault = self.faults.get(method)
            if fault == "before":
                raise StoreUnavailable(f"{method} was refused")
            answer = inner(*args, **kwargs)
            if fault == "after":
                raise StoreUnavailable(f"the answer of {method} was lost")
            return answer

        return call


class Awaited(Faulty):
    """A user's own `AsyncStore`: every call is a coroutine, and there is no other."""

    def __getattr__(self, method: str) -> Any:
        call = super().__getattr__(method)

        async def awaited(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(0)
            answer = call(*args, **kwargs)
            await asyncio.sleep(0)
            return answer

        return awaited

    async def acquire(self, *args: Any, **kwargs: Any) -> Any:
        return await self.__getattr__("acquire")(*args, **kwargs)


class Twin(Faulty):
    """A store that offers both kinds of calls, as ours do."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.aio = Awaited(inner)
        self.aio.faults, self.aio.calls = self.faults, self.calls


KINDS = ["memory", "sqlite", "blocking", "awaited", "twin"]


@pytest.fixture(params=KINDS)
def stores(request: Any, tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """The store as sessions get it, and the real one behind it."""
    real: Any = SQLiteStore(tmp_path / "a.db") if request.param == "sqlite" else MemoryStore()
    wrap: dict[str, Callable[[Any], Any]] = {"blocking": Faulty, "awaited": Awaited, "twin": Twin}
    yield wrap.get(request.param, lambda store: store)(real), real
    real.close()


@pytest.fixture(params=["blocking", "awaited", "twin"])
def faulty(request: Any) -> Any:
    return {"blocking": Faulty, "awaited": Awaited, "twin": Twin}[request.param](MemoryStore())


async def add(sessions: AsyncSessions[Any], key: str = "a", by: int = 1) -> int:
    async with sessions.use(key) as state:
        state["n"] = state.get("n", 0) + by
        return int(state["n"])


# ---- every kind of store


def test_t6_a_session_comes_back_from_every_kind_of_store(stores: tuple[Any, Any]) -> None:
    store, real = stores

    async def main() -> None:
        async with AsyncSessions(dict, store=store, max_sessions=5) as sessions:
            for number in range(20):
                await add(sessions, f"{number}", number)
            await settle(sessions)
            assert real.stats().leases == 0
            for number in range(20):
                assert await add(sessions, f"{number}", 1) == number + 1
        assert real.stats().rows == 20
        assert real.stats().leases == 0
        assert_balanced(sessions)

    run_clean(main)


def test_t6_a_blocking_store_works_in_threads_of_its_own() -> None:
    store = Faulty(MemoryStore())

    async def main() -> None:
        async with AsyncSessions(dict, store=store) as sessions:
            await add(sessions)

    run_clean(main)
    assert threading.get_ident() not in store.threads


def test_t2_many_tasks_lose_no_update(stores: tuple[Any, Any]) -> None:
    store, _real = stores

    async def main() -> None:
        async with AsyncSessions(dict, store=store, max_sessions=2) as sessions:
            await asyncio.gather(*(add(sessions, f"{n % 4}") for n in range(80)))
            await settle(sessions)
            assert [await add(sessions, f"{n}", 0) for n in range(4)] == [20] * 4
            assert_balanced(sessions)

    run_clean(main)


def test_t1_two_owners_on_one_store_see_each_others_writes(stores: tuple[Any, Any]) -> None:
    store, _real = stores

    async def main() -> None:
        left: list[Reason] = []

        async def on_leave(key: str, state: Any, reason: Reason) -> None:
            left.append(reason)

        async with (
            AsyncSessions(dict, store=store, on_leave=on_leave) as one,
            AsyncSessions(dict, store=store) as two,
        ):
            assert await add(one) == 1
            assert await add(two) == 2
            assert await add(one) == 3
            assert left == [Reason.stale]
            counts = await asyncio.gather(*(add(s) for s in (one, two) for _ in range(10)))
            assert sorted(counts) == list(range(4, 24))
            assert_balanced(one)
            assert_balanced(two)

    run_clean(main)


# ---- [T1] leases


def test_t1_a_lease_covers_the_hold_and_not_the_residence() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with AsyncSessions(dict, store=store) as sessions:
            async with sessions.use("a"):
                assert store.stats().leases == sessions.stats().leases == 1
            assert store.stats().leases == sessions.stats().leases == 0
            assert "a" in sessions

    run_clean(main)


def test_t1_durability_park_keeps_the_lease_and_saves_when_it_leaves() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with AsyncSessions(dict, store=store, durability="park") as sessions:
            await add(sessions)
            assert store.stats().leases == 1
            assert store.stats().rows == 0
            await sessions.park("a")
            assert store.stats().leases == 0
            assert store.stats().rows == 1

    run_clean(main)


def test_t1_an_id_that_is_held_elsewhere_is_waited_for_and_then_busy() -> None:
    async def main() -> None:
        store = MemoryStore()
        one = AsyncSessions(dict, store=store)
        two = AsyncSessions(dict, store=store, busy_wait=0.02)
        async with one.use("a"):
            with pytest.raises(SessionBusy, match="another owner"):
                await add(two)
            with pytest.raises(SessionBusy):
                await two.close("a")
            assert len(two) == 0
        assert await add(two) == 1
        await settle(two)
        assert_balanced(two)

    run_clean(main)


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


def test_t1_leases_are_renewed_during_long_bodies() -> None:
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


def test_t1_a_save_under_a_lost_lease_is_refused_and_its_bytes_are_kept() -> None:
    async def main() -> None:
        clock = StillClock()
        store = MemoryStore(clock=clock)
        one = AsyncSessions(dict, store=store, name="s", lease=1000)
        two = AsyncSessions(dict, store=store, name="s", lease=1000)
        await add(one)

        async def lose() -> None:
            async with one.use("a") as state:
                state["n"] = 100
                clock.advance(1001)
                assert await add(two) == 2

        with pytest.raises(SessionConflict):
            await lose()
        assert len(store.conflicts("s")) == 1
        assert one.stats().conflicts == 1
        assert await add(one) == 3
        await settle(one)
        assert_balanced(one)

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


# ---- [S9] failing saves


def test_s9_a_failed_save_raises_stays_dirty_and_is_retried(faulty: Any) -> None:
    async def main() -> None:
        clock = StillClock()
        sessions = AsyncSessions(dict, store=faulty, clock=clock, idle=60, max_sessions=1)
        faulty.faults["save"] = "before"
        with pytest.raises(SaveFailed) as caught:
            await add(sessions)
        assert isinstance(caught.value.__cause__, StoreUnavailable)
        assert sessions.stats().unsaved == 1
        clock.advance(600)
        await sessions.sweep()
        assert sessions.peek("a") == {"n": 1}, "what is not saved is not evictable"
        with pytest.raises(TimeoutError):
            async with sessions.use("b", wait=0.01):
                raise AssertionError
        faulty.faults.clear()
        clock.advance(600)
        await sessions.sweep()
        assert sessions.stats().unsaved == 0
        assert faulty.inner.stats().rows == 1
        assert faulty.inner.stats().leases == 0
        await sessions.shutdown()
        assert_balanced(sessions)

    run_clean(main)


def test_s9_a_body_that_raises_gets_the_failed_save_as_a_note(faulty: Any) -> None:
    async def main() -> None:
        sessions = AsyncSessions(dict, store=faulty)
        faulty.faults["save"] = "before"

        async def fail() -> None:
            async with sessions.use("a") as state:
                state["n"] = 1
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError) as caught:
            await fail()
        assert "SaveFailed" in caught.value.__notes__[0]
        faulty.faults.clear()
        assert await sessions.shutdown() == 0
        assert faulty.inner.stats().rows == 1

    run_clean(main)


def test_t7_an_answer_that_was_lost_is_read_back_and_not_called_a_failure(faulty: Any) -> None:
    async def main() -> None:
        async with AsyncSessions(dict, store=faulty) as sessions:
            faulty.faults["save"] = "after"
            assert await add(sessions) == 1
            assert await add(sessions) == 2
            assert sessions.stats().save_errors == 0
        assert faulty.inner.stats().conflicts == 0

    run_clean(main)


def test_t7_a_lost_answer_that_could_not_be_read_back_makes_no_conflict_later(faulty: Any) -> None:
    async def main() -> None:
        async with AsyncSessions(dict, store=faulty) as sessions:
            faulty.faults.update(save="after", written="before")
            with pytest.raises(SaveFailed):
                await add(sessions)
            faulty.faults.clear()
            assert await add(sessions) == 2
        assert faulty.inner.stats().conflicts == 0

    run_clean(main)


def test_s9_what_did_not_change_is_not_written(faulty: Any) -> None:
    async def main() -> None:
        async with AsyncSessions(dict, store=faulty) as sessions:
            await add(sessions)
            await add(sessions, by=0)
            assert sessions.stats().saved == 1
            assert sessions.stats().unchanged == 1
            assert faulty.calls.count("save") == 1

    run_clean(main)


@pytest.mark.parametrize("method", ["acquire", "release"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_s9_an_open_that_the_store_fails_leaves_nothing_behind(
    faulty: Any, method: str, when: str
) -> None:
    async def main() -> None:
        sessions = AsyncSessions(dict, store=faulty)
        faulty.faults[method] = when
        with pytest.raises((StoreUnavailable, SessionNotFound)):
            async with sessions.use("a", create=False):
                raise AssertionError
        faulty.faults.clear()
        await settle(sessions)
        assert_balanced(sessions)
        assert await add(sessions) == 1
        assert await sessions.shutdown() == 0

    run_clean(main)


def test_s9_a_cancelled_checkpoint_and_the_save_at_the_exit_do_not_conflict(faulty: Any) -> None:
    async def main() -> None:
        sessions = AsyncSessions(dict, store=faulty)
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
        assert faulty.inner.stats().conflicts == 0
        assert await add(sessions, by=0) == 3
        assert_balanced(sessions)

    run_clean(main)


def test_s9_checkpoints_of_one_hold_follow_each_other(faulty: Any) -> None:
    async def main() -> None:
        async with AsyncSessions(dict, store=faulty) as sessions:
            async with (hold := sessions.use("a")) as state:
                for number in range(3):
                    state["n"] = number
                    await asyncio.gather(*(hold.save() for _ in range(3)))
            assert faulty.inner.stats().conflicts == 0

    run_clean(main)


# ---- [T3] [T4] [T5]


def test_t3_rows_that_nobody_used_for_long_are_deleted() -> None:
    async def main() -> None:
        wall = StillClock()
        store = MemoryStore(wall=wall)
        async with AsyncSessions(dict, store=store, retain=100) as sessions:
            await add(sessions)
            await sessions.park("a")
            wall.advance(101)
            await sessions.sweep()
            assert sessions.stats().purged == 1
            assert store.stats().rows == 0

    run_clean(main)


def test_t4_what_does_not_come_back_equal_is_an_error_with_the_place() -> None:
    async def main() -> None:
        sessions: AsyncSessions[dict[str, Any]] = AsyncSessions(dict, store=MemoryStore())
        with pytest.raises(CodecError, match=r"\$\.x"):
            async with sessions.use("a") as state:
                state["x"] = Reason.idle
        async with sessions.use("a") as state:
            state["x"] = [1, 2]
        assert await sessions.shutdown() == 0

    run_clean(main)


def test_t3_an_unreadable_record_is_quarantined_and_raises() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with AsyncSessions(dict, store=store) as sessions:
            await add(sessions)
            await sessions.park("a")
            row = store._table._rows["sessions", "a"]
            row.envelope = row.envelope[:-1] + b"?"
            for _ in range(2):
                with pytest.raises(UnreadableRecord):
                    await add(sessions)
            assert len(store.quarantined("sessions")) == 1
            assert store.stats().rows == 1
            assert store.stats().leases == 0
            assert sessions.stats().quarantined == 2
            assert_balanced(sessions)

    run_clean(main)


def test_t5_with_a_store_a_session_weighs_its_last_record() -> None:
    async def main() -> None:
        async with AsyncSessions(dict, store=MemoryStore(), max_bytes=2000) as sessions:
            for key in "abc":
                async with sessions.use(key) as state:
                    state["text"] = key * 900
            await settle(sessions)
            assert sessions.ids() == ["b", "c"]
            assert 1800 < (sessions.stats().bytes or 0) <= 2000

    run_clean(main)
