"""Runs batches of calls on one file, with one connection."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from floodline import telemetry
from floodline._clock import Clock
from floodline.errors import (
    LogFull,
    RowConflict,
    RowNotFound,
    SessionConflict,
    SessionNotFound,
    StoreCorrupt,
    StoreError,
    StoreUnavailable,
    TooLarge,
)
from floodline.stores._calls import READS
from floodline.stores._owner import boot_id
from floodline.stores._retention_clock import RetentionClock
from floodline.stores._sqlite.faults import breaks_connection, is_busy, translate, undecodable
from floodline.stores._sqlite.identity import Files
from floodline.stores._sqlite.operations import Operations
from floodline.stores._sqlite.schema import CACHE_BYTES, Synchronous, connect
from floodline.stores._writer import Call

_VACUUM_PAGES = 256
_MOVED = 32  # rows of 0.1 that a batch moves on top of its work
_STALE_LEASE = 3600.0
_PAGE = 4096 + 272  # bytes that a cached page takes
_COUNTED = 16  # writing batches until the pages are counted again


_inherited: list[object] = []  # floodline: bounded[what one fork inherits]


# what is acknowledged must be in the file
_KEEPS = frozenset({"save", "delete", "quarantine", "append_rows", "delete_rows"})
_REFUSALS = (SessionConflict, SessionNotFound, RowConflict, RowNotFound, LogFull)


class _Culprit(Exception):
    """One operation of a batch broke its transaction."""


class Database:
    """Runs batches of calls; the caller makes sure that there is one at a time.

    An operation that is refused by rule does not touch its neighbours. One that breaks the
    transaction (a full disk, a damaged page) makes the whole batch start again, each call alone,
    so that only the culprit fails. If a commit fails, the whole batch fails, and none of it is
    acknowledged. The connection is opened when needed and dropped when it is no longer usable.
    """

    def __init__(
        self, path: str, *, synchronous: Synchronous, timeout: float, clock: Clock, wall: Clock
    ) -> None:
        self.path = path
        self._synchronous, self._timeout = synchronous, timeout
        self._clock, self._wall = clock, wall
        self._connection: sqlite3.Connection | None = None
        self._operations: Operations | None = None
        self._files = Files(path)
        self._dates = RetentionClock(boot_id())
        self._fresh = True
        self._pages = self._batches = 0
        self.damage = ""
        self.unclean = False
        telemetry.register_native(self)

    def open(self) -> None:
        """Connect now, so that errors show early; a lock is ignored, as it will be gone later."""
        with contextlib.suppress(OSError):  # a log is left by a crash, or has a user now
            self.unclean = Path(f"{self.path}-wal").stat().st_size > 0
        try:
            self._ready()
        except UnicodeDecodeError as error:
            raise undecodable(error, self.path) from error
        except sqlite3.Error as error:
            if not is_busy(error):
                raise translate(error, self.path) from error

    def shut(self) -> None:
        """Close the connection; the next batch opens a new one."""
        connection, self._connection = self._connection, None
        operations, self._operations = self._operations, None
        with contextlib.suppress(sqlite3.Error):
            if operations is not None:  # or a statement would keep the file open, as errors keep it
                operations.close()
        with contextlib.suppress(sqlite3.Error):
            if connection is not None:
                connection.close()

    def native_bytes(self) -> int:
        """Return how much SQLite caches: every page of the file, up to the limit of the cache."""
        return min(_PAGE * self._pages, CACHE_BYTES) if self._connection is not None else 0

    def disown(self) -> None:
        """Forget the connection of the parent process, open as it is: closing would harm it."""
        _inherited.append((self._connection, self._operations))
        self._connection = self._operations = None

    def run(self, batch: Sequence[Call]) -> None:
        """Give every call of the batch a result or an error."""
        try:
            self._attempt(batch)
        except _Culprit as culprit:
            if len(batch) == 1:
                self._fail(batch, culprit.__cause__ or culprit)
            else:
                for call in batch:
                    self.run((call,))
        except sqlite3.Error as error:
            reads = [call for call in batch if call.what in READS] if is_busy(error) else []
            self._fail(batch, error)
            if 0 < len(reads) < len(batch):
                self.run(reads)  # they need no lock
        except Exception as error:
            self._fail(batch, error)

    def _attempt(self, batch: Sequence[Call]) -> None:
        kinds = [call.what for call in batch]
        writes = not READS.issuperset(kinds)
        keeps = not _KEEPS.isdisjoint(kinds)
        connection, operations = self._ready(look=not keeps)
        try:
            operations.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            # the time is taken inside: waiting for the lock must not make leases look future
            operations.begin(self._clock(), self._wall(), kinds.count("acquire"))
            if writes and self._fresh:
                operations.forget_stale_leases(_STALE_LEASE)
            for call in batch:
                self._operate(operations, call)
            operations.end()
            operations.execute("COMMIT")
        except BaseException as error:
            self._roll_back(connection, error)
            raise
        if keeps and (lost := self._files.lost()):
            self._give_up(connection, lost)
        if "inspect" in kinds:
            self.note_damage(operations.places.damage)
        self._fresh = self._fresh and not writes
        if writes:
            self._count_pages(operations)
        if writes and operations.places.old:
            self._tidy(connection, operations, lambda: operations.places.move_old(_MOVED))
        if writes and operations.row_logs.untied:
            self._tidy(connection, operations, operations.row_logs.reap)
        if "purge" in kinds or "delete" in kinds:
            self._give_back(connection, operations)

    def _give_up(self, connection: sqlite3.Connection, lost: str) -> NoReturn:
        """Fail what was committed to a file that is gone, and release the file.

        If only the log is gone, its content is moved into the file: it is all still open.
        """
        with contextlib.suppress(sqlite3.Error):
            if self._files.is_same() and "deleted" in lost:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.shut()
        raise StoreUnavailable(
            f"{lost}, so nothing was acknowledged; leave the file, `-wal` and `-shm` alone "
            "together, put them back, and try again"
        )

    def note_damage(self, damage: str) -> None:
        """Remember and report damage: from now on nothing counts as missing."""
        if damage and not self.damage:
            self.damage = damage
            if self._operations is not None:
                self._operations.places.damage = damage
            telemetry.emit("store_damaged", self.path, why=damage)

    def _tidy(
        self, connection: sqlite3.Connection, operations: Operations, work: Callable[[], None]
    ) -> None:
        """Move rows of 0.1, or delete those of closed sessions, in a transaction of its own."""
        try:
            operations.execute("BEGIN IMMEDIATE")
            work()
            operations.execute("COMMIT")
        except (sqlite3.Error, StoreCorrupt) as error:  # not worth failing the work of others
            self._roll_back(connection, error)

    def _operate(self, operations: Operations, call: Call) -> None:
        call.result = call.error = None
        try:
            call.result = getattr(operations, call.what)(*call.args)
        except _REFUSALS as refused:
            call.error = refused
        except Exception as error:
            raise _Culprit from error

    def _roll_back(self, connection: sqlite3.Connection, error: BaseException) -> None:
        cause = error.__cause__ if isinstance(error, _Culprit) else error
        broken = isinstance(cause, sqlite3.Error) and breaks_connection(cause)
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            broken = True
        if broken:
            self.shut()

    def _count_pages(self, operations: Operations) -> None:
        self._batches += 1
        if self._batches % _COUNTED == 1:
            with contextlib.suppress(sqlite3.Error):  # what was asked for is done
                _, self._pages = operations.pages()

    def _give_back(self, connection: sqlite3.Connection, operations: Operations) -> None:
        """Return a slice of the free pages to the disk once they are a quarter of the file."""
        with contextlib.suppress(sqlite3.Error):  # free space is not worth an error
            free, pages = operations.pages()
            if free > _VACUUM_PAGES and free * 4 > pages:
                # `execute` would take one step, which is one page
                connection.executescript(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")

    def _fail(self, batch: Sequence[Call], error: BaseException) -> None:
        for call in batch:
            call.result = None
            call.error = self._said(error)

    def _said(self, error: BaseException) -> BaseException:
        if isinstance(error, sqlite3.Error):
            mine: BaseException = translate(error, self.path)
        elif isinstance(error, UnicodeDecodeError):
            mine = undecodable(error, self.path)
        elif isinstance(error, OverflowError):
            mine = TooLarge(
                f"{self.path!r} cannot hold a value of that size; keep sessions smaller"
            )
        elif isinstance(error, StoreError):
            mine = type(error)(*error.args)  # each caller gets its own error to raise
        else:
            return error
        mine.__cause__ = error
        return mine

    def _ready(self, *, look: bool = True) -> tuple[sqlite3.Connection, Operations]:
        """Return the operations; `look` at the file first, if nothing checks it afterwards."""
        if self._connection is not None and (
            (look and not self._files.is_same()) or self._connection.in_transaction
        ):
            self.shut()  # another file has its name, or a Ctrl-C left a transaction open
        if self._connection is None or self._operations is None:
            connection = self._connect()
            try:
                self._operations = Operations(connection, self._file_bytes, self.path, self._dates)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            self._operations.places.damage = self.damage
            self._files.note()
            self._fresh = True
        return self._connection, self._operations

    def _connect(self) -> sqlite3.Connection:
        # a file that existed is not created again: empty sessions would take its place
        if self._files.file is not None and not Path(self.path).exists():
            raise StoreUnavailable(
                f"{self.path!r} was deleted while in use; put it back, or create a new store"
            )
        return connect(
            self.path,
            create=self._files.file is None,
            synchronous=self._synchronous,
            timeout=self._timeout,
        )

    def _file_bytes(self) -> int:
        total = 0
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):
                total += Path(self.path + suffix).stat().st_size
        return total
