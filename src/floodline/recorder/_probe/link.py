"""The probe's end of the connection: lines of JSON over loopback that never block the program.

While the recorder is away, samples are dropped and a bounded number of events is kept; attempts to
reconnect become less and less frequent.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from floodline.recorder._probe.messages import (
        EventRecord,
        Goodbye,
        Hello,
        Message,
        Sample,
        Shed,
    )

_floodline_engine = True  # the walk leaves this module out

PATIENCE = 0.5  # seconds that the recorder may take to read
KEPT = 200
FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0


class Link:
    """Connects when there is something to send; `hello` creates the first line of a connection."""

    def __init__(
        self,
        host: str,
        port: int,
        hello: Callable[[], Hello],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address, self._hello, self._clock = (host, port), hello, clock
        self._socket: socket.socket | None = None
        self._file: tuple[int, int] = (0, 0)
        self._received = b""
        self._kept: deque[EventRecord] = deque(maxlen=KEPT)
        self._wait, self._next_try = FIRST_WAIT, 0.0

    def send(self, message: Sample | Goodbye) -> bool:
        """Send a message, or keep its events for the next connection; return True if sent."""
        if not self._connected():
            self._kept.extend(_events(message))
            return False
        if self._kept and message["kind"] == "tick":
            message = {**message, "events": [*self._kept, *message["events"]]}
        if self._write(message):
            self._kept.clear()
            return True
        self._kept.clear()
        self._kept.extend(_events(message))
        return False

    def receive(self) -> list[Shed]:
        """Return what the recorder has sent since the last call; never waits."""
        if self._socket is None or not self._is_ours():
            return []
        try:
            self._socket.setblocking(False)
            while chunk := self._socket.recv(65536):
                self._received += chunk
            self.close()  # it is gone
        except BlockingIOError:
            pass
        except OSError:
            self.close()
        *lines, self._received = self._received.split(b"\n")
        if not lines:
            return []
        # what is read seldom: the records of all messages take half a mebibyte
        from floodline.recorder._probe.messages import read_wish

        return [wish for line in lines if (wish := read_wish(_parsed(line))) is not None]

    def close(self) -> None:
        """Close our end, if the descriptor is still ours."""
        gone, self._socket = self._socket, None
        self._received = b""
        if gone is None:
            return
        if _identity(gone) == self._file:
            gone.close()
        else:
            gone.detach()

    def _connected(self) -> bool:
        if self._socket is not None and self._is_ours():
            return True
        now = self._clock()
        if now < self._next_try:
            return False
        try:
            self._socket = socket.create_connection(self._address, timeout=PATIENCE)
        except OSError:
            self._next_try = now + self._wait
            self._wait = min(2 * self._wait, LONGEST_WAIT)
            return False
        self._wait, self._next_try = FIRST_WAIT, 0.0
        self._file = _identity(self._socket)
        return self._write(self._hello())

    def _is_ours(self) -> bool:
        """Return True if the descriptor is ours: a daemon closes all, and may have reused it."""
        if self._socket is not None and _identity(self._socket) != self._file:
            self.close()
        return self._socket is not None

    def _write(self, message: Message) -> bool:
        assert self._socket is not None
        try:
            self._socket.settimeout(PATIENCE)
            self._socket.sendall(json.dumps(message, default=str).encode() + b"\n")
        except OSError:
            self._next_try = self._clock() + self._wait
            self.close()
            return False
        return True


def _events(message: Sample | Goodbye) -> list[EventRecord]:
    return message["events"] if message["kind"] == "tick" else []


def _identity(one: socket.socket) -> tuple[int, int]:
    try:
        status = os.fstat(one.fileno())
    except OSError:
        return (-1, -1)
    return (status.st_dev, status.st_ino)


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None
