"""A probe that sleeps until `floodline attach` wakes it over a socket private to this user.

While asleep it is a thread blocked in the kernel and a file in the runtime folder; the leak engine
is not even imported.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from floodline.recorder._probe.site import _floodline_arm as arming
from floodline.recorder._runtime_folder import runtime_folder

_floodline_engine = True  # the walk leaves this module out

PATIENCE = 5.0
PAUSE = 1.0  # seconds without accepting, when there is no descriptor to accept with
LONGEST_REQUEST = 4096
LOOPBACK = "127.0.0.1:"  # data of this process goes nowhere else


def socket_of(pid: int, folder: Path) -> Path:
    """Return the socket that the probe of a process listens on."""
    return folder / f"probe-{pid}.sock"


def sweep(folder: Path) -> None:
    """Remove the sockets of killed processes; nothing else does."""
    for file in folder.glob("probe-*.sock"):
        try:
            os.kill(int(file.stem.removeprefix("probe-")), 0)
        except ProcessLookupError:
            if not _answers(file):  # the process may be in another container
                file.unlink(missing_ok=True)
        except (ValueError, OSError):  # not one of ours, or another user's
            continue


def _answers(file: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.setblocking(False)
        try:
            line.connect(str(file))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
    return True


def make_probe(where: str, seconds: float | None, *, now: bool = False) -> Any:
    """Import the engine, now that it is needed."""
    from floodline.recorder._probe.probe import Probe

    return Probe(where, seconds=seconds, now=now)


class Request(TypedDict):
    """What `floodline attach` asks for: where to report, `HOST:PORT:TOKEN`, and for how long.

    With `now`, only until it is known what is in memory.
    """

    where: str
    seconds: float | None
    now: NotRequired[bool]


class Dormant:
    """Listens for one request at a time: `{"where": "HOST:PORT:TOKEN", "seconds": 60}`."""

    def __init__(
        self,
        folder: Path | None = None,
        make: Callable[..., Any] = make_probe,
    ) -> None:
        self._make, self._probe = make, None
        folder = folder or runtime_folder()
        sweep(folder)
        self.file = socket_of(os.getpid(), folder)
        draft = self.file.with_suffix(".new")  # once the file is visible, connections must work
        draft.unlink(missing_ok=True)  # left by an earlier process with this pid
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(draft))
        draft.chmod(0o600)
        self._server.listen(1)
        draft.replace(self.file)
        self._wake, self._woken = socket.socketpair()

    def run(self, nap: Callable[[float], bool]) -> None:
        """Serve requests until the nap is ended."""
        while True:
            if self._probe is not None:
                self._probe.run(nap)  # returns when its time is up, or ours
            if nap(0):
                return
            self._probe = None
            ready, _, _ = select.select([self._server, self._woken], [], [])
            if self._woken in ready:
                self._woken.recv(16)
            else:
                self._answer(nap)

    def _answer(self, nap: Callable[[float], bool]) -> None:
        try:
            caller, _ = self._server.accept()
        except OSError:  # no descriptor for it, and it would be ready again at once
            nap(PAUSE)
            return
        request = self._request(caller)
        if request is not None:
            only = {"now": True} if request.get("now") else {}
            self._probe = self._make(request["where"], request["seconds"], **only)

    def _request(self, caller: socket.socket) -> Request | None:
        with caller:
            caller.settimeout(PATIENCE)
            try:
                user = peer(caller)
                if user not in (None, 0, os.getuid()):
                    return None
                request = json.loads(_line(caller))
                where, seconds = str(request["where"]), request.get("seconds")
                seconds = None if seconds is None else float(seconds)
                if not where.startswith(LOOPBACK):
                    return None
                caller.sendall(json.dumps({"python": sys.version.split()[0]}).encode() + b"\n")
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                return None
        return {"where": where, "seconds": seconds, "now": bool(request.get("now"))}

    def interrupt(self) -> None:
        """Make `run` return soon."""
        self._wake.send(b".")

    def close(self) -> None:
        """At exit: say goodbye if awake, and remove the file."""
        if self._probe is not None:
            self._probe.close()
        self.file.unlink(missing_ok=True)
        self.abandon()

    def leave(self) -> None:
        """At exit with the thread busy: remove the file."""
        self.file.unlink(missing_ok=True)

    def abandon(self) -> None:
        """In a forked child: let go of what belongs to the parent."""
        for one in (self._server, self._wake, self._woken):
            one.close()
        if self._probe is not None:
            self._probe.abandon()


def peer(caller: socket.socket) -> int | None:
    """Return the user at the other end, None if the system does not say."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(user)


def _line(caller: socket.socket) -> bytes:
    received = b""
    while b"\n" not in received and len(received) < LONGEST_REQUEST:
        chunk = caller.recv(LONGEST_REQUEST)
        if not chunk:
            break
        received += chunk
    return received


_arm: arming.Arm | None = None


def watch() -> None:
    """Let `floodline attach PID` look into this process later; costs nothing until then.

    A second call does nothing, nor does one under `floodline run`, which watches already. Forked
    children can be attached to as well.
    """
    global _arm  # one thread per process, however often this is called
    if _arm is None and ":" not in os.environ.get(arming.VARIABLE, ""):
        _arm = arming.Arm(Dormant, delay=0.0, eager=True, failed=_cannot)
        arming.enlist(_arm)


def _cannot(error: Exception) -> None:
    sys.stderr.write(f"floodline: process {os.getpid()} cannot be attached to: {error}\n")
