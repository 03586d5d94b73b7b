"""The operations of a store in SQL; each runs inside the transaction of its batch.

No `RETURNING` and no upsert without a target, which SQLite has only since 3.35: some systems with
Python 3.11 are older. No numbered parameters, which Python 3.12.1 warns about.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from floodline.errors import SessionConflict, SessionNotFound, StoreCorrupt
from floodline.stores._calls import Kept
from floodline.stores._owner import owner_is_dead
from floodline.stores._protocol import Grant, Held, Record, StoreStats
from floodline.stores._refusals import LOST, conflict_message, not_found_message, why_refused
from floodline.stores._retention_clock import RetentionClock
from floodline.stores._rows.log import Append, pack_rows, why_rows_refused
from floodline.stores._sqlite.dates import keep, resume
from floodline.stores._sqlite.kept import KeptTable
from floodline.stores._sqlite.places import Places, place_of
from floodline.stores._sqlite.row_logs import RowLogs
from floodline.stores._sqlite.statements import (
    FUTURE,
    GRANT,
    LEASE,
    LEASED,
    MAKE,
    RENEW,
    ROW,
    TOTAL,
    UNLEASE,
    UNUSED,
    USE,
    USE_IN_SLOT,
    WRITE,
)

_SLOT = 600.0


class _Elsewhere(Exception):
    """A session that was about to be made is there, but not in its place."""

    def __init__(self, version: int, write_id: str) -> None:
        super().__init__(version)
        self.version, self.write_id = version, write_id


class Operations:
    """Bound to one connection; `begin` gets the times and the size of each batch."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        measure: Callable[[], int],
        path: str,
        dates: RetentionClock,
        kind: str = "sqlite",
    ) -> None:
        cursor = connection.cursor()
        self.execute, self.close = cursor.execute, cursor.close
        self.places, self.row_logs = Places(self.execute, path), RowLogs(self.execute, path)
        logs = self.row_logs
        self.get_rows, self.rows = logs.get, logs.page
        self.logs, self.count_rows, self.has_archive = logs.logs, logs.count, logs.has_archive
        self._conflicts = KeptTable(self.execute, "conflicts")
        self._quarantine = KeptTable(self.execute, "quarantine")
        self._dates = dates
        self._measure, self._kind = measure, kind
        self._now = self._wall = self._stamp = self._judged = 0.0
        self._fence = self._wanted = self._slot = 0
        self._totals: dict[str, tuple[int, int]] = {}

    def begin(self, now: float, wall: float, acquires: int) -> None:
        """Forget the last batch; its fences may have been rolled back."""
        self._now, self._wall = now, wall
        if not self._dates.begun:
            resume(self.execute, self._dates, now, wall)
        self._stamp, self._judged = self._dates.look(now, wall)
        self._slot = int(self._stamp / _SLOT)
        self._fence, self._wanted = 0, acquires
        self._totals.clear()
        self.row_logs.begin()

    def end(self) -> None:
        """Write what the batch has gathered; the commit follows."""
        for name, (count, size) in self._totals.items():
            self.execute(TOTAL, (name, count, size))
        self._totals.clear()

    def forget_stale_leases(self, seconds: float) -> None:
        """Drop what crashes left behind: leases that expired long ago, or before the last boot."""
        self.execute(
            "DELETE FROM leases WHERE until <= ? OR since > ?", (self._now - seconds, self._now)
        )

    def pages(self) -> tuple[int, int]:
        """Return the free pages and all pages of the file."""
        (free,) = self.execute("PRAGMA freelist_count").fetchone()
        (pages,) = self.execute("PRAGMA page_count").fetchone()
        return free, pages

    def acquire(
        self, name: str, id: str, owner: str, lease: float, known: int | None
    ) -> Grant | Held:
        fence, now, execute = self._next_fence(), self._now, self.execute
        terms = (name, id, owner, fence, now, now + lease)
        if execute(LEASE, (*terms, owner)).rowcount != 1:
            holder, until = execute(
                "SELECT owner, until FROM leases WHERE name = ? AND id = ?", (name, id)
            ).fetchone()
            if not owner_is_dead(holder):
                return Held(holder, until - now)
            execute(LEASE, (*terms, holder))
        row = execute(GRANT, (known, place_of(name, id), name, id)).fetchone()
        if row is None:
            row = self.places.find_listed(GRANT, name, id, known)
            if row is None:
                return Grant(fence, 0, None)
        version, envelope = row
        if (
            type(version) is not int
            or version < 1
            or (type(envelope) is not bytes and version != known)
        ):
            raise self._never_written(id)
        return Grant(fence, version, envelope)

    def renew(self, name: str, owner: str, fences: dict[str, int], lease: float) -> set[str]:
        lost, now = set(), self._now
        for one, fence in fences.items():
            if not self.execute(RENEW, (now, now + lease, name, one, fence, owner)).rowcount:
                lost.add(one)
        return lost

    def release(self, name: str, id: str, fence: int) -> None:
        if self.execute(UNLEASE, (name, id, fence)).rowcount:
            now, slot = self._stamp, self._slot
            if not self.execute(USE, (now, place_of(name, id), name, id, slot)).rowcount:
                row = self._row(name, id)
                if row is not None:
                    self.execute(USE_IN_SLOT, (now, slot, row[0]))

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
        execute, lease = self.execute, (name, id, fence)
        if release and not rows:
            ours = execute(UNLEASE, lease).rowcount == 1
        else:
            ours = execute(LEASED, lease).fetchone() is not None
        row = self._row(name, id, new=ours and version == 0)
        stored: int = row[1] if row is not None else 0
        known = row is not None and row[2] == write_id
        good = not known and ours and version == stored
        planned = self.row_logs.plan(name, id, rows) if good and rows else []
        if release and rows:  # not before the rows are known to be welcome
            execute(UNLEASE, lease)
        if known:
            return stored
        if not good:
            self._refuse(name, id, envelope, why_refused(ours, version, stored), rows)
        if row is None:
            try:
                new = self._make(name, id, envelope, write_id)
            except _Elsewhere as found:
                stored, known = found.version, found.write_id == write_id
                if known:
                    return stored
                self._refuse(name, id, envelope, why_refused(ours, version, stored), rows)
        else:
            new = self._overwrite(name, envelope, write_id, row)
        if planned:
            self.row_logs.append(name, id, planned, self._wall)
        return new

    def append_rows(
        self, name: str, id: str, rows: Sequence[Append], fence: int | None, create: bool
    ) -> int:
        if fence is not None and not self._is_leased(name, id, fence):
            self._keep_rows(name, id, LOST, rows)
            raise SessionConflict(conflict_message(name, id, LOST))
        row = self._row(name, id)
        if row is None and not create:
            raise SessionNotFound(not_found_message(name, id))
        planned = self.row_logs.plan(name, id, rows)
        if row is None:
            self._make(name, id, b"", "")
        else:
            self.execute(USE_IN_SLOT, (self._stamp, self._slot, row[0]))
        return self.row_logs.append(name, id, planned, self._wall)

    def delete_rows(
        self,
        name: str,
        id: str,
        log: str | None,
        keys: Sequence[str] | None,
        fence: int | None,
    ) -> int:
        if fence is not None and not self._is_leased(name, id, fence):
            raise SessionConflict(conflict_message(name, id, LOST))
        return self.row_logs.delete(name, id, log, keys)

    def written(self, name: str, id: str, write_id: str) -> int | None:
        row = self._row(name, id)
        return row[1] if row is not None and row[2] == write_id else None

    def load(self, name: str, id: str) -> Record | None:
        row = self.execute(GRANT, (None, place_of(name, id), name, id)).fetchone()
        if row is None:
            row = self.places.find_listed(GRANT, name, id, None)
            if row is None:
                return None
        version, envelope = row
        if type(version) is not int or version < 1 or type(envelope) is not bytes:
            raise self._never_written(id)
        return Record(version, envelope)

    def inspect(self, after: Any, limit: int) -> Any:
        """Compare the next slice of the trees; return where to continue, None at the end."""
        if isinstance(after, int):
            return self.places.inspect(after, limit) or ("", "")
        return self.places.inspect_index(after, limit)

    def delete(self, name: str, id: str, fence: int) -> bool:
        if not self.execute(UNLEASE, (name, id, fence)).rowcount:
            raise SessionConflict(conflict_message(name, id, LOST))
        row = self._row(name, id)
        if row is not None:
            self._forget(name, row[0], row[1], row[3])
        return row is not None

    def quarantine(self, name: str, id: str, envelope: bytes, why: str) -> None:
        kept = Kept(name, id, self._wall, why, envelope)
        self._quarantine.add(kept, hashlib.sha256(envelope).digest())

    def purge(self, name: str, unused: float, limit: int) -> list[str]:
        keep(self.execute, self._dates)
        self.execute(FUTURE, (self._stamp, self._slot, name, self._slot + 1, limit))
        oldest = self._judged - unused
        terms = (name, int(oldest / _SLOT), oldest, self._now - unused, self._now, limit)
        gone = self.execute(UNUSED, terms).fetchall()
        for row, one, version, size in gone:
            self.execute("DELETE FROM leases WHERE name = ? AND id = ?", (name, one))
            self._forget(name, row, version, size)
        return [one for _, one, _, _ in gone]

    def ids(self, name: str, after: str, limit: int) -> list[str]:
        sql = "SELECT id FROM sessions WHERE name = ? AND id > ? ORDER BY id LIMIT ?"
        return [row[0] for row in self.execute(sql, (name, after, limit)).fetchall()]

    def names(self, after: str, limit: int) -> list[str]:
        self.end()
        sql = "SELECT name FROM totals WHERE name > ? AND count > 0 ORDER BY name LIMIT ?"
        return [row[0] for row in self.execute(sql, (after, limit)).fetchall()]

    def count(self, name: str) -> int:
        self.end()
        row = self.execute("SELECT count FROM totals WHERE name = ?", (name,)).fetchone()
        return row[0] if row is not None else 0

    def stats(self) -> StoreStats:
        self.end()
        self.places.figure("fence")  # or there would be no row to read
        figures = self.execute("""
            SELECT (SELECT ifnull(sum(count), 0) FROM totals),
                (SELECT ifnull(sum(bytes), 0) FROM totals), (SELECT count(*) FROM leases),
                (SELECT count(*) FROM conflicts), (SELECT count(*) FROM quarantine),
                conflicts_dropped, quarantine_dropped FROM meta""").fetchone()
        rows, row_bytes, leases, conflicts, quarantined, lost_conflicts, lost_unread = figures
        log_rows, log_bytes = self.row_logs.totals()
        return StoreStats(
            kind=self._kind,
            rows=rows,
            row_bytes=row_bytes,
            leases=leases,
            conflicts=conflicts,
            quarantined=quarantined,
            conflicts_dropped=lost_conflicts,
            quarantine_dropped=lost_unread,
            file_bytes=self._measure(),
            log_rows=log_rows,
            log_bytes=log_bytes,
        )

    def conflicts(self, name: str | None, limit: int) -> list[Kept]:
        return self._conflicts.newest(name, limit)

    def quarantined(self, name: str | None, limit: int) -> list[Kept]:
        return self._quarantine.newest(name, limit)

    def _next_fence(self) -> int:
        if self._fence == 0:  # the first of this batch reserves the numbers of all
            self._fence = self.places.figure("fence")
            self.execute("UPDATE meta SET fence = ?", (self._fence + self._wanted,))
        self._fence += 1
        return self._fence

    def _row(
        self, name: str, id: str, *, new: bool = False
    ) -> tuple[int, int, str, int, int] | None:
        """Return row, version, write id, size and slot of a session.

        With `new` it was missing when its lease was given, and is about to be made, which fails
        if the index has it: it need not be searched there.
        """
        row: tuple[int, int, str, int, int] | None = self.execute(
            ROW, (place_of(name, id), name, id)
        ).fetchone()
        if row is None and new and self.places.sound:
            return None
        if row is None:
            row = self.places.find_listed(ROW, name, id)
            if row is None:
                return None
        _, version, _, size, slot = row
        if (
            type(version) is not int
            or version < 1
            or type(size) is not int
            or type(slot) is not int
        ):
            raise self._never_written(id)
        return row

    def _is_leased(self, name: str, id: str, fence: int) -> bool:
        return self.execute(LEASED, (name, id, fence)).fetchone() is not None

    def _never_written(self, id: str) -> StoreCorrupt:
        """Refuse a row without a version, which would pass for no row at all."""
        return self.places.corrupt(f"the row of session {id!r} holds data that was never written")

    def _make(self, name: str, id: str, envelope: bytes, write_id: str) -> int:
        floor = self.places.figure("floor")
        size = len(envelope)
        row = (name, id, floor + 1, write_id, self._stamp, self._slot, size, envelope)
        try:
            self.execute(MAKE, (place_of(name, id), *row))
        except sqlite3.IntegrityError:  # another key of the same hash, or worse
            self._make_elsewhere(name, id, row)
        self._count(name, 1, size)
        return floor + 1

    def _make_elsewhere(self, name: str, id: str, row: tuple[Any, ...]) -> None:
        try:
            self.execute(MAKE, (self.places.free_place(name, id), *row))
        except sqlite3.IntegrityError as error:
            found = self._row(name, id)
            if found is not None:
                raise _Elsewhere(found[1], found[2]) from error
            why = f"it has a session {id!r} that a search did not find"
            raise self.places.corrupt(why) from error

    def _overwrite(self, name: str, envelope: bytes, write_id: str, old: Any) -> int:
        row, version, _, old_size, slot = old
        size = len(envelope)
        self.execute(WRITE, (version + 1, write_id, self._stamp, size, envelope, row))
        if slot != self._slot:
            self.execute("UPDATE sessions SET slot = ? WHERE row = ?", (self._slot, row))
        if size != old_size:
            self._count(name, 0, size - old_size)
        return int(version) + 1

    def _forget(self, name: str, row: int, version: int, size: int) -> None:
        self.execute("DELETE FROM sessions WHERE row = ?", (row,))
        self.execute("UPDATE meta SET floor = max(floor, ?)", (version,))
        self.row_logs.note_deleted()
        self._count(name, -1, -size)

    def _count(self, name: str, rows: int, size: int) -> None:
        count, total = self._totals.get(name, (0, 0))
        self._totals[name] = (count + rows, total + size)

    def _keep_rows(self, name: str, id: str, why: str, rows: Sequence[Append]) -> None:
        if rows:
            kept = Kept(name, id, self._wall, why_rows_refused(why), pack_rows(rows))
            self._conflicts.add(kept)

    def _refuse(
        self, name: str, id: str, envelope: bytes, why: str, rows: Sequence[Append]
    ) -> NoReturn:
        self._keep_rows(name, id, why, rows)
        self._conflicts.add(Kept(name, id, self._wall, why, envelope))
        raise SessionConflict(conflict_message(name, id, why))
