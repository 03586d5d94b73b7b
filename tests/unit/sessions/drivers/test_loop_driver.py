"""The event loop driver: seats on their way, timers, and tasks that were never begun."""

from __future__ import annotations

import asyncio
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
from floodline.stores import MemoryStore


async def use_once(sessions: AsyncSessions[Any], key: str) -> Any:
    async with sessions.use(key) as state:
        return state


class SlowStore:
    """An async store whose calls of one method wait for a gate."""

    def __init__(self, slow: str) -> None:
        self.inner, self.slow, self.gate = MemoryStore(), slow, asyncio.Event()

    def __getattr__(self, method: str) -> Any:
        if method == "aio":
            raise AttributeError(method)

        async def call(*args: Any, **kwargs: Any) -> Any:
            if method == self.slow:
                await self.gate.wait()
            return getattr(self.inner, method)(*args, **kwargs)

        return call

    async def acquire(self, *args: Any, **kwargs: Any) -> Any:
        return await self.__getattr__("acquire")(*args, **kwargs)


def test_an_opener_that_was_promised_a_seat_waits_for_it_though_others_call_it() -> None:
    async def main() -> None:
        store = SlowStore("save")
        sessions = AsyncSessions(dict, store=store, durability="park", max_sessions=2)
        async with sessions.use("b"):
            async with sessions.use("a"):
                opener = asyncio.create_task(use_once(sessions, "c"))
                await turns()
                assert sessions.stats().waiting == 1
            await turns()
            assert sessions.stats().parking == 1
        await turns()
        assert not opener.done()
        store.gate.set()
        await opener
        await settle(sessions)
        assert_balanced(sessions)
        assert await sessions.shutdown() == 0

    run_clean(main)


@pytest.mark.parametrize("way", ["open", "exit", "park", "checkpoint"])
def test_a_task_of_ours_that_was_cancelled_before_its_first_step_loses_nothing(way: str) -> None:
    async def main() -> None:
        left: list[Reason] = []
        store = MemoryStore()
        sessions: AsyncSessions[dict[str, int]] = AsyncSessions(
            dict, store=store, on_leave=lambda key, state, reason: left.append(reason)
        )

        async def act() -> None:
            async with (hold := sessions.use("a")) as state:
                state["n"] = 1
                if way == "checkpoint":
                    await hold.save()
            if way == "park":
                await sessions.park("a")

        task = asyncio.create_task(act())
        for _ in range(40):
            for one in asyncio.all_tasks() - {asyncio.current_task(), task}:
                one.cancel()
            await asyncio.sleep(0)
        await gather_all(task)
        await settle(sessions)
        assert_balanced(sessions)
        assert await sessions.shutdown() == 0

    run_clean(main)


def test_a_tick_that_fails_is_reported_and_the_next_one_comes() -> None:
    async def main() -> None:
        sessions = AsyncSessions(dict, idle=0.01, name="fails")
        departed, check = sessions._core.departed, sessions._core.departed.check
        failures = 0

        def fail(now: float) -> int:
            nonlocal failures
            failures += 1
            if failures == 1:
                raise ZeroDivisionError
            return check(now)

        departed.check = fail  # type: ignore[method-assign]  # fails once
        async with sessions.use("a"):
            await until(lambda: failures >= 2)
        assert events_of("tick_error", "fails")
        await sessions.shutdown()

    run_clean(main)


def test_a_renewal_that_fails_is_counted_and_tried_again() -> None:
    async def main() -> None:
        store = MemoryStore()
        sessions = AsyncSessions(dict, store=store, lease=0.03)
        renewed: list[str] = []

        class Aio:
            def __getattr__(self, method: str) -> Any:
                return getattr(real, method)

            async def renew(self, *args: Any, **kwargs: Any) -> Any:
                renewed.append("renew")
                if len(renewed) == 1:
                    raise OSError("down")
                return await real.renew(*args, **kwargs)

        real, sessions._driver._awaited = store.aio, Aio()
        async with sessions.use("a"):
            await until(lambda: len(renewed) >= 2)
        assert sessions.stats().hook_errors == 1
        assert await sessions.shutdown() == 0

    run_clean(main)


def test_without_a_sweeper_no_timer_is_set() -> None:
    async def main() -> None:
        clock = StillClock()
        sessions = AsyncSessions(dict, sweep_every=None, linger=10, clock=clock)
        await use_once(sessions, "a")
        await sessions.complete("a")
        assert sessions._driver._tick_timer is None
        clock.advance(10)
        assert await sessions.sweep() == 1

    run_clean(main)


def test_an_earlier_tick_replaces_a_later_one_and_never_the_other_way() -> None:
    async def main() -> None:
        async with AsyncSessions(dict, linger=10) as sessions:
            await use_once(sessions, "a")
            driver = sessions._driver
            first = driver._tick_timer
            driver.want_tick(5.0)
            second = driver._tick_timer
            assert first is not second
            driver.want_tick(20.0)
            driver.want_tick()
            assert driver._tick_timer is second

    run_clean(main)


def test_a_sweep_can_wait_for_its_own_leavers_only() -> None:
    async def main() -> None:
        gate, clock = asyncio.Event(), StillClock()

        async def on_leave(key: str, state: Any, reason: Reason) -> None:
            if key == "hangs":
                await gate.wait()

        sessions = AsyncSessions(dict, on_leave=on_leave, idle=60, clock=clock)
        await use_once(sessions, "hangs")
        first = asyncio.create_task(sessions.park("hangs"))
        await turns()
        await use_once(sessions, "a")
        clock.advance(60)
        async with asyncio.timeout(5):
            assert await sessions.sweep() == 1
        assert not first.done()
        gate.set()
        await first
        await sessions.shutdown()

    run_clean(main)


def test_who_was_cancelled_while_it_waited_for_room_waits_no_more() -> None:
    async def main() -> None:
        sessions = AsyncSessions(dict, max_sessions=1)
        async with sessions.use("a"):
            task = asyncio.create_task(use_once(sessions, "b"))
            await turns()
            assert sessions.stats().waiting == 1
            task.cancel()
            await gather_all(task)
            await turns()
            assert sessions.stats().waiting == 0
        assert_balanced(sessions)

    run_clean(main)


def test_the_save_at_the_exit_waits_for_a_checkpoint_whose_caller_was_cancelled() -> None:
    async def main() -> None:
        store = SlowStore("save")
        sessions = AsyncSessions(dict, store=store)

        async def body() -> None:
            async with (hold := sessions.use("a")) as state:
                state["n"] = 1
                saving = asyncio.ensure_future(hold.save())
                await turns()
                saving.cancel()
                await gather_all(saving)
                state["n"] = 2

        task = asyncio.create_task(body())
        await turns(40)
        assert not task.done()
        store.gate.set()
        await task
        assert store.inner.stats().conflicts == 0
        assert await sessions.shutdown() == 0
        assert store.inner.stats().conflicts == 0

    run_clean(main)
