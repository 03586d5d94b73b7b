"""The store in memory: the semantics of the SQLite store, for tests and short-lived programs."""

from __future__ import annotations

import bisect
import os
import threading
import time
import weakref
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from floodline._clock import Clock, checked
from floodline.errors import SessionConflict, SessionNotFound, StoreClosed, StoreUnavailable
from floodline.stores._calls import AwaitedCalls, BlockingCalls, Kept
from floodline.stores._lease_clock import machine_clock
from floodline.stores._memory.row_logs import Key, RowLogs
from floodline.stores._owner import owner_is_dead
from floodline.stores._protocol import Grant, Held, Record, StoreStats
from floodline.stores._refusals import (
    KEPT_BYTES,
    KEPT_ROWS,
    LOST,
    conflict_message,
    not_found_message,
    why_refused,
)
from floodline.stores._retention_clock import RetentionClock
from floodline.stores._rows.log import Append, LogStats, Row, pack_rows, why_rows_refused


@dataclass(slots=True)
class _Row:
    version: int
    envelope: bytes
    write_id: str
    used_at: float


@dataclass(slots=True)
class _Lease:
    owner: str
    fence: int
    since: float
    until: float


class _Kept:
    """A capped list of records: the oldest leave first, and are counted."""

    __slots__ = ("bytes", "dropped", "records")

    def __init__(self) -> None:
        self.records: OrderedDict[Any, Kept] = OrderedDict()
        self.bytes = self.dropped = 0

    def add(self, key: Any, kept: Kept) -> None:
        if key in self.records:
            return
        self.records[key] = kept
        self.bytes += len(kept.envelope)
        while len(self.records) > KEPT_ROWS or self.bytes > KEPT_BYTES:
            _, oldest = self.records.popitem(last=False)
            self.bytes -= len(oldest.envelope)
            self.dropped += 1

    def newest(self, name: str | None, limit: int) -> list[Kept]:
        found = [kept for kept in reversed(self.records.values()) if name in (None, kept.name)]
        return found[:limit]


