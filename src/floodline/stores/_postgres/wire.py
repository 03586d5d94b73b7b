"""One connection to PostgreSQL: a batch is one transaction, sent in one go by libpq's pipeline."""

from __future__ import annotations

import os
import struct
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from floodline import telemetry
from floodline.errors import FloodlineError, StoreUnavailable
from floodline.stores._postgres.columns import Column, Together
from floodline.stores._postgres.faults import needs_another_server, translate
from floodline.stores._postgres.row_operations import Request
from floodline.stores._postgres.schema import SCHEMA, ddl
from floodline.stores._server.addresses import mask, need
from floodline.stores._server.layout import check_layout
from floodline.stores._server.link import Unanswered
from floodline.stores._server.times import Times

_WAKE = 0.2  # seconds between looks at the clock while the server is silent
_LOCK = 0x666C6F6F  # of whoever creates the tables
_STALE_LEASE = 3600.0


class _TooSlow(Exception):
    """The server did not answer in time."""


@dataclass(slots=True, frozen=True)
class Target:
    """Where to connect to, and what to ask of the server."""

    url: str = field(repr=False)  # error trackers show what variables hold
    schema: str
    timeout: float


class PostgresWire:
    """Runs statements; each connection commits by itself."""

    def __init__(self, target: Target, times: Times) -> None:
        self._target, self._times = target, times
        self._psycopg: Any = need("psycopg", "postgres", mask(target.url))
        self._usable = True
        self._connection: Any = None
        try:
            self._connection = connected(self._psycopg, target)
            self._greet()
        except FloodlineError:
            self.close()
            raise
        except (self._psycopg.Error, _TooSlow, OSError) as error:
            self.close()
            raise translate(error, target.url) from error

    def exchange(self, requests: Sequence[Request]) -> list[Any]:
        """See `Wire.exchange`."""
        replies: list[Any] = [None] * len(requests)
        rest: list[int] = []
        for kind, places in _alike(requests).items():
            if not (kind and self._at_once(kind[0], requests, places, replies)):
                rest += places
        if rest:
            answers = self._one_by_one([requests[place] for place in rest])
            for place, answer in zip(rest, answers, strict=True):
                replies[place] = answer
        return replies

    def usable(self) -> bool:
        """See `Wire.usable`."""
        return self._usable

    def close(self) -> None:
        """See `Wire.close`."""
        self._usable = False
        with suppress(Exception):  # whatever it is, the connection is gone
            if self._connection is not None:
                self._connection.close()

    def disown(self) -> None:
        """See `Wire.disown`."""
        self._usable = False
        let_go(self._connection)

    def _at_once(
        self, kind: Together, requests: Sequence[Request], places: list[int], replies: list[Any]
    ) -> bool:
        """Run the calls of several callers as one statement; False if it was rolled back."""
        places = sorted(places, key=lambda place: requests[place].key)
        try:
            params = kind.params(requests[place].params for place in places)
        except struct.error:  # a number that no column can hold: its caller will be told
            return False
        answer = self._alone(Request((b"", b""), kind.sql, params))
        if isinstance(answer, Exception) and self._usable:
            return False
        rows = (
            [answer] * len(places) if isinstance(answer, Exception) else [[row] for row in answer]
        )
        for place, row in zip(places, rows, strict=True):
            replies[place] = row
        return True

    def _one_by_one(self, requests: Sequence[Request]) -> list[Any]:
        if all(request.relaxed for request in requests):
            requests = [one._replace(sql=one.relaxed or one.sql) for one in requests]
        if len(requests) > 1:
            together = self._together(requests)
            if together is not None:
                return together
        return [self._alone(request) for request in requests]

    def _together(self, requests: Sequence[Request]) -> list[Any] | None:
        """Run a batch as one transaction; None if it was rolled back by one that failed."""
        order = sorted(range(len(requests)), key=lambda n: requests[n].key)
        connection, replies = self._connection, [None] * len(requests)
        try:
            cursors = [connection.cursor(binary=True) for _ in requests]
            with connection.pipeline():
                for n in order:
                    cursors[n].execute(requests[n].sql, requests[n].params)
            for n in order:
                replies[n] = cursors[n].fetchall()
        except (self._psycopg.Error, _TooSlow, OSError) as error:
            if connection.broken or connection.closed or isinstance(error, _TooSlow):
                return self._lost(error, len(requests))
            return None
        return replies

    def _alone(self, request: Request) -> Any:
        if not self._usable:
            return self._lost(OSError("the connection was lost in the same batch"), 1)[0]
        connection = self._connection
        try:
            cursor = connection.execute(request.sql, request.params, binary=True)
            return cursor.fetchall()
        except (self._psycopg.Error, _TooSlow, OSError) as error:
            if connection.broken or connection.closed or isinstance(error, _TooSlow):
                return self._lost(error, 1)[0]
            if needs_another_server(error):
                self._usable = False
            return translate(error, self._target.url)

    def _lost(self, error: BaseException, count: int) -> list[Any]:
        self.close()
        mine = StoreUnavailable(
            f"{translate(error, self._target.url)}; whether it was done is unknown"
        )
        mine.__cause__ = error
        # one that is slow would be as slow again
        return [Unanswered(mine, again=not isinstance(error, _TooSlow))] * count

    def _greet(self) -> None:
        """Make the tables if they are missing, and look at what the server is told to do."""
        ask, schema = self._connection.execute, self._target.schema
        ((table, isolation, fsync, pages, commit),) = ask(
            "SELECT to_regclass(%s), current_setting('default_transaction_isolation'), "
            "current_setting('fsync'), current_setting('full_page_writes'), "
            "current_setting('synchronous_commit')",
            (f'"{schema}".meta',),
        ).fetchall()
        if isolation != "read committed":
            ask("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED")
        if table is None:
            self._create(schema)
        ((version,),) = ask(f'SELECT version FROM "{schema}".meta').fetchall()
        check_layout(self._target.url, version, SCHEMA, "schema")
        self._warn({"fsync": fsync, "full_page_writes": pages, "synchronous_commit": commit})
        ask(
            f'SELECT "{schema}".forget_stale(%s::float8, %s::float8)',
            (self._times.read().now, _STALE_LEASE),
        )

    def _create(self, schema: str) -> None:
        connection = self._connection
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            # by a query: `to_regclass` may answer from what was known before the lock was granted
            found = connection.execute(
                "SELECT FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = 'meta'",
                (schema,),
            ).fetchone()
            if found is None:
                connection.execute(ddl(schema))

    def _warn(self, settings: dict[str, str]) -> None:
        off = [name for name, value in settings.items() if value == "off"]
        if off:
            where = mask(self._target.url)
            why = (
                f"{where!r} may lose what it has acknowledged when it crashes ({off[0]}=off); use "
                f"`ALTER SYSTEM SET {off[0]} = on` and `SELECT pg_reload_conf()`"
            )
            telemetry.emit("store_at_risk", where, why=why)
            warnings.warn(why, RuntimeWarning, stacklevel=2)


