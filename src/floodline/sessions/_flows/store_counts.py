"""What the store has of us: counted now and then, and kept right in between without any I/O."""

from __future__ import annotations

from collections.abc import Iterable

from floodline.sessions._table.entry import LIVE, PARKING, Entry

RECOUNT = 10.0


class Stored:
    """Figures of the store; None as long as they are not known, or not to be had."""

    def __init__(self) -> None:
        self.parked: int | None = None  # rows of sessions that are not in memory
        self.rows: int | None = None
        self.file_bytes: int | None = None
        self.recount_at = float("-inf")

    def counted(self, rows: int, file_bytes: int | None, entries: Iterable[Entry]) -> None:
        """Take the store's word; what came or went while it was asked is right next time."""
        in_memory = sum(e.version > 0 and e.phase in (LIVE, PARKING) for e in entries)
        self.rows, self.file_bytes = rows, file_bytes
        self.parked = max(0, rows - in_memory)

    def unknown(self) -> None:
        """The store does not answer."""
        self.parked = self.rows = self.file_bytes = None

    def moved(self, entry: Entry, into_memory: bool) -> None:
        """A session has come into memory, or left it; one without a row was never parked."""
        if self.parked is not None and entry.version:
            self.parked = max(0, self.parked + (-1 if into_memory else 1))

    def deleted(self, rows: int) -> None:
        """Rows of parked sessions are gone."""
        if self.parked is not None:
            self.parked = max(0, self.parked - rows)
