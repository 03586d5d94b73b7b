"""The operations on row logs as statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from floodline.errors import LogFull, RowConflict, SessionConflict, SessionNotFound
from floodline.stores._postgres.columns import Together
from floodline.stores._refusals import LOST, conflict_message, not_found_message
from floodline.stores._rows.log import (
    LAST_NUMBER,
    Append,
    LogStats,
    Row,
    log_full,
    pack_rows,
    row_conflict,
    row_not_found,
    why_rows_refused,
)
from floodline.stores._server.link import Operation
from floodline.stores._server.times import Times

ROWS_WHY = why_rows_refused("").encode()
APPENDS = """ROW(%b::bytea[], %b::bigint[], %b::bigint[], %b::boolean[], %b::text[],
        %b::bigint[], %b::bytea[], %b::bigint[], %b::bytea[])::"{s}".appends"""
_OF_LOG = "name = %b::bytea AND id = %b::bytea AND log = %b::bytea"
# one head, so that the server reads a page from the index in its order, and no more than the page
_PAGE = f"""SELECT key, number, data, at FROM "{{s}}".log_rows
    WHERE head = (SELECT head FROM "{{s}}".logs WHERE {_OF_LOG})
    AND (number, key) > (%b::bigint, %b::bytea) AND (number, key) < (%b::bigint, %b::bytea)
    ORDER BY number {{order}}, key {{order}} LIMIT %b::bigint"""
ROW_STATEMENTS = {
    "append_rows": f"""SELECT (r).why, (r).log, (r).key, (r).rows, (r).bytes, (r).written FROM (
        SELECT "{{s}}".append_rows(%b::float8, %b::float8, %b::bytea, %b::bytea, %b::bigint,
        %b::boolean, %b::bytea, %b::bytea, {APPENDS}) AS r OFFSET 0) AS one""",
    "get_rows": f"""SELECT r.key, r.number, r.data, r.at FROM "{{s}}".log_rows AS r
        JOIN "{{s}}".logs AS l USING (head) WHERE {_OF_LOG} AND r.key = ANY (%b::bytea[])""",
    "oldest": _PAGE.replace("{order}", "ASC"),
    "newest": _PAGE.replace("{order}", "DESC"),
    "logs": """SELECT log, rows, bytes FROM "{s}".logs
        WHERE name = %b::bytea AND id = %b::bytea AND log > %b::bytea AND rows > 0
        ORDER BY log LIMIT %b::bigint""",
    "count_rows": """SELECT coalesce(sum(rows), 0)::bigint FROM "{s}".logs
        WHERE name = %b::bytea AND id = %b::bytea AND (%b::bytea IS NULL OR log = %b::bytea)""",
    "delete_rows": """SELECT "{s}".delete_rows(%b::bytea, %b::bytea, %b::bytea, %b::bytea[],
        %b::bigint)""",
}


class Request(NamedTuple):
    """One statement; a batch is sorted by `key`, and one statement where there is `together`.

    `relaxed` does the same without waiting for the disk: what only leases do survives a killed
    client, and a server that crashed has to be asked for new leases anyway.
    """

    key: tuple[bytes, bytes]
    sql: str
    params: tuple[Any, ...]
    relaxed: str | None = None
    together: Together | None = None


class RowOperations:
    """See `RowStore`."""

    _times: Times
    _sql: dict[str, str]
    _relaxed: dict[str, str]
    _together: dict[str, Together]

    def append_rows(
        self, name: str, id: str, rows: Sequence[Append], fence: int | None, create: bool
    ) -> Operation:
        key, moment = (name.encode(), id.encode()), self._times.read()
        kept = (ROWS_WHY + LOST.encode(), pack_rows(rows))
        terms = (moment.stamp, moment.date, *key, fence, create, *kept, *columns(rows))
        ((why, *refused, written),) = yield self._request("append_rows", *terms, key=key)
        if why == "lost":
            raise SessionConflict(conflict_message(name, id, LOST))
        if why == "missing":
            raise SessionNotFound(not_found_message(name, id))
        if why:
            raise refused_rows(name, id, why, *refused)
        return written

    def get_rows(self, name: str, id: str, log: str, keys: Sequence[str]) -> Operation:
        wanted = [key.encode() for key in keys]
        found = yield self._request("get_rows", *_of(name, id, log), wanted)
        return {row[0].decode(): _row(*row) for row in found}

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
        first, last = (-1, b""), (LAST_NUMBER + 1, b"")
        if isinstance(after, str):
            first = ((yield from self._number(name, id, log, after)), after.encode())
        elif after is not None:
            first = (after + 1, b"")
        if isinstance(before, str):
            last = ((yield from self._number(name, id, log, before)), before.encode())
        elif before is not None:
            last = (before, b"")
        what = "newest" if newest_first else "oldest"
        found = yield self._request(what, *_of(name, id, log), *first, *last, limit)
        return [_row(*row) for row in found]

    def logs(self, name: str, id: str, after: str, limit: int) -> Operation:
        found = yield self._request("logs", name.encode(), id.encode(), after.encode(), limit)
        return [LogStats(log.decode(), rows, size) for log, rows, size in found]

    def count_rows(self, name: str, id: str, log: str | None) -> Operation:
        of = None if log is None else log.encode()
        ((rows,),) = yield self._request("count_rows", name.encode(), id.encode(), of, of)
        return rows

    def delete_rows(
        self,
        name: str,
        id: str,
        log: str | None,
        keys: Sequence[str] | None,
        fence: int | None,
    ) -> Operation:
        key = (name.encode(), id.encode())
        wanted = None if keys is None else [one.encode() for one in keys]
        terms = (*key, None if log is None else log.encode(), wanted, fence)
        ((gone,),) = yield self._request("delete_rows", *terms, key=key)
        if gone is None:
            raise SessionConflict(conflict_message(name, id, LOST))
        return gone

    def _number(self, name: str, id: str, log: str, key: str) -> Operation:
        found = yield self._request("get_rows", *_of(name, id, log), [key.encode()])
        if not found:
            raise row_not_found(name, id, log, key)
        return found[0][1]

    def _request(self, what: str, *params: Any, key: tuple[bytes, bytes] = (b"", b"")) -> Request:
        both = self._relaxed.get(what), self._together.get(what)
        return Request(key, self._sql[what], params, *both)


def columns(appends: Sequence[Append]) -> tuple[list[Any], ...]:
    """Return appends as the arrays of which the server makes one value."""
    rows = [row for one in appends for row in one.rows]
    return (
        [one.log.encode() for one in appends],
        [one.max_rows for one in appends],
        [one.max_bytes for one in appends],
        [one.when_full == "drop" for one in appends],
        [one.when_taken for one in appends],
        [len(one.rows) for one in appends],
        [row.key.encode() for row in rows],
        [row.number for row in rows],
        [row.data for row in rows],
    )


def refused_rows(
    name: str, id: str, why: str, log: bytes, key: bytes, rows: int, size: int
) -> LogFull | RowConflict:
    """Return the error for rows that were not appended."""
    if why == "taken":
        return row_conflict(name, id, log.decode(), key.decode())
    return log_full(name, id, log.decode(), rows, size)


def _of(name: str, id: str, log: str) -> tuple[bytes, bytes, bytes]:
    return name.encode(), id.encode(), log.encode()


def _row(key: bytes, number: int, data: bytes, at: float) -> Row:
    return Row(key.decode(), number, data, at)
