"""The recording: one SQLite file, complete after every tick, that never outgrows its bounds.

It uses a rollback journal, not WAL: there is no side file between ticks, so it can be copied. The
newest snapshot is one row; series, events and older snapshots are rows of their own, thinned out.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

from floodline.errors import ConfigError
from floodline.recorder._recording.journal import Entry
from floodline.recorder._recording.series import Points
from floodline.recorder._runtime_folder import NO_FOLLOW, create_private
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
NOTE = 2000  # bytes reserved in advance for what must be said when the disk is full
OPENED = "/dev/fd"
IN_USE = (5, 6)  # SQLITE_BUSY, SQLITE_LOCKED: it is being read, and the next tick may succeed

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
    """What is recorded when nothing else can be written."""

    at: float
    why: str
    exit: Exit | None
    closed: bool


def check_room(file: Path) -> None:
    """Raise if the path holds something that cannot be moved aside."""
    if file.is_symlink():
        raise ConfigError(
            f"{file} is a symbolic link, which --record does not follow; remove the link, or give "
            "--record the file it points to"
        )
    if not file.exists():
        return
    if not file.is_file() or not is_recording(file):  # a device may read as empty
        raise ConfigError(f"{file} exists and is not a recording; give another file to --record")
    if _in_use(file):
        raise ConfigError(f"{file} is in use by another recorder; give another file to --record")


def make_room(file: Path) -> None:
    """Move an existing recording to FILE.1, and older ones along; keep three.

    In a container restarted after a kill, the evidence must survive the next start.
    """
    check_room(file)
    for number in range(KEPT_BEFORE, 0, -1):
        older = file if number == 1 else file.with_name(f"{file.name}.{number - 1}")
        if older.exists():
            _close_to_others(older.replace(file.with_name(f"{file.name}.{number}")))
            journal = older.with_name(f"{older.name}-journal")
            if journal.exists():  # killed during a write: both belong together
                _close_to_others(journal.replace(file.with_name(f"{file.name}.{number}-journal")))


def _close_to_others(file: Path) -> None:
    """Remove the access that an older recorder, or a copy, left to other users."""
    with suppress(OSError):  # it belongs to another user
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | NO_FOLLOW)
        try:
            os.fchmod(opened, 0o600)
        finally:
            os.close(opened)


def is_recording(file: Path) -> bool:
    """Return True if a file is a recording, or an empty file about to become one."""
    with file.open("rb") as opened:
        head = opened.read(72)
    return not head or (
        head.startswith(b"SQLite format 3\0") and int.from_bytes(head[68:72], "big") == APPLICATION
    )


def _in_use(file: Path) -> bool:
    """Return True if a recorder holds it: once renamed, SQLite could no longer write to it."""
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


def _hold(file: Path) -> int:
    """Create it and lock it while we write: shared, for readers on a network volume need that."""
    opened = create_private(file)
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return opened


def _is_ours(held: int, file: Path) -> bool:
    """Return True if SQLite opened the file that we created, and not one put in its place."""
    ours = os.fstat(held)
    with suppress(OSError):
        numbers = [int(name) for name in os.listdir(OPENED)]  # noqa: PTH208  # no paths
        if held in numbers:
            return any(_is_same(number, ours) for number in numbers if number != held)
    return os.path.samestat(file.lstat(), ours)  # where our descriptors are not listed


def _is_same(number: int, ours: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(number), ours)
    except OSError:  # closed by now, as that of the listing is
        return False


class Writer:
    """Writes a recording; one transaction per tick."""

    def __init__(self, file: Path, *, most_bytes: int = MOST_BYTES) -> None:
        self.file, self._most_bytes = file, most_bytes
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_room(file)
            self._held = _hold(file)
            self._db = self._open()
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"{file} cannot be written: {error}; give --record a file in a writable folder "
                "(in a container, on a volume)"
            ) from error
        self._last_frame = 0.0
        self._noted = ""

    def _open(self) -> sqlite3.Connection:
        db = None
        try:
            db = sqlite3.connect(
                self.file, isolation_level=None, check_same_thread=False, timeout=2.0
            )
            if not _is_ours(self._held, self.file):
                raise FileExistsError(errno.EEXIST, "another file was put in its place")
            db.execute("PRAGMA journal_mode = DELETE")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA cache_size = -512")
            db.executescript(TABLES)
        except BaseException:
            if db is not None:
                db.close()
            os.close(self._held)
            raise
        return db

    def write(self, state: Snapshot, series: Iterable[Points], events: Iterable[Entry]) -> None:
        """Write a tick, all of it or nothing."""
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
            self._db.execute("COMMIT")  # fails too while it is being read
            self._noted = ""
        except BaseException:
            if self._db.in_transaction:  # a full disk may have ended the transaction
                self._db.execute("ROLLBACK")
            raise

    def note(self, trouble: Trouble) -> None:
        """Record why there is no more, in the reserved bytes: a full disk has no others.

        The journal would need space, so it is kept in memory for this one page.
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
        """Delete every second frame of the older half; free pages are reused."""
        older = self._db.execute(
            "SELECT at FROM frames ORDER BY at LIMIT ?", (frames // 2,)
        ).fetchall()
        self._db.executemany("DELETE FROM frames WHERE at = ?", older[::2])

    def keep_events(self, kept: Iterable[Entry]) -> None:
        """Remove the events that the journal has dropped."""
        numbers = {entry.number for entry in kept}
        on_disk = {number for (number,) in self._db.execute("SELECT number FROM events")}
        self._db.executemany(
            "DELETE FROM events WHERE number = ?", [(number,) for number in on_disk - numbers]
        )

    def keep_series(self, kept: set[int]) -> None:
        """Remove the samples of processes that are no longer shown."""
        on_disk = {one for (one,) in self._db.execute("SELECT DISTINCT series FROM samples")}
        self._db.executemany(
            "DELETE FROM samples WHERE series = ?", [(one,) for one in on_disk - kept]
        )

    def size(self) -> int:
        """Return the size of the file in bytes."""
        (pages,) = self._db.execute("PRAGMA page_count").fetchone()
        (page,) = self._db.execute("PRAGMA page_size").fetchone()
        return int(pages * page)

    def close(self) -> None:
        """Close the file; it was complete before, too."""
        self._db.close()
        held, self._held = self._held, -1
        if held >= 0:
            os.close(held)  # not before: closing it also releases SQLite's locks


def _slim(state: Snapshot) -> dict[str, Any]:
    """Leave out what has its own tables; reading puts it back."""
    memory = {name: value for name, value in state["memory"].items() if name != "points"}
    processes = [
        {name: value for name, value in process.items() if name != "points"}
        for process in state["processes"]
    ]
    return {**state, "memory": memory, "processes": processes, "events": []}
