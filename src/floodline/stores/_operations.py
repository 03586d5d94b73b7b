"""The operations of a store in SQL; each runs inside the transaction of its batch.

No `RETURNING`, which SQLite has only since 3.35: some systems that have Python 3.11 are older.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable

from floodline.errors import SessionConflict
from floodline.stores._calls import Kept
from floodline.stores._limits import KEPT_BYTES, KEPT_ROWS, conflict_message, why_refused
from floodline.stores._owner import owner_is_dead
from floodline.stores._protocol import Grant, Held, Record, StoreStats

_LEASE = """
INSERT INTO leases VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE
SET owner = ?3, fence = ?4, since = ?5, until = ?6
WHERE owner = ?3 OR owner = ?7 OR NOT (since <= ?5 AND ?5 < until)
"""
_HEAD = """
SELECT version, CASE version WHEN ?3 THEN NULL ELSE
    (SELECT envelope FROM bodies WHERE name = ?1 AND id = ?2) END
FROM heads WHERE name = ?1 AND id = ?2
"""
_RENEW = """
UPDATE leases SET since = ?, until = ? WHERE name = ? AND id = ? AND fence = ? AND owner = ?
"""
_UNLEASE = "DELETE FROM leases WHERE name = ? AND id = ? AND fence = ?"
_LEASED = "SELECT 1 FROM leases WHERE name = ? AND id = ? AND fence = ?"
_WRITE_HEAD = """
UPDATE heads SET version = version + 1, write_id = ?1, used_at = ?2, size = ?3
WHERE name = ?4 AND id = ?5 AND version = ?6 AND write_id <> ?1
"""
_MAKE_HEAD = """
INSERT INTO heads SELECT ?4, ?5, floor + 1, ?1, ?2, ?3 FROM meta WHERE true ON CONFLICT DO NOTHING
"""
_WRITE_BODY = "UPDATE bodies SET envelope = ?3 WHERE name = ?1 AND id = ?2"
_MAKE_BODY = "INSERT OR REPLACE INTO bodies VALUES (?, ?, ?)"
_WRITTEN = "SELECT version FROM heads WHERE name = ? AND id = ? AND write_id = ?"
_VERSION = "SELECT version FROM heads WHERE name = ? AND id = ?"
_UNUSED = """
SELECT h.id FROM heads h LEFT JOIN leases l ON l.name = h.name AND l.id = h.id
WHERE h.name = ?1 AND h.used_at <= ?2 AND (l.until IS NULL OR l.until <= ?3 OR l.since > ?4)
ORDER BY h.used_at LIMIT ?5
"""


class Operations:
    """Bound to one connection; `begin` is told the times and the size of each batch."""

    def __init__(
        self, connection: sqlite3.Connection, measure: Callable[[], int], kind: str = "sqlite"
    ) -> None:
        self._execute = connection.cursor().execute
        self._measure, self._kind = measure, kind
        self._now = self._wall = 0.0
        self._fence = self._wanted = 0

    def begin(self, now: float, wall: float, acquires: int) -> None:
        """Forget the last batch; its fences may have been rolled back."""
        self._now, self._wall = now, wall
        self._fence, self._wanted = 0, acquires

    def forget_stale_leases(self, seconds: float) -> None:
        """Drop what crashes left: leases that ran out long ago, or before the last boot."""
        self._execute(
            "DELETE FROM leases WHERE until <= ? OR since > ?", (self._now - seconds, self._now)
        )

    def acquire(
        self, name: str, id: str, owner: str, lease: float, known: int | None
    ) -> Grant | Held:
        fence, now, execute = self._next_fence(), self._now, self._execute
        terms = (name, id, owner, fence, now, now + lease)
        if execute(_LEASE, (*terms, owner)).rowcount != 1:
            holder, until = execute(
                "SELECT owner, until FROM leases WHERE name = ? AND id = ?", (name, id)
            ).fetchone()
            if not owner_is_dead(holder):
                return Held(holder, until - now)
            execute(_LEASE, (*terms, holder))
        row = execute(_HEAD, (name, id, known)).fetchone()
        return Grant(fence, 0, None) if row is None else Grant(fence, *row)

    def renew(self, name: str, owner: str, fences: dict[str, int], lease: float) -> set[str]:
        lost, now = set(), self._now
        for one, fence in fences.items():
            if not self._execute(_RENEW, (now, now + lease, name, one, fence, owner)).rowcount:
                lost.add(one)
        return lost

    def release(self, name: str, id: str, fence: int) -> None:
        if self._execute(_UNLEASE, (name, id, fence)).rowcount:
            self._execute(
                "UPDATE heads SET used_at = ? WHERE name = ? AND id = ?", (self._wall, name, id)
            )

    def save(
        self,
        name: str,
        id: str,
        envelope: bytes,
        fence: int,
        version: int,
        write_id: str,
        release: bool,
    ) -> int:
        execute, lease = self._execute, (name, id, fence)
        if release:
            ours = execute(_UNLEASE, lease).rowcount == 1
        else:
            ours = execute(_LEASED, lease).fetchone() is not None
        if ours:
            head = (write_id, self._wall, len(envelope), name, id)
            if version and execute(_WRITE_HEAD, (*head, version)).rowcount:
                execute(_WRITE_BODY, (name, id, envelope))
                return version + 1
            if not version and execute(_MAKE_HEAD, head).rowcount:
                execute(_MAKE_BODY, (name, id, envelope))
                return self._version(name, id)
        again = self.written(name, id, write_id)
        if again is not None:
            return again
        why = why_refused(ours, version, self._version(name, id))
        self._keep("conflicts", name, id, envelope, why, None)
        raise SessionConflict(conflict_message(name, id, why))

    def written(self, name: str, id: str, write_id: str) -> int | None:
        row = self._execute(_WRITTEN, (name, id, write_id)).fetchone()
        return None if row is None else row[0]

    def load(self, name: str, id: str) -> Record | None:
        row = self._execute(_HEAD, (name, id, None)).fetchone()
        return None if row is None else Record(*row)

    def delete(self, name: str, id: str, fence: int) -> bool:
        if not self._execute(_UNLEASE, (name, id, fence)).rowcount:
            raise SessionConflict(conflict_message(name, id, why_refused(False, 0, 0)))
        return self._forget(name, id)

    def quarantine(self, name: str, id: str, envelope: bytes, why: str) -> None:
        self._keep("quarantine", name, id, envelope, why, hashlib.sha256(envelope).digest())

    def purge(self, name: str, unused: float, limit: int) -> list[str]:
        times = (self._wall - unused, self._now - unused, self._now)
        gone = [row[0] for row in self._execute(_UNUSED, (name, *times, limit)).fetchall()]
        for one in gone:
            self._execute("DELETE FROM leases WHERE name = ? AND id = ?", (name, one))
            self._forget(name, one)
        return gone

    def ids(self, name: str, after: str, limit: int) -> list[str]:
        sql = "SELECT id FROM heads WHERE name = ? AND id > ? ORDER BY id LIMIT ?"
        return [row[0] for row in self._execute(sql, (name, after, limit)).fetchall()]

    def count(self, name: str) -> int:
        row = self._execute("SELECT count FROM totals WHERE name = ?", (name,)).fetchone()
        return row[0] if row is not None else 0

    def stats(self) -> StoreStats:
        figures = self._execute("""
            SELECT (SELECT ifnull(sum(count), 0) FROM totals),
                (SELECT ifnull(sum(bytes), 0) FROM totals), (SELECT count(*) FROM leases),
                (SELECT count(*) FROM conflicts), (SELECT count(*) FROM quarantine),
                conflicts_dropped, quarantine_dropped FROM meta""").fetchone()
        rows, row_bytes, leases, conflicts, quarantined, lost_conflicts, lost_unread = figures
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
        )

    def conflicts(self, name: str | None, limit: int) -> list[Kept]:
        return self._kept("conflicts", name, limit)

    def quarantined(self, name: str | None, limit: int) -> list[Kept]:
        return self._kept("quarantine", name, limit)

    def _next_fence(self) -> int:
        if self._fence == 0:  # the first of this batch takes the numbers of all
            self._execute("UPDATE meta SET fence = fence + ?", (self._wanted,))
            (last,) = self._execute("SELECT fence FROM meta").fetchone()
            self._fence = last - self._wanted
        self._fence += 1
        return self._fence

    def _version(self, name: str, id: str) -> int:
        row = self._execute(_VERSION, (name, id)).fetchone()
        return row[0] if row is not None else 0

    def _forget(self, name: str, id: str) -> bool:
        return (
            self._execute("DELETE FROM heads WHERE name = ? AND id = ?", (name, id)).rowcount == 1
        )

    def _keep(
        self, table: str, name: str, id: str, envelope: bytes, why: str, digest: bytes | None
    ) -> None:
        row = (name, id, self._wall, why, digest, len(envelope), envelope)
        self._execute(
            f"INSERT OR IGNORE INTO {table} (name, id, at, why, digest, size, envelope) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        sizes = self._execute(f"SELECT n, size FROM {table} ORDER BY n").fetchall()
        rows, size = len(sizes), sum(size for _, size in sizes)
        for n, oldest in sizes:
            if rows <= KEPT_ROWS and size <= KEPT_BYTES:
                break
            self._execute(f"DELETE FROM {table} WHERE n = ?", (n,))
            self._execute(f"UPDATE meta SET {table}_dropped = {table}_dropped + 1")
            rows, size = rows - 1, size - oldest

    def _kept(self, table: str, name: str | None, limit: int) -> list[Kept]:
        rows = self._execute(
            f"SELECT name, id, at, why, envelope FROM {table} "
            "WHERE ?1 IS NULL OR name = ?1 ORDER BY n DESC LIMIT ?2",
            (name, limit),
        ).fetchall()
        return [Kept(*row) for row in rows]
