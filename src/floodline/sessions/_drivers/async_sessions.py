"""Sessions for asyncio: the driver that awaits."""

from __future__ import annotations

import asyncio
from asyncio import _get_running_loop
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack, overload

from floodline import telemetry
from floodline._units import Duration, parse_duration
from floodline.errors import WouldBlockLoop
from floodline.sessions._drivers.doorbell import Doorbell
from floodline.sessions._drivers.hold import (
    IN_OWN_HANDS,
    UseBase,
    acknowledgement,
    checkpoint,
)
from floodline.sessions._drivers.loop_driver import LoopDriver
from floodline.sessions._drivers.sessions_base import S, SessionsBase, checked_id
from floodline.sessions._flows.guarded_table import who
from floodline.sessions._flows.leaving import exit_hold, see_out
from floodline.sessions._flows.mending.repair import (
    is_left_behind,
    is_worth_mending,
    mend,
    mend_all,
    mend_for,
)
from floodline.sessions._flows.opening import (
    abandon,
    bring_in,
    let_go_closed,
    needs_bringing_in,
    wait_turn,
)
from floodline.sessions._flows.requests import Flow
from floodline.sessions._flows.upkeep import close, retry_unsaved, shed, sweep, upkeep
from floodline.sessions._table.entry import (
    CLOSED,
    ENTER_FAILED,
    ENTERING,
    EXIT_FAILED,
    HELD,
    IN_BODY,
    LEAVING,
    OPEN,
    WAIT,
    Entry,
    Hold,
)
from floodline.sessions._table.policy import NEVER
from floodline.sessions._table.wishes import park
from floodline.telemetry import Reason

if TYPE_CHECKING:
    from floodline.sessions._drivers.options import Options

SLICE = 8  # how many other sessions one call sees out


class AsyncUse(UseBase[S]):
    """A hold on a session: `async with sessions.use(id) as state:`."""

    __slots__ = ("_bell", "_saving", "_sessions", "_wait")

    def __init__(
        self, sessions: AsyncSessions[S], id: str, shared: bool, create: bool, wait: float | None
    ) -> None:
        super().__init__(id, shared, create)
        self._sessions = sessions
        self._wait = wait
        self._bell: Doorbell | None = None
        self._saving: asyncio.Task[None] | None = None

    async def __aenter__(self) -> S:
        sessions = self._sessions
        if sessions._driver.loop is not _get_running_loop() or sessions._driver.loop is None:
            sessions._driver.here()
        self.step = ENTERING
        try:
            step = self._ask(sessions._core)
            if step != HELD or sessions._core.policy.stored:
                await sessions._enter(self, step, self._wait)
            entry: Entry = self.entry  # type: ignore[assignment]  # it is held now
            if entry.leave is CLOSED:
                await sessions._driver.finish(let_go_closed(sessions._core, self))
            state: S = entry.state
            self.step = IN_BODY
        except BaseException as error:
            self.step = ENTER_FAILED
            if isinstance(error, IN_OWN_HANDS) and sessions._mend_for(self):
                return await self.__aenter__()
            if self.entry is not None:
                sessions._mend(self)
            self.frame = None
            raise
        return state

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.step = LEAVING
        sessions = self._sessions
        try:
            if sessions._exits_slowly or self._needs_care():
                await sessions._exit(self, error)
            else:
                self._let_go(sessions, error)
        except BaseException:
            self.step = EXIT_FAILED
            if self.entry is not None:
                sessions._mend(self)
            raise

    async def save(self) -> None:
        """Save now, in the middle of a long body; without a store, do nothing."""
        await self._save_by(checkpoint(self._sessions._core, self))

    async def acknowledge(self) -> None:
        """Save what leaving this use would save, and raise what it would raise; keep the hold.

        For those who must answer before they let go: once this has returned, nothing is lost.
        """
        await self._save_by(acknowledgement(self._sessions._core, self))

    async def _save_by(self, flow: Flow[None]) -> None:
        driver = self._sessions._driver
        self._saving = driver.start(flow, after=self._saving)
        await driver.wait_for(self._saving)

    def wake(self) -> None:
        """Wake the waiting task."""
        bell = self._bell
        if bell is None:
            return
        loop = bell.future.get_loop()
        if loop is _get_running_loop():
            bell.ring(True)
            return
        try:
            loop.call_soon_threadsafe(bell.ring, True)
        except RuntimeError:  # the loop was closed: nothing waits any more
            self._bell = None
            self._sessions._core.guard.late.append(self._pass_on)

    def _pass_on(self) -> None:
        sessions = self._sessions
        sessions._driver.spawn_or_run(abandon(sessions._core, self))


