"""The tables of a store file, and how it is opened.

Leases are a table of their own, with as many rows as sessions are held now, so that a lease does
not rewrite a state. A use writes only `used_at`, which SQLite overwrites in place; the index for
retention holds the ten-minute slot, which seldom changes. Totals are kept, because counting
a million rows would stop the writer. `floor` is the highest version of all rows that were deleted:
a new row under the same id begins above it, so that a version which some process still has in
memory never stands for other bytes.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Literal

from floodline.errors import StoreCorrupt, StoreTooNew, StoreUnavailable

Synchronous = Literal["normal", "full"]

APPLICATION_ID = 0x466C6F6F  # "Floo"
SCHEMA_VERSION = 1
WAL_PAGES = 4096
WAL_BYTES = 16 * 1024**2

_KEPT = """(
    n INTEGER PRIMARY KEY, name TEXT NOT NULL, id TEXT NOT NULL, at REAL NOT NULL,
    why TEXT NOT NULL, digest BLOB, size INTEGER NOT NULL, envelope BLOB NOT NULL,
    UNIQUE (name, id, digest)
)"""

_TABLES = f"""
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1), fence INTEGER NOT NULL, floor INTEGER NOT NULL,
    conflicts_dropped INTEGER NOT NULL, quarantine_dropped INTEGER NOT NULL
);
INSERT INTO meta VALUES (1, 0, 0, 0, 0);
CREATE TABLE totals (
    name TEXT PRIMARY KEY, count INTEGER NOT NULL, bytes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE sessions (
    row INTEGER PRIMARY KEY, name TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL,
    write_id TEXT NOT NULL, used_at REAL NOT NULL, slot INTEGER NOT NULL, size INTEGER NOT NULL,
    envelope BLOB NOT NULL, UNIQUE (name, id)
);
CREATE INDEX sessions_by_use ON sessions (name, slot);
CREATE TABLE leases (
    name TEXT NOT NULL, id TEXT NOT NULL, owner TEXT NOT NULL, fence INTEGER NOT NULL,
    since REAL NOT NULL, until REAL NOT NULL, PRIMARY KEY (name, id)
) WITHOUT ROWID;
CREATE TABLE conflicts {_KEPT};
CREATE TABLE quarantine {_KEPT};
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""


CACHE_BYTES = 8 << 20  # of pages that SQLite keeps in memory
_TRIES = 5
_WRONG_HEADER = "{!r} is damaged: its header says {}; it was left as it is; restore a copy of it"
_LAST_SCHEMA = 255  # a number above was never one


def connect(
    path: str, *, create: bool, synchronous: Synchronous, timeout: float
) -> sqlite3.Connection:
    """Open a store file, or create one if there is none and `create` is set.

    Raises our own errors for a newer schema and for a file of another program, `sqlite3.Error` for
    the rest. Nothing is written to a file that is not ours.
    """
    parent = Path(path).parent
    with suppress(PermissionError):  # SQLite may not look there either, and says so
        if not parent.is_dir():
            raise StoreUnavailable(f"{path!r} has no directory; create {str(parent)!r} first")
    mode = "rwc" if create else "rw"
    connection = sqlite3.connect(
        f"{Path(path).as_uri()}?mode={mode}",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=64,
    )
    try:
        _prepare(connection, path, synchronous, timeout)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(
    connection: sqlite3.Connection, path: str, synchronous: Synchronous, timeout: float
) -> None:
    connection.execute("PRAGMA cell_size_check = ON")  # a page is checked before it is trusted
    if not _is_ours(connection, path):
        _create(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute(f"PRAGMA fullfsync = {int(synchronous == 'full')}")  # macOS needs both
    connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
    connection.execute(f"PRAGMA cache_size = -{CACHE_BYTES >> 10}")
    connection.execute("PRAGMA temp_store = MEMORY")
    _check_size(connection, path)
    _check_header(connection, path, timeout)


def _check_header(connection: sqlite3.Connection, path: str, timeout: float) -> None:
    """Refuse what SQLite accepts: to it a wrong format means read-only, a wrong encoding no rows.

    The file is not opened for this: closing it would drop the locks that SQLite holds for this
    process, and the next process to leave would delete the log under all others.
    """
    (encoding,) = connection.execute("PRAGMA encoding").fetchone()
    if encoding != "UTF-8":
        raise StoreCorrupt(_WRONG_HEADER.format(path, f"encoding {encoding}"))
    connection.execute("PRAGMA busy_timeout = 0")  # whoever has the lock can write
    try:
        connection.execute("DELETE FROM sessions WHERE 0")  # `BEGIN IMMEDIATE` would not tell
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname == "SQLITE_READONLY" and os.access(path, os.W_OK):
            raise StoreCorrupt(_WRONG_HEADER.format(path, "an unknown format")) from error
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(timeout * 1000)}")


def _check_size(connection: sqlite3.Connection, path: str) -> None:
    """Compare the size of the file with what its header says; only a log may stand between."""
    for _ in range(_TRIES):  # another process may write in between
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (page_size,) = connection.execute("PRAGMA page_size").fetchone()
        size, log = _size(path), _size(f"{path}-wal")
        if log or size == pages * page_size:
            return
    raise StoreCorrupt(
        f"{path!r} is damaged: it has {size} bytes, but its header says {pages * page_size}; it "
        "was left as it is; restore a copy of it"
    )


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _create(connection: sqlite3.Connection, path: str) -> None:
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # works only before the first table
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _is_ours(connection, path):  # another process may have come first
            for statement in _statements(_TABLES):
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _is_ours(connection: sqlite3.Connection, path: str) -> bool:
    """Return True if the tables are there, False for an empty file; raise for any other."""
    # the tables first: another process may create it all, in one transaction, in between
    (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if count == 0:
        return False
    (program,) = connection.execute("PRAGMA application_id").fetchone()
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    if program != APPLICATION_ID:
        raise StoreCorrupt(
            f"{path!r} belongs to another program: it has {count} tables and indexes, and was "
            "left as it is; choose another path for the sessions"
        )
    if schema > _LAST_SCHEMA or (schema <= SCHEMA_VERSION and (changed := _changed(connection))):
        what = f"its schema is {schema}" if schema > _LAST_SCHEMA else f"it has no {changed}"
        raise StoreCorrupt(
            f"{path!r} is damaged: {what}, unlike any file of floodline, and was left as it is; "
            f"restore a copy of it, or recover it with `sqlite3 {path} .recover`"
        )
    if schema > SCHEMA_VERSION:
        raise StoreTooNew(
            f"{path!r} has schema {schema}, but this floodline knows up to {SCHEMA_VERSION}; "
            "it was left as it is: update floodline, or choose another path"
        )
    return True


def _statements(script: str) -> list[str]:
    """Split a script: `executescript` would commit the transaction around it."""
    found, lines = [], []
    for line in script.splitlines():
        lines.append(line)
        if sqlite3.complete_statement(statement := "\n".join(lines).strip()):
            found.append(statement)
            lines.clear()
    return found


@cache
def _expected() -> dict[str, str | None]:
    """Return what `sqlite_master` says about our tables and indexes, by name."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in _statements(_TABLES):
            connection.execute(statement)
        return dict(connection.execute("SELECT name, sql FROM sqlite_master").fetchall())


def _changed(connection: sqlite3.Connection) -> str:
    """Return the tables and indexes that differ from ours; others may exist alongside."""
    found = dict(connection.execute("SELECT name, sql FROM sqlite_master").fetchall())
    return ", ".join(
        name for name, sql in _expected().items() if name not in found or found[name] != sql
    )
