"""What both kinds of `Sessions` have in common: the arguments, and everything that needs no I/O."""

from __future__ import annotations

import atexit
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from floodline import telemetry
from floodline._callables import takes_key
from floodline._clock import Clock, checked, forward
from floodline._session_options import SETTINGS, Durability, OnError, WhenFull
from floodline._units import Duration, Size
from floodline.bounded import Pressure
from floodline.errors import ConfigError, SaveFailed, SessionNotFound
from floodline.sessions._flows.guarded_table import Core, Hooks
from floodline.sessions._flows.state_codec import StateCodec
from floodline.sessions._scope import SessionScope
from floodline.sessions._table import queries
from floodline.sessions._table.entry import Entry
from floodline.sessions._table.policy import check_parts, read_policy
from floodline.settings import default, resolve
from floodline.stores import AsyncStore, Store, new_owner, open_store
from floodline.telemetry import Reason, Stats

if TYPE_CHECKING:
    import typing_extensions  # type checkers include it; `typing` supports defaults from 3.13 on

    from floodline.history import Conversation

    S = typing_extensions.TypeVar("S", default=Conversation)
else:
    S = TypeVar("S")


@dataclass(slots=True, frozen=True, kw_only=True)
class SessionsStats(Stats):
    """`items` counts the live ones; `left` says why the others left.

    `parked` and what follows it are figures of the store, read at each upkeep and so None before
    the first one; `store_rows` counts the live ones too.
    """

    held: int
    waiting: int
    parking: int
    unsaved: int
    leases: int
    grown: int
    tombstones: int
    retained: int
    unchecked: int
    opened: int
    created: int
    loaded: int
    saved: int
    unchanged: int
    save_errors: int
    conflicts: int
    quarantined: int
    leases_lost: int
    stuck: int
    purged: int
    finalizers_not_run: int
    parked: int | None
    store_rows: int | None
    store_file_bytes: int | None


