"""The archive of cut messages in a SQLite file: its own, or that of the sessions."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import time
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import msgspec

from floodline._clock import Clock
from floodline._units import Duration, Size, parse_choice, parse_count, parse_duration, parse_size
from floodline.errors import CodecError, StoreUnavailable
from floodline.stores._forks import writers
from floodline.stores._lease_clock import machine_clock
from floodline.stores._owner import boot_id
from floodline.stores._retention_clock import RetentionClock
from floodline.stores._sqlite.dates import keep, resume
from floodline.stores._sqlite.faults import breaks_connection, translate, undecodable
from floodline.stores._sqlite.identity import Files, identify
from floodline.stores._sqlite.paths import checked_path, sqlite_path
from floodline.stores._sqlite.schema import Synchronous, connect
from floodline.stores._writer import Call, Writer
from floodline.telemetry import Stats

Message = dict[str, Any]

_READS = ("page", "conversations", "totals")
_SLICE = 200  # rows that one call deletes on top of its own work
_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS archive (
        n INTEGER PRIMARY KEY, conversation TEXT NOT NULL, seq INTEGER NOT NULL,
        digest BLOB NOT NULL, at REAL NOT NULL, size INTEGER NOT NULL, message BLOB NOT NULL,
        UNIQUE (conversation, seq, digest)
    )""",
    "CREATE INDEX IF NOT EXISTS archive_by_age ON archive (at)",
    """
    CREATE TABLE IF NOT EXISTS archive_totals (
        one INTEGER PRIMARY KEY CHECK (one = 1), rows INTEGER NOT NULL, bytes INTEGER NOT NULL
    )""",
    "INSERT OR IGNORE INTO archive_totals VALUES (1, 0, 0)",
)
_KEEP = """
INSERT OR IGNORE INTO archive (conversation, seq, digest, at, size, message)
VALUES (?, ?, ?, ?, ?, ?)
"""
# rows stamped while the date was wrong count as archived now, or they would stay forever
_FUTURE = "UPDATE archive SET at = ? WHERE n IN (SELECT n FROM archive WHERE at > ? LIMIT ?)"
_KEEP_EVERY = 60.0
_PAGE = """
SELECT seq, message FROM archive WHERE conversation = :of AND seq < :before AND seq >= (
    SELECT min(seq) FROM (
        SELECT seq FROM archive WHERE conversation = :of AND seq < :before
        ORDER BY seq DESC LIMIT :limit
    )
) ORDER BY seq, n
"""
_IDS = """
SELECT DISTINCT conversation FROM archive WHERE conversation > ? ORDER BY conversation LIMIT ?
"""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class SQLiteArchive:
    """Messages under the id of their conversation and their number in it, oldest first.

    `path` is a file or a URL such as `sqlite:///agent.db`; the file of a `SQLiteStore` may be
    shared. `retain` deletes what is older, `max_bytes` the oldest beyond it, both in slices with
    each write. What `put` has stored survives a killed process, with `synchronous="full"` a power
    cut too. Safe for threads and processes; a fork opens its own connection.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        retain: Duration | None = None,
        max_bytes: Size | None = None,
        synchronous: Synchronous = "normal",
        busy_timeout: Duration = "5 s",
        clock: Clock | None = None,
    ) -> None:
        self.path = checked_path(_path_of(path))
        shelf = _Shelf(
            self.path,
            retain=None if retain is None else parse_duration(retain, "retain"),
            max_bytes=None if max_bytes is None else parse_size(max_bytes, "max_bytes"),
            synchronous=parse_choice(synchronous, "synchronous", get_args(Synchronous)),
            timeout=parse_duration(busy_timeout, "busy_timeout", zero=True),
            clock=clock or time.time,
        )
        self._max_bytes = shelf.max_bytes
        self._writer = writer = Writer(shelf, self.path)
        self._finalizer = weakref.finalize(self, writer.abandon)
        self._finalizer.atexit = False  # conversations may archive at exit
        writers.add(writer)
        self.stats()  # raise here what cannot work

    def put(self, conversation: str, messages: Iterable[tuple[int, Message]]) -> None:
        """Store numbered messages, all or none; the same number and message twice counts once."""
        rows = [(seq, *_packed(message, seq)) for seq, message in messages]
        self._writer.ask("put", conversation, rows)

    def page(
        self, conversation: str, *, before: int | None = None, limit: int = 1000
    ) -> list[tuple[int, Message]]:
        """Return the last `limit` messages with a number below `before`, oldest first.

        It returns more than `limit` only if one number was archived with several texts.
        """
        edge = 2**62 if before is None else before
        rows = self._writer.ask("page", conversation, edge, parse_count(limit, "limit"))
        return [(seq, _decode(message)) for seq, message in rows]

    def conversations(self, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return the ids of archived conversations in order, beginning after `after`."""
        ids: list[str] = self._writer.ask("conversations", after, parse_count(limit, "limit"))
        return ids

    def delete(self, conversation: str) -> int:
        """Delete a conversation, in slices; return how many messages it had."""
        total = 0
        while deleted := self._writer.ask("delete", conversation):
            total += deleted
        return total

    def purge(self, *, limit: int = 1000) -> int:
        """Delete at most `limit` messages that are older than `retain`; return how many."""
        deleted: int = self._writer.ask("purge", parse_count(limit, "limit"))
        return deleted

    def stats(self) -> Stats:
        """Return the current rows and bytes."""
        rows, size = self._writer.ask("totals")
        return Stats(
            kind="archive", name=self.path, items=rows, bytes=size, max_bytes=self._max_bytes
        )

    def close(self) -> None:
        """Release thread and file; idempotent."""
        self._finalizer.detach()
        self._writer.close()

    def __enter__(self) -> SQLiteArchive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Shelf:
    """The operations on the tables; the writer makes sure that there is one caller at a time."""

    def __init__(
        self,
        path: str,
        *,
        retain: float | None,
        max_bytes: int | None,
        synchronous: Synchronous,
        timeout: float,
        clock: Clock,
    ) -> None:
        self._path, self._synchronous, self._timeout = path, synchronous, timeout
        self._retain, self.max_bytes, self._clock = retain, max_bytes, clock
        self._connection: sqlite3.Connection | None = None
        self._files = Files(path)
        self._seconds, self._dates = machine_clock(), RetentionClock(boot_id())
        self._kept = -_KEEP_EVERY
        self._inherited: list[object] = []

    def run(self, batch: Sequence[Call]) -> None:
        """Give every call a result or an error; each is a transaction."""
        for call in batch:
            try:
                call.result = self._transact(call)
            except sqlite3.Error as error:
                call.error = translate(error, self._path)
                call.error.__cause__ = error
                if breaks_connection(error):
                    self.shut()
            except UnicodeDecodeError as error:
                call.error = undecodable(error, self._path)
                self.shut()
            except Exception as error:
                call.error = error

    def shut(self) -> None:
        """Close the connection; the next call opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def disown(self) -> None:
        """Forget the connection of the parent process, open as it is: closing would harm it."""
        self._inherited.append(self._connection)
        self._connection = None

    def _transact(self, call: Call) -> Any:
        connection = self._ready()
        connection.execute("BEGIN" if call.what in _READS else "BEGIN IMMEDIATE")
        try:
            result = getattr(self, f"_{call.what}")(connection, *call.args)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if call.what not in _READS and (lost := self._files.lost()):
            self.shut()
            raise StoreUnavailable(f"{lost}, so nothing was archived; put it back, and try again")
        return result

    def _ready(self) -> sqlite3.Connection:
        if self._connection is not None and (
            not self._files.is_same() or self._connection.in_transaction
        ):
            self.shut()  # another file has its name, or a Ctrl-C left a transaction open
        if self._connection is None:
            if self._files.file is not None and identify(self._path) is None:
                raise StoreUnavailable(
                    f"{self._path!r} was deleted while in use; put it back, or create a new archive"
                )
            self._connection = connect(
                self._path, create=True, synchronous=self._synchronous, timeout=self._timeout
            )
            for statement in _TABLES:
                self._connection.execute(statement)
            self._files.note()
        return self._connection

    def _put(
        self, connection: sqlite3.Connection, conversation: str, rows: list[tuple[Any, ...]]
    ) -> None:
        stamp, _ = self._look(connection)
        count = size = 0
        for seq, digest, message in rows:
            row = (conversation, seq, digest, stamp, len(message), message)
            if connection.execute(_KEEP, row).rowcount:
                count, size = count + 1, size + len(message)
        self._count(connection, count, size)
        self._purge(connection, _SLICE)
        while self.max_bytes is not None:
            excess = self._totals(connection)[1] - self.max_bytes
            if excess <= 0:
                break
            self._drop(connection, "1 ORDER BY n", (), _SLICE, excess)

    def _page(
        self, connection: sqlite3.Connection, conversation: str, before: int, limit: int
    ) -> list[tuple[int, bytes]]:
        names = {"of": conversation, "before": before, "limit": limit}
        return connection.execute(_PAGE, names).fetchall()

    def _conversations(self, connection: sqlite3.Connection, after: str, limit: int) -> list[str]:
        return [row[0] for row in connection.execute(_IDS, (after, limit))]

    def _delete(self, connection: sqlite3.Connection, conversation: str) -> int:
        return self._drop(connection, "conversation = ?", (conversation,), 5 * _SLICE)

    def _purge(self, connection: sqlite3.Connection, limit: int) -> int:
        if self._retain is None:
            return 0
        stamp, judged = self._look(connection)
        connection.execute(_FUTURE, (stamp, stamp, limit))
        if (seconds := self._seconds()) - self._kept >= _KEEP_EVERY:
            keep(connection.execute, self._dates)
            self._kept = seconds
        return self._drop(connection, "at < ? ORDER BY at", (judged - self._retain,), limit)

    def _look(self, connection: sqlite3.Connection) -> tuple[float, float]:
        """Return the time to stamp messages with, and the time to judge them by."""
        seconds, date = self._seconds(), self._clock()
        if self._retain is not None and not self._dates.begun:
            resume(connection.execute, self._dates, seconds, date)
        return self._dates.look(seconds, date)

    def _totals(self, connection: sqlite3.Connection) -> tuple[int, int]:
        rows, size = connection.execute("SELECT rows, bytes FROM archive_totals").fetchone()
        return rows, size

    def _drop(
        self,
        connection: sqlite3.Connection,
        where: str,
        values: tuple[Any, ...],
        limit: int,
        enough: float = float("inf"),
    ) -> int:
        """Delete at most `limit` rows, and no more than make up `enough` bytes."""
        found = []
        chosen = f"SELECT n, size FROM archive WHERE {where} LIMIT {limit}"
        for n, size in connection.execute(chosen, values).fetchall():
            if enough <= 0:
                break
            found.append((n, size))
            enough -= size
        connection.executemany("DELETE FROM archive WHERE n = ?", [(n,) for n, _ in found])
        self._count(connection, -len(found), -sum(size for _, size in found))
        return len(found)

    def _count(self, connection: sqlite3.Connection, rows: int, size: int) -> None:
        if rows:
            change = "UPDATE archive_totals SET rows = rows + ?, bytes = bytes + ?"
            connection.execute(change, (rows, size))


def _path_of(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    return sqlite_path(text) if text.startswith("sqlite:") else text


def _packed(message: Message, seq: int) -> tuple[bytes, bytes]:
    try:
        packed = _encode(message)
    except Exception as error:  # msgspec has no common error for what it cannot encode
        raise CodecError(f"message {seq} cannot be archived ({error}): $[{seq}]") from error
    return hashlib.blake2b(packed, digest_size=12).digest(), packed
