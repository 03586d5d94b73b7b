"""Sessions on both drivers, held: the rules [S4] to [S7] of the semantics."""

# ruff: noqa: SIM117 - blocks inside blocks are what is tested

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from event_loops import StillClock, events_of
from floodline.errors import (
    HoldDeadlock,
    ReentrantUse,
    SessionBusy,
    SessionClosed,
    SessionError,
    SessionsFull,
)
from floodline.stores import MemoryStore
from session_drivers import Driver, FaultyStore, refused, use_once

# ---- [S4] turns and rings


async def append(sessions: Any, item: Any, id: str = "a") -> None:
    async with sessions.use(id) as state:
        state.append(item)


async def test_s4_exclusive_holds_come_in_the_order_of_asking(driver: Driver) -> None:
    async with driver.sessions(list) as sessions:
        async with driver.holding(sessions, "a"):
            jobs = []
            for n in range(10):
                jobs.append(driver.spawn(append, sessions, n))
                await driver.waiting(sessions, n + 1)
        for job in jobs:
            await job.result()
        assert sessions.peek("a") == list(range(10))
        await driver.balanced(sessions)


async def test_s4_who_holds_a_session_cannot_ask_for_it_again(driver: Driver) -> None:
    async with driver.sessions(dict) as sessions:
        async with sessions.use("a"):
            await refused(sessions, "a", ReentrantUse, match="'a' is already held by this caller")
        await driver.balanced(sessions)


@pytest.mark.parametrize("hook", ["factory", "on_open", "on_leave", "close"])
@pytest.mark.parametrize("stored", [False, True])
async def test_s4_a_hook_that_asks_for_its_own_session_is_refused(
    driver: Driver, hook: str, stored: bool
) -> None:
    raised: list[str] = []

    async def ask(name: str) -> None:
        if name == hook:
            try:
                await use_once(sessions, "a")
            except Exception as error:
                raised.append(type(error).__name__)

    @dataclass
    class State:
        n: int = 0

    async def make() -> State:
        await ask("factory")
        return State()

    async def on_open(id: str, state: State) -> None:
        await ask("on_open")

    async def on_leave(id: str, state: State, reason: Any) -> None:
        await ask("on_leave")

    async def close() -> None:
        await ask("close")

    def close_state(state: State) -> Any:
        return driver.hook(close)()

    setattr(State, "close" if driver.kind == "threads" else "aclose", close_state)
    sessions = driver.sessions(
        driver.hook(make),
        on_open=driver.hook(on_open),
        on_leave=driver.hook(on_leave),
        store=MemoryStore() if stored else None,
        state_type=State if stored else None,
    )
    await use_once(sessions, "a")
    await sessions.park("a")
    assert raised == ["ReentrantUse"]
    await driver.balanced(sessions)


async def test_s4_a_finalizer_of_a_discarded_state_that_asks_for_it_is_refused(
    driver: Driver,
) -> None:
    raised: list[str] = []

    async def on_leave(id: str, state: Any, reason: Any) -> None:
        try:
            await use_once(sessions, "a")
        except Exception as error:
            raised.append(type(error).__name__)

    sessions = driver.sessions(dict, on_leave=driver.hook(on_leave), store=MemoryStore())
    async with (hold := sessions.use("a")):
        hold.discard()
    await driver.settle(sessions)
    assert raised == ["ReentrantUse"]
    await driver.balanced(sessions)


async def test_s4_a_ring_of_waiters_is_refused_where_it_would_close(driver: Driver) -> None:
    async with driver.sessions(dict) as sessions:
        holds = list[str]()

        async def hold_both(first: str, second: str) -> str:
            async with sessions.use(first):
                holds.append(first)
                await driver.until(lambda: len(holds) == 3)
                async with sessions.use(second):
                    return first

        pairs = [("a", "b"), ("b", "c"), ("c", "a")]
        jobs = [driver.spawn(hold_both, *pair) for pair in pairs]
        errors = [await job.error() for job in jobs]
        (told,) = [error for error in errors if error is not None]
        assert isinstance(told, HoldDeadlock)
        assert "cycle" in str(told)
        await driver.balanced(sessions)


@pytest.mark.parametrize("stored", [False, True])
async def test_s4_a_factory_that_waits_for_what_its_opener_holds_is_told_so(
    driver: Driver, stored: bool
) -> None:
    async def make(id: str) -> dict[str, int]:
        if id == "b":
            await use_once(sessions, "a")
        return {}

    store = MemoryStore() if stored else None
    sessions = driver.sessions(driver.hook(make), store=store, busy_wait=2)
    async with sessions.use("a"):
        with pytest.raises((HoldDeadlock, ReentrantUse)):
            await use_once(sessions, "b")
    await driver.balanced(sessions)