class _Table:
    """The operations, on dicts; the caller holds the lock."""

    def __init__(self, clock: Clock, wall: Clock) -> None:
        self._clock, self._wall = clock, wall
        self._dates = RetentionClock()
        self._rows: dict[Key, _Row] = {}
        self._counts: Counter[str] = Counter()  # rows by name: sessions ask every few seconds
        self._row_bytes = 0
        self._logs = RowLogs()
        self._leases: dict[Key, _Lease] = {}
        self._conflicts, self._quarantine = _Kept(), _Kept()
        self._fence = self._floor = self._refused = 0

    def acquire(
        self, name: str, id: str, owner: str, lease: float, known: int | None
    ) -> Grant | Held:
        key, now = (name, id), self._clock()
        self._fence += 1  # also for a caller that must wait, as in the SQLite store
        present = self._leases.get(key)
        if present is not None and present.owner != owner and present.since <= now < present.until:
            alive = not owner_is_dead(present.owner)
            if alive:
                return Held(present.owner, present.until - now)
        self._leases[key] = _Lease(owner, self._fence, now, now + lease)
        row = self._rows.get(key)
        if row is None:
            return Grant(self._fence, 0, None)
        return Grant(self._fence, row.version, None if row.version == known else row.envelope)

    def renew(self, name: str, owner: str, fences: dict[str, int], lease: float) -> set[str]:
        lost, now = set(), self._clock()
        for one, fence in fences.items():
            present = self._leases.get((name, one))
            if present is None or present.fence != fence or present.owner != owner:
                lost.add(one)
            else:
                present.since, present.until = now, now + lease
        return lost

    def release(self, name: str, id: str, fence: int) -> None:
        if self._end_lease((name, id), fence):
            row = self._rows.get((name, id))
            if row is not None:
                row.used_at = self._stamp()

    def save(
        self,
        name: str,
        id: str,
        envelope: bytes,
        fence: int,
        version: int,
        write_id: str,
        release: bool,
        rows: Sequence[Append],
    ) -> int:
        key = (name, id)
        row, ours = self._rows.get(key), self._is_leased(key, fence)
        stored = row.version if row is not None else 0
        known = row is not None and row.write_id == write_id
        good = not known and ours and stored == version
        planned = self._logs.plan(key, rows) if good and rows else []
        if release:
            self._end_lease(key, fence)
        if known:
            return stored
        if not good:
            self._keep_conflict(name, id, envelope, why_refused(ours, version, stored), rows)
        new = version + 1 if version else self._floor + 1
        self._rows[key] = _Row(new, bytes(envelope), write_id, self._stamp())
        self._count(name, row is None, len(envelope) - (len(row.envelope) if row else 0))
        self._logs.append(key, planned, self._wall())
        return new

    def append_rows(
        self, name: str, id: str, rows: Sequence[Append], fence: int | None, create: bool
    ) -> int:
        key = (name, id)
        if fence is not None and not self._is_leased(key, fence):
            self._keep_rows(name, id, LOST, rows)
            raise SessionConflict(conflict_message(name, id, LOST))
        row = self._rows.get(key)
        if row is None and not create:
            raise SessionNotFound(not_found_message(name, id))
        planned = self._logs.plan(key, rows)
        if row is None:
            self._rows[key] = row = _Row(self._floor + 1, b"", "", 0.0)
            self._count(name, 1, 0)
        row.used_at = self._stamp()
        return self._logs.append(key, planned, self._wall())

    def get_rows(self, name: str, id: str, log: str, keys: Sequence[str]) -> dict[str, Row]:
        return self._logs.get((name, id), log, keys)

    def rows(
        self,
        name: str,
        id: str,
        log: str,
        after: str | int | None,
        before: str | int | None,
        limit: int,
        newest_first: bool,
    ) -> list[Row]:
        return self._logs.page((name, id), log, after, before, limit, newest_first)

    def logs(self, name: str, id: str, after: str, limit: int) -> list[LogStats]:
        return self._logs.logs((name, id), after, limit)

    def count_rows(self, name: str, id: str, log: str | None) -> int:
        return self._logs.count((name, id), log)

    def delete_rows(
        self,
        name: str,
        id: str,
        log: str | None,
        keys: Sequence[str] | None,
        fence: int | None,
    ) -> int:
        if fence is not None and not self._is_leased((name, id), fence):
            raise SessionConflict(conflict_message(name, id, LOST))
        return self._logs.delete((name, id), log, keys)

    def written(self, name: str, id: str, write_id: str) -> int | None:
        row = self._rows.get((name, id))
        return row.version if row is not None and row.write_id == write_id else None

    def load(self, name: str, id: str) -> Record | None:
        row = self._rows.get((name, id))
        return None if row is None else Record(row.version, row.envelope)

    def delete(self, name: str, id: str, fence: int) -> bool:
        if not self._end_lease((name, id), fence):
            raise SessionConflict(conflict_message(name, id, LOST))
        return self._forget((name, id))

    def quarantine(self, name: str, id: str, envelope: bytes, why: str) -> None:
        kept = Kept(name, id, self._wall(), why, bytes(envelope))
        self._quarantine.add((name, id, kept.envelope), kept)

    def purge(self, name: str, unused: float, limit: int) -> list[str]:
        now = self._clock()
        stamp, judged = self._dates.look(now, self._wall())
        oldest = judged - unused
        for key, row in self._rows.items():
            if key[0] == name and row.used_at > stamp:  # stamped while the date was wrong
                row.used_at = stamp
        found = sorted(
            (row.used_at, key)
            for key, row in self._rows.items()
            if key[0] == name and row.used_at <= oldest and self._unleased(key, now - unused)
        )
        gone = [key for _, key in found[:limit]]
        for key in gone:
            self._leases.pop(key, None)
            self._forget(key)
        return [key[1] for key in gone]

    def ids(self, name: str, after: str, limit: int) -> list[str]:
        found = sorted(key[1] for key in self._rows if key[0] == name)
        first = bisect.bisect_right(found, after)
        return found[first : first + limit]

    def names(self, after: str, limit: int) -> list[str]:
        return sorted(name for name, rows in self._counts.items() if rows and name > after)[:limit]

    def count(self, name: str) -> int:
        return self._counts[name]

    def stats(self) -> StoreStats:
        return StoreStats(
            kind="memory",
            rows=len(self._rows),
            row_bytes=self._row_bytes,
            leases=len(self._leases),
            conflicts=len(self._conflicts.records),
            quarantined=len(self._quarantine.records),
            conflicts_dropped=self._conflicts.dropped,
            quarantine_dropped=self._quarantine.dropped,
            file_bytes=None,
            log_rows=self._logs.rows,
            log_bytes=self._logs.bytes,
        )

    def conflicts(self, name: str | None, limit: int) -> list[Kept]:
        return self._conflicts.newest(name, limit)

    def quarantined(self, name: str | None, limit: int) -> list[Kept]:
        return self._quarantine.newest(name, limit)

    def _stamp(self) -> float:
        return self._dates.look(self._clock(), self._wall())[0]

    def _is_leased(self, key: Key, fence: int) -> bool:
        lease = self._leases.get(key)
        return lease is not None and lease.fence == fence

    def _end_lease(self, key: Key, fence: int) -> bool:
        if not self._is_leased(key, fence):
            return False
        del self._leases[key]
        return True

    def _unleased(self, key: Key, since: float) -> bool:
        lease = self._leases.get(key)
        return lease is None or lease.until <= since or lease.since > self._clock()

    def _forget(self, key: Key) -> bool:
        row = self._rows.pop(key, None)
        if row is not None:
            self._floor = max(self._floor, row.version)
            self._count(key[0], -1, -len(row.envelope))
            self._logs.forget(key)
        return row is not None

    def _count(self, name: str, rows: int, size: int) -> None:
        self._counts[name] += rows  # floodline: bounded[one for each kind of session]
        self._row_bytes += size

    def _keep_rows(self, name: str, id: str, why: str, rows: Sequence[Append]) -> None:
        if rows:
            self._refused += 1
            kept = Kept(name, id, self._wall(), why_rows_refused(why), pack_rows(rows))
            self._conflicts.add(self._refused, kept)

    def _keep_conflict(
        self, name: str, id: str, envelope: bytes, why: str, rows: Sequence[Append]
    ) -> None:
        self._keep_rows(name, id, why, rows)
        self._refused += 1
        self._conflicts.add(self._refused, Kept(name, id, self._wall(), why, bytes(envelope)))
        raise SessionConflict(conflict_message(name, id, why))


