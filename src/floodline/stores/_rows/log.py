"""The row log: rows beside the envelope of a session, for what grows while the state stays small.

A session has any number of logs, each under a name of its own (an archive of messages, checkpoints,
events, items). A row has a key, unique within its log, an order number, bytes, and the date of its
append. Logs live and die with their session: `delete` and `purge` remove them with its row, and a
session that comes again under the same id begins with none.

Rows get into a log in two ways:

- `save(..., rows=…)`: under the fence and version of the save, in the same transaction. Either the
  envelope and all rows are written, or nothing is. A refused save keeps its rows in `conflicts`,
  next to its envelope (`unpack_rows` reads them). A repeated `write_id` appends nothing.
- `append_rows(...)`: one transaction without a lease. It needs none, because an append is
  idempotent by key and the store numbers the rows. `fence=` makes it conditional on a lease. It
  never changes the version of the session, so copies in memory stay valid. If there is no session,
  it begins one with an empty envelope and the empty write id (`Sessions` starts such a one with its
  factory), so that `ids`, `count`, `purge` and `delete` know it; `create=False` refuses instead.

Both count as a use of the session for retention.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

import msgspec

from floodline.errors import ConfigError, LogFull, RowConflict, RowNotFound, TooLarge
from floodline.stores._protocol import AsyncStore, Store

WhenFull = Literal["drop", "refuse"]
WhenTaken = Literal["refuse", "keep", "replace"]

LAST_NUMBER = 2**53 - 1  # what every store can order exactly, those with floating scores too


@dataclass(slots=True, frozen=True)
class NewRow:
    """A row to append; without a `number` it comes after every row that its log has ever had.

    A given number places the row: rows are ordered by number, and by the UTF-8 bytes of their keys
    where numbers are equal.
    """

    key: str
    data: bytes
    number: int | None = None

    def __post_init__(self) -> None:
        check_text(self.key, "key")
        if not isinstance(self.data, bytes):
            raise ConfigError(f"data of row {self.key!r} is {type(self.data)}; give bytes")
        if self.number is not None and not 0 <= self.number <= LAST_NUMBER:
            raise ConfigError(f"number={self.number!r} must be from 0 to {LAST_NUMBER}, or None")


@dataclass(slots=True, frozen=True)
class Append:
    """Rows for one log, all or none.

    `when_taken` is about a key that the log has with other bytes: "refuse" raises `RowConflict`,
    "keep" leaves the old row, "replace" gives it the new bytes in its old place. A key with equal
    bytes is the same row, not a second one, whatever is asked.

    `max_rows` and `max_bytes` are the cap of the log, checked by this append only. With
    `when_full="refuse"` an append that would exceed it raises `LogFull`; with "drop" the oldest
    rows leave, which may be among the new ones. One row above `max_bytes` is `TooLarge` always.
    """

    log: str
    rows: Sequence[NewRow]
    max_rows: int | None = None
    max_bytes: int | None = None
    when_full: WhenFull = "refuse"
    when_taken: WhenTaken = "refuse"

    def __post_init__(self) -> None:
        check_text(self.log, "log")
        for limit, what in ((self.max_rows, "max_rows"), (self.max_bytes, "max_bytes")):
            if limit is not None and limit < 1:
                raise ConfigError(f"{what}={limit!r} must be at least 1, or None")
        if self.when_full not in get_args(WhenFull):
            raise ConfigError(f"when_full={self.when_full!r} must be one of {get_args(WhenFull)}")
        if self.when_taken not in get_args(WhenTaken):
            raise ConfigError(
                f"when_taken={self.when_taken!r} must be one of {get_args(WhenTaken)}"
            )
        for row in self.rows:
            if self.max_bytes is not None and len(row.data) > self.max_bytes:
                raise TooLarge(
                    f"row {row.key!r} of log {self.log!r} has {len(row.data)} bytes, and "
                    f"max_bytes is {self.max_bytes}; nothing was written"
                )


@dataclass(slots=True, frozen=True)
class Row:
    """A row that was read; `at` is the store's date of its append, in seconds."""

    key: str
    number: int
    data: bytes
    at: float


@dataclass(slots=True, frozen=True)
class LogStats:
    """How much one log of one session holds; `bytes` counts the data of its rows."""

    log: str
    rows: int
    bytes: int