async def test_s4_a_finalizer_that_needs_what_its_caller_holds_is_told_so(driver: Driver) -> None:
    async def on_leave(id: str, state: Any, reason: Any) -> None:
        if id == "b":
            await use_once(sessions, "a")

    sessions = driver.sessions(dict, on_leave=driver.hook(on_leave))
    await use_once(sessions, "b")
    async with sessions.use("a"):
        await sessions.park("b")
    assert sessions.stats().hook_errors == 1
    await sessions.shutdown()
    await driver.balanced(sessions)


# ---- [S5] the two waits


@pytest.mark.parametrize("how", [{}, {"wait": 0}, {"wait": "1 ms"}])
async def test_s5_no_room_is_said_with_a_time_to_come_back(
    driver: Driver, how: dict[str, Any]
) -> None:
    async with driver.sessions(dict, max_sessions=1, wait=0.01) as sessions:
        async with driver.holding(sessions, "a"):
            said = await refused(sessions, "b", SessionsFull, match="1 of max_sessions=1", **how)
            assert said.retry_after > 0
            assert isinstance(said, TimeoutError)
            assert "b" not in sessions
            assert sessions.stats().waiting == 0
        await use_once(sessions, "b")
        await driver.balanced(sessions)


async def test_s5_a_held_id_is_said_with_holder_age_and_stack(driver: Driver) -> None:
    clock = StillClock()
    async with driver.sessions(dict, busy_wait=0, clock=clock) as sessions:
        async with driver.holding(sessions, "a"):
            clock.advance(42)
            error = await refused(sessions, "a", SessionBusy)
            said = str(error)
            assert {"threads": "thread 'Thread-", "asyncio": "<Task "}[driver.kind] in said
            assert "42 s" in said
            assert 'session_drivers.py", line' in said
            assert driver.place in said
            assert isinstance(error, TimeoutError)
            assert sessions.stats().waiting == 0
        await driver.balanced(sessions)


@pytest.mark.parametrize("how", [{}, {"wait": 0}, {"wait": "1 ms"}])
async def test_s5_a_use_may_have_its_own_patience(driver: Driver, how: dict[str, Any]) -> None:
    async with driver.sessions(dict, busy_wait=0.01) as sessions:
        async with driver.holding(sessions, "a"):
            await refused(sessions, "a", SessionBusy, **how)
        await driver.balanced(sessions)


async def test_s5_waiting_for_one_that_is_being_opened_says_so(driver: Driver) -> None:
    gate = driver.gate()

    async def make() -> dict[str, Any]:
        await gate.passed()
        return {}

    async with driver.sessions(driver.hook(make)) as sessions:
        opener = driver.spawn(use_once, sessions, "a")
        await driver.until(lambda: gate.reached)
        await refused(sessions, "a", SessionBusy, match="still being opened by", wait=0)
        gate.open()
        await opener.result()


async def test_s5_waiting_for_one_that_is_being_finalized_says_so(driver: Driver) -> None:
    gate = driver.gate()

    async def finalizer(*_: Any) -> None:
        await gate.passed()

    async with driver.sessions(dict, on_leave=driver.hook(finalizer)) as sessions:
        await use_once(sessions, "a")
        parker = driver.spawn(sessions.park, "a")
        await driver.until(lambda: gate.reached)
        await refused(sessions, "a", SessionBusy, match="saved or finalized", wait=0)
        gate.open()
        await parker.result()


async def test_s5_who_waits_for_room_gets_it_in_turn(driver: Driver) -> None:
    order: list[str] = []

    async def note(id: str) -> None:
        async with sessions.use(id):
            order.append(id)

    async with driver.sessions(dict, max_sessions=1) as sessions:
        async with driver.holding(sessions, "first"):
            jobs = []
            for n in range(5):
                jobs.append(driver.spawn(note, f"{n}"))
                await driver.waiting(sessions, n + 1)
        for job in jobs:
            await job.result()
        assert order == list("01234")
        await driver.settle(sessions)
        assert sessions.ids() == ["4"]
        await driver.balanced(sessions)


# ---- [S6] shared


