"""How the recorder writes its recording: the next tick makes up for one that failed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from floodline.recorder._recording.file import IN_USE, Writer
from floodline.recorder._recording.journal import TEXT, Journal
from floodline.recorder._recording.series import Points
from floodline.recorder._snapshot import Snapshot
from floodline.telemetry import describe

TIDY_EVERY = 60  # ticks


class Tape:
    """Writes ticks, or nothing without a file; `unwritten` says why the newest is missing.

    While nothing can be written, the recording says since when and why, and how the program ended.
    """

    def __init__(self, file: Path | None, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.writer = None if file is None else Writer(file)
        self.unwritten: str | None = None
        self._since: float | None = None
        self._ticks = 0

    def put(self, state: Snapshot, series: list[Points], journal: Journal) -> bool:
        """Write a tick; return True if it is on disk."""
        if self.writer is None:
            return True
        self._ticks += 1
        try:
            self.writer.write(state, series, journal.unwritten())
            if self._ticks % TIDY_EVERY == 0:
                self.writer.keep_events(journal.kept())
                self.writer.keep_series({points.series for points in series})
        except Exception as error:  # a full disk: the program continues, and so do we
            for points in series:
                points.rewrite()
            journal.rewrite()
            self._excuse(self.writer, error, state)
            return False
        self.unwritten = self._since = None
        return True

    def _excuse(self, writer: Writer, error: Exception, state: Snapshot) -> None:
        known = isinstance(error, sqlite3.Error)
        why = (str(error) if known else describe(error))[:TEXT]
        self.unwritten = f"{writer.file} could not be written: {why}"
        if getattr(error, "sqlite_errorcode", None) in IN_USE:
            return  # soon over
        if self._since is None:
            self._since = self._clock()
        writer.note(
            {
                "at": self._since,
                "why": why,
                "exit": state["exit"],
                "closed": state["closed"],
            }
        )

    def file(self) -> tuple[str | None, int | None]:
        """Return name and size of the file, for the snapshot."""
        if self.writer is None:
            return None, None
        return str(self.writer.file), self.writer.size()

    def close(self) -> None:
        """Close the file, which was complete before, too."""
        if self.writer is not None:
            self.writer.close()
