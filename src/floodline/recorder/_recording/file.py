"""The recording: one SQLite file that is whole after every tick, and never outgrows its bounds.

A rollback journal, no WAL: there is no side file between two ticks, so the file can be copied. The
newest snapshot is one row; series, events and older snapshots are rows of their own, thinned.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypedDict

from floodline.errors import ConfigError
from floodline.recorder._recording.journal import Entry
from floodline.recorder._recording.series import Points
from floodline.recorder._snapshot import Exit, Snapshot

try:
    import fcntl
except ImportError:  # Windows, where nothing is recorded
    fcntl = None  # type: ignore[assignment]  # asked for before each use

APPLICATION = 0x464C5245  # "FLRE"
SCHEMA = 1
MOST_FRAMES = 400
FRAME_EVERY = 5.0
MOST_BYTES = 64 << 20
MOST_AGE = 7 * 86400.0
KEPT_BEFORE = 3
NOTE = 2000  # bytes that are there beforehand, for what is to be said when the disk is full
IN_USE = (5, 6)  # SQLITE_BUSY, SQLITE_LOCKED: somebody reads, and the next tick may pass

TABLES = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {SCHEMA};
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), doc TEXT NOT NULL);
CREATE TABLE samples (
    series INTEGER, at REAL, bytes INTEGER, PRIMARY KEY (series, at)
) WITHOUT ROWID;
CREATE TABLE events (
    number INTEGER PRIMARY KEY, at REAL, pid INTEGER, kind TEXT, text TEXT, count INTEGER
);
CREATE TABLE frames (at REAL PRIMARY KEY, doc BLOB NOT NULL);
CREATE TABLE trouble (one INTEGER PRIMARY KEY CHECK (one = 1), doc TEXT NOT NULL);
INSERT INTO trouble VALUES (1, '{" " * NOTE}');
"""


class Trouble(TypedDict):
    """What is said where nothing more can be written."""

    at: float
    why: str
    exit: Exit | None
    closed: bool


def check_room(file: Path) -> None:
    """Raise if there is something that cannot be moved away for a recording."""
    if not file.exists():
        return
    if not file.is_file() or not is_recording(file):  # a device may read as empty
        raise ConfigError(f"{file} exists and is not a recording; give another file to --record")
    if _in_use(file):
        raise ConfigError(f"{file} is in use by another recorder; give another file to --record")


def make_room(file: Path) -> None:
    """Move a recording that is in the way to FILE.1, and the older ones on; keep three.

    In a container that is restarted after a kill, the evidence must outlive the next start.
    """
    check_room(file)
    for number in range(KEPT_BEFORE, 0, -1):
        older = file if number == 1 else file.with_name(f"{file.name}.{number - 1}")
        if older.exists():
            older.replace(file.with_name(f"{file.name}.{number}"))
            journal = older.with_name(f"{older.name}-journal")
            if journal.exists():  # it was killed while it wrote: both belong together
                journal.replace(file.with_name(f"{file.name}.{number}-journal"))


def is_recording(file: Path) -> bool:
    """Tell whether a file is a recording, or an empty one that was about to become one."""
    with file.open("rb") as opened:
        head = opened.read(72)
    return not head or (
        head.startswith(b"SQLite format 3\0") and int.from_bytes(head[68:72], "big") == APPLICATION
    )


def _in_use(file: Path) -> bool:
    """Tell whether a recorder holds it: one that is renamed under SQLite takes no more writes."""
    if fcntl is None:
        return False
    with file.open("r+b") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without such locks
            return False
    return False


def _hold(file: Path) -> IO[bytes]:
    """Open it for as long as we write: shared, because readers of a network volume need that."""
    opened = file.open("rb")
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return opened


