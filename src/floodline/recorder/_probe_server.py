"""The recorder's end of the connections: probes that know the token, one line per message.

Every user of the machine can connect to a loopback port. Until it has shown the token, a caller is
a stranger: it gets a few seconds and one short line, and the number of strangers is limited.
"""

from __future__ import annotations

import hmac
import json
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from floodline.recorder._descriptors import STARVED, Seldom, descriptor_limit
from floodline.recorder._probe.messages import Shed

CHUNK = 1 << 18
BACKLOG = 1024


@dataclass(slots=True, frozen=True)
class Limits:
    """What callers may use of the recorder."""

    strangers: int = 64  # at a time; the oldest makes room for the next
    first_line: int = 8 << 10  # bytes of a hello
    patience: float = 5.0  # seconds for a hello
    probes: int = 1000
    line: int = 4 << 20  # bytes of a message of a probe
    unfinished: int = 64 << 20  # bytes of unfinished lines of all callers together
    pause: float = 1.0  # seconds without accepting, when there is no descriptor to accept with

    @classmethod
    def of_process(cls) -> Limits:
        """Return limits that leave descriptors for the recording, /proc and the dashboard."""
        room = descriptor_limit()
        return cls(strangers=min(64, room // 8), probes=max(8, min(1000, room - 256)))


class Listener(Protocol):
    """Receives what the probes send; called on the thread of the intake."""

    def heard(self, pid: int, line: dict[str, Any]) -> None:
        """Accept a message as sent, by a probe of any version."""
        ...

    def hung_up(self, pid: int) -> None:
        """Note that a connection has ended."""
        ...

    def starved(self) -> None:
        """Note, once a minute at most, that there is no descriptor for another probe."""
        ...


class _Caller:
    def __init__(self, line: socket.socket, until: float = 0.0) -> None:
        self.line, self.until = line, until
        self.pid: int | None = None  # None for a stranger
        self.rest = b""


class Intake:
    """Listens on loopback; a client without the token is disconnected at its first line."""

    def __init__(
        self,
        listener: Listener,
        token: str,
        *,
        limits: Limits | None = None,
        gate: AbstractContextManager[object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gate = gate or nullcontext()  # held while a caller is accepted
        self._listener, self._token = listener, token.encode()
        self._limits, self._clock = limits or Limits.of_process(), clock
        self._server = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self._server.setblocking(False)
        host, port = self._server.getsockname()[:2]
        self.address = f"{host}:{port}:{token}"  # what a probe is told
        self._select = selectors.DefaultSelector()
        self._select.register(self._server, selectors.EVENT_READ)
        self._wake, self._woken = socket.socketpair()
        self._select.register(self._woken, selectors.EVENT_READ)
        self._strangers: dict[_Caller, None] = {}  # oldest first
        self._probes: dict[_Caller, None] = {}
        self._unfinished = 0
        self._resume_at: float | None = None
        self._seldom = Seldom(clock)
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="floodline-intake", daemon=True)
        self._thread.start()

    def say(self, message: Shed, pids: set[int]) -> None:
        """Send a request to some probes; one that does not read it is skipped."""
        line = json.dumps(message).encode() + b"\n"
        for probe in list(self._probes):
            if probe.pid in pids:
                try:
                    probe.line.send(line)
                except OSError:
                    continue

    def wake(self) -> None:
        """Have the thread look at the clock now."""
        self._wake.send(b".")

    def close(self) -> None:
        """Stop listening and disconnect all."""
        self._ended = True
        self.wake()
        self._thread.join(5)
        for caller in (*self._strangers, *self._probes):
            caller.line.close()
        for one in (self._server, self._wake, self._woken):
            one.close()
        self._select.close()

    def _run(self) -> None:
        while not self._ended:
            for key, _ in self._select.select(self._patience()):
                if key.fileobj is self._server:
                    self._accept()
                elif key.fileobj is self._woken:
                    self._woken.recv(64)
                elif key.data in self._strangers or key.data in self._probes:
                    self._read(key.data)  # unless it has made room for another just now
            self._expire()

    # ---- strangers

    def _patience(self) -> float | None:
        """Return the seconds until something is due, None if nothing is."""
        due = [caller.until for caller in (next(iter(self._strangers), None),) if caller]
        if self._resume_at is not None:
            due.append(self._resume_at)
        return max(0.0, min(due) - self._clock()) if due else None

    def _expire(self) -> None:
        now = self._clock()
        for caller in list(self._strangers):
            if caller.until > now:
                break  # all others came later
            self._drop(caller)
        if self._resume_at is not None and self._resume_at <= now:
            self._resume_at = None
            self._select.register(self._server, selectors.EVENT_READ)

    def _accept(self) -> None:
        try:
            with self._gate:
                line, _ = self._server.accept()
        except OSError as error:
            if error.errno in STARVED:
                self._starve()
            return
        line.setblocking(False)
        caller = _Caller(line, self._clock() + self._limits.patience)
        try:
            self._select.register(line, selectors.EVENT_READ, caller)
        except OSError:  # the kernel has no room for another to be watched
            line.close()
            return
        self._strangers[caller] = None
        if len(self._strangers) > self._limits.strangers:
            self._displace()

    def _displace(self) -> None:
        """Drop the oldest stranger, unless its hello has arrived meanwhile."""
        oldest = next(iter(self._strangers))
        self._read(oldest)
        if oldest in self._strangers:
            self._drop(oldest)

    def _starve(self) -> None:
        """Make room by dropping a stranger, else leave callers queued for a while."""
        if self._seldom():
            self._listener.starved()
        if self._strangers:
            self._displace()
        else:
            self._select.unregister(self._server)  # it would be ready again at once
            self._resume_at = self._clock() + self._limits.pause

    # ---- lines

    def _read(self, caller: _Caller) -> None:
        stranger = caller.pid is None
        size = self._limits.first_line + 1 - len(caller.rest) if stranger else CHUNK
        try:
            chunk = caller.line.recv(size)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        before = len(caller.rest)
        *lines, caller.rest = (caller.rest + chunk).split(b"\n")
        self._unfinished += len(caller.rest) - before
        ok = all(self._take(caller, line) for line in lines)
        longest = self._limits.first_line if caller.pid is None else self._limits.line
        room = len(caller.rest) <= longest and self._unfinished <= self._limits.unfinished
        if not (chunk and ok and room):
            self._drop(caller)

    def _take(self, caller: _Caller, line: bytes) -> bool:
        """Pass a message on; return False if it is not one, or lacks the token."""
        try:
            message = json.loads(line)
            if b"\\ud" in line:  # a lone surrogate (a byte in a file's name), or a pair
                message = json.loads(
                    json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
                )
            if caller.pid is None and not self._admit(caller, message):
                return False
            assert caller.pid is not None
            self._listener.heard(caller.pid, message)
        except Exception:  # anything that a stranger or a probe of another version may send
            return False
        return True

    def _admit(self, caller: _Caller, hello: dict[str, Any]) -> bool:
        token = str(hello.pop("token", "")).encode()
        if not hmac.compare_digest(token, self._token) or len(self._probes) >= self._limits.probes:
            return False
        caller.pid = int(hello["pid"])
        del self._strangers[caller]
        self._probes[caller] = None
        return True

    def _drop(self, caller: _Caller) -> None:
        self._select.unregister(caller.line)
        self._strangers.pop(caller, None)
        self._probes.pop(caller, None)
        self._unfinished -= len(caller.rest)
        caller.line.close()
        if caller.pid is not None:
            self._listener.hung_up(caller.pid)
