"""The retention clock of a file, kept in it from one process to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress

from floodline.stores._retention_clock import Noted, RetentionClock

_TABLE = """
CREATE TABLE IF NOT EXISTS retention_clock (
    one INTEGER PRIMARY KEY CHECK (one = 1), date REAL NOT NULL, seconds REAL NOT NULL,
    boot TEXT NOT NULL, offset REAL NOT NULL, since REAL
)"""
_READ = "SELECT date, seconds, boot, offset, since FROM retention_clock"

Execute = Callable[..., sqlite3.Cursor]


def resume(execute: Execute, clock: RetentionClock, seconds: float, date: float) -> None:
    """Continue a clock from what the file says; if it says nothing, the date is believed."""
    with suppress(sqlite3.OperationalError):  # no such table: nothing was ever purged
        row = execute(_READ).fetchone()
        if row is not None and all(isinstance(value, float) for value in (*row[:2], row[3])):
            clock.resume(Noted(*row), seconds, date)


def keep(execute: Execute, clock: RetentionClock) -> None:
    """Write down what a clock believes, and what it has on probation."""
    noted = clock.note()
    if noted is not None:
        execute(_TABLE)
        execute("INSERT OR REPLACE INTO retention_clock VALUES (1, ?, ?, ?, ?, ?)", noted)
