"""A connection that hears what the functions say about leases with `NOTIFY`."""

from __future__ import annotations

import os
import select
import socket
from contextlib import suppress
from typing import Any

from floodline.stores._postgres.wire import Target, connected, let_go
from floodline.stores._server.addresses import mask, need


class PostgresEar:
    """Listens on the one channel of a store, which is named like its schema; see `Ear`."""

    def __init__(self, target: Target) -> None:
        psycopg: Any = need("psycopg", "postgres", mask(target.url))
        self._connection: Any = connected(psycopg, target)
        try:
            self._connection.execute(f'LISTEN "{target.schema}"')
        except BaseException:
            self.close()
            raise

    def hear(self, seconds: float) -> list[bytes]:
        """See `Ear.hear`; a silent server is asked for a sign of life."""
        connection = self._connection
        libpq = connection.pgconn
        if not select.select([libpq.socket], [], [], seconds)[0]:
            connection.execute("SELECT 1")
        libpq.consume_input()
        said = []
        while (notice := libpq.notifies()) is not None:
            said.append(bytes(notice.extra))
        return said

    def interrupt(self) -> None:
        """See `Ear.interrupt`."""
        with suppress(Exception), socket.socket(fileno=os.dup(self._connection.fileno())) as one:
            one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """See `Ear.close`."""
        with suppress(Exception):  # whatever it is, the connection is gone
            self._connection.close()

    def disown(self) -> None:
        """See `Ear.disown`."""
        let_go(self._connection)