class Writer:
    """Writes a recording; one transaction a tick."""

    def __init__(self, file: Path, *, most_bytes: int = MOST_BYTES) -> None:
        self.file, self._most_bytes = file, most_bytes
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            make_room(file)
            self._db = sqlite3.connect(
                file, isolation_level=None, check_same_thread=False, timeout=2.0
            )
            self._db.execute("PRAGMA journal_mode = DELETE")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute("PRAGMA cache_size = -512")
            self._db.executescript(TABLES)
            self._held = _hold(file)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"{file} cannot be written: {error}; give --record a file in a writable folder "
                "(in a container, on a volume)"
            ) from error
        self._last_frame = 0.0
        self._noted = ""

    def write(self, state: Snapshot, series: Iterable[Points], events: Iterable[Entry]) -> None:
        """Put a tick on disk, all of it or nothing."""
        doc = json.dumps(_slim(state))
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.execute("INSERT OR REPLACE INTO state VALUES (1, ?)", (doc,))
            for points in series:
                self._write_points(points)
            self._db.executemany(
                "INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?, ?, ?)",
                [(e.number, e.at, e.pid, e.kind, e.text, e.count) for e in events],
            )
            if state["now"] - self._last_frame >= FRAME_EVERY or state["closed"]:
                self._write_frame(state["now"], doc)
            if self._noted:
                self._db.execute("UPDATE trouble SET doc = ?", (" " * NOTE,))
            self._db.execute("COMMIT")  # fails too, while somebody reads
            self._noted = ""
        except BaseException:
            if self._db.in_transaction:  # a full disk may have ended it
                self._db.execute("ROLLBACK")
            raise

    def note(self, trouble: Trouble) -> None:
        """Say why there is no more, in bytes that were put aside: a full disk has no others.

        The journal, which would need room, is kept in memory for this one page.
        """
        doc = json.dumps(trouble)
        if doc == self._noted or len(doc) > NOTE:
            return
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA journal_mode = MEMORY")
            try:
                self._db.execute("UPDATE trouble SET doc = ?", (doc.ljust(NOTE),))
                self._noted = doc
            finally:
                self._db.execute("PRAGMA journal_mode = DELETE")

    def _write_points(self, points: Points) -> None:
        replace, new = points.unwritten()
        if replace:
            self._db.execute("DELETE FROM samples WHERE series = ?", (points.series,))
        self._db.executemany(
            "INSERT OR REPLACE INTO samples VALUES (?, ?, ?)",
            [(points.series, at, value) for at, value in new],
        )

    def _write_frame(self, now: float, doc: str) -> None:
        self._last_frame = now
        packed = zlib.compress(doc.encode(), 3)
        self._db.execute("INSERT OR REPLACE INTO frames VALUES (?, ?)", (now, packed))
        self._db.execute("DELETE FROM frames WHERE at < ?", (now - MOST_AGE,))
        self._db.execute("DELETE FROM samples WHERE at < ?", (now - MOST_AGE,))
        (frames,) = self._db.execute("SELECT count(*) FROM frames").fetchone()
        if frames > MOST_FRAMES or self.size() > self._most_bytes:
            self._thin_frames(frames)

    def _thin_frames(self, frames: int) -> None:
        """Let every second frame of the older half go; free pages are used again."""
        older = self._db.execute(
            "SELECT at FROM frames ORDER BY at LIMIT ?", (frames // 2,)
        ).fetchall()
        self._db.executemany("DELETE FROM frames WHERE at = ?", older[::2])

    def keep_events(self, kept: Iterable[Entry]) -> None:
        """Remove the events that the journal has let go."""
        numbers = {entry.number for entry in kept}
        on_disk = {number for (number,) in self._db.execute("SELECT number FROM events")}
        self._db.executemany(
            "DELETE FROM events WHERE number = ?", [(number,) for number in on_disk - numbers]
        )

    def keep_series(self, kept: set[int]) -> None:
        """Remove the samples of processes that nobody shows any more."""
        on_disk = {one for (one,) in self._db.execute("SELECT DISTINCT series FROM samples")}
        self._db.executemany(
            "DELETE FROM samples WHERE series = ?", [(one,) for one in on_disk - kept]
        )

    def size(self) -> int:
        """Return the bytes of the file."""
        (pages,) = self._db.execute("PRAGMA page_count").fetchone()
        (page,) = self._db.execute("PRAGMA page_size").fetchone()
        return int(pages * page)

    def close(self) -> None:
        """Close the file; it was whole before that too."""
        self._db.close()
        self._held.close()  # not before: closing a file lets go of the locks of SQLite too


def _slim(state: Snapshot) -> dict[str, Any]:
    """Leave out what has tables of its own; reading puts it back."""
    memory = {name: value for name, value in state["memory"].items() if name != "points"}
    processes = [
        {name: value for name, value in process.items() if name != "points"}
        for process in state["processes"]
    ]
    return {**state, "memory": memory, "processes": processes, "events": []}