async def test_s6_a_shared_hold_runs_beside_an_exclusive_one_and_others(driver: Driver) -> None:
    store = MemoryStore()
    async with driver.sessions(dict, store=store) as sessions:
        async with (
            driver.holding(sessions, "a") as holder,
            driver.holding(sessions, "a", shared=True),
        ):
            async with sessions.use("a", shared=True) as state:
                assert state is holder.state
                state["changed"] = True
        record = store.load("sessions", "a")
        assert record is not None
        assert record.version == 1  # the exclusive one saved, the shared ones did not
        await driver.balanced(sessions)


async def test_s6_a_shared_hold_takes_no_lease_and_saves_nothing(driver: Driver) -> None:
    store = MemoryStore()
    async with driver.sessions(dict, store=store) as sessions:
        async with (hold := sessions.use("a", shared=True)) as state:
            state["n"] = 1
            assert store.stats().leases == 0
            with pytest.raises(SessionError, match="shared use cannot"):
                await hold.save()
            with pytest.raises(SessionError, match="shared use cannot"):
                hold.discard()
            with pytest.raises(SessionError, match="shared use cannot replace"):
                hold.state = {}
        await sessions.park("a")
    assert store.count("sessions") == 0


async def test_s6_shared_holders_keep_a_session_in_memory(driver: Driver) -> None:
    clock = StillClock()
    async with driver.sessions(dict, idle=10, clock=clock) as sessions:
        async with driver.holding(sessions, "a", shared=True):
            clock.advance(100)
            assert await sessions.sweep() == 0
            assert "a" in sessions
        clock.advance(9)
        assert "a" in sessions
        clock.advance(1)
        assert "a" not in sessions


async def test_s6_a_park_waits_for_the_last_of_the_shared_holders(driver: Driver) -> None:
    async with driver.sessions(dict) as sessions:
        async with sessions.use("a", shared=True) as state:
            async with driver.holding(sessions, "a", shared=True) as other:
                await sessions.park("a")
                assert other.state is state
            assert "a" in sessions
        await driver.settle(sessions)
        assert "a" not in sessions


# ---- [S7] single flight, stuck holds


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("plain", [False, True])
async def test_s7_all_who_ask_at_once_make_one_factory_call(
    driver: Driver, stored: bool, plain: bool
) -> None:
    made = list[str]()

    def make(id: str) -> dict[str, Any]:
        made.append(id)
        return {"n": 0}

    async def make_slowly(id: str) -> dict[str, Any]:
        await driver.until(lambda: sessions.stats().waiting == 7)
        return make(id)

    sessions = driver.sessions(
        make if plain else driver.hook(make_slowly), store=MemoryStore() if stored else None
    )

    async def count() -> int:
        async with sessions.use("a") as state:
            state["n"] += 1
            return id(state)

    async with sessions:
        jobs = [driver.spawn(count) for _ in range(8)]
        assert len({await job.result() for job in jobs}) == 1
        assert made == ["a"]
        assert sessions.peek("a") == {"n": 8}
        await driver.balanced(sessions)


async def test_s7_a_parked_session_is_loaded_once_for_all(
    driver: Driver, faulty: FaultyStore
) -> None:
    async with driver.sessions(dict, store=faulty.given) as sessions:
        await use_once(sessions, "a")
        await sessions.park("a")
        faulty.calls.clear()
        gate = faulty.gates["load"] = driver.gate()
        jobs = [driver.spawn(use_once, sessions, "a", {"shared": True}) for _ in range(8)]
        await driver.waiting(sessions, 7)
        gate.open()
        for job in jobs:
            await job.result()
        assert faulty.calls.count("load") == 1
        assert sessions.stats().loaded == 1


@pytest.mark.parametrize("where", ["factory", "on_open", "acquire"])
async def test_s7_a_failed_open_wakes_all_with_the_error_and_is_not_kept(
    driver: Driver, faulty: FaultyStore, where: str
) -> None:
    broken, gate = [True], driver.gate()

    async def fail(place: str) -> None:
        if place == where:
            await gate.passed()
            if broken[0]:
                raise OSError("no model")

    async def make() -> dict[str, Any]:
        await fail("factory")
        return {}

    async def on_open(id: str, state: Any) -> None:
        await fail("on_open")

    if where == "acquire":
        faulty.gates["acquire"] = gate
        faulty.fail("acquire")
    sessions = driver.sessions(driver.hook(make), on_open=driver.hook(on_open), store=faulty.given)
    jobs = [driver.spawn(use_once, sessions, "a") for _ in range(5)]
    await driver.waiting(sessions, 4)
    gate.open()
    assert [type(await job.error()) for job in jobs] == [OSError] * 5
    await driver.balanced(sessions)
    assert "a" not in sessions
    assert faulty.store.stats().leases == 0
    broken[0] = False
    faulty.recover()
    assert await use_once(sessions, "a") == {}
    await sessions.shutdown()


