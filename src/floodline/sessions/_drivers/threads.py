"""Sessions for threads: the driver that blocks."""

from __future__ import annotations

import threading
import time
from _thread import get_ident
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from floodline import telemetry
from floodline._clock import renewer, sweeper
from floodline._units import Duration, parse_duration
from floodline.sessions._drivers.hold import IN_OWN_HANDS, UseBase, checkpoint
from floodline.sessions._drivers.sessions_base import S, SessionsBase, checked_id
from floodline.sessions._drivers.thread_waits import pause, wait
from floodline.sessions._flows.guarded_table import who
from floodline.sessions._flows.handing_over import answer_wishes
from floodline.sessions._flows.leases import renew
from floodline.sessions._flows.leaving import exit_hold, see_out
from floodline.sessions._flows.mending.repair import keeps_dead_leases, mend, mend_all, mend_for
from floodline.sessions._flows.opening import enter, let_go_closed
from floodline.sessions._flows.requests import (
    Await,
    Flow,
    Pause,
    Request,
    SeeOut,
    StoreCall,
    UserCall,
)
from floodline.sessions._flows.runner import run
from floodline.sessions._flows.upkeep import close, retry_unsaved, shed, sweep, upkeep
from floodline.sessions._table.entry import (
    CLOSED,
    ENTER_FAILED,
    ENTERING,
    EXIT_FAILED,
    HELD,
    IN_BODY,
    LEAVING,
    WAIT,
    Entry,
    Hold,
)
from floodline.sessions._table.policy import NEVER
from floodline.sessions._table.wishes import park
from floodline.telemetry import Reason

if TYPE_CHECKING:
    from floodline.sessions._drivers.options import Options

T = TypeVar("T")
SLICE = 8  # how many other sessions one call sees out