class AsyncSessions(SessionsBase[S]):
    """`Sessions` for one event loop: the same arguments, and async callables too.

    It may move to another loop when nothing is live, or when its own loop is closed.
    """

    _closers = ("aclose", "close")
    _shedding: tuple[asyncio.AbstractEventLoop | None, Future[int] | None] = None, None

    if TYPE_CHECKING:  # the state is what an async factory returns in the end

        @overload  # a class, so that `dict` needs no annotation
        def __init__(self, factory: type[S], **options: Unpack[Options[S]]) -> None: ...
        @overload
        def __init__(
            self, factory: Callable[..., Coroutine[Any, Any, S]], **options: Unpack[Options[S]]
        ) -> None: ...
        @overload
        def __init__(
            self, factory: Callable[..., S] | None = None, **options: Unpack[Options[S]]
        ) -> None: ...
        def __init__(self, factory: Any = None, **options: Any) -> None: ...

    @cached_property
    def _driver(self) -> LoopDriver:
        return LoopDriver(self._core, self._store)

    # ---- using

    def use(
        self,
        id: str,
        *,
        shared: bool = False,
        create: bool = True,
        wait: Duration | None = None,
    ) -> AsyncUse[S]:
        """Return a hold to be entered with `async with`; see `Sessions.use`."""
        if type(id) is not str or not id or not id.isascii():
            id = checked_id(id)  # noqa: A001 - a plain string from here on
        if wait is not None:
            wait = parse_duration(wait, "wait", zero=True)
        return AsyncUse(self, id, shared, create, wait)

    async def complete(self, id: str) -> None:
        """Expect no more work: park after `linger`, unless a new use comes first."""
        await self._park(id, Reason.completed)

    async def park(self, id: str) -> None:
        """Take a session out of memory, now or when its holder is done; the store keeps it."""
        await self._park(id, Reason.parked)

    async def close(self, id: str) -> bool:
        """End a session for good, now or when its holder is done; returns True if there was one.

        The finalizer runs and the stored row is deleted. Closing a closed session does nothing.
        """
        id = checked_id(id)  # noqa: A001 - a plain string from here on
        return await self._driver.finish(close(self._core, id, who()))

    async def sweep(self) -> int:
        """See out everything that is due now; return how many sessions left.

        What the store refused is retried, however recent the last try.
        """
        self._core.retry_at = 0.0
        self._driver.remind()
        done = 0
        while more := await self._driver.join(upkeep(self._core)):
            done += more
        return done

    async def shed(self, limit: int) -> int:
        """Park at most `limit` unused sessions, least recently used first; memory is short."""
        return await self._driver.join(shed(self._core, limit, Reason.pressure))

    def shed_threadsafe(self, limit: int, *, timeout: Duration = "2 s") -> int:
        """Make the event loop shed, and wait for it, from another thread; 0 if none is running.

        `TimeoutError` if it takes longer; it continues, and the next call waits for it.
        """
        loop, patience = self._driver.loop, parse_duration(timeout, "timeout")
        if loop is None or not loop.is_running():
            return 0
        if loop is _get_running_loop():
            raise WouldBlockLoop(
                "shedding would wait for the event loop that runs on this thread; "
                "await shed(limit) there, or acheck() of the budget"
            )
        on_loop, shedding = self._shedding
        if on_loop is not loop or shedding is None or shedding.done():
            flow = self.shed(limit)
            try:
                shedding = asyncio.run_coroutine_threadsafe(flow, loop)
            except RuntimeError:  # the loop was closed in the meantime
                flow.close()
                return 0
            self._shedding = loop, shedding
        return shedding.result(patience)

    async def shutdown(self, *, grace: Duration = "10 s") -> int:
        """Park everything and refuse new uses; return how many were still held after `grace`.

        Those leave when their holders are done. A store that was given as a URL is closed.
        """
        core, driver = self._core, self._driver
        patience = parse_duration(grace, "grace", zero=True)
        driver.here()
        core.table.closing = True
        left = await driver.empty(patience)
        if self._owns_store and left:
            driver.closes_store = True
        elif self._owns_store:
            await driver.call_store("close")
        self._say_shut_down(left)
        return left

    async def __aenter__(self) -> AsyncSessions[S]:
        return self

    async def __aexit__(
        self, _type: object, error: BaseException | None, _traceback: object
    ) -> None:
        await self.shutdown()
        self._tell_unsaved(error)

    # ---- driving

    async def _park(self, id: str, reason: Reason) -> None:
        id = checked_id(id)  # noqa: A001 - a plain string from here on
        core, driver = self._core, self._driver
        driver.here()
        entry = core.locked(park, core.table, id, reason, core.clock())
        if core.table.lingering:
            driver.want_tick(core.policy.linger)
        if entry is not None:
            await driver.finish(see_out(core, entry, wait=True))

    async def _enter(self, hold: AsyncUse[S], step: int, wait: float | None) -> None:
        core, driver = self._core, self._driver
        if step == WAIT:
            await driver.finish(mend_for(core, hold))
            step = hold.outcome
        if step != OPEN:
            step = await driver.flow(wait_turn(core, hold, step, wait))
        if needs_bringing_in(core, hold, step):
            await driver.enter(hold, bring_in(core, hold, step, wait))
        driver.want_tick()

    async def _exit(self, hold: AsyncUse[S], error: BaseException | None) -> None:
        core, driver = self._core, self._driver
        alone = _get_running_loop() is None  # as in a forked child
        if alone or isinstance(error, GeneratorExit) or core.guard.is_guest():
            self._exit_late(hold, error)  # nothing may be awaited here
            return
        try:
            problem = await driver.finish(exit_hold(core, hold, error), after=hold._saving)
        except asyncio.CancelledError:
            hold.who = None  # the save continues without the caller, which may come back
            raise
        self._tidy(None)
        if problem is not None:
            if error is None:
                raise problem
            error.add_note(f"floodline: {telemetry.describe(problem)}")

    def _mend(self, hold: Hold) -> None:
        """Start what an exception kept a hold from doing; await nothing."""
        if not self._core.guard.is_guest() and is_left_behind(hold):
            try:
                self._driver.spawn_or_run(mend(self._core, hold))
            except BaseException:
                self._driver.spawn_or_run(mend(self._core, hold))
                raise

    def _mend_for(self, hold: Hold) -> bool:
        """Repair what `hold` asks for; return True if it is worth asking again."""
        if self._core.guard.is_guest() or not is_worth_mending(self._core, hold):
            return False
        self._driver.spawn_or_run(mend_for(self._core, hold))
        return True

    def _exit_late(self, hold: AsyncUse[S], error: BaseException | None) -> None:
        """End a hold for a caller that cannot be told how it went."""
        if self._core.guard.is_guest():
            self._core.guard.late.append(partial(self._exit_late, hold, error))
        else:
            self._driver.spawn_or_run(exit_hold(self._core, hold, error))

    def _tidy(self, leaver: Entry | None) -> None:
        """See out one entry, and a few of those that are due."""
        core, driver = self._core, self._driver
        if leaver is not None:
            driver.spawn_or_run(see_out(core, leaver))
        if core.clock() >= core.table.next_check:
            driver.spawn_or_run(sweep(core, SLICE))
        if core.table.refused() and core.clock() >= core.retry_at:
            driver.spawn_or_run(retry_unsaved(core))

    def _wanted_elsewhere(self) -> None:
        self._driver.hand_over_soon()

    def _soon(self) -> None:
        self._driver.tick_soon()

    def _after_fork(self) -> None:
        super()._after_fork()
        self._driver.start_empty()

    def _at_exit(self) -> None:
        core, driver = self._core, self._driver
        core.table.closing = True
        if driver.loop is None or not driver.loop.is_running():
            driver.end_orphans()
        core.retry_at = 0.0
        driver.run(mend_all(core))
        driver.run(retry_unsaved(core))
        driver.run(shed(core, NEVER, Reason.shutdown))
