"""The entries of a map and the rules by which they leave: a state machine without a lock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final, Generic

from floodline.bounded._arguments import GONE, INFINITE, Limits
from floodline.bounded._entry import Entry, Exit, Hold, K, V
from floodline.bounded._eviction_order import LAZY, RUN, Lines
from floodline.bounded._weak_values import Leftover
from floodline.telemetry import Reason

MISSING: Final[Any] = object()

# module names, because before 3.12 an enum looks its members up each time
AGE, IDLE, COUNT, BYTES = Reason.age, Reason.idle, Reason.count, Reason.bytes
CLOSED, REPLACED = Reason.closed, Reason.replaced


class Table(Generic[K, V]):
    """The caller passes the time and holds the lock; order comes from a counter, `ticks`.

    `gone` collects what must be reported and freed outside the lock. Reads without the lock use
    only `entries`, `idle` and `ticks`.
    """

    __slots__ = (
        "_crowded",
        "_hooked",
        "_left",
        "_limits",
        "_lines",
        "_max_bytes",
        "_max_items",
        "_span",
        "_stamped",
        "_ttl",
        "_usual",
        "bytes",
        "entries",
        "forget",
        "gone",
        "idle",
        "leftovers",
        "pinned",
        "ticks",
    )

    def __init__(
        self, limits: Limits, *, weak: bool = False, weighed: bool = False, hooked: bool = False
    ) -> None:
        self._limits = limits
        self._max_items, self._max_bytes, self._ttl, self.idle, _ = limits
        self._span = min(limits.ttl, limits.idle)
        self._lines: Lines[K, V] = Lines(limits.order, limits.ttl, limits.idle)
        self._hooked = hooked
        self._usual = self._lines.simple and not weak and not weighed
        self.entries: dict[K, Entry[K, V]] = {}
        self.gone: list[Exit[K, V]] = []
        self._left: defaultdict[str, int] = defaultdict(int)
        self.leftovers: dict[K, Leftover] | None = {} if weak else None
        self.forget: Callable[[Leftover], object] | None = None
        self.bytes = self.pinned = self.ticks = self._stamped = self._crowded = 0

    @property
    def left(self) -> dict[str, int]:
        """How many have left, by reason."""
        left = self._left.copy()
        if self._crowded:
            left["count"] += self._crowded
        return dict(left)

    @property
    def hits(self) -> int:
        """How many ticks were hits."""
        sets = len(self.entries) + sum(self.left.values())  # what was set is in or has left
        return self.ticks - sets - self._stamped

    def may_expire(self, now: float) -> bool:
        """Return True if there may be something for `sweep` to remove."""
        return now >= self._lines.safe

    def alive(self, entry: Entry[K, V], now: float) -> bool:
        """Return True if the entry is in and has not expired; a pinned one never expires."""
        if entry.hold is not None:
            return True
        return now < entry.dies and now < entry.touched + self.idle

    # looking for a key

    def find(self, key: K, now: float) -> V:
        """Return the value of `key`, touched or brought back, or MISSING; an expired one leaves."""
        entry = self._living(key, now)
        if entry is not None:
            self.ticks = entry.stamp = self.ticks + 1
            entry.touched = now
            return entry.value
        leftover = self.leftovers.pop(key, None) if self.leftovers else None
        value: V | None = None if leftover is None else leftover()
        if leftover is None or value is None:
            return MISSING  # type: ignore[no-any-return]  # stands for every V
        self.put(key, value, leftover.weight, now)
        self.ticks += 1
        return value

    def find_or_put(self, key: K, value: V, weight: int, now: float) -> V:
        """Return the value of `key`, setting it if it is absent."""
        found = self.find(key, now)
        if found is MISSING:
            self.put(key, value, weight, now)
            return value
        return found

    def _living(self, key: K, now: float) -> Entry[K, V] | None:
        entry = self.entries.get(key)
        if entry is None or self.alive(entry, now):
            return entry
        self._remove(entry, self._why(entry))
        return None

    # setting

    def put(self, key: K, value: V, weight: int, now: float) -> Entry[K, V] | None:
        """Set `key`, after making room for it.

        The common case is spelled out: evict the entry that is first in all lines, untouched. If no
        hook has to be called for it, it is returned for the caller to free outside the lock.
        """
        lines, entries = self._lines, self.entries
        if now >= lines.safe:
            self._expire(now, LAZY)
        if key in entries and (found := self._living(key, now)) is not None:
            self._replace(found, value, weight, now)
            lines.end()
            return None
        victim = None
        line, second = lines.first, lines.second
        if self._usual and len(entries) == self._max_items and now < lines.safe:
            run = line[0]
            if len(run) > 1 and (first := run[0]).stamp == first.filed and first.hold is None:
                if second is None:
                    victim = first
                elif (other := second[0])[0] is first and len(other) > 1:
                    victim = first
                    del other[0]
            if victim is not None:
                del run[0]
                del entries[victim.key]
                victim.dies = GONE
                self._crowded += 1
                if self._hooked:
                    self.gone.append((victim.key, victim.value, COUNT))
        if victim is None and (
            len(entries) >= self._max_items or (weight and self.bytes + weight > self._max_bytes)
        ):
            self._make_room(1, weight, now)
        self.ticks = stamp = self.ticks + 1
        entry: Entry[K, V] = Entry()
        entry.stamp = entry.filed = entry.renewed = entry.place = stamp
        entry.key = key
        entry.value = value
        entry.weight = weight
        entry.touched = now
        entry.dies = now + self._ttl
        entry.hold = None
        if lines.safe == INFINITE:  # otherwise another entry expires before this one
            lines.safe = now + self._span
        run = line[-1]
        other = run if second is None else second[-1]
        if self._usual and len(run) < RUN and len(other) < RUN:  # `Lines.append`, inlined
            run.append(entry)
            if second is not None:
                other.append(entry)
        else:
            lines.append(entry, stamp)
            self.bytes += weight
            if self.leftovers:
                self.leftovers.pop(key, None)
        entries[key] = entry
        if lines.seen:
            lines.end()
        return victim

    def _replace(self, entry: Entry[K, V], value: V, weight: int, now: float) -> None:
        if value is entry.value:
            self._stamped += 1
        else:
            hold = entry.hold
            self._let_go(entry, REPLACED)
            if hold is not None and hold.parked:
                self._lines.add(entry)
        self.bytes += weight - entry.weight
        entry.value, entry.weight = value, weight
        self.ticks = entry.stamp = stamp = self.ticks + 1
        entry.touched, entry.dies = now, now + self._ttl
        self._lines.renew(entry, stamp)
        if len(self.entries) > self._max_items or self.bytes > self._max_bytes:
            self._make_room_beside(entry, now)

    def _make_room_beside(self, entry: Entry[K, V], now: float) -> None:
        """Evict others for `entry`, even if it is first in line."""
        own = None
        if entry.hold is None:
            own = entry.hold = Hold(entry)
        self._make_room(0, 0, now)
        if own is not None:
            entry.hold = None
            if own.parked:
                self._lines.add(entry)

    # leaving

    def take(self, key: K, now: float) -> V:
        """Remove `key` at the user's request; return its value, or MISSING."""
        entry = self._living(key, now)
        leftover = self.leftovers.pop(key, None) if self.leftovers else None
        if entry is not None:
            self._remove(entry, CLOSED)
            return entry.value
        value: V | None = None if leftover is None else leftover()
        return MISSING if value is None else value

    def take_next(self, now: float) -> Entry[K, V] | None:
        """Remove the next in order at the user's request, a pinned one if there is no other."""
        for entry in self.shed(1, CLOSED, now):
            return entry
        for entry in self.entries.values():
            self._remove(entry, CLOSED)
            return entry
        return None

    def clear(self, now: float) -> None:
        """Remove everything, including leftovers."""
        entries = list(self.entries.values())
        self.entries.clear()
        self._lines = Lines(self._limits.order, self._ttl, self.idle)
        self.bytes = 0
        for entry in entries:
            reason = CLOSED if self.alive(entry, now) else self._why(entry)
            entry.dies = GONE
            self._let_go(entry, reason)
        if self.leftovers is not None:
            self.leftovers.clear()

    def sweep(self, now: float, limit: int, budget: int) -> int:
        """Remove at most `limit` expired entries, and put at most `budget` back in order."""
        self._lines.budget = budget
        removed = self._expire(now, limit)
        self._lines.end()
        return removed

    def shed(self, limit: int, reason: Reason, now: float) -> list[Entry[K, V]]:
        """Remove up to `limit` entries that are not pinned, in order."""
        shed: list[Entry[K, V]] = []
        while len(shed) < limit and (victim := self._lines.pop()) is not None:
            self._drop(victim, reason if self.alive(victim, now) else self._why(victim))
            shed.append(victim)
        self._lines.end()
        return shed

    def _expire(self, now: float, limit: int) -> int:
        expired = self._lines.pop_expired(now, limit)
        idle = self.idle
        for entry in expired:
            reason = IDLE if entry.touched + idle < entry.dies else AGE
            if self.leftovers is not None:
                self._drop(entry, reason)
                continue
            del self.entries[entry.key]  # `_drop`, inlined
            self.bytes -= entry.weight
            entry.dies = GONE
            self._left[reason._value_] += 1
            self.gone.append((entry.key, entry.value, reason))
        return len(expired)

    def _make_room(self, items: int, weight: int, now: float) -> None:
        max_items, max_bytes = self._max_items - items, self._max_bytes - weight
        while (crowded := len(self.entries) > max_items) or self.bytes > max_bytes:
            victim = self._lines.pop()
            if victim is None:
                return  # everything left is in use, and may exceed the bound
            reason = COUNT if crowded else BYTES
            self._drop(victim, reason if self.alive(victim, now) else self._why(victim))

    def _remove(self, entry: Entry[K, V], reason: Reason) -> None:
        if entry.hold is None or not entry.hold.parked:
            self._lines.remove(entry)
        self._drop(entry, reason)

    def _drop(self, entry: Entry[K, V], reason: Reason) -> None:
        """Let an entry go that is no longer in any line."""
        del self.entries[entry.key]
        self.bytes -= entry.weight
        entry.dies = GONE
        if self.leftovers is not None and reason is not CLOSED:
            leftover = self.leftovers[entry.key] = Leftover(entry.value, self.forget)
            leftover.key, leftover.weight = entry.key, entry.weight
        self._let_go(entry, reason)

    def _let_go(self, entry: Entry[K, V], reason: Reason) -> None:
        self._left[reason._value_] += 1
        if entry.hold is None:
            self.gone.append((entry.key, entry.value, reason))
        else:
            entry.hold.exit = (entry.key, entry.value, reason)
            entry.hold = None

    def _why(self, entry: Entry[K, V]) -> Reason:
        return IDLE if entry.touched + self.idle < entry.dies else AGE

    # pins

    def pin(self, key: K, now: float) -> tuple[V, Hold[K, V] | None]:
        """Hold the current value of `key`, or return MISSING and None."""
        value = self.find(key, now)
        if value is MISSING:
            return value, None
        entry = self.entries[key]
        if entry.hold is None:
            entry.hold = Hold(entry)
            self.pinned += 1
        entry.hold.count += 1
        return value, entry.hold

    def unpin(self, hold: Hold[K, V], now: float) -> None:
        """Give a hold back; at the last one idle time starts and the bounds apply again."""
        hold.count -= 1
        if hold.count:
            return
        self.pinned -= 1
        if hold.exit is not None:
            self.gone.append(hold.exit)
            return
        entry = hold.entry
        entry.hold = None
        self.ticks = entry.stamp = self.ticks + 1
        self._stamped += 1
        entry.touched = now
        if hold.parked:
            self._lines.add(entry)
        else:
            self._lines.watch(entry)
        self._make_room(0, 0, now)
        self._lines.end()