async def test_s7_an_on_open_that_raises_is_a_failed_open_and_the_state_is_closed(
    driver: Driver,
) -> None:
    class Service:
        closed = 0

        def close(self) -> None:
            Service.closed += 1

    async def refuse(id: str, state: Service) -> None:
        raise PermissionError(id)

    async with driver.sessions(Service, on_open=driver.hook(refuse)) as sessions:
        await refused(sessions, "a", PermissionError)
        assert Service.closed == 1
        assert len(sessions) == 0
        await driver.balanced(sessions)


async def test_s7_who_loses_patience_while_opening_leaves_the_open_to_the_next(
    driver: Driver,
) -> None:
    async with driver.sessions(dict, max_sessions=1) as sessions:
        async with driver.holding(sessions, "a"):
            impatient = driver.spawn(use_once, sessions, "b", {"wait": 0.2})
            await driver.until(lambda: sessions.stats().waiting == 1 or impatient.done())
            patient = driver.spawn(use_once, sessions, "b")
            assert isinstance(await impatient.error(), SessionsFull)
            assert not patient.done()
        assert await patient.result() == {}
        await driver.balanced(sessions)


async def test_s7_a_hold_longer_than_max_hold_is_reported_once_with_its_stack(
    driver: Driver,
) -> None:
    clock, name = StillClock(), f"stuck on {driver.kind}"
    async with driver.sessions(dict, max_hold=10, clock=clock, name=name) as sessions:
        async with (
            driver.holding(sessions, "a"),
            driver.holding(sessions, "b", shared=True),
        ):
            clock.advance(11)
            await sessions.sweep()
            await sessions.sweep()
            assert sessions.stats().stuck == 2
    events = events_of("stuck_hold", name)
    assert sorted(event.fields["id"] for event in events) == ["a", "b"]
    assert all(driver.place in event.fields["stack"] for event in events)
    assert all(event.fields["seconds"] == 11 for event in events)


# ---- full


async def test_when_full_an_unused_session_goes_first(driver: Driver) -> None:
    async with driver.sessions(dict, max_sessions=2) as sessions:
        for one in "abc":
            await use_once(sessions, one)
        await driver.settle(sessions)
        assert sessions.ids() == ["b", "c"]
        assert sessions.stats().left == {"count": 1}


async def test_when_full_reject_refuses_at_once(driver: Driver) -> None:
    async with driver.sessions(dict, max_sessions=1, when_full="reject") as sessions:
        async with driver.holding(sessions, "a"):
            await refused(sessions, "b", SessionsFull)
        await use_once(sessions, "b")
        await driver.balanced(sessions)
        assert sessions.ids() == ["b"]


async def test_when_full_grow_goes_above_and_comes_back(driver: Driver) -> None:
    name = f"growing on {driver.kind}"
    async with driver.sessions(dict, max_sessions=1, when_full="grow", name=name) as sessions:
        async with driver.holding(sessions, "a"):
            async with sessions.use("b"), sessions.use("c"):
                assert len(sessions) == 3
            await driver.settle(sessions)
            assert sessions.ids() == ["a"]
        assert sessions.stats().grown == 2
        assert len(sessions) == 1
        assert events_of("over_limit", name)
        await driver.balanced(sessions)


async def test_after_shutdown_new_uses_are_refused(driver: Driver) -> None:
    sessions = driver.sessions(dict)
    await use_once(sessions, "a")
    assert await sessions.shutdown() == 0
    await refused(sessions, "a", SessionClosed, match="shut down")


async def test_s4_many_callers_on_few_seats_lose_no_update(driver: Driver, store: Any) -> None:
    async with driver.sessions(list, store=store, max_sessions=3) as sessions:

        async def append_to_all(n: int) -> None:
            for m in range(10):
                await append(sessions, n, f"id{m}")

        jobs = [driver.spawn(append_to_all, n) for n in range(4)]
        for job in jobs:
            await job.result()
        for m in range(10):
            assert sorted(await use_once(sessions, f"id{m}")) == [0, 1, 2, 3]
        await driver.settle(sessions)
        assert len(sessions) <= 3
        await driver.balanced(sessions)
