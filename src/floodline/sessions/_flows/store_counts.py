"""Figures of the store: read now and then, and kept up to date in between without I/O."""

from __future__ import annotations

from collections.abc import Iterable

from floodline.sessions._table.entry import LIVE, PARKING, Entry

RECOUNT = 10.0


class Stored:
    """Figures of the store; None while they are unknown or unavailable."""

    def __init__(self) -> None:
        self.parked: int | None = None  # rows of sessions that are not in memory
        self.rows: int | None = None
        self.file_bytes: int | None = None
        self.recount_at = float("-inf")

    def counted(self, rows: int, file_bytes: int | None, entries: Iterable[Entry]) -> None:
        """Take over the store's figures; changes made in the meantime are right next time."""
        in_memory = sum(e.version > 0 and e.phase in (LIVE, PARKING) for e in entries)
        self.rows, self.file_bytes = rows, file_bytes
        self.parked = max(0, rows - in_memory)

    def unknown(self) -> None:
        """Forget the figures of a store that does not answer."""
        self.parked = self.rows = self.file_bytes = None

    def moved(self, entry: Entry, into_memory: bool) -> None:
        """Note that a session came into memory or left it; one without a row was never parked."""
        if self.parked is not None and entry.version:
            self.parked = max(0, self.parked + (-1 if into_memory else 1))

    def deleted(self, rows: int) -> None:
        """Note that rows of parked sessions are gone."""
        if self.parked is not None:
            self.parked = max(0, self.parked - rows)