class MemoryStore(BlockingCalls):
    """A store that ends with the process; `aio` is its coroutine twin.

    `clock` times the leases, `wall` the retention. A forked child starts with an empty one. A call
    by a finalizer that struck inside another call is refused with `StoreUnavailable`: ask
    `is_writer_thread` first, and do it later.
    """

    def __init__(self, *, clock: Clock | None = None, wall: Clock | None = None) -> None:
        self._clock = checked(clock or machine_clock())
        self._wall = checked(wall or time.time, "wall")
        self._closed = False
        self._reset()
        _stores.add(self)

    @property
    def aio(self) -> AwaitedCalls:
        """The coroutine twin; its calls return at once."""
        return AwaitedCalls(self, self._ask_soon, self._close_soon)

    def is_writer_thread(self) -> bool:
        """Return True if this thread is inside a call, so that another one would be refused."""
        # not by acquiring it: an exception may arrive before it can be released
        return self._busy and self._lock._is_owned()  # type: ignore[attr-defined]  # as Condition

    def close(self) -> None:
        """Refuse all further calls and release the rows; idempotent."""
        self._closed = True
        self._table = _Table(self._clock, self._wall)

    def _reset(self) -> None:
        self._table = _Table(self._clock, self._wall)
        self._lock, self._busy = threading.RLock(), False

    def _ask(self, what: str, /, *args: Any) -> Any:
        with self._lock:
            if self._busy:
                raise StoreUnavailable(f"{what} was called inside another call of this store")
            if self._closed:
                raise StoreClosed(f"{what} was called after close(); create a new MemoryStore")
            self._busy = True
            try:
                return getattr(self._table, what)(*args)
            finally:
                self._busy = False

    async def _ask_soon(self, what: str, /, *args: Any) -> Any:
        return self._ask(what, *args)

    async def _close_soon(self) -> None:
        self.close()


_stores: weakref.WeakSet[MemoryStore] = weakref.WeakSet()


def _after_fork() -> None:
    for store in list(_stores):
        store._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
