"""Runs what is asked of a session and its store, on `Sessions` in threads or on `AsyncSessions`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from floodline.adapters._store_flows import Ask, Flow, _Pump
from floodline.errors import ConfigError
from floodline.sessions import AsyncSessions, AsyncUse, Sessions, Use
from floodline.sessions._table.entry import LIVE
from floodline.stores import AsyncRowStore, RowStore, StoreStats
from floodline.telemetry import Reason

T = TypeVar("T")
Hold = Use[Any] | AsyncUse[Any]

# asked of the hold and not of the store
SAVE = Ask("save the hold", (), {})
CLOSE = Ask("close the session that is held", (), {})


class Keeping:
    """The sessions of one tenant; `sessions` must have a store with row logs."""

    def __init__(self, sessions: Sessions[Any] | AsyncSessions[Any]) -> None:
        self.sessions = sessions
        self.name = sessions.name
        store = getattr(sessions, "_store", None)
        if not isinstance(store, RowStore | AsyncRowStore):
            raise ConfigError(
                f"sessions={sessions!r} have no store with row logs, where items are kept; give "
                'them one, such as store="sqlite:///sessions.db"'
            )
        self._store: Any = store
        self._awaited: Any = getattr(store, "aio", None)
        if self._awaited is None and inspect.iscoroutinefunction(store.load):
            self._awaited = store
        self._saves_itself = sessions._core.policy.durability == "use"

    async def read(self, flow: Flow[T]) -> T:
        """Run a flow that needs the store only, without a hold."""
        if self._awaited is not None:
            return await self._arun(flow, None)
        return await asyncio.to_thread(self._run, flow, None)

    async def newest(self, id: str) -> Any:
        """Return a state to be read at once, without a hold: None unless it is in memory, unused
        and as stored.

        Only on the event loop, where nothing can begin to change it before the caller is done.
        """
        if not isinstance(self.sessions, AsyncSessions):
            return None
        entries = self.sessions._core.table.entries
        if id not in entries:
            return None
        stored = await self._acall(Ask("load", (self.name, id), {}))
        entry = entries.get(id)
        if entry is None or stored is None or entry.version != stored.version:
            return None
        free = entry.phase == LIVE and entry.holder is None and not (entry.dirty or entry.leave)
        return entry.state if free else None

    async def use(
        self, id: str, work: Callable[[Hold], Flow[T]], *, create: bool, wait: float
    ) -> T:
        """Run a flow inside a hold; what it changed is saved, or deleted, when this returns."""
        if isinstance(self.sessions, AsyncSessions):
            async with (hold := self.sessions.use(id, create=create, wait=wait)):
                result = await self._arun(work(hold), hold)
                if self._must_save(hold):
                    await hold.save()
            return result
        # a cancelled caller leaves at once; what it asked for is finished and saved
        return await asyncio.shield(asyncio.to_thread(self._use, id, work, create, wait))

    def _use(self, id: str, work: Callable[[Hold], Flow[T]], create: bool, wait: float) -> T:
        assert isinstance(self.sessions, Sessions)
        with (hold := self.sessions.use(id, create=create, wait=wait)):
            result = self._run(work(hold), hold)
            if self._must_save(hold):
                hold.save()
        return result

    def _must_save(self, hold: Hold) -> bool:
        return not self._saves_itself and not (hold.entry and hold.entry.leave is Reason.closed)

    async def call(self, method: str, *args: Any) -> Any:
        """Call a method of the sessions: complete, park, close."""
        if isinstance(self.sessions, AsyncSessions):
            return await getattr(self.sessions, method)(*args)
        return await asyncio.to_thread(getattr(self.sessions, method), *args)

    async def store_stats(self) -> StoreStats:
        """Return the figures of the store."""
        found: StoreStats = await self._acall(Ask("stats", (), {}))
        return found

    async def _acall(self, step: Ask) -> Any:
        if self._awaited is not None:
            return await getattr(self._awaited, step.method)(*step.args, **step.options)
        return await asyncio.to_thread(self._call, step)

    async def _arun(self, flow: Flow[T], hold: Any) -> T:
        pump = _Pump(flow)
        while (step := pump.next()) is not None:
            try:
                if step is SAVE:
                    await hold.save()
                elif step is CLOSE:
                    await self.call("close", hold.id)
                else:
                    pump.answer = await self._acall(step)
            except Exception as error:
                pump.error = error
        result: T = pump.result
        return result

    def _run(self, flow: Flow[T], hold: Any) -> T:
        pump = _Pump(flow)
        while (step := pump.next()) is not None:
            try:
                if step is SAVE:
                    hold.save()
                elif step is CLOSE:
                    self.sessions.close(hold.id)
                else:
                    pump.answer = self._call(step)
            except Exception as error:
                pump.error = error
        result: T = pump.result
        return result

    def _call(self, step: Ask) -> Any:
        return getattr(self._store, step.method)(*step.args, **step.options)


def close() -> Flow[None]:
    """Close the session that is held; it is gone when the hold is left: `yield from close()`."""
    yield CLOSE


def save() -> Flow[None]:
    """Save the hold in the middle of a flow: `yield from save()`."""
    yield SAVE
