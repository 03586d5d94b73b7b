"""The recorder's end of the connections: probes that know the token, one line a message."""

from __future__ import annotations

import hmac
import json
import selectors
import socket
import threading
from typing import Any, Protocol

from floodline.recorder._probe.messages import Shed

LONGEST_LINE = 4 << 20
MOST = 1000  # connections


class Listener(Protocol):
    """Who is told what the probes say; called on the thread of the intake."""

    def heard(self, pid: int, line: dict[str, Any]) -> None:
        """Take a message as it was sent, by a probe of any version."""
        ...

    def hung_up(self, pid: int) -> None:
        """Note that a connection has ended."""
        ...


class _Caller:
    def __init__(self, line: socket.socket) -> None:
        self.line = line
        self.pid: int | None = None
        self.rest = b""


class Intake:
    """Listens on loopback; a caller without the token is cut off at its first line."""

    def __init__(self, listener: Listener, token: str) -> None:
        self._listener, self._token = listener, token
        self._server = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._server.setblocking(False)
        self._select = selectors.DefaultSelector()
        self._select.register(self._server, selectors.EVENT_READ)
        self._wake, woken = socket.socketpair()
        self._select.register(woken, selectors.EVENT_READ)
        self._woken = woken
        self._callers: dict[int, _Caller] = {}
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="floodline-intake", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """What a probe is told: host, port and token."""
        host, port = self._server.getsockname()[:2]
        return f"{host}:{port}:{self._token}"

    def say(self, message: Shed, pids: set[int]) -> None:
        """Send a wish to some probes; one that does not read it is passed over."""
        line = json.dumps(message).encode() + b"\n"
        for caller in list(self._callers.values()):
            if caller.pid in pids:
                try:
                    caller.line.send(line)
                except OSError:
                    continue

    def close(self) -> None:
        """Stop listening and hang up on all."""
        self._ended = True
        self._wake.send(b".")
        self._thread.join(5)
        for caller in list(self._callers.values()):
            caller.line.close()
        for one in (self._server, self._wake, self._woken):
            one.close()
        self._select.close()

    def _run(self) -> None:
        while not self._ended:
            for key, _ in self._select.select():
                if key.fileobj is self._server:
                    self._accept()
                elif isinstance(key.data, _Caller):
                    self._read(key.data)

    def _accept(self) -> None:
        try:
            line, _ = self._server.accept()
        except OSError:
            return
        if len(self._callers) >= MOST:
            line.close()
            return
        line.setblocking(False)
        caller = _Caller(line)
        self._callers[line.fileno()] = caller
        self._select.register(line, selectors.EVENT_READ, caller)

    def _read(self, caller: _Caller) -> None:
        try:
            chunk = caller.line.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        *lines, caller.rest = (caller.rest + chunk).split(b"\n")
        ok = all(self._take(caller, line) for line in lines)
        if not chunk or not ok or len(caller.rest) > LONGEST_LINE:
            self._drop(caller)

    def _take(self, caller: _Caller, line: bytes) -> bool:
        """Pass a message on; False for one that is none, or that comes without the token."""
        try:
            message = json.loads(line)
            if b"\\ud" in line:  # half a character, such as a byte in a file's name; or a pair
                message = json.loads(
                    json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
                )
            if caller.pid is None:
                token = str(message.pop("token", "")).encode()
                if not hmac.compare_digest(token, self._token.encode()):
                    return False
                caller.pid = int(message["pid"])
            self._listener.heard(caller.pid, message)
        except Exception:  # whatever a stranger, or a probe of another version, may send
            return False
        return True

    def _drop(self, caller: _Caller) -> None:
        self._select.unregister(caller.line)
        self._callers.pop(caller.line.fileno(), None)
        caller.line.close()
        if caller.pid is not None:
            self._listener.hung_up(caller.pid)
