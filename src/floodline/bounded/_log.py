"""`BoundedLog`: a sequence that forgets its oldest items."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

from floodline._clock import Clock
from floodline._interruptible_lock import Guard
from floodline._units import Duration, Size
from floodline.bounded import _arguments as bounds
from floodline.bounded._hooks import Exits, Section
from floodline.bounded._registry import enrol, name_of, refuse_copy
from floodline.bounded._stats import LogStats
from floodline.telemetry import Reason

if TYPE_CHECKING:
    import typing_extensions  # type checkers include it; `typing` supports defaults from 3.13 on

    T = typing_extensions.TypeVar("T", default=Any)
else:
    T = TypeVar("T")
R = TypeVar("R")


class Record(NamedTuple, Generic[T]):
    """An item, its weight, and when it expires."""

    item: T
    weight: int
    dies: float


class Tape(Generic[T]):
    """The records of a log and the rules by which they leave; the caller holds the lock."""

    __slots__ = ("_max_bytes", "_max_items", "added", "bytes", "gone", "left", "records")

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self._max_items, self._max_bytes = max_items, max_bytes
        self.records: deque[Record[T]] = deque()
        self.gone: list[tuple[T, Reason]] = []
        self.left: dict[str, int] = {}
        self.added = self.bytes = 0

    def append(self, record: Record[T], now: float) -> None:
        """Append a record, and forget the oldest ones above a limit."""
        self.expire(now)
        self.records.append(record)
        self.added += 1
        self.bytes += record.weight
        while len(self.records) > self._max_items:
            self._forget(Reason.count)
        while self.bytes > self._max_bytes:
            self._forget(Reason.bytes)

    def expire(self, now: float) -> int:
        """Forget records that are too old."""
        before = len(self.records)
        while self.records and now >= self.records[0].dies:
            self._forget(Reason.age)
        return before - len(self.records)

    def drop(self, limit: int, reason: Reason) -> int:
        """Forget up to `limit` of the oldest records."""
        number = min(limit, len(self.records))
        for _ in range(number):
            self._forget(reason)
        return number

    def read(self, now: float) -> list[T]:
        """Return the items that have not expired."""
        self.expire(now)
        return [record.item for record in self.records]

    def at(self, index: int, now: float) -> T:
        """Return one item."""
        self.expire(now)
        return self.records[index].item

    def part(self, index: slice, now: float) -> list[T]:
        """Return some items."""
        self.expire(now)
        start, stop, step = index.indices(len(self.records))
        if step < 0:
            return self.read(now)[index]
        return [record.item for record in islice(self.records, start, stop, step)]

    def _forget(self, reason: Reason) -> None:
        record = self.records.popleft()
        self.bytes -= record.weight
        self.left[reason._value_] = self.left.get(reason._value_, 0) + 1
        self.gone.append((record.item, reason))


class BoundedLog(Sequence[T]):
    """A thread-safe list that forgets its oldest items, by number, bytes or age; O(1) per step.

    `on_evict(item, reason)` is called for each, outside the lock; a hook that raises is counted.
    An item heavier than `max_bytes` raises `TooLarge`, and nothing is forgotten for it. Items older
    than `max_age` are never returned. Iteration and slices work on a snapshot.
    """

    __slots__ = (
        "__weakref__",
        "_clock",
        "_exits",
        "_guard",
        "_limits",
        "_max_age",
        "_scale",
        "_section",
        "_tape",
        "name",
    )

    def __init__(
        self,
        max_items: int | None = None,
        *,
        max_bytes: Size | None = None,
        max_age: Duration | None = None,
        weigh: bounds.Weigh | None = None,
        on_evict: Callable[[T, Reason], object] | None = None,
        pressure: bounds.Pressure | None = None,
        name: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        bounds.need_one("BoundedLog", max_items=max_items, max_bytes=max_bytes, max_age=max_age)
        bounds.callable_or_none(on_evict, "on_evict")
        bounds.pressure_or_none(pressure)
        self.name = name_of("log", name)
        self._limits = bounds.count(max_items, "max_items"), bounds.size(max_bytes, "max_bytes")
        self._max_age = bounds.span(max_age, "max_age")
        self._clock = bounds.forward(clock)
        self._scale = bounds.scale(self.name, weigh, self._limits[1])
        self._guard = Guard()
        self._exits = Exits(on_evict, self.name)
        self._section = Section(self._guard, self._exits)
        self._tape: Tape[T] = Tape(*self._limits)
        enrol(self)
        if pressure is not None:
            pressure.attach(self)

    def _start_anew(self) -> object:
        inherited = (self._tape, self._exits.untold())
        self._guard.reset()
        self._exits.reset()
        self._tape = Tape(*self._limits)
        return inherited

    def append(self, item: T) -> None:
        """Append an item; the oldest leave if that exceeds a limit."""
        weight = 0 if self._scale is None else self._scale(item)
        now = self._clock()
        record = Record(item, weight, now + self._max_age)
        self._do(partial(self._tape.append, record, now), partial(self.append, item))

    def extend(self, items: Iterable[T]) -> None:
        """Append items, one after the other."""
        for item in items:
            self.append(item)

    def clear(self) -> None:
        """Forget everything; `on_evict` is called for each item."""
        self._do(partial(self._tape.drop, bounds.NO_LIMIT, Reason.closed), self.clear)

    def shed(self, limit: int) -> int:
        """Forget up to `limit` of the oldest items, with `Reason.pressure`."""
        return self._locked(partial(self._tape.drop, limit, Reason.pressure), lambda: 0)

    def sweep(self) -> int:
        """Forget the items that are too old, and return how many there were."""
        return self._locked(partial(self._tape.expire, self._clock()), lambda: 0)

    def __len__(self) -> int:
        self.sweep()
        return len(self._tape.records)

    def __iter__(self) -> Iterator[T]:
        return iter(self._read())

    def __reversed__(self) -> Iterator[T]:
        return iter(self._read()[::-1])

    def __contains__(self, item: object) -> bool:
        return item in self._read()

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        now = self._clock()
        if isinstance(index, slice):
            part = partial(self._tape.part, index, now)
            return self._locked(part, lambda: self._glimpse()[index])
        try:
            return self._locked(partial(self._tape.at, index, now), lambda: self._glimpse()[index])
        except IndexError:
            raise IndexError(f"{self.name} has no item {index}") from None

    def stats(self) -> LogStats:
        """Return the current figures; items that are too old leave first."""
        items, tape = len(self), self._tape
        return LogStats(
            kind="log",
            name=self.name,
            items=items,
            max_items=bounds.shown(self._limits[0]),
            bytes=None if self._scale is None else tape.bytes,
            max_bytes=bounds.shown(self._limits[1]),
            left=dict(tape.left),
            hook_errors=self._exits.errors,
            max_age=bounds.shown_span(self._max_age),
            added=tape.added,
        )

    __reduce_ex__ = refuse_copy

    def __repr__(self) -> str:
        return f"<BoundedLog {self.name!r}: {len(self._tape.records)} items>"

    def _read(self) -> list[T]:
        return self._locked(partial(self._tape.read, self._clock()), self._glimpse)

    def _glimpse(self) -> list[T]:
        """Read as a guest, which must not change anything now."""
        now = self._clock()
        return [record.item for record in self._tape.records.copy() if now < record.dies]

    def _locked(self, work: Callable[[], R], guest: Callable[[], R]) -> R:
        return self._section.run(self._tape, work, guest)

    def _do(self, work: Callable[[], Any], operation: Callable[[], object]) -> None:
        self._locked(work, partial(self._guard.late.append, operation))
