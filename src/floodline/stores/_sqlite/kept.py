"""Bytes that were refused or could not be read, in a SQLite file: capped, the oldest leave."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from floodline.stores._calls import Kept
from floodline.stores._refusals import KEPT_BYTES, KEPT_ROWS


class KeptTable:
    """One of the tables `conflicts` and `quarantine`; the same digest twice is kept once."""

    __slots__ = ("_execute", "_table")

    def __init__(self, execute: Callable[..., sqlite3.Cursor], table: str) -> None:
        self._execute, self._table = execute, table

    def add(self, kept: Kept, digest: bytes | None = None) -> None:
        """Keep a copy, and drop the oldest above the cap."""
        row = (kept.name, kept.id, kept.at, kept.why, digest, len(kept.envelope), kept.envelope)
        self._execute(
            f"INSERT OR IGNORE INTO {self._table} (name, id, at, why, digest, size, envelope) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        sizes = self._execute(f"SELECT n, size FROM {self._table} ORDER BY n").fetchall()
        rows, size = len(sizes), sum(size for _, size in sizes)
        for n, oldest in sizes:
            if rows <= KEPT_ROWS and size <= KEPT_BYTES:
                break
            self._execute(f"DELETE FROM {self._table} WHERE n = ?", (n,))
            self._execute(f"UPDATE meta SET {self._table}_dropped = {self._table}_dropped + 1")
            rows, size = rows - 1, size - oldest

    def newest(self, name: str | None, limit: int) -> list[Kept]:
        """Return the copies, newest first, of one name or of all."""
        rows = self._execute(
            f"SELECT name, id, at, why, envelope FROM {self._table} "
            "WHERE name = ifnull(?, name) ORDER BY n DESC LIMIT ?",
            (name, limit),
        ).fetchall()
        return [Kept(*row) for row in rows]
