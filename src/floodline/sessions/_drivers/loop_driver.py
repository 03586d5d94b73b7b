"""Flows on an event loop: tasks that cannot be cancelled, timers that keep nothing alive.

What must not be interrupted (a save, an open, a finalizer) runs as a task of its own. A caller that
is cancelled leaves at once, and the task finishes its work for it.
"""

from __future__ import annotations

import asyncio
import inspect
import time
import weakref
from asyncio import _get_running_loop
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from floodline import telemetry
from floodline.errors import WrongLoop
from floodline.sessions._drivers.doorbell import Doorbell, arm
from floodline.sessions._drivers.loop_work import Work
from floodline.sessions._flows.guarded_table import Core, who
from floodline.sessions._flows.handing_over import answer_wishes, renew_and_hand_over
from floodline.sessions._flows.leaving import release
from floodline.sessions._flows.mending.repair import mend_all
from floodline.sessions._flows.opening import let_go
from floodline.sessions._flows.requests import (
    Await,
    Flow,
    Pause,
    Request,
    SeeOut,
    StoreCall,
    UserCall,
)
from floodline.sessions._flows.runner import run, run_async
from floodline.sessions._flows.upkeep import retry_unsaved, shed, upkeep
from floodline.sessions._table.entry import Hold
from floodline.sessions._table.policy import NEVER
from floodline.telemetry import Reason

T = TypeVar("T")
NO_LOOP = (
    "AsyncSessions needs a running asyncio event loop, and there is none here; run it with "
    'asyncio.run(), or anyio.run(…, backend="asyncio"); under trio, use Sessions in a thread'
)
Perform = Callable[[Request], Awaitable[Any]]


