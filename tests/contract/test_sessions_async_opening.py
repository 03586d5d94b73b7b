"""`AsyncSessions` into memory: the rules [S1] to [S7] of SEMANTICS."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
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
from floodline import AsyncSessions, Conversation, Reason
from floodline.errors import (
    ConfigError,
    HoldDeadlock,
    ReentrantUse,
    SessionBusy,
    SessionClosed,
    SessionError,
    SessionNotFound,
    SessionsFull,
)
from floodline.stores import MemoryStore

# ---- [S1] factories and ids


def test_s1_a_factory_gets_the_id_only_if_it_asks_for_it() -> None:
    async def main() -> None:
        def named(id: str) -> list[str]:
            return [id]

        async with AsyncSessions(named) as sessions, sessions.use("a") as state:
            assert state == ["a"]
        async with AsyncSessions(dict) as plain, plain.use("a") as empty:
            assert empty == {}

    run_clean(main)


def test_s1_an_async_factory_is_awaited() -> None:
    async def main() -> None:
        async def make(id: str) -> dict[str, str]:
            await asyncio.sleep(0)
            return {"id": id}

        async with AsyncSessions(make) as sessions, sessions.use("a") as state:
            assert state == {"id": "a"}

    run_clean(main)


def test_s1_without_a_factory_the_state_is_a_conversation() -> None:
    async def main() -> None:
        async with AsyncSessions() as sessions, sessions.use("a") as state:
            assert isinstance(state, Conversation)

    run_clean(main)


@pytest.mark.parametrize("bad", ["", None, 7, b"a"])
def test_s1_an_id_is_a_non_empty_string(bad: Any) -> None:
    async def main() -> None:
        sessions = AsyncSessions(dict)
        with pytest.raises(ConfigError):
            sessions.use(bad)
        for call in (sessions.close, sessions.park, sessions.complete):
            with pytest.raises(ConfigError):
                await call(bad)

    run_clean(main)


def test_s1_a_store_given_as_a_url_is_closed_at_the_shutdown(tmp_path: Any) -> None:
    async def main() -> None:
        url = f"sqlite:///{tmp_path / 'a.db'}"
        async with AsyncSessions(dict, store=url) as sessions, sessions.use("a") as state:
            state["n"] = 1
        assert sessions._store._writer._closed
        async with AsyncSessions(dict, store=url) as again, again.use("a") as state:
            assert state == {"n": 1}

    run_clean(main)


def test_s1_a_store_given_as_a_url_is_closed_when_the_last_holder_is_done(tmp_path: Any) -> None:
    async def main() -> None:
        sessions = AsyncSessions(dict, store=f"sqlite:///{tmp_path / 'a.db'}")
        async with sessions.use("a") as state:
            state["n"] = 1
            assert await sessions.shutdown(grace=0) == 1
            assert not sessions._store._writer._closed
        await until(lambda: sessions._store._writer._closed)

    run_clean(main)


# ---- [S2] what a use offers


def test_s2_a_hold_replaces_saves_and_discards_the_state() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with AsyncSessions(dict, store=store) as sessions:
            async with (hold := sessions.use("a")) as state:
                state["n"] = 1
                await hold.save()
                assert store.load("sessions", "a") is not None
                hold.state = {"n": 2}
                assert hold.state == {"n": 2}
            async with (hold := sessions.use("a")) as state:
                assert state == {"n": 2}
                state["n"] = 3
                hold.discard()
            async with sessions.use("a") as state:
                assert state == {"n": 2}
            assert sessions.stats().left == {"discarded": 1}

    run_clean(main)


def test_s2_a_use_that_is_not_entered_offers_nothing() -> None:
    async def main() -> None:
        async with AsyncSessions(dict) as sessions:
            hold = sessions.use("a")
            with pytest.raises(SessionError):
                _ = hold.state
            with pytest.raises(SessionError):
                hold.discard()
            with pytest.raises(SessionError):
                await hold.save()
            async with hold:
                with pytest.raises(SessionError):
                    await hold.__aenter__()
            assert_balanced(sessions)

    run_clean(main)


def test_s2_a_use_can_be_entered_again_after_it_was_left() -> None:
    async def main() -> None:
        async with AsyncSessions(dict, store=MemoryStore()) as sessions:
            hold = sessions.use("a")
            async with hold as state:
                state["n"] = 1
                hold.discard()
            async with hold as state:
                assert state == {}
                state["n"] = 2
            async with hold as state:
                assert state == {"n": 2}, "a discard is of one use, not of the next"

    run_clean(main)


def test_s2_a_use_that_was_refused_can_be_entered_again() -> None:
    async def main() -> None:
        async with AsyncSessions(dict) as sessions:
            hold = sessions.use("a")
            async with sessions.use("a"):
                waiter = asyncio.create_task(hold.__aenter__())
                await turns()
                await sessions.close("a")
                with pytest.raises(SessionClosed):
                    await waiter
            async with sessions.use("a"):
                second = asyncio.create_task(_enter_and_leave(hold))
                await turns()
                assert sessions.stats().waiting == 1
            await second
            assert_balanced(sessions)

    async def _enter_and_leave(hold: Any) -> None:
        async with hold:
            pass

    run_clean(main)


# ---- [S3]


def test_s3_create_false_refuses_an_unknown_id_and_makes_nothing() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with AsyncSessions(dict, store=store) as sessions:
            with pytest.raises(SessionNotFound) as caught:
                async with sessions.use("a", create=False):
                    raise AssertionError
            assert isinstance(caught.value, KeyError)
            assert len(sessions) == 0
            assert store.stats().leases == 0
            async with sessions.use("a") as state:
                state["n"] = 1
            await sessions.park("a")
            async with sessions.use("a", create=False) as state:
                assert state == {"n": 1}

    run_clean(main)


def test_s3_those_who_would_create_it_are_not_told_that_it_is_missing() -> None:
    async def main() -> None:
        gate = asyncio.Event()

        class Slow:
            def __getattr__(self, method: str) -> Any:
                return getattr(real, method)

            async def acquire(self, *args: Any, **kwargs: Any) -> Any:
                await gate.wait()
                return await real.acquire(*args, **kwargs)

        store = MemoryStore()
        real = store.aio
        sessions = AsyncSessions(dict, store=store)
        sessions._driver._awaited = Slow()

        async def use(create: bool) -> str:
            async with sessions.use("a", create=create):
                return "held"

        tasks = [asyncio.create_task(use(create)) for create in (False, False, True)]
        await turns()
        gate.set()
        answers = await gather_all(*tasks)
        assert [type(a) for a in answers[:2]] == [SessionNotFound, SessionNotFound]
        assert answers[2] == "held"
        await settle(sessions)
        assert_balanced(sessions)

    run_clean(main)


# ---- [S4]


def test_s4_exclusive_holds_are_served_first_come_first_served() -> None:
    async def main() -> None:
        order: list[int] = []
        async with AsyncSessions(dict) as sessions:

            async def use(number: int) -> None:
                async with sessions.use("a"):
                    order.append(number)
                    await asyncio.sleep(0)

            async with sessions.use("a"):
                tasks = [asyncio.create_task(use(n)) for n in range(20)]
                await turns()
                assert sessions.stats().waiting == 20
            await asyncio.gather(*tasks)
            assert order == list(range(20))
            assert_balanced(sessions)

    run_clean(main)


def test_s4_a_holder_that_asks_again_is_refused() -> None:
    async def main() -> None:
        async with AsyncSessions(dict) as sessions:
            async with sessions.use("a"):
                with pytest.raises(ReentrantUse):
                    async with sessions.use("a"):
                        raise AssertionError
            assert_balanced(sessions)

    run_clean(main)


@pytest.mark.parametrize("hook", ["factory", "on_open", "on_leave", "aclose"])
@pytest.mark.parametrize("stored", [False, True])
def test_s4_a_hook_that_asks_for_its_own_session_is_refused(hook: str, stored: bool) -> None:
    async def main() -> None:
        raised: list[str] = []

        async def ask(name: str) -> None:
            if name == hook:
                await asyncio.sleep(0)
                try:
                    async with sessions.use("a"):
                        raise AssertionError
                except Exception as error:
                    raised.append(type(error).__name__)

        @dataclass
        class State:
            n: int = 0

            async def aclose(self) -> None:
                await ask("aclose")

        async def make() -> State:
            await ask("factory")
            return State()

        async def on_open(id: str, state: State) -> None:
            await ask("on_open")

        async def on_leave(id: str, state: State, reason: Reason) -> None:
            await ask("on_leave")

        sessions: AsyncSessions[State] = AsyncSessions(
            make,
            on_open=on_open,
            on_leave=on_leave,
            store=MemoryStore() if stored else None,
            state_type=State if stored else None,
        )
        async with asyncio.timeout(5):
            async with sessions.use("a"):
                pass
            await sessions.park("a")
        assert raised == ["ReentrantUse"]
        assert_balanced(sessions)

    run_clean(main)


def test_s4_a_finalizer_of_a_discarded_state_that_asks_for_it_is_refused() -> None:
    async def main() -> None:
        raised: list[str] = []

        async def on_leave(id: str, state: Any, reason: Reason) -> None:
            try:
                async with sessions.use("a"):
                    raise AssertionError
            except Exception as error:
                raised.append(type(error).__name__)

        sessions = AsyncSessions(dict, on_leave=on_leave, store=MemoryStore())
        async with asyncio.timeout(5):
            async with (hold := sessions.use("a")):
                hold.discard()
        assert raised == ["ReentrantUse"]
        await settle(sessions)
        assert_balanced(sessions)

    run_clean(main)


def test_s4_tasks_that_wait_for_each_other_are_told_so() -> None:
    async def main() -> None:
        async with AsyncSessions(dict) as sessions:
            met = asyncio.Barrier(3)

            async def use(first: str, second: str) -> str:
                async with sessions.use(first):
                    await met.wait()
                    async with sessions.use(second):
                        return first

            pairs = [("a", "b"), ("b", "c"), ("c", "a")]
            answers = await gather_all(*(use(*pair) for pair in pairs))
            assert sum(isinstance(a, HoldDeadlock) for a in answers) == 1
            assert sum(isinstance(a, str) for a in answers) == 2
            assert_balanced(sessions)

    run_clean(main)


@pytest.mark.parametrize("stored", [False, True])
def test_s4_a_factory_that_waits_for_what_its_opener_holds_is_told_so(stored: bool) -> None:
    async def main() -> None:
        async def make(id: str) -> dict[str, int]:
            if id == "b":
                async with sessions.use("a"):
                    raise AssertionError
            return {}

        store = MemoryStore() if stored else None
        sessions = AsyncSessions(make, store=store, busy_wait=2)
        async with sessions.use("a"):
            with pytest.raises((HoldDeadlock, ReentrantUse)):
                async with sessions.use("b"):
                    raise AssertionError
        await settle(sessions)
        assert_balanced(sessions)

    run_clean(main)


# ---- [S5]


def test_s5_a_busy_session_is_a_timeout_that_names_the_place_of_the_holder() -> None:
    async def main() -> None:
        async with AsyncSessions(dict, busy_wait=0.01) as sessions, sessions.use("a"):

            async def wait(patience: float | None) -> None:
                async with sessions.use("a", wait=patience):
                    raise AssertionError

            for patience in (None, 0, 0.01):
                with pytest.raises(SessionBusy) as caught:
                    await asyncio.create_task(wait(patience))
                assert isinstance(caught.value, TimeoutError)
                assert "test_sessions_async_opening" in str(caught.value)
            assert sessions.stats().waiting == 0

    run_clean(main)


def test_s5_a_full_table_is_a_timeout_with_a_hint_when_to_come_again() -> None:
    async def main() -> None:
        async with AsyncSessions(dict, max_sessions=1, wait=0.01) as sessions:
            async with sessions.use("a"):
                for patience in (None, 0, 0.01):
                    with pytest.raises(SessionsFull) as caught:
                        async with sessions.use("b", wait=patience):
                            raise AssertionError
                    assert isinstance(caught.value, TimeoutError)
                    assert caught.value.retry_after > 0
                assert "b" not in sessions
                assert sessions.stats().waiting == 0
            async with sessions.use("b"):
                pass
            await settle(sessions)
            assert_balanced(sessions)

    run_clean(main)


def test_s5_who_waits_for_room_gets_it_in_turn() -> None:
    async def main() -> None:
        order: list[str] = []
        async with AsyncSessions(dict, max_sessions=1) as sessions:

            async def use(id: str) -> None:
                async with sessions.use(id):
                    order.append(id)

            async with sessions.use("first"):
                tasks = [asyncio.create_task(use(f"{n}")) for n in range(5)]
                await turns()
                assert sessions.stats().waiting == 5
            await asyncio.gather(*tasks)
            assert order == list("01234")
            await settle(sessions)
            assert_balanced(sessions)

    run_clean(main)


def test_s5_when_full_reject_raises_at_once_and_grow_goes_above_and_comes_back() -> None:
    async def main() -> None:
        async with AsyncSessions(dict, max_sessions=1, when_full="reject") as sessions:
            async with sessions.use("a"):
                with pytest.raises(SessionsFull):
                    async with sessions.use("b"):
                        raise AssertionError
            async with sessions.use("b"):
                assert sessions.ids() == ["b"]
        async with AsyncSessions(dict, max_sessions=1, when_full="grow", name="grows") as grown:
            async with grown.use("a"), grown.use("b"), grown.use("c"):
                assert len(grown) == 3
                assert grown.stats().grown == 2
            await until(lambda: len(grown) == 1)
            assert events_of("over_limit", "grows")

    run_clean(main)


# ---- [S6]


def test_s6_a_shared_use_runs_beside_an_exclusive_one_without_a_lease() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with AsyncSessions(dict, store=store) as sessions:
            async with sessions.use("a", shared=True) as first:
                assert store.stats().leases == 0
                async with sessions.use("a", shared=True) as second, sessions.use("a") as third:
                    assert first is second is third
                    await sessions.park("a")
                    assert "a" in sessions
                with pytest.raises(SessionError):
                    sessions.use("a", shared=True).discard()
                assert "a" in sessions
            await until(lambda: "a" not in sessions)

    run_clean(main)


def test_s6_a_shared_hold_can_neither_save_nor_replace() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with AsyncSessions(dict, store=store) as sessions:
            async with (hold := sessions.use("a", shared=True)) as state:
                state["n"] = 1
                with pytest.raises(SessionError):
                    await hold.save()
                with pytest.raises(SessionError):
                    hold.state = {}
            assert store.stats().rows == 0

    run_clean(main)


# ---- [S7]


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_s7_many_tasks_open_an_absent_session_once(stored: bool, kind: str) -> None:
    async def main() -> None:
        made: list[str] = []

        def make(id: str) -> dict[str, int]:
            made.append(id)
            return {}

        async def make_slowly(id: str) -> dict[str, int]:
            await asyncio.sleep(0)
            return make(id)

        sessions: AsyncSessions[dict[str, int]] = AsyncSessions(
            make if kind == "sync" else make_slowly, store=MemoryStore() if stored else None
        )

        async def use() -> int:
            async with sessions.use("a") as state:
                await asyncio.sleep(0)
                return id(state)

        assert len(set(await asyncio.gather(*(use() for _ in range(50))))) == 1
        assert made == ["a"]
        await settle(sessions)
        assert_balanced(sessions)

    run_clean(main)


@pytest.mark.parametrize("where", ["factory", "on_open", "acquire"])
def test_s7_a_failed_open_wakes_all_and_is_not_cached(where: str) -> None:
    async def main() -> None:
        broken = True

        async def fail(place: str) -> None:
            await asyncio.sleep(0)
            if broken and place == where:
                raise OSError("no")

        async def make() -> dict[str, int]:
            await fail("factory")
            return {}

        async def on_open(id: str, state: Any) -> None:
            await fail("on_open")

        store = MemoryStore()

        class Aio:
            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

            async def acquire(self, *args: Any, **kwargs: Any) -> Any:
                await fail("acquire")
                return await real.acquire(*args, **kwargs)

        real = store.aio
        sessions = AsyncSessions(make, on_open=on_open, store=store)
        sessions._driver._awaited = Aio()

        async def use() -> None:
            async with sessions.use("a"):
                pass

        answers = await gather_all(*(use() for _ in range(10)))
        assert [type(a) for a in answers] == [OSError] * 10
        await settle(sessions)
        assert "a" not in sessions
        assert store.stats().leases == 0
        assert_balanced(sessions)
        broken = False
        await use()

    run_clean(main)


def test_s7_a_state_whose_open_hook_failed_is_closed() -> None:
    async def main() -> None:
        closed: list[str] = []

        class State:
            async def aclose(self) -> None:
                closed.append("aclose")

            def close(self) -> None:
                closed.append("close")

        async def on_open(id: str, state: State) -> None:
            raise OSError("no")

        sessions = AsyncSessions(State, on_open=on_open)
        with pytest.raises(OSError, match="no"):
            async with sessions.use("a"):
                raise AssertionError
        assert closed == ["aclose"]
        assert_balanced(sessions)

    run_clean(main)


def test_s7_a_hold_longer_than_max_hold_is_reported_once_with_its_place() -> None:
    async def main() -> None:
        clock = StillClock()
        sessions = AsyncSessions(dict, max_hold=60, clock=clock, name="stuck")
        async with sessions, sessions.use("a"):
            clock.advance(61)
            await sessions.sweep()
            await sessions.sweep()
            assert sessions.stats().stuck == 1
            (event,) = events_of("stuck_hold", "stuck")
            assert event.fields["id"] == "a"
            assert "test_sessions_async_opening" in event.fields["stack"]

    run_clean(main)
