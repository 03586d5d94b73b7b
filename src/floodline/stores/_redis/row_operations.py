"""The operations on row logs as requests to the scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from floodline.errors import LogFull, RowConflict, SessionConflict, SessionNotFound
from floodline.stores._redis.requests import MICROS, ROWS_WHY, flat, micros, request
from floodline.stores._refusals import LOST, conflict_message, not_found_message
from floodline.stores._rows.log import (
    Append,
    LogStats,
    Row,
    log_full,
    row_conflict,
    row_not_found,
)
from floodline.stores._server.link import Operation
from floodline.stores._server.times import Moment, Times


class RowOperations:
    """See `RowStore`."""

    _times: Times

    def append_rows(
        self, name: str, id: str, rows: Sequence[Append], fence: int | None, create: bool
    ) -> Operation:
        moment = self._times.read()
        terms = (name, id, "" if fence is None else fence, int(create), ROWS_WHY + LOST)
        reply = yield request("append_rows", moment, *terms, micros(moment.date), *flat(rows))
        if reply[0] == 1:
            return int(reply[1])
        if reply[0] == 2:
            raise refused_rows(name, id, reply)
        if reply[0] == 3:
            raise SessionNotFound(not_found_message(name, id))
        raise SessionConflict(conflict_message(name, id, LOST))

    def get_rows(self, name: str, id: str, log: str, keys: Sequence[str]) -> Operation:
        found = yield request("get_rows", Moment(), name, id, log, *keys)
        rows = [_row(*one) for one in found]
        return {row.key: row for row in rows}

    def rows(
        self,
        name: str,
        id: str,
        log: str,
        after: str | int | None,
        before: str | int | None,
        limit: int,
        newest_first: bool,
    ) -> Operation:
        terms = (name, id, log, _place(after), _place(before), limit, int(newest_first))
        there, found = yield request("rows", Moment(), *terms)
        if not there:
            raise row_not_found(name, id, log, found.decode())
        page = [_row(*one) for one in found]
        return page[::-1] if newest_first else page

    def logs(self, name: str, id: str, after: str, limit: int) -> Operation:
        found = yield request("logs", Moment(), name, id, after, limit)
        return [LogStats(log.decode(), rows, int(size)) for log, rows, size in found]

    def count_rows(self, name: str, id: str, log: str | None) -> Operation:
        rows = yield request("count_rows", Moment(), name, id, log or "")
        return int(rows)

    def delete_rows(
        self,
        name: str,
        id: str,
        log: str | None,
        keys: Sequence[str] | None,
        fence: int | None,
    ) -> Operation:
        terms = (name, id, "" if fence is None else fence, log or "", int(keys is None))
        gone = yield request("delete_rows", Moment(), *terms, *(keys or ()))
        if gone < 0:
            raise SessionConflict(conflict_message(name, id, LOST))
        return int(gone)


def refused_rows(name: str, id: str, reply: Sequence[Any]) -> LogFull | RowConflict:
    """Return the error for rows that a script did not append."""
    _, why, log, *rest = reply
    if why == b"taken":
        return row_conflict(name, id, log.decode(), rest[0].decode())
    return log_full(name, id, log.decode(), int(rest[0]), int(rest[1]))


def _row(key: bytes, number: bytes, packed: bytes) -> Row:
    at, _, data = packed.partition(b":")
    return Row(key.decode(), int(number), data, int(at) / MICROS)


def _place(place: str | int | None) -> str:
    """Return a number as `#number` and a key as `=key`."""
    if place is None:
        return ""
    return f"={place}" if isinstance(place, str) else f"#{place}"
