"""Running a test on an event loop that must end clean, with a clock that stands still."""

from __future__ import annotations

import asyncio
import gc
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from floodline import AsyncSessions, telemetry

T = TypeVar("T")
PATIENCE = 100.0  # a safety net, not a measure


class StillClock:
    """A clock that moves only when told to."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def run_clean(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `main` on a new loop; whatever the loop's exception handler hears fails the test."""
    heard: list[dict[str, Any]] = []

    async def guarded() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
        async with asyncio.timeout(PATIENCE):
            return await main()

    result = asyncio.run(guarded())
    gc.collect()
    assert not heard, heard
    return result


async def until(condition: Callable[[], object]) -> None:
    """Give other tasks their turn until `condition` holds."""
    async with asyncio.timeout(PATIENCE / 2):
        for turn in itertools.count():
            if condition():
                return
            await asyncio.sleep(0 if turn < 200 else 0.001)


async def turns(number: int = 10) -> None:
    """Give other tasks some turns."""
    for _ in range(number):
        await asyncio.sleep(0)


def own_tasks(sessions: AsyncSessions[Any]) -> int:
    """Return how many tasks the sessions have under way."""
    return len(sessions._driver._tasks)


async def settle(sessions: AsyncSessions[Any]) -> None:
    """Wait until nothing of the sessions is under way."""
    await until(lambda: not own_tasks(sessions))


def assert_balanced(sessions: AsyncSessions[Any]) -> None:
    """Nobody holds, waits, opens or leaves, and every figure agrees with the entries."""
    table = sessions._core.table
    for entry in table.entries.values():
        assert entry.phase == 1, (entry.id, entry.phase)
        assert (entry.holder, entry.pins) == (None, 0), entry.id
        assert entry.seated, entry.id
        assert not entry.waiters, entry.id
    assert not table.seats.room
    assert len(table.waiting) == 0
    assert table.seats.parking == 0
    assert table.seats.taken == table.live == len(table.entries)
    assert set(table.idle) | set(table.unsaved) == set(table.entries)
    assert table.bytes == sum(entry.weight for entry in table.entries.values())
    assert {key for key, entry in table.entries.items() if entry.fence} == set(table.leased)


async def gather_all(*awaitables: Awaitable[Any]) -> list[Any]:
    """Gather, with the errors among the results."""
    return list(await asyncio.gather(*awaitables, return_exceptions=True))


def events_of(kind: str, name: str) -> list[telemetry.Event]:
    """Return the recent events of one kind from one source."""
    return [e for e in telemetry.recent() if e.kind == kind and e.source == name]