class Use(UseBase[S]):
    """A hold on a session: `with sessions.use(id) as state:`."""

    __slots__ = ("_parker", "_sessions", "_wait")

    def __init__(
        self, sessions: Sessions[S], id: str, shared: bool, create: bool, wait: float | None
    ) -> None:
        super().__init__(id, shared, create)
        self._sessions = sessions
        self._wait = wait
        self._parker: threading.Lock | None = None

    def __enter__(self) -> S:
        sessions = self._sessions
        self.step = ENTERING
        try:
            step = self._ask(sessions._core)
            if step != HELD or sessions._core.policy.stored:
                sessions._enter(self, step, self._wait)
            entry: Entry = self.entry  # type: ignore[assignment]  # it is held now
            if entry.leave is CLOSED:
                sessions._run(let_go_closed(sessions._core, self))
            state: S = entry.state
            self.step = IN_BODY
        except BaseException as error:
            self.step = ENTER_FAILED
            if isinstance(error, IN_OWN_HANDS) and sessions._mend_for(self):
                return self.__enter__()
            if self.entry is not None:
                sessions._mend(self)
            self.frame = None
            raise
        return state

    def __exit__(
        self,
        _type: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.step = LEAVING
        sessions = self._sessions
        try:
            if sessions._exits_slowly or self._needs_care():
                sessions._exit(self, error)
            else:
                self._let_go(sessions, error)
        except BaseException:
            self.step = EXIT_FAILED
            if self.entry is not None:
                sessions._mend(self)
            raise

    def save(self) -> None:
        """Save now, in the middle of a long body; without a store, do nothing."""
        self._sessions._run(checkpoint(self._sessions._core, self))

    def wake(self) -> None:
        """Wake the waiting thread."""
        if self._parker is not None and self._parker.locked():
            self._parker.release()


class Sessions(SessionsBase[S]):
    """Sessions that cannot outgrow their bounds, are never touched in use, and lose nothing."""

    _closers = ("close",)

    if TYPE_CHECKING:

        @overload  # a class, so that `dict` needs no annotation
        def __init__(self, factory: type[S], **options: Unpack[Options[S]]) -> None: ...
        @overload
        def __init__(
            self, factory: Callable[..., S] | None = None, **options: Unpack[Options[S]]
        ) -> None: ...
        def __init__(self, factory: Any = None, **options: Any) -> None: ...

    # ---- using

    def use(
        self,
        id: str,
        *,
        shared: bool = False,
        create: bool = True,
        wait: Duration | None = None,
    ) -> Use[S]:
        """Return a hold to be entered with `with`; it opens the session, once for all callers.

        Exclusive unless `shared`. With `create=False` an unknown id raises `SessionNotFound`.
        `wait` is how long to wait for room in a full table and for another holder.
        """
        if type(id) is not str or not id or not id.isascii():
            id = checked_id(id)  # noqa: A001 - a plain string from here on
        if wait is not None:
            wait = parse_duration(wait, "wait", zero=True)
        return Use(self, id, shared, create, wait)

    def complete(self, id: str) -> None:
        """Expect no more work: park after `linger`, unless a new use comes first."""
        self._park(id, Reason.completed)

    def park(self, id: str) -> None:
        """Take a session out of memory, now or when its holder is done; the store keeps it."""
        self._park(id, Reason.parked)

    def close(self, id: str) -> bool:
        """End a session for good, now or when its holder is done; returns True if there was one.

        The finalizer runs and the stored row is deleted. Closing a closed session does nothing.
        """
        id = checked_id(id)  # noqa: A001 - a plain string from here on
        me = who()
        if self._put_off(partial(self._close_late, id, me)):
            return True
        return self._run(close(self._core, id, me))

    def sweep(self) -> int:
        """See out everything that is due now; return how many sessions left.

        What the store refused is retried, however recent the last try.
        """
        self._core.retry_at = 0.0
        return self._run(upkeep(self._core))

    def shed(self, limit: int) -> int:
        """Park at most `limit` unused sessions, least recently used first; memory is short."""
        return self._run(shed(self._core, limit, Reason.pressure))

    def shutdown(self, *, grace: Duration = "10 s") -> int:
        """Park everything and refuse new uses; return how many were still held after `grace`.

        Those leave when their holders are done. A store that was given as a URL is closed.
        """
        core, until = self._core, time.monotonic() + parse_duration(grace, "grace", zero=True)
        core.table.closing = True
        breath = 0.001
        while True:
            core.retry_at = 0.0
            self._run(mend_all(core))
            self._run(shed(core, NEVER, Reason.shutdown))
            self._run(retry_unsaved(core))
            left = until - time.monotonic()
            if not (core.table.entries or core.tending) or left <= 0:
                break
            time.sleep(min(breath, left))
            breath = min(2 * breath, 0.05)
        self._close_own_store()
        self._say_shut_down(len(core.table.entries))
        for ticker, tick in ((sweeper, self._tick), (renewer, self._renew_tick)):
            ticker.want(tick, 0.0, start=False)  # their threads end when nothing needs them
        return len(core.table.entries)

    def __enter__(self) -> Sessions[S]:
        return self

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        self.shutdown()
        self._tell_unsaved(error)

    # ---- driving

    def _enter(self, hold: Use[S], step: int, wait: float | None) -> None:
        if step == WAIT:
            self._run(mend_for(self._core, hold))
            step = hold.outcome
        self._run(enter(self._core, hold, step, wait))
        self._want_tick()

    def _exit(self, hold: Use[S], error: BaseException | None) -> None:
        if self._put_off(partial(self._exit_late, hold, error)):
            return
        problem = self._run(exit_hold(self._core, hold, error))
        if problem is None:
            self._tidy(None)
            return
        if error is None:
            raise problem
        error.add_note(f"floodline: {telemetry.describe(problem)}")

    def _exit_late(self, hold: Use[S], error: BaseException | None) -> None:
        """End a hold for a caller that cannot be told how it went."""
        try:
            self._exit(hold, error)
        except Exception as problem:
            telemetry.emit("save_failed", self.name, id=hold.id, error=telemetry.describe(problem))

    def _close_late(self, id: str, by: object) -> None:
        """Close for a finalizer or signal handler that has long returned."""
        try:
            self._run(close(self._core, id, by))
        except Exception as problem:
            self._core.hook_failed("close", id, problem)

    def _put_off(self, operation: Any) -> bool:
        """Put off an operation if this thread interrupted us, or works for the store."""
        core = self._core
        if core.guard.is_guest():
            core.guard.late.append(operation)
        elif self._in_store():
            core.after_store.append(operation)
        else:
            return False
        self._soon()
        return True

    def _in_store(self) -> bool:
        asks = self._is_writer_thread
        return asks is not None and bool(asks())

    def _run_put_off(self) -> None:
        """Do what could not be done inside the store; each is a whole operation."""
        waiting = self._core.after_store
        while waiting and not self._in_store():
            try:
                operation = waiting.popleft()
            except IndexError:  # another thread came first
                return
            operation()

    def _park(self, id: str, reason: Reason) -> None:
        id = checked_id(id)  # noqa: A001 - a plain string from here on
        if self._put_off(partial(self._park, id, reason)):
            return
        core = self._core
        self._tidy(core.locked(park, core.table, id, reason, core.clock()))
        if core.table.lingering:
            self._want_tick(core.policy.linger)

    def _tidy(self, leaver: Entry | None) -> None:
        """See out one entry, and a few of those that are due."""
        core, table, me = self._core, self._core.table, get_ident()
        if leaver is not None:
            self._run(see_out(core, leaver))
        if me in core.tidying:  # a finalizer uses sessions: an outer loop continues
            return
        core.tidying.add(me)
        try:
            if core.clock() >= table.next_check:
                self._run(sweep(core, SLICE))
            if table.refused() and core.clock() >= core.retry_at:
                self._run(retry_unsaved(core))
        finally:
            core.tidying.discard(me)
        if table.closing and not table.entries:
            self._close_own_store()

    def _at_exit(self) -> None:
        self.shutdown(grace=self._exit_grace)

    def _close_own_store(self) -> None:
        if self._owns_store and not self._core.table.entries:
            self._store.close()

    def _run(self, flow: Flow[T]) -> T:
        return run(self._core, flow, self._perform)

    def _mend(self, hold: Hold) -> None:
        """Do here what an exception kept a hold from doing; if that fails, others will."""
        if not self._core.guard.is_guest():
            try:
                self._run(mend(self._core, hold))
            except BaseException:
                self._run(mend(self._core, hold))
                raise

    def _mend_for(self, hold: Hold) -> bool:
        """Repair what `hold` asks for; return True if it is worth asking again."""
        return not self._core.guard.is_guest() and self._run(mend_for(self._core, hold))

    def _perform(self, request: Request) -> Any:
        if type(request) is StoreCall:
            answer = getattr(self._store, request.method)(*request.args, **request.kwargs)
            if not self._renewing and request.method == "acquire":
                self._renewing = renewer.want(self._renew_tick, self._core.policy.lease / 3)
            if self._core.after_store:
                self._run_put_off()
            return answer
        match request:
            case UserCall(function, args):
                return function(*args)
            case SeeOut(flow, _):
                return self._run(flow)
            case Await(hold, deadline):
                return self._wait(hold, deadline)
            case Pause(seconds, bell):
                return pause(seconds, bell)
        return None

    def _wait(self, hold: Any, deadline: float) -> bool:
        return wait(self._core, hold, deadline)

    # ---- ticking

    def _want_tick(self, delay: float | None = None) -> None:
        every = self._core.policy.sweep_every
        if every != NEVER and (delay is not None or not self._ticking):
            delay = min(every, self._core.policy.soonest, delay or NEVER)
            self._ticking = sweeper.want(self._tick, delay)

    def _soon(self) -> None:
        sweeper.want(self._tick, 0.0, start=False)

    def _wanted_elsewhere(self) -> None:
        sweeper.want(self._hand_over, 0.0)

    def _hand_over(self) -> None:
        try:
            self._run(answer_wishes(self._core))
        except BaseException as error:
            self._core.hook_failed("store.wanted", "*", error)

    def _tick(self) -> float | None:
        try:
            self._core.guard.run_late()
            self._run_put_off()
            self._run(upkeep(self._core))
        except BaseException as error:  # of a finalizer that ends the thread, say
            sweeper.failed(error)
        self._ticking = False
        table, policy = self._core.table, self._core.policy
        if not table.entries and not self._core.departed:
            return None
        self._ticking = True
        now = self._core.clock()
        soon = min(table.next_check, self._core.retry_at if table.refused() else NEVER) - now
        return min(policy.sweep_every, max(soon, 0.02))

    def _renew_tick(self) -> float | None:
        try:
            self._run(renew(self._core))
            if keeps_dead_leases(self._core) or self._core.wanted:
                sweeper.want(self._tick, 0.0)
        except BaseException as error:
            self._core.hook_failed("store.renew", "*", error)
        self._renewing = False
        if not self._core.table.entries:  # not `leased`: a caller may be about to get a lease
            return None
        self._renewing = True
        return self._core.policy.lease / 3
