"""`BoundedMap`: a mapping that cannot outgrow its bounds."""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, ItemsView, Iterator, MutableMapping, ValuesView
from functools import partial
from typing import Any, Final, TypeVar, cast, overload

from floodline._clock import Clock
from floodline._interruptible_lock import Guard
from floodline._units import Duration, Size
from floodline.bounded import _arguments as bounds
from floodline.bounded._arguments import read_limits
from floodline.bounded._entry import Entry, Hold, K, V
from floodline.bounded._eviction_order import LAZY
from floodline.bounded._hooks import Exits, Section
from floodline.bounded._pin import Pin
from floodline.bounded._registry import enrol, name_of, refuse_copy
from floodline.bounded._single_flight import Flights
from floodline.bounded._stats import MapStats, map_stats
from floodline.bounded._table import MISSING, Table
from floodline.bounded._views import Items, Values
from floodline.bounded._weak_values import forget
from floodline.errors import ConfigError
from floodline.telemetry import Reason

D = TypeVar("D")
R = TypeVar("R")

SLICE: Final = 1024  # entries that a sweep handles before it lets other threads in


class BoundedMap(MutableMapping[K, V]):
    """A thread-safe dict with a limit on items, bytes, age (`ttl`) or idle time, or several.

    Each limit applies on its own, at every call, without a timer. Over a limit the next in `order`
    leaves: the least recently used (`"lru"`), the first set (`"fifo"`, an update keeps the place)
    or the first set or updated (`"oldest"`). `on_evict(key, value, reason)` is called on every way
    out, outside the lock, on the thread that caused it; a hook that raises is counted and reported.
    What is pinned stays, even above the limits. An item heavier than `max_bytes` raises
    `TooLarge`. Only `__hash__` and `__eq__` of keys run inside the lock.

    With `weak=True` a value that was evicted but is still referenced is found again by `get`, `[]`
    and `get_or_create`; `in`, `len` and iteration see only what is inside.
    """

    __slots__ = (
        "__weakref__",
        "_clock",
        "_exits",
        "_flights",
        "_guard",
        "_hooked",
        "_limits",
        "_misses",
        "_plain",
        "_scale",
        "_section",
        "_table",
        "_weak",
        "name",
    )

    def __init__(
        self,
        max_items: int | None = None,
        *,
        max_bytes: Size | None = None,
        ttl: Duration | None = None,
        idle: Duration | None = None,
        order: bounds.EvictionOrder = "lru",
        weigh: bounds.Weigh | None = None,
        on_evict: Callable[[K, V, Reason], object] | None = None,
        weak: bool = False,
        pressure: bounds.Pressure | None = None,
        name: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._limits = read_limits(max_items, max_bytes, ttl, idle, order)
        bounds.callable_or_none(on_evict, "on_evict")
        bounds.pressure_or_none(pressure)
        if weak and on_evict is not None:
            raise ConfigError(
                "weak=True does not go with on_evict: an evicted value may come back; give only one"
            )
        self.name = name_of("map", name)
        self._clock: Clock = bounds.forward(clock, timed=self._limits.timed)
        self._scale = bounds.scale(self.name, weigh, self._limits.max_bytes)
        self._weak, self._plain = weak, not weak and self._scale is None
        self._guard = Guard()
        self._hooked = on_evict is not None
        self._exits = Exits(on_evict, self.name)
        self._section = Section(self._guard, self._exits)
        self._flights: Flights[V] = Flights(MISSING)
        self._start()
        enrol(self)
        if pressure is not None:
            pressure.attach(self)

    def _start(self) -> None:
        self._misses = 0
        self._table: Table[K, V] = Table(
            self._limits, weak=self._weak, weighed=self._scale is not None, hooked=self._hooked
        )
        if self._table.leftovers is not None:
            self._table.forget = partial(forget, self._guard, self._table.leftovers)

    def _start_anew(self) -> object:
        inherited = (self._table, self._exits.untold())
        for part in (self._guard, self._exits, self._flights):
            part.reset()
        self._start()
        return inherited

    # reading: no lock, a hit only stamps its entry

    @overload
    def get(self, key: K, default: None = None) -> V | None: ...
    @overload
    def get(self, key: K, default: V) -> V: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...

    def get(self, key: K, default: Any = None) -> Any:
        """Return the value of `key` and touch it, or return `default`."""
        table = self._table
        entry = table.entries.get(key)
        if entry is not None:
            now = self._clock()
            if now < entry.dies and now < entry.touched + table.idle:
                entry.touched = now
                # one interpreter step, so no two entries get the same stamp
                table.ticks = entry.stamp = table.ticks + 1
                return entry.value
        return self._missed(key, entry, default)

    def __getitem__(self, key: K) -> V:
        table = self._table  # as in `get`: sharing it through a call would cost a third more
        entry = table.entries.get(key)
        if entry is not None:
            now = self._clock()
            if now < entry.dies and now < entry.touched + table.idle:
                entry.touched = now
                table.ticks = entry.stamp = table.ticks + 1
                return entry.value
        value = self._missed(key, entry, MISSING)
        if value is MISSING:
            raise KeyError(key)
        return cast("V", value)

    def _missed(self, key: K, entry: Entry[K, V] | None, default: object) -> object:
        if entry is not None or self._weak:
            value = self._recover(key)
            if value is not MISSING:
                return value
        self._misses += 1
        return default

    def _recover(self, key: K) -> V:
        """Find a `key` that a read without the lock missed: pinned, left over, or just set."""
        now = self._clock()
        return self._locked(partial(self._table.find, key, now), partial(self._glimpse, key, now))

    def _glimpse(self, key: K, now: float) -> V:
        """Find `key` as a guest, which must not change anything now."""
        entry = self._table.entries.get(key)
        if entry is not None and self._table.alive(entry, now):
            return entry.value
        leftover = self._table.leftovers.get(key) if self._table.leftovers else None
        value: V | None = None if leftover is None else leftover()
        if value is None:
            return MISSING  # type: ignore[no-any-return]  # stands for every V
        self._guard.late.append(partial(self._recover, key))
        return value

    def __contains__(self, key: object) -> bool:
        return self._peek(key) is not None

    def _peek(self, key: Any) -> Entry[K, V] | None:
        entry = self._table.entries.get(key)
        return entry if entry is not None and self._table.alive(entry, self._clock()) else None

    def __len__(self) -> int:
        self._expire()
        return len(self._table.entries)

    def __iter__(self) -> Iterator[K]:
        return (entry.key for entry in self._living())

    def __reversed__(self) -> Iterator[K]:
        return iter(list(self)[::-1])

    def _living(self) -> Iterator[Entry[K, V]]:
        for entry in list(self._table.entries.values()):
            if self._table.alive(entry, self._clock()):
                yield entry

    def values(self) -> ValuesView[V]:
        """Return a view that touches nothing."""
        return Values(self)

    def items(self) -> ItemsView[K, V]:
        """Return a view that touches nothing."""
        return Items(self)

    def _locked(self, work: Callable[[], R], guest: Callable[[], R]) -> R:
        """Run `work` inside the section, or `guest` if this thread has interrupted a section."""
        return self._section.run(self._table, work, guest)

    # writing

    def __setitem__(self, key: K, value: V) -> None:
        weight = 0 if self._plain else self._weigh(value)
        now = self._clock()
        guard, table = self._guard, self._table
        lock = guard.lock
        lock.acquire()  # as in `Section.run`, at half the cost of a `with`
        try:
            if guard.busy:
                self._set_late(key, value)
                return
            guard.busy = True
            try:
                _victim = table.put(key, value, weight, now)  # freed when the lock is
                gone = table.gone or None  # an empty list keeps collecting for others
                if gone:
                    table.gone = []
            finally:
                guard.busy = False
        finally:
            lock.release()
        if gone and self._hooked:
            self._exits.tell(gone)
        if guard.late:
            guard.run_late()

    def _set_late(self, key: K, value: V) -> V:
        self._later(partial(self.__setitem__, key, value))
        return value

    def _weigh(self, value: V) -> int:
        if self._weak:
            weakref.ref(value)  # raises if the value cannot be weakly referenced
        return 0 if self._scale is None else self._scale(value)

    def __delitem__(self, key: K) -> None:
        if self._take(key) is MISSING:
            raise KeyError(key)

    @overload
    def pop(self, key: K) -> V: ...
    @overload
    def pop(self, key: K, default: V) -> V: ...
    @overload
    def pop(self, key: K, default: D) -> V | D: ...

    def pop(self, key: K, default: Any = MISSING) -> Any:
        """Remove `key` and return its value, or `default`, or raise `KeyError`."""
        value = self._take(key)
        if value is not MISSING:
            return value
        if default is MISSING:
            raise KeyError(key)
        return default

    def popitem(self) -> tuple[K, V]:
        """Remove and return the next item in order, a pinned one only if there is no other."""
        self._expire()
        now = self._clock()
        entry = self._locked(partial(self._table.take_next, now), self._take_any_late)
        if entry is None:
            raise KeyError(f"{self.name} is empty")
        return entry.key, entry.value

    def clear(self) -> None:
        """Remove everything; `on_evict` is called for each item."""
        now = self._clock()
        self._locked(partial(self._table.clear, now), partial(self._later, self.clear))

    def setdefault(self, key: K, default: V = None) -> V:  # type: ignore[assignment]  # as dict does
        """Return the value of `key`; if it is absent, set it to `default` in the same step."""
        value = self.get(key, MISSING)
        if value is not MISSING:
            return cast("V", value)
        weight, now = self._weigh(default), self._clock()
        return self._locked(
            partial(self._table.find_or_put, key, default, weight, now),
            partial(self._set_late, key, default),
        )

    def _take(self, key: K) -> V:
        now = self._clock()
        return self._locked(partial(self._table.take, key, now), partial(self._take_late, key, now))

    def _take_late(self, key: K, now: float) -> V:
        value = self._glimpse(key, now)
        if value is not MISSING:
            self._later(partial(self._take, key))
        return value

    def _take_any_late(self) -> Entry[K, V] | None:
        for entry in self._living():
            self._later(partial(self._take, entry.key))
            return entry
        return None

    def _later(self, operation: Callable[[], object]) -> None:
        self._guard.late.append(operation)

    # creating

    def get_or_create(self, key: K, factory: Callable[[], V] | Callable[[K], V]) -> V:
        """Return the value of `key`, or set it to what the factory creates.

        The factory runs once for all threads that ask in the meantime, and gets the key if it has a
        required parameter. Its error is raised in all of them and is not kept. A factory that asks
        for its own key gets a `CreationCycle`.
        """
        value = self.get(key, MISSING)
        return self._flights.fetch(self, key, factory) if value is MISSING else value

    async def aget_or_create(self, key: K, factory: Callable[..., V | Awaitable[V]]) -> V:
        """Like `get_or_create`, for coroutines on any event loop; awaitables are awaited.

        A separate task creates the value: cancelling one caller leaves the others waiting, and
        cancelling the last one cancels the creation.
        """
        value = self.get(key, MISSING)
        return await self._flights.afetch(self, key, factory) if value is MISSING else value

    # pinning

    def pin(self, key: K) -> Pin[K, V]:
        """Hold the value of `key` in a `with` block: nothing evicts it there.

        `KeyError` if it is absent. Replacing or deleting it takes effect at once, but `on_evict`
        waits for the last unpin. Idle time counts from the unpin.
        """
        return Pin(key, self._pin, self._unpin, self._guard.late)

    def _pin(self, key: K) -> tuple[V, Hold[K, V] | None]:
        now = self._clock()
        value, hold = self._locked(
            partial(self._table.pin, key, now),
            lambda: (self._glimpse(key, now), None),  # nothing is evicted while this thread is here
        )
        if value is MISSING:
            self._misses += 1
            raise KeyError(key)
        return value, hold

    def _unpin(self, hold: Hold[K, V]) -> None:
        unpin = partial(self._table.unpin, hold, self._clock())
        self._guard.soon(partial(self._locked, unpin, unpin))

    # bounding

    def sweep(self, limit: int | None = None) -> int:
        """Remove all expired items, or at most `limit`, and return how many.

        Costs O(removed), plus once for each item touched since it was last looked at; with a limit,
        at most 1,024 of those are looked at, and the rest by the next call.
        """
        if limit is None:
            return self._expire()
        now = self._clock()
        return self._locked(partial(self._table.sweep, now, limit, SLICE), lambda: 0)

    def _expire(self) -> int:
        removed, now = 0, self._clock()
        # at most as many slices as needed: others may touch faster than this sweeps
        for _ in range(2 + 2 * len(self._table.entries) // SLICE):
            if not self._table.may_expire(now):
                break
            removed += self._locked(partial(self._table.sweep, now, SLICE, SLICE), lambda: 0)
        return removed

    def shed(self, limit: int) -> int:
        """Evict up to `limit` items that are not pinned, in order, with `Reason.pressure`."""
        now, shed = self._clock(), 0
        while shed < limit:
            size = min(limit - shed, LAZY)
            went = self._locked(partial(self._shed_some, size, now), lambda: 0)
            shed += went
            if went < size:
                break
        return shed

    def _shed_some(self, limit: int, now: float) -> int:
        return len(self._table.shed(limit, Reason.pressure, now))

    def stats(self) -> MapStats:
        """Return the current figures; expired items leave first."""
        return map_stats(self, len(self))

    __reduce_ex__ = refuse_copy

    def __repr__(self) -> str:
        return f"<BoundedMap {self.name!r}: {len(self._table.entries)} items>"
