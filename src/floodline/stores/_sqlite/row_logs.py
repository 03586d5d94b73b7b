"""The row logs in a SQLite file.

A log has a head with its name and totals; its rows refer to the head by number. When a session is
deleted, a trigger unties its heads at once, whatever their size, and the rows of untied heads leave
in slices, between the calls of others. The trigger also works for floodline 0.1, which knows
nothing of logs: a session that comes again never sees the rows of the one before. The tables are
created with the first row, so files without rows stay as they were.
"""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from floodline.errors import DamagedRecord
from floodline.stores._rows.log import Append, LogStats, NewRow, Row, row_not_found
from floodline.stores._rows.plan import Change, is_over, plan_append

_SLICE = 500  # rows that leave in one go
_TABLES = (
    """
    CREATE TABLE log_heads (
        head INTEGER PRIMARY KEY, name TEXT, id TEXT, log TEXT NOT NULL, last INTEGER NOT NULL,
        rows INTEGER NOT NULL, bytes INTEGER NOT NULL, UNIQUE (name, id, log)
    )""",
    """
    CREATE TABLE log_rows (
        n INTEGER PRIMARY KEY, head INTEGER NOT NULL, number INTEGER NOT NULL, key TEXT NOT NULL,
        at REAL NOT NULL, crc INTEGER NOT NULL, data BLOB NOT NULL,
        UNIQUE (head, key), UNIQUE (head, number, key)
    )""",
    """
    CREATE TABLE log_totals (
        one INTEGER PRIMARY KEY CHECK (one = 1), rows INTEGER NOT NULL, bytes INTEGER NOT NULL
    )""",
    "INSERT INTO log_totals VALUES (1, 0, 0)",
    """
    CREATE TRIGGER log_heads_untied AFTER DELETE ON sessions BEGIN
        UPDATE log_totals SET
            rows = rows - (SELECT ifnull(sum(rows), 0) FROM log_heads
                WHERE name = OLD.name AND id = OLD.id),
            bytes = bytes - (SELECT ifnull(sum(bytes), 0) FROM log_heads
                WHERE name = OLD.name AND id = OLD.id)
            WHERE EXISTS (SELECT 1 FROM log_heads WHERE name = OLD.name AND id = OLD.id);
        UPDATE log_heads SET name = NULL, id = NULL WHERE name = OLD.name AND id = OLD.id;
    END""",
)
_HEAD = "SELECT head, last, rows, bytes FROM log_heads WHERE name = ? AND id = ? AND log = ?"
_ROW = "SELECT key, number, at, crc, data FROM log_rows WHERE head = ? AND key = ?"
_PLACE = "SELECT number FROM log_rows WHERE head = ? AND key = ?"
_PAGE = """
SELECT key, number, at, crc, data FROM log_rows
WHERE head = ? AND (number, key) > (?, ?) AND (number, key) < (?, ?)
ORDER BY number {0}, key {0} LIMIT ?
"""
_OLDEST, _NEWEST = _PAGE.format("ASC"), _PAGE.format("DESC")
_LAST_PLACE = (2**62, "")
_FIRST_PLACE = (-1, "")
_COVERED = struct.Struct(">qd")


