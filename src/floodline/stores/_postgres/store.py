"""The store in a PostgreSQL database."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any

from floodline._clock import Clock
from floodline._units import Duration, parse_count, parse_duration
from floodline.errors import ConfigError
from floodline.stores._postgres.ear import PostgresEar
from floodline.stores._postgres.operations import Operations
from floodline.stores._postgres.wire import PostgresWire, Target
from floodline.stores._server.addresses import check_scheme, conceal, mask, need
from floodline.stores._server.link import Link
from floodline.stores._server.listening import Listener
from floodline.stores._server.store import ServerStore
from floodline.stores._server.times import Times
from floodline.stores._writer import Call

SCHEMES = ("postgresql", "postgres")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_APART = {"acquire", "save"}


def apart(batch: list[Call]) -> tuple[list[Call], list[Call]]:
    """Put off the saves or the acquires of a batch of both, which would be two statements."""
    what = batch[0].what
    later = [call for call in batch if call.what != what]
    if not later or not {call.what for call in batch} <= _APART:
        return batch, []  # a call of another kind must not overtake one for the same session
    return [call for call in batch if call.what == what], later


class PostgresStore(ServerStore):
    """Sessions in a PostgreSQL database, which any number of machines may share.

    `url` is passed to libpq unchanged: several hosts, `target_session_attrs`, `sslmode` and
    `?host=/socket` work as anywhere else. The tables are in a schema of their own, `schema`, which
    is created if it is missing. `timeout` is how long a call may wait for an answer.
    `connections` is the most that this store opens for calls, which share a transaction if they
    come together: the last is for lists, figures and retention, the others for sessions, where a
    second one pays if commits are slow; one more hears when a session becomes free.

    All calls run on a thread for each connection; `aio` is the coroutine twin on the same ones.
    `clock` and `wall` are for tests: without them leases and retention run on the server's clock.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "floodline",
        timeout: Duration = "5 s",
        connections: int = 2,
        clock: Clock | None = None,
        wall: Clock | None = None,
    ) -> None:
        check_scheme(url, SCHEMES, "postgresql://user@host/database")
        if not _NAME.fullmatch(schema):
            raise ConfigError(f"schema={schema!r} cannot be used; give small letters and digits")
        psycopg: Any = need("psycopg", "postgres", mask(url))
        try:
            psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.Error as error:
            raise ConfigError(
                f"{mask(url)!r} cannot be used: {conceal(str(error), url)}"
            ) from None  # the original may show a password
        times = Times(clock, wall)
        target = Target(url=url, schema=schema, timeout=parse_duration(timeout, "timeout"))
        listener = Listener(lambda: PostgresEar(target))
        self._operations = operations = Operations(schema, times, listener.tells)

        def connect() -> PostgresWire:
            wire = PostgresWire(target, times)
            operations.ties.renumber()
            return wire

        links = [
            Link(connect, operations.operate)
            for _ in range(parse_count(connections, "connections"))
        ]
        super().__init__(mask(url), links, listener, split=apart)

    def _lease_token(self, name: str, id: str) -> bytes:
        return sha256(name.encode() + b"\0" + id.encode()).hexdigest().encode()

    def _owner_token(self, owner: str) -> bytes:
        return sha256(owner.encode()).hexdigest().encode()
