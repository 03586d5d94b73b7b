"""What a hold lets its holder do; the two drivers add how it is entered and left."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, Generic

from floodline.errors import (
    ConfigError,
    HoldDeadlock,
    ReentrantUse,
    SessionClosed,
    SessionConflict,
    SessionError,
)
from floodline.sessions._drivers.sessions_base import S, SessionsBase
from floodline.sessions._flows.guarded_table import Core, interrupted, who
from floodline.sessions._flows.leaving import closed_elsewhere
from floodline.sessions._flows.mending.exit_stacks import queue_of
from floodline.sessions._flows.requests import Flow
from floodline.sessions._flows.saving import save
from floodline.sessions._table.entry import CLOSED, HELD, Entry, Hold
from floodline.stores import Append
from floodline.telemetry import Reason

IN_OWN_HANDS = (ReentrantUse, HoldDeadlock)  # or in those of an abandoned hold


class UseBase(Hold, Generic[S]):
    """The state of a held session, and what is to happen to it."""

    __slots__ = ()

    _sessions: Any  # a slot of each driver's hold

    @property
    def state(self) -> S:
        """The state while it is held; assign to replace it."""
        state: S = self._held().state
        return state

    @state.setter
    def state(self, new: S) -> None:
        self._held_alone("replace").state = new

    def append_rows(self, *appends: Append) -> None:
        """Write rows to logs of this session, in the transaction of its next save.

        Check first what could be refused: a save that raises `RowConflict` or `LogFull` is retried.
        """
        entry = self._held_alone("append rows to")
        if self._sessions._core.row_store is None:
            raise ConfigError(
                f"session {self.id!r} has no row log; give its sessions a store of floodline.stores"
            )
        entry.rows.extend(appends)

    @property
    def waiting_rows(self) -> tuple[Append, ...]:
        """The rows that no save has written yet; those of a save that failed are among them."""
        return tuple(self._held().rows)

    def discard(self) -> None:
        """Do not save at the end: the object leaves, and the next use loads the last saved one."""
        self._held_alone("discard")
        self.discarded = True

    def _needs_care(self) -> bool:
        """Return True if there is more to do at the exit than to release."""
        entry = self.entry
        return self.discarded or entry is None or entry.leave is CLOSED

    def _held(self) -> Entry:
        if self.entry is None or self.outcome != HELD:
            raise SessionError(f"session {self.id!r} is not held by this use; enter it first")
        return self.entry

    def _held_alone(self, what: str) -> Entry:
        entry = self._held()
        if self.shared:
            raise SessionError(
                f"a shared use cannot {what} session {self.id!r}; use it without shared=True"
            )
        return entry

    def _ask(self, core: Core) -> int:
        """Ask the table for the session on behalf of the caller's caller, whose frame is kept."""
        if self.entry is not None:
            raise SessionError(
                f"this use of session {self.id!r} is already in progress; call use() again"
            )
        guard, now = core.guard, core.clock()
        self.who = who()
        self.frame = frame = sys._getframe(2)
        self.site = frame.f_lasti
        self.queue = queue_of(frame)
        try:
            with guard.lock:
                if guard.busy:
                    raise interrupted()
                guard.busy = True
                undo = core.table.undo
                try:
                    if undo.pending:
                        undo.roll_back()
                    step = core.table.enter(self, now)
                    if undo.pending:
                        undo.commit()
                except BaseException:
                    undo.roll_back()
                    raise
                finally:
                    guard.busy = False
        except BaseException:
            self.frame = None
            guard.run_late_if_outside()
            raise
        if guard.late:
            guard.run_late()
        return step

    def _let_go(self, sessions: SessionsBase[S], error: BaseException | None) -> None:
        """Release a hold that has nothing to save or weigh."""
        core = sessions._core
        guard, table, now = core.guard, core.table, core.clock()
        with guard.lock:
            if guard.busy:  # a collected generator or coroutine releases its hold
                guard.late.append(partial(sessions._exit_late, self, error))
                return
            guard.busy = True
            undo = table.undo
            try:
                if undo.pending:
                    undo.roll_back()
                leaver = table.release(self, now)
                if undo.pending:
                    undo.commit()
            except BaseException:
                undo.roll_back()
                raise
            finally:
                guard.busy = False
        if guard.late:
            guard.run_late()
        if leaver is not None or now >= table.next_check:
            sessions._tidy(leaver)


def checkpoint(core: Core, hold: UseBase[Any]) -> Flow[None]:
    """Save a held session now; without a store, do nothing."""
    entry = hold._held_alone("save")
    if not core.policy.stored:
        return
    if entry.leave is Reason.closed:
        raise SessionClosed(f"session {hold.id!r} was closed; a hold from before cannot write")
    try:
        yield from save(core, entry, release=False)
    except SessionConflict:
        hold.discarded = True
        raise


def acknowledgement(core: Core, hold: UseBase[Any]) -> Flow[None]:
    """Save what leaving would save and raise what it would raise, while the hold goes on."""
    entry = hold._held()
    if hold.shared or hold.discarded:
        return
    if entry.leave is Reason.closed:
        problem = closed_elsewhere(hold, entry)
        if problem is not None:
            raise problem
    elif core.policy.durability == "use":
        yield from checkpoint(core, hold)