@runtime_checkable
class RowStore(Store, Protocol):
    """A store with row logs; every store of floodline is one."""

    def save(
        self,
        name: str,
        id: str,
        envelope: bytes,
        *,
        fence: int,
        version: int,
        write_id: str,
        release: bool,
        rows: Sequence[Append] = (),
    ) -> int:
        """See `Store.save`; append `rows` in the same transaction.

        `RowConflict` and `LogFull` write nothing, neither the envelope nor a row nor the end of the
        lease. The fence and the version are checked first.
        """
        ...

    def append_rows(
        self,
        name: str,
        id: str,
        rows: Sequence[Append],
        *,
        fence: int | None = None,
        create: bool = True,
    ) -> int:
        """Append in one transaction without a save; return how many rows are new or replaced.

        With `fence`, raise `SessionConflict` unless the lease has it. `create=False` raises
        `SessionNotFound` if there is no session.
        """
        ...

    def get_rows(self, name: str, id: str, log: str, keys: Sequence[str]) -> dict[str, Row]:
        """Return the rows of these keys; those that are not there are left out."""
        ...

    def rows(
        self,
        name: str,
        id: str,
        log: str,
        *,
        after: str | int | None = None,
        before: str | int | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Row]:
        """Return at most `limit` rows between two places, which are both left out.

        A place is a key, which must be there (`RowNotFound`), or a number. `newest_first` takes
        them from the end, and returns them in that order.
        """
        ...

    def logs(self, name: str, id: str, *, after: str = "", limit: int = 1000) -> list[LogStats]:
        """Return the logs of a session that have rows, ordered by name, beginning after `after`."""
        ...

    def names(self, *, after: str = "", limit: int = 1000) -> list[str]:
        """Return the names that have sessions, in order, beginning after `after`."""
        ...

    def count_rows(self, name: str, id: str, log: str | None = None) -> int:
        """Return how many rows a log has, or all logs of the session."""
        ...

    def delete_rows(
        self,
        name: str,
        id: str,
        log: str | None = None,
        *,
        keys: Sequence[str] | None = None,
        fence: int | None = None,
    ) -> int:
        """Delete rows and return how many there were; numbers are not used again.

        Deletes those of `keys` in one log, or the whole log, or all logs of the session. With
        `fence`, raise `SessionConflict` unless the lease has it.
        """
        ...


@runtime_checkable
class AsyncRowStore(AsyncStore, Protocol):
    """The coroutine twin of `RowStore`."""

    async def save(
        self,
        name: str,
        id: str,
        envelope: bytes,
        *,
        fence: int,
        version: int,
        write_id: str,
        release: bool,
        rows: Sequence[Append] = (),
    ) -> int:
        """See `RowStore.save`."""
        ...

    async def append_rows(
        self,
        name: str,
        id: str,
        rows: Sequence[Append],
        *,
        fence: int | None = None,
        create: bool = True,
    ) -> int:
        """See `RowStore.append_rows`."""
        ...

    async def get_rows(self, name: str, id: str, log: str, keys: Sequence[str]) -> dict[str, Row]:
        """See `RowStore.get_rows`."""
        ...

    async def rows(
        self,
        name: str,
        id: str,
        log: str,
        *,
        after: str | int | None = None,
        before: str | int | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Row]:
        """See `RowStore.rows`."""
        ...

    async def logs(
        self, name: str, id: str, *, after: str = "", limit: int = 1000
    ) -> list[LogStats]:
        """See `RowStore.logs`."""
        ...

    async def names(self, *, after: str = "", limit: int = 1000) -> list[str]:
        """See `RowStore.names`."""
        ...

    async def count_rows(self, name: str, id: str, log: str | None = None) -> int:
        """See `RowStore.count_rows`."""
        ...

    async def delete_rows(
        self,
        name: str,
        id: str,
        log: str | None = None,
        *,
        keys: Sequence[str] | None = None,
        fence: int | None = None,
    ) -> int:
        """See `RowStore.delete_rows`."""
        ...


def check_text(text: object, what: str) -> None:
    """Raise `ConfigError` unless this can be the name of a log or the key of a row."""
    if not isinstance(text, str) or not text:
        raise ConfigError(f"{what}={text!r} must be a non-empty string")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ConfigError(f"{what}={text!r} cannot be written as UTF-8") from error


def row_conflict(name: str, id: str, log: str, key: str) -> RowConflict:
    """Return the error for a key that is taken."""
    return RowConflict(
        f"log {log!r} of session {id!r} of {name!r} has other bytes under key {key!r}; nothing "
        'was written: use another key, or when_taken="replace"'
    )


def row_not_found(name: str, id: str, log: str, key: str) -> RowNotFound:
    """Return the error for a place that is not there."""
    return RowNotFound(
        f"log {log!r} of session {id!r} of {name!r} has no row {key!r} to page from; it was "
        "deleted, or never appended"
    )


def log_full(name: str, id: str, log: str, rows: int, size: int) -> LogFull:
    """Return the error for an append that would make a log this large."""
    return LogFull(
        f"log {log!r} of session {id!r} of {name!r} would have {rows} rows with {size} bytes, more "
        'than its cap; nothing was written: delete rows, or append with when_full="drop"'
    )


def pack_rows(rows: Iterable[Append]) -> bytes:
    """Return the rows of a refused write as `conflicts` keeps them."""
    return msgspec.msgpack.encode(
        [(one.log, row.key, row.data) for one in rows for row in one.rows]
    )


def unpack_rows(packed: bytes) -> list[tuple[str, str, bytes]]:
    """Return log, key and data of each row of a refused write."""
    return msgspec.msgpack.decode(packed, type=list[tuple[str, str, bytes]])


_REFUSED_ROWS = "rows of a refused write: "


def why_rows_refused(why: str) -> str:
    """Return the reason under which `conflicts` keeps the rows of a refused write."""
    return f"{_REFUSED_ROWS}{why}"


def is_refused_rows(why: str) -> bool:
    """Return True if a kept record holds rows, and no envelope."""
    return why.startswith(_REFUSED_ROWS)