class SessionsBase(ABC, Generic[S]):
    """Reads the arguments and answers questions; see `Sessions` and `AsyncSessions`."""

    _closers: tuple[str, ...]
    _exit_grace = 2.0
    _ticking = False
    _renewing = False

    def __init__(
        self,
        factory: Callable[..., S] | None = None,
        *,
        idle: Duration | None = default("30 min"),
        max_age: Duration | None = default(None),
        max_sessions: int | None = default(1000),
        max_bytes: Size | None = default(None),
        store: Store | AsyncStore | str | None = default(None),
        state_type: Any = None,
        weigh: Callable[[S], int] | None = None,
        on_open: Callable[[str, S], Any] | None = None,
        on_leave: Callable[[str, S, Reason], Any] | None = None,
        close_state: bool = True,
        durability: Durability = default("use"),
        on_error: OnError = default("save"),
        when_full: WhenFull = default("wait"),
        wait: Duration | None = default("10 s"),
        busy_wait: Duration | None = default("5 min"),
        max_hold: Duration | None = default("5 min"),
        lease: Duration = default("15 s"),
        linger: Duration = default(0),
        tombstone: Duration | None = default(None),
        retain: Duration | None = default(None),
        pressure: Pressure | None = None,
        sweep_every: Duration | None = default("60 s"),
        scope: SessionScope | None = None,
        name: str = "sessions",
        clock: Clock | None = None,
    ) -> None:
        given = locals()  # each option under its name, as declared in `_session_options`
        given = given | resolve(**{option: given[option] for option in SETTINGS})
        store = given["store"]
        policy = read_policy(given, stored=store is not None, weighed=weigh is not None)
        check_parts(given)
        make = _checked_factory(factory)
        self.name = name
        self._core = Core(
            policy,
            Hooks(make, takes_key(make), on_open, on_leave, close_state, weigh),
            StateCodec(state_type, make),
            forward(clock and checked(clock)),
            partial(new_owner, name),
            scope,
            self._closers,
        )
        self._exits_slowly = policy.stored or weigh is not None
        self._owns_store = isinstance(store, str)
        self._store: Any = open_store(store) if isinstance(store, str) else store
        self._core.row_store = self._store if hasattr(self._store, "append_rows") else None
        self._core.told = weakref.WeakMethod(self._wanted_elsewhere)
        self._is_writer_thread = getattr(self._store, "is_writer_thread", None)
        telemetry.register(self)
        if pressure is not None:
            pressure.attach(self)

    def __len__(self) -> int:
        return self._core.look(queries.count_live, self._core.table, self._core.clock())

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and bool(id) and self._find(id) is not None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {self._core.table.live} live>"

    def ids(self) -> list[str]:
        """Return the ids of the live sessions."""
        return self._core.look(queries.live_ids, self._core.table, self._core.clock())

    def peek(self, id: str) -> S | None:
        """Return the state of a live session without using it, or None; do not change it."""
        entry = self._find(id)
        return None if entry is None else entry.state

    def touch(self, id: str) -> bool:
        """Count the idle time of a live session from now; False if it is not live."""
        id = checked_id(id)  # noqa: A001 - a plain string from here on
        core = self._core
        if core.guard.is_guest():
            core.guard.late.append(partial(self.touch, id))
            return id in self
        return core.locked(queries.touch, core.table, id, core.clock())

    def bind(self, id: str, owner: object) -> None:
        """Park a live session when `owner`, the last of those bound to it, has died."""
        entry = self._find(id)
        if entry is None:
            raise SessionNotFound(f"session {id!r} is not live; bind it inside a use")
        self._core.locked(self._bind, entry, owner)

    def _bind(self, entry: Entry, owner: object) -> None:
        sessions, key = weakref.ref(self), id(owner)  # owners may be equal, or have no hash
        owners = entry.owners = {} if entry.owners is None else entry.owners

        def died(_: object) -> None:
            owners.pop(key, None)
            me = sessions()
            bound = None if me is None else me._core.table.entries.get(entry.id)
            if me is not None and bound is not None and bound.owners is owners and not owners:
                me._core.table.abandon(bound)
                me._soon()

        owners[key] = weakref.ref(owner, died)

    @abstractmethod
    def _exit_late(self, hold: Any, error: BaseException | None) -> None:
        """End a hold for a caller that cannot be told how it went."""

    @abstractmethod
    def _tidy(self, leaver: Entry | None) -> None:
        """See out one entry, and a few of those that are due."""

    @abstractmethod
    def _wanted_elsewhere(self) -> None:
        """Schedule the hand-over of what others want; called by a thread of the store."""

    @abstractmethod
    def _soon(self) -> None:
        """Schedule the upkeep soon; called by the garbage collector."""

    def _find(self, id: str) -> Entry | None:
        id = checked_id(id)  # noqa: A001 - a plain string from here on
        return self._core.look(queries.find_live, self._core.table, id, self._core.clock())

    def __del__(self) -> None:
        """See out what a collected object still has in memory, so that nothing is lost."""
        core = getattr(self, "_core", None)
        if core is not None and core.table.entries and not core.table.closing:
            try:
                self._exit_grace = 0.0  # nothing can hold a session of it any more
                self._at_exit()
            except Exception as error:
                core.hook_failed("__del__", "*", error)

    def _tell_unsaved(self, error: BaseException | None) -> None:
        """Report at the end of a `with` block what the store refused; it is still in memory."""
        left = list(self._core.table.entries.values())
        unsaved = sum(entry.dirty and entry.holder is None for entry in left)
        if not unsaved:
            return
        text = (
            f"{unsaved} sessions of {self.name!r} could not be saved and are still in memory; "
            "fix the store and call shutdown() again"
        )
        if error is None:
            raise SaveFailed(text)
        error.add_note(f"floodline: {text}")

    def _say_shut_down(self, left: int) -> None:
        telemetry.unregister(self)
        if left:
            telemetry.emit("shutdown_incomplete", self.name, sessions=left)

    @abstractmethod
    def shed(self, limit: int) -> Any:
        """Park at most `limit` unused sessions, least recently used first; memory is short."""

    @abstractmethod
    def _at_exit(self) -> None:
        """Save what is left when the interpreter ends."""

    def stats(self) -> SessionsStats:
        """Return the current figures."""
        core = self._core
        table, policy = core.table, core.policy
        weighed = policy.stored or core.hooks.weigh is not None
        return SessionsStats(
            kind="sessions",
            name=self.name,
            items=table.live,
            max_items=policy.max_sessions,
            bytes=table.bytes if weighed else None,
            max_bytes=policy.max_bytes,
            left={str(reason): n for reason, n in list(table.left_by.items())},
            held=max(0, table.live - len(table.idle) - len(table.unsaved)),
            waiting=len(table.waiting) + len(table.seats.room),
            parking=table.seats.parking,
            unsaved=len(table.unsaved),
            leases=len(table.leased),
            grown=table.seats.grown,
            tombstones=len(table.tombs),
            retained=core.departed.retained,
            unchecked=core.departed.unchecked,
            **asdict(core.counters),
            parked=core.stored.parked,
            store_rows=core.stored.rows,
            store_file_bytes=core.stored.file_bytes,
        )

    def _after_fork(self) -> None:
        self._ticking = self._renewing = False
        self._core.disown()


@atexit.register
def _shut_all_down() -> None:
    for holder in telemetry.holders():
        if isinstance(holder, SessionsBase) and not holder._core.table.closing:
            try:
                holder._at_exit()
            except BaseException as error:  # the others must be saved too
                holder._core.hook_failed("atexit", "*", error)


def checked_id(id: object) -> str:
    """Return the id as a plain string, if it is a non-empty one that a store can write."""
    if not isinstance(id, str) or not id:
        raise ConfigError(f"a session id must be a non-empty string, not {id!r}")
    if not id.isascii() and any("\ud800" <= letter <= "\udfff" for letter in id):
        raise ConfigError(
            f"session id {id!r} contains a lone surrogate, which no store can write; "
            "decode what it comes from with errors='strict' or 'replace'"
        )
    return str.__str__(id)  # a subclass may bring its own hash, which is user code


def _checked_factory(factory: Callable[..., Any] | None) -> Callable[..., Any]:
    if factory is None:
        from floodline.history import Conversation

        return Conversation
    if not callable(factory):
        raise ConfigError(
            f"factory={factory!r} must be a callable that returns a new state, or None"
        )
    return factory
