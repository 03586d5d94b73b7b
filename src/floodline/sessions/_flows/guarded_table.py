"""What `Sessions` and `AsyncSessions` share: the table, its lock, the hooks and the counters."""

from __future__ import annotations

import itertools
from _thread import get_ident
from asyncio import _get_running_loop, current_task
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar
from weakref import ref

from floodline import telemetry
from floodline._clock import Clock
from floodline._interruptible_lock import Guard
from floodline.errors import ReentrantUse
from floodline.sessions._flows.departed import Departed
from floodline.sessions._flows.requests import UserCall
from floodline.sessions._flows.state_codec import StateCodec
from floodline.sessions._flows.store_counts import Stored
from floodline.sessions._scope import SessionScope
from floodline.sessions._table.entry import GONE, Entry, Hold, Work
from floodline.sessions._table.policy import Policy
from floodline.sessions._table.table import Table
from floodline.sessions._table.wishes import detach
from floodline.telemetry import Reason

T = TypeVar("T")
_inherited: list[object] = []  # floodline: bounded[what one fork inherits]


@dataclass(slots=True)
class Hooks:
    """The user's callables."""

    factory: Callable[..., Any]
    wants_id: bool
    on_open: Callable[[str, Any], Any] | None
    on_leave: Callable[[str, Any, Any], Any] | None
    close_state: bool
    weigh: Callable[[Any], int] | None


@dataclass(slots=True)
class Counters:
    """The counters that only go up."""

    opened: int = 0
    created: int = 0
    loaded: int = 0
    saved: int = 0
    unchanged: int = 0
    save_errors: int = 0
    conflicts: int = 0
    quarantined: int = 0
    leases_lost: int = 0
    stuck: int = 0
    hook_errors: int = 0
    finalizers_not_run: int = 0
    purged: int = 0