class LoopDriver:
    """Performs the requests of flows by awaiting; without a loop, by blocking."""

    def __init__(self, core: Core, store: Any) -> None:
        self._core = core
        self._store = store
        self._awaited = getattr(store, "aio", None)
        if self._awaited is None and inspect.iscoroutinefunction(getattr(store, "acquire", None)):
            self._awaited = store
        self.start_empty()

    def start_empty(self) -> None:
        """Start without loop, tasks and timers, at construction and in a forked child."""
        self.loop: asyncio.AbstractEventLoop | None = None
        self.closes_store = False
        self._tasks: dict[asyncio.Task[Any], Work | None] = {}
        self._bells: set[Doorbell] = set()  # of the tasks that wait
        self._tick_timer: asyncio.TimerHandle | None = None
        self._renew_timer: asyncio.TimerHandle | None = None

    def move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """Move to another loop, if nothing of the old one is under way."""
        table, old = self._core.table, self.loop
        if old is not None and old is not loop:
            if old.is_closed():
                self.end_orphans()
            free = (*table.idle, *table.unsaved, *table.undeleted) if old.is_closed() else ()
            if len(table.entries) > len(free):
                raise WrongLoop(
                    f"{self._core.policy.name!r} has {len(table.entries)} sessions on another "
                    "event loop; shut it down there first, or create one for each loop"
                )
        self.start_empty()
        self.loop = loop
        if table.entries:
            self.want_tick(0.0 if table.refused() else None)

    def here(self) -> asyncio.AbstractEventLoop:
        """Return the running loop, and belong to it from now on."""
        loop = _get_running_loop()
        if loop is None:
            raise WrongLoop(NO_LOOP)
        if self.loop is not loop:
            self.move_to(loop)
        return loop

    def end_orphans(self) -> None:
        """Finish, by blocking, what a loop that no longer runs has left behind."""
        orphans, self._tasks = self._tasks, {}
        for task, work in orphans.items():
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # as gather() does
            try:
                task.get_coro().close()
                if work is not None and work.was_not_begun():
                    self.run(work.instead)
            except Exception as error:
                self._core.hook_failed("event loop", "*", error)

    # ---- running flows

    async def flow(self, flow: Flow[T], perform: Perform | None = None) -> T:
        """Run a flow in the caller's task: a cancel reaches it."""
        return await run_async(self._core, flow, perform or self._perform, self._perform_blocking)

    async def finish(self, flow: Flow[T], *, after: asyncio.Task[Any] | None = None) -> T:
        """Run a flow to its end, even if the caller is cancelled in the meantime."""
        return await self.wait_for(self.start(flow, after=after))

    def start(
        self,
        flow: Flow[T],
        *,
        after: asyncio.Task[Any] | None = None,
        perform: Perform | None = None,
        instead: Flow[Any] | None = None,
    ) -> asyncio.Task[T]:
        """Run a flow as a task for a caller that will `wait_for` it."""
        loop = self.here()
        task = loop.create_task(self._chain(flow, after, perform))
        self._note(task, Work(flow, instead or flow))
        return task

    async def wait_for(self, *tasks: asyncio.Task[T]) -> T:
        """Wait for our tasks; a cancelled caller does not affect them."""
        helpers, me = self._core.table.waiting.helpers, who()
        helpers[me] = [weakref.ref(task) for task in tasks]
        try:
            for task in tasks:
                result = await asyncio.shield(task)
            return result
        finally:
            del helpers[me]

    async def join(self, flow: Flow[T]) -> T:
        """Run a flow, and wait for the leaving flows that it starts."""
        leavers: list[asyncio.Task[Any]] = []

        async def perform(request: Request) -> Any:
            if isinstance(request, SeeOut) and not request.wait:
                return leavers.append(self._spawn(request.flow))
            return await self._perform(request)

        result = await self.wait_for(self.start(flow, perform=perform))
        if leavers:
            await self.wait_for(*leavers)
        return result

    async def enter(self, hold: Hold, flow: Flow[None]) -> None:
        """Run an opening flow; if the caller is cancelled, it leaves and the hold is released."""
        task = self.start(flow, instead=let_go(self._core, hold))
        try:
            await self.wait_for(task)
        except (asyncio.CancelledError, GeneratorExit):
            hold.error = asyncio.CancelledError()  # in case it still waits for its turn
            hold.who = None
            hold.wake()
            if task.done():
                self._let_go(hold, task)
            else:
                task.add_done_callback(partial(self._let_go, hold))
            raise

    def _let_go(self, hold: Hold, done: asyncio.Task[Any]) -> None:
        if not done.cancelled() and done.exception() is None:
            self.spawn_or_run(release(self._core, hold, stamp=False))

    def spawn_or_run(self, flow: Flow[Any]) -> None:
        """Run a flow that nothing waits for: as a task, or by blocking if there is no loop."""
        if self.loop is None or not self.loop.is_running():
            self.run(flow)
        elif self.loop is _get_running_loop():
            self._spawn(flow)
        else:  # the garbage collector ran in another thread
            self.loop.call_soon_threadsafe(self.spawn_or_run, flow)

    def run(self, flow: Flow[T]) -> T:
        """Run a flow by blocking; coroutines in it cannot run, and are counted."""
        return run(self._core, flow, self._perform_blocking)

    def _spawn(self, flow: Flow[T]) -> asyncio.Task[T]:
        task = self.here().create_task(self.flow(flow))
        self._note(task, Work(flow, flow))
        return task

    async def _chain(
        self, flow: Flow[T], before: asyncio.Task[Any] | None, perform: Perform | None
    ) -> T:
        if before is not None and not before.done():
            await asyncio.wait([before])
        return await self.flow(flow, perform)

    def _note(self, task: asyncio.Task[Any], work: Work | None = None) -> None:
        self._tasks[task] = work
        if task.done():  # it was started eagerly; its callback would come only later
            self._ended(task)
        else:
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        work = self._tasks.pop(task, None)
        if not task.cancelled():
            task.exception()  # a waiter gets it; if there is none, it was reported
        elif work is not None and work.was_not_begun():
            self.spawn_or_run(work.instead)
        if self.closes_store and not self._tasks and not self._core.table.entries:
            self.closes_store = False
            self._note(self.here().create_task(self.call_store("close")))

    # ---- performing

    async def _perform(self, request: Request) -> Any:
        match request:
            case StoreCall(method, args, kwargs):
                answer = await self.call_store(method, *args, **kwargs)
                if method == "acquire":
                    self._want_renewal()
                return answer
            case UserCall(function, args, blocks):
                answer = asyncio.to_thread(function, *args) if blocks else function(*args)
                return await answer if inspect.isawaitable(answer) else answer
            case Await(hold, deadline):
                return await self._wait(hold, deadline)
            case Pause(seconds, bell):
                return await (bell.wait_soon if bell is not None else asyncio.sleep)(seconds)
            case SeeOut(flow, wait):
                task = self._spawn(flow)
                return await self.wait_for(task) if wait else None

    async def call_store(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call the store's coroutine, or its blocking method in a thread."""
        if self._awaited is not None:
            return await getattr(self._awaited, method)(*args, **kwargs)
        return await asyncio.to_thread(getattr(self._store, method), *args, **kwargs)

    async def _wait(self, hold: Any, deadline: float) -> bool:
        loop, core = self.here(), self._core
        bell = core.locked(arm, hold, loop)
        if bell is None:
            return True
        timer = None
        self._bells.add(bell)
        try:
            if deadline != NEVER:
                timer = loop.call_later(max(0.0, deadline - core.clock()), bell.ring, False)
            woken = await bell.future
        finally:
            self._bells.discard(bell)
            if timer is not None:
                timer.cancel()
        return woken

    def remind(self) -> None:
        """Wake whom an interrupted call should have woken."""
        for bell in self._bells:
            if bell.future.done():
                bell.look_after()

    def _perform_blocking(self, request: Request) -> Any:
        match request:
            case StoreCall(method, args, kwargs):
                if self._store is not self._awaited:
                    return getattr(self._store, method)(*args, **kwargs)
                if _get_running_loop() is not None:
                    raise WrongLoop(f"{method!r} of an async store cannot be awaited here")
                return asyncio.run(getattr(self._store, method)(*args, **kwargs))
            case UserCall(function, args):
                answer = function(*args)
                if not inspect.isawaitable(answer):
                    return answer
                self._core.counters.finalizers_not_run += 1
                if inspect.iscoroutine(answer):
                    answer.close()
                return None
            case Pause(seconds, bell):
                return (bell.wait if bell is not None else time.sleep)(seconds)
            case SeeOut(flow, _) if self.loop is not None and self.loop is _get_running_loop():
                self._spawn(flow)
                return None
            case SeeOut(flow, _):
                return self.run(flow)
            case Await(_, _):
                return False

    # ---- shutting down and ticking

    async def empty(self, patience: float) -> int:
        """See out everything that is not held, for that long; return what is left."""
        loop, core = self.here(), self._core
        until, pause = loop.time() + patience, 0.001
        while True:
            core.retry_at = 0.0
            await self.finish(mend_all(core))
            await self.finish(shed(core, NEVER, Reason.shutdown))
            await self.finish(retry_unsaved(core))
            left = until - loop.time()
            if not (core.table.entries or self._tasks) or left <= 0:
                break
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, 0.05)
        if not core.table.entries:
            self._stop_timers()
        return len(core.table.entries)

    def _stop_timers(self) -> None:
        for timer in (self._tick_timer, self._renew_timer):
            if timer is not None:
                timer.cancel()
        self._tick_timer = self._renew_timer = None

    def want_tick(self, delay: float | None = None) -> None:
        """Schedule the upkeep; sooner if `delay` says so."""
        policy = self._core.policy
        every, timer = min(policy.sweep_every, policy.soonest), self._tick_timer
        if policy.sweep_every == NEVER or (timer is not None and delay is None):
            return
        if delay is not None:
            every = min(every, delay)
        if timer is not None:
            if timer.when() <= self.here().time() + every:
                return
            timer.cancel()
        self._tick_timer = self._later(every, LoopDriver._tick)

    def tick_soon(self) -> None:
        """Start the upkeep now; the garbage collector may call this, in any thread."""
        if self.loop is not None and self.loop.is_running():
            self.loop.call_soon_threadsafe(_call_weakly, weakref.ref(self), LoopDriver._tick)

    def _tick(self) -> None:
        if self._tick_timer is not None:
            self._tick_timer.cancel()  # an earlier tick was requested
            self._tick_timer = None
        self._note(self.here().create_task(self._upkeep()))

    async def _upkeep(self) -> None:
        core = self._core
        try:
            core.guard.run_late()
            self.remind()
            await self.flow(upkeep(core))
        except Exception as error:
            telemetry.emit("tick_error", core.policy.name, error=telemetry.describe(error))
        finally:
            self._tick_again()

    def _tick_again(self) -> None:
        core, table = self._core, self._core.table
        every = core.policy.sweep_every
        if self._tick_timer is None and (table.entries or core.departed) and every != NEVER:
            soon = min(table.next_check, core.retry_at if table.refused() else NEVER) - core.clock()
            self._tick_timer = self._later(min(every, max(soon, 0.02)), LoopDriver._tick)

    def _want_renewal(self) -> None:
        if self._renew_timer is None:
            self._renew_timer = self._later(self._core.policy.lease / 3, LoopDriver._renew)

    def _renew(self) -> None:
        self._renew_timer = None
        if self._core.table.leased:
            self._note(self.here().create_task(self._tend("store.renew", renew_and_hand_over)))
            self._want_renewal()

    def hand_over_soon(self) -> None:
        """Hand over what others want; called by a thread of the store."""
        if self.loop is not None:
            with suppress(RuntimeError):  # it is closed
                self.loop.call_soon_threadsafe(
                    _call_weakly, weakref.ref(self), LoopDriver._hand_over
                )

    def _hand_over(self) -> None:
        self._note(self.here().create_task(self._tend("store.wanted", answer_wishes)))

    async def _tend(self, what: str, flow: Callable[[Core], Flow[None]]) -> None:
        try:
            await self.flow(flow(self._core))
        except Exception as error:
            self._core.hook_failed(what, "*", error)

    def _later(self, delay: float, method: Callable[[LoopDriver], None]) -> asyncio.TimerHandle:
        return self.here().call_later(delay, _call_weakly, weakref.ref(self), method)


def _call_weakly(ref: weakref.ref[LoopDriver], method: Callable[[LoopDriver], None]) -> None:
    driver = ref()
    if driver is not None:
        method(driver)
