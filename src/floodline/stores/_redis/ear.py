"""A connection that hears what the scripts publish about leases."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any

from floodline.errors import StoreUnavailable
from floodline.stores._redis.wire import Target, connection_to
from floodline.stores._server.addresses import mask, need


class RedisEar:
    """Subscribed to the one channel of a store; see `Ear`."""

    def __init__(self, target: Target, channel: bytes) -> None:
        redis: Any = need("redis", "redis", mask(target.url))
        self._url, self._timeout = target.url, target.timeout
        self._connection: Any = connection_to(redis, target)
        self._asked = False
        try:
            self._connection.connect()
            self._connection.send_command("SUBSCRIBE", channel, check_health=False)
            self._connection.read_response(disable_decoding=True)  # or raises: no right to
        except BaseException:
            self.close()
            raise

    def hear(self, seconds: float) -> list[bytes]:
        """See `Ear.hear`; a silent server is asked for a sign of life."""
        connection = self._connection
        said: list[bytes] = []
        while connection.can_read(timeout=0 if said else seconds):
            kind, *words = connection.read_response(disable_decoding=True)
            self._asked = False
            if kind == b"message":
                said.append(words[-1])
        if not said and not self._asked:
            self._asked = True
            connection.send_command("PING", check_health=False)
        elif not said:
            raise StoreUnavailable(f"{mask(self._url)!r} does not answer")
        return said

    def interrupt(self) -> None:
        """See `Ear.interrupt`."""
        with suppress(Exception):  # it is closed already
            self._connection._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """See `Ear.close`."""
        with suppress(Exception):  # whatever it is, the connection is gone
            self._connection.disconnect()

    disown = close  # redis-py says nothing to the server when a child closes