def _alike(requests: Sequence[Request]) -> dict[Any, list[int]]:
    """Return the places of requests that one statement can serve, and of the rest under None.

    A statement cannot write the same row twice, so the second request for a session is of the rest.
    """
    places: dict[Any, list[int]] = {}
    seen: set[Any] = set()
    for place, request in enumerate(requests):
        kind = request.together
        same = None if kind is None else (kind, request.params[: kind.shared])
        if (same, request.key) in seen:
            same = None
        seen.add((same, request.key))
        places.setdefault(same, []).append(place)
    for same, alone in [*places.items()]:
        if same and len(alone) == 1:
            places.setdefault(None, []).extend(places.pop(same))
    return places


def connected(psycopg: Any, target: Target) -> Any:
    """Return a new connection that commits by itself, and does not wait forever."""
    limit = max(2, round(target.timeout))
    given = psycopg.conninfo.conninfo_to_dict(target.url)
    options = {} if "connect_timeout" in given else {"connect_timeout": limit}
    timed = _timed(psycopg, target.timeout)
    connection = timed.connect(target.url, autocommit=True, **options)
    connection.adapters.register_dumper(Column, _column_dumper(psycopg))
    return connection


def let_go(connection: Any) -> None:
    """Close a connection of the parent process, which must not notice.

    libpq would end the parent's session even when it frees memory.
    """
    with suppress(Exception):
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, connection.fileno())
        os.close(nothing)
    with suppress(Exception):  # whatever it is, the connection is gone
        connection.close()


def _timed(psycopg: Any, timeout: float) -> Any:
    """Return a connection class whose waits end."""

    class Timed(psycopg.Connection):  # type: ignore[misc]  # imported only when it is needed
        def wait(self, gen: Any, interval: float = _WAKE, **others: Any) -> Any:
            limited = _limited(gen, time.monotonic() + timeout)
            return super().wait(limited, min(interval, _WAKE, timeout / 4), **others)

    return Timed


def _column_dumper(psycopg: Any) -> Any:
    """Return what hands columns over as they are."""

    class ColumnDumper(psycopg.adapt.Dumper):  # type: ignore[misc]  # imported when it is needed
        format = psycopg.pq.Format.BINARY

        def dump(self, obj: Column) -> bytes:
            return obj.data

    return ColumnDumper


def _limited(gen: Generator[Any, Any, Any], deadline: float) -> Generator[Any, Any, Any]:
    """Run a wait of psycopg until the deadline; each wake-up comes through here."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() >= deadline:
                raise _TooSlow("no answer for too long")
            wanted = gen.send(ready)
    except StopIteration as done:
        return done.value
