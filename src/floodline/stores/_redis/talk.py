"""A connection to a Redis or Valkey server that never waits, for an event loop."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from floodline.errors import FloodlineError
from floodline.stores._redis.batches import Batch, batches
from floodline.stores._redis.faults import needs_another_server
from floodline.stores._redis.requests import Request

_CHUNK = 1 << 18


class Refused(Exception):
    """An error that the server answered with."""


class Connected(Protocol):
    """The wire that made the connection."""

    def packed(self, runs: Sequence[Batch]) -> bytes:
        """Return the bytes that ask for runs of scripts."""
        ...

    def outcome_unknown(self, error: BaseException) -> FloodlineError:
        """Return the error for a call whose answer did not come."""
        ...

    def close(self) -> None:
        """Close; harmless if it is closed."""
        ...


class RedisTalk:
    """Uses the socket of a wire that nobody else uses."""

    def __init__(self, wire: Connected, sock: socket.socket) -> None:
        self._wire, self._socket = wire, sock
        self._come = b""
        self._at = 0
        self._replies: list[Any] = []
        sock.setblocking(False)

    def fileno(self) -> int:
        """See `Talk.fileno`."""
        return self._socket.fileno()

    def packed(self, requests: Sequence[Request]) -> tuple[bytes, list[Batch]]:
        """See `Talk.packed`."""
        runs = batches(requests, range(len(requests)))
        return self._wire.packed(runs), runs

    def send(self, data: memoryview) -> int:
        """See `Talk.send`."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    def receive(self) -> None:
        """See `Talk.receive`."""
        with suppress(BlockingIOError):
            come = self._socket.recv(_CHUNK)
            if not come:
                raise ConnectionError("the server closed the connection")
            self._come, self._at = self._come[self._at :] + come, 0

    def replies(self, sent: list[Batch]) -> list[Any] | None:
        """See `Talk.replies`."""
        while len(self._replies) < len(sent):
            try:
                reply, self._at = _reply(self._come, self._at)
            except IndexError:
                return None
            self._replies.append(reply)
        replies: list[Any] = [None] * sum(len(run.places) for run in sent)
        for run, reply in zip(sent, self._replies, strict=True):
            run.answer(reply, replies)
        self._replies = []
        if self._at == len(self._come):
            self._come, self._at = b"", 0  # an idle connection holds no caller's bytes
        return replies

    def unknown(self, error: BaseException) -> FloodlineError:
        """See `Talk.unknown`."""
        return self._wire.outcome_unknown(error)

    def moves_on(self, error: Exception) -> bool:
        """See `Talk.moves_on`."""
        return needs_another_server(error)

    def close(self) -> None:
        """See `Talk.close`."""
        self._wire.close()

    disown = close  # redis-py says nothing to the server when a child closes


def _reply(data: bytes, at: int) -> tuple[Any, int]:
    """Return the reply that begins here, and where it ends; `IndexError` if it is not all here."""
    end = data.find(b"\r\n", at)
    if end < 0:
        raise IndexError
    kind, after = data[at], end + 2
    if kind == 0x2A:  # *
        items = []
        for _ in range(int(data[at + 1 : end])):
            item, after = _reply(data, after)
            items.append(item)
        return items, after
    if kind == 0x24:  # $
        size = int(data[at + 1 : end])
        if size < 0:
            return None, after
        if len(data) < after + size + 2:
            raise IndexError
        return data[after : after + size], after + size + 2
    if kind == 0x3A:  # :
        return int(data[at + 1 : end]), after
    said = data[at + 1 : end]
    return (Refused(said.decode(errors="replace")) if kind == 0x2D else said), after