class Core:
    """The parts that the flows work on; a driver owns one."""

    def __init__(
        self,
        policy: Policy,
        hooks: Hooks,
        codec: StateCodec,
        clock: Clock,
        owner: Callable[[], str],
        scope: SessionScope | None,
        closers: tuple[str, ...],
    ) -> None:
        self.policy, self.hooks, self.codec, self.clock = policy, hooks, codec, clock
        self.make_owner, self.scope, self.closers = owner, scope, closers
        self.row_store: Any = None  # the store, if it has row logs
        self.told: Any = None  # called, and held weakly, when another process wants a session
        self.counters = Counters()
        self.start_empty()

    def start_empty(self) -> None:
        """Start with nothing live, at construction and in a forked child."""
        self.table = Table(self.policy)
        self.table.undo.deferring = True
        self.guard = Guard()
        self.departed = Departed(self.policy.name)
        self.stored = Stored()
        self.owner = self.make_owner() if self.policy.stored else ""
        self._write_prefix = blake2b(self.owner.encode(), digest_size=8).hexdigest()
        self._writes = itertools.count(1)
        self.retry_at = 0.0
        self.retry_delay = 0.0
        self.acting: dict[object, Work] = {}  # the callers that are working on sessions
        self.returning: dict[tuple[str, int], Work] = {}  # leases that are being given back
        self.tending: set[str] = set()  # upkeep that is calling the store
        self.tidying: set[int] = set()  # threads that see out what is due
        self._hears = False
        self.wanted: set[str] = set()  # sessions that another process has asked for
        self.after_store: deque[Callable[[], object]] = deque()  # put off by finalizers

    def locked(self, function: Callable[..., T], *args: Any) -> T:
        """Call a method of the table as one critical section: it is done, or has not begun."""
        guard, undo = self.guard, self.table.undo
        try:
            with guard.lock:
                if guard.busy:
                    raise interrupted()
                guard.busy = True
                try:
                    if undo.pending:  # a caller was interrupted while putting things back
                        undo.roll_back()
                    result = function(*args)
                    if undo.pending:
                        undo.commit()
                except BaseException:
                    undo.roll_back()
                    raise
                finally:
                    guard.busy = False
        finally:
            guard.run_late_if_outside()
        return result

    def look(self, function: Callable[..., T], *args: Any) -> T:
        """Like `locked`, for read-only calls, which a finalizer or signal handler may make too."""
        return function(*args) if self.guard.is_guest() else self.locked(function, *args)

    def work(self) -> Work:
        """Return the caller's current work, which ends with its outermost flow."""
        return self.acting.get(who()) or Work()

    def new_write_id(self) -> str:
        """Return a unique name for one write."""
        return f"{self._write_prefix}-{next(self._writes)}"

    def hook_failed(self, hook: str, id: str, error: BaseException) -> None:
        """Count and report an error in user code that must not stop us."""
        self.counters.hook_errors += 1
        telemetry.emit(
            "hook_error", self.policy.name, hook=hook, id=id, error=telemetry.describe(error)
        )

    def make_state(self, id: str) -> UserCall:
        """Return the call that creates a new state."""
        return UserCall(self.hooks.factory, (id,) if self.hooks.wants_id else ())

    def bell(self, id: str) -> Any:
        """Return what rings when a session that is held elsewhere becomes free, or None."""
        if not hasattr(type(self.row_store), "bell"):
            return None
        return self.row_store.bell(self.policy.name, id)

    def hear_wishes(self) -> None:
        """Have the store tell us who wants a session of ours, if we keep leases of idle ones."""
        if self._hears or self.policy.durability != "park":
            return
        self._hears = True
        if hasattr(type(self.row_store), "on_wanted"):
            self.row_store.on_wanted(self.owner, self.told)

    def lease_taken(self, entry: Entry, fence: int) -> None:
        """Note a lease, so that it is renewed."""
        entry.fence, entry.asking = fence, False
        self.table.leased[entry.id] = entry

    def lease_ended(self, entry: Entry) -> None:
        """Forget a lease."""
        leased = self.table.leased
        if entry.id in leased and leased[entry.id] is entry:  # no call, so nothing comes between
            del leased[entry.id]
        entry.fence = 0

    def written(self, entry: Entry, weight: int, released: bool) -> None:
        """Note that the store has the state, and what it weighs there."""
        if weight != entry.weight:
            self.table.weigh(entry, weight)
        if released:
            self.lease_ended(entry)

    def opened(self, hold: Hold, now: float) -> None:
        """Note that the session is live."""
        entry = hold.entry
        assert entry is not None
        self.table.opened(hold, now)
        if self.policy.stored:
            self.stored.moved(entry, into_memory=True)

    def left(self, entry: Entry, reason: Reason, row_gone: bool) -> bool:
        """Note that the session has left memory; False if its row must be deleted first."""
        done = self.table.left(entry, reason, row_gone)
        if done and not row_gone:
            self.stored.moved(entry, into_memory=False)
        return done

    def detach(self, hold: Hold, reason: Reason) -> Entry | None:
        """Note that the state of a held session has left memory; see `Table.detach`."""
        if hold.entry is not None:
            self.stored.moved(hold.entry, into_memory=False)
        return detach(self.table, hold, reason)

    def disown(self) -> None:
        """Start over in a forked child: earlier holds end without a trace.

        What was inherited is kept: freeing it would run the `__del__` of the parent's states.
        """
        table = self.table
        held = [hold.entry for hold in table.shared if hold.entry is not None]
        for entry in (*table.entries.values(), *held):
            entry.phase = GONE
            entry.leave = entry.holder = None
        _inherited.append((table, self.guard))
        self.start_empty()


def who() -> object:
    """Return the current task, or the id of the thread.

    The task is referenced weakly, so that an abandoned one is collected and lets go.
    """
    loop = _get_running_loop()
    task = None if loop is None else current_task(loop)
    return get_ident() if task is None else ref(task)


def interrupted() -> ReentrantUse:
    """Return the error for a call that cannot be put off."""
    return ReentrantUse(
        "sessions were used by a finalizer or signal handler that interrupted floodline's own "
        "work; hand the work to a thread or task instead"
    )