class RowLogs:
    """The logs on one connection, inside the transaction of a batch."""

    __slots__ = ("_created", "_execute", "_path", "_sure", "untied")

    def __init__(self, execute: Callable[..., sqlite3.Cursor], path: str) -> None:
        self._execute, self._path = execute, path
        self._sure = self._created = False
        self.untied = True  # what a process left behind that was killed

    def begin(self) -> None:
        """Forget tables of the last batch; it may have been rolled back."""
        self._created = False

    def plan(
        self, name: str, id: str, appends: Sequence[Append]
    ) -> list[tuple[Append, list[Change]]]:
        """Return what `append` shall write; raise if it must not."""

        def find(log: str, key: str) -> bytes | None:
            head = self._head(name, id, log)
            row = None if head is None else self._execute(_ROW, (head[0], key)).fetchone()
            return None if row is None else self._read(row).data

        def measure(log: str) -> tuple[int, int]:
            head = self._head(name, id, log)
            return (0, 0) if head is None else head[2:]

        return plan_append(name, id, appends, find=find, measure=measure)

    def append(
        self, name: str, id: str, planned: list[tuple[Append, list[Change]]], at: float
    ) -> int:
        """Write what was planned; return how many rows that were."""
        written = 0
        for one, changes in planned:
            if changes:
                self._append(name, id, one, changes, at)
                written += len(changes)
        return written

    def get(self, name: str, id: str, log: str, keys: Sequence[str]) -> dict[str, Row]:
        """See `RowStore.get_rows`."""
        head = self._head(name, id, log)
        if head is None:
            return {}
        found = (self._execute(_ROW, (head[0], key)).fetchone() for key in keys)
        return {row[0]: self._read(row) for row in found if row is not None}

    def page(
        self,
        name: str,
        id: str,
        log: str,
        after: str | int | None,
        before: str | int | None,
        limit: int,
        newest_first: bool,
    ) -> list[Row]:
        """See `RowStore.rows`."""
        head = self._head(name, id, log)
        first, last = _FIRST_PLACE, _LAST_PLACE
        if isinstance(after, str):
            first = (self._number(head, name, id, log, after), after)
        elif after is not None:
            first = (after + 1, "")
        if isinstance(before, str):
            last = (self._number(head, name, id, log, before), before)
        elif before is not None:
            last = (before, "")
        if head is None:
            return []
        sql = _NEWEST if newest_first else _OLDEST
        rows = self._execute(sql, (head[0], *first, *last, limit)).fetchall()
        return [self._read(row) for row in rows]

    def logs(self, name: str, id: str, after: str, limit: int) -> list[LogStats]:
        """See `RowStore.logs`."""
        if not self._there():
            return []
        sql = """
            SELECT log, rows, bytes FROM log_heads
            WHERE name = ? AND id = ? AND log > ? AND rows > 0 ORDER BY log LIMIT ?"""
        return [LogStats(*row) for row in self._execute(sql, (name, id, after, limit)).fetchall()]

    def count(self, name: str, id: str, log: str | None) -> int:
        """See `RowStore.count_rows`."""
        if not self._there():
            return 0
        sql = """
            SELECT ifnull(sum(rows), 0) FROM log_heads
            WHERE name = ? AND id = ? AND log = ifnull(?, log)"""
        (rows,) = self._execute(sql, (name, id, log)).fetchone()
        return int(rows)

    def delete(self, name: str, id: str, log: str | None, keys: Sequence[str] | None) -> int:
        """See `RowStore.delete_rows`."""
        if not self._there():
            return 0
        if keys is not None:
            head = self._head(name, id, log or "")
            return 0 if head is None else self._remove(head[0], keys)
        return self._empty(name, id, log)

    def totals(self) -> tuple[int, int]:
        """Return the rows and bytes of all logs."""
        if not self._there():
            return 0, 0
        rows, size = self._execute("SELECT rows, bytes FROM log_totals").fetchone()
        return rows, size

    def note_deleted(self) -> None:
        """Note that a session is gone, and perhaps logs with it."""
        self.untied = self.untied or self._there()

    def has_archive(self) -> bool:
        """Return True if a `SQLiteArchive` has been in this file."""
        sql = "SELECT 1 FROM sqlite_master WHERE name = 'archive'"
        return self._execute(sql).fetchone() is not None

    def reap(self) -> None:
        """Delete a slice of the rows whose session is gone."""
        head = (
            self._there()
            and self._execute("SELECT head FROM log_heads WHERE name IS NULL LIMIT 1").fetchone()
        )
        self.untied = bool(head)
        if head:
            sql = "DELETE FROM log_rows WHERE n IN (SELECT n FROM log_rows WHERE head = ? LIMIT ?)"
            if self._execute(sql, (head[0], _SLICE)).rowcount < _SLICE:
                self._execute("DELETE FROM log_heads WHERE head = ?", head)

    def _there(self) -> bool:
        if not self._sure:
            sql = "SELECT 1 FROM sqlite_master WHERE name = 'log_heads_untied'"
            there = self._execute(sql).fetchone() is not None
            self._sure = there and not self._created
            return there
        return True

    def _head(self, name: str, id: str, log: str) -> tuple[int, int, int, int] | None:
        """Return the number of a head, the last number, the rows and the bytes of its log."""
        if not self._there():
            return None
        head: tuple[int, int, int, int] | None = self._execute(_HEAD, (name, id, log)).fetchone()
        return head

    def _append(self, name: str, id: str, one: Append, changes: list[Change], at: float) -> None:
        head, last, rows, size = self._head(name, id, one.log) or self._begin_log(name, id, one.log)
        was = (rows, size)
        for row, replaces in changes:
            if replaces:
                size += self._replace(head, row, at)
                continue
            number = last + 1 if row.number is None else row.number
            last = max(last, number)
            crc = _crc(row.key, number, at, row.data)
            self._execute(
                "INSERT INTO log_rows (head, number, key, at, crc, data) VALUES (?, ?, ?, ?, ?, ?)",
                (head, number, row.key, at, crc, row.data),
            )
            rows, size = rows + 1, size + len(row.data)
        self._execute("UPDATE log_heads SET last = ? WHERE head = ?", (last, head))
        self._count(head, rows - was[0], size - was[1])
        while one.when_full == "drop" and is_over(one, rows, size):
            rows, size = self._drop_oldest(head, one, rows, size)

    def _begin_log(self, name: str, id: str, log: str) -> tuple[int, int, int, int]:
        if not self._there():
            for statement in _TABLES:
                self._execute(statement)
            self._created = True
        sql = "INSERT INTO log_heads (name, id, log, last, rows, bytes) VALUES (?, ?, ?, -1, 0, 0)"
        head = self._execute(sql, (name, id, log)).lastrowid or 0
        return head, -1, 0, 0

    def _replace(self, head: int, row: NewRow, at: float) -> int:
        """Give a row other bytes in its place; return by how much it grew."""
        n, number, size = self._execute(
            "SELECT n, number, length(data) FROM log_rows WHERE head = ? AND key = ?",
            (head, row.key),
        ).fetchone()
        terms = (at, _crc(row.key, number, at, row.data), row.data, n)
        self._execute("UPDATE log_rows SET at = ?, crc = ?, data = ? WHERE n = ?", terms)
        return len(row.data) - int(size)

    def _drop_oldest(self, head: int, one: Append, rows: int, size: int) -> tuple[int, int]:
        sql = """
            SELECT n, length(data) FROM log_rows WHERE head = ? ORDER BY number, key LIMIT 100"""
        was = (rows, size)
        for n, weight in self._execute(sql, (head,)).fetchall():
            if not is_over(one, rows, size):
                break
            self._execute("DELETE FROM log_rows WHERE n = ?", (n,))
            rows, size = rows - 1, size - weight
        if rows == was[0]:
            raise DamagedRecord(f"{self._path!r} has fewer rows in log {one.log!r} than its head")
        self._count(head, rows - was[0], size - was[1])
        return rows, size

    def _remove(self, head: int, keys: Sequence[str]) -> int:
        rows = size = 0
        for key in keys:
            found = self._execute(
                "SELECT n, length(data) FROM log_rows WHERE head = ? AND key = ?", (head, key)
            ).fetchone()
            if found is not None:
                self._execute("DELETE FROM log_rows WHERE n = ?", (found[0],))
                rows, size = rows + 1, size + found[1]
        self._count(head, -rows, -size)
        return rows

    def _empty(self, name: str, id: str, log: str | None) -> int:
        """Untie the heads of logs, and begin the logs again behind the numbers they had."""
        sql = """
            SELECT head, log, last, rows, bytes FROM log_heads
            WHERE name = ? AND id = ? AND log = ifnull(?, log) AND rows > 0"""
        found = self._execute(sql, (name, id, log)).fetchall()
        for head, of, last, rows, size in found:
            self._count(head, -rows, -size)
            untie = "UPDATE log_heads SET name = NULL, id = NULL WHERE head = ?"
            self._execute(untie, (head,))
            begun = self._begin_log(name, id, of)
            self._execute("UPDATE log_heads SET last = ? WHERE head = ?", (last, begun[0]))
            self.untied = True
        return sum(rows for _, _, _, rows, _ in found)

    def _count(self, head: int, rows: int, size: int) -> None:
        if rows or size:
            change = "SET rows = rows + ?, bytes = bytes + ?"
            self._execute(f"UPDATE log_heads {change} WHERE head = ?", (rows, size, head))
            self._execute(f"UPDATE log_totals {change}", (rows, size))

    def _number(self, head: tuple[int, ...] | None, name: str, id: str, log: str, key: str) -> int:
        row = None if head is None else self._execute(_PLACE, (head[0], key)).fetchone()
        if row is None:
            raise row_not_found(name, id, log, key)
        return int(row[0])

    def _read(self, row: tuple[Any, ...]) -> Row:
        key, number, at, crc, data = row
        try:
            if _crc(key, number, at, data) == crc:
                return Row(key, number, data, at)
        except (TypeError, AttributeError, struct.error):
            pass  # not even the types are those that were written
        raise DamagedRecord(
            f"{self._path!r} is damaged: row {key!r} of a log is not what was written; restore a "
            f"copy of the file, or recover it with `sqlite3 {self._path} .recover`"
        )


def _crc(key: str, number: int, at: float, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(key.encode(), zlib.crc32(_COVERED.pack(number, at))))
