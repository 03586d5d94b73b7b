"""Hearing from other processes: that a session is free, or that somebody wants one of ours.

The server tells it to whoever listens, on a connection of its own that is opened when there is
something to wait for. Nothing depends on it: whoever misses a message finds out by asking,
only later.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol
from weakref import WeakMethod

_SILENCE = 10.0  # seconds after which the connection is checked
_IDLE = 3  # silences without anybody to listen for, after which it is closed
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 60.0
FREE, WANTED = b"f", b"w"  # how a message begins; what follows says which lease, or whose


class Ear(Protocol):
    """One open connection that hears everything that is said about the leases of a store."""

    def hear(self, seconds: float) -> list[bytes]:
        """Wait at most that long for messages; raise if the connection is gone."""
        ...

    def interrupt(self) -> None:
        """End `hear` in another thread; the connection is useless afterwards."""
        ...

    def close(self) -> None:
        """Close; harmless if it is closed."""
        ...

    def disown(self) -> None:
        """Let go of a connection of the parent process, without a word to the server."""
        ...


class Bell:
    """Rings when a lease may be free. It belongs to one waiter, a thread or a task."""

    __slots__ = ("_all", "_future", "_rung", "token")

    def __init__(self, token: bytes, among: dict[Bell, None]) -> None:
        self.token = token
        self._all, self._rung = among, threading.Event()
        self._future: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """Wake the waiter, or keep it from waiting."""
        self._rung.set()
        future = self._future
        if future is not None:
            with suppress(RuntimeError):  # its loop is closed
                future.get_loop().call_soon_threadsafe(_wake, future)

    def wait(self, seconds: float) -> bool:
        """Block until the bell rings, at most that long; return whether it rang."""
        rung = self._rung.wait(seconds)
        self._rung.clear()
        return rung

    async def wait_soon(self, seconds: float) -> bool:
        """Await the bell as `wait` blocks for it."""
        loop = asyncio.get_running_loop()
        self._future = future = loop.create_future()
        timer = loop.call_later(seconds, _wake, future)
        try:
            if not self._rung.is_set():  # looked at after the future can be seen
                await future
        finally:
            timer.cancel()
            self._future = None
        return self.wait(0)

    def close(self) -> None:
        """Wait no longer; a finalizer may call this."""
        self._all.pop(self, None)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Listener:
    """A thread that listens while somebody waits for a lease, or must hear who wants one."""

    def __init__(self, connect: Callable[[], Ear]) -> None:
        self._connect = connect
        self._closed = False
        self._reset()

    def _reset(self) -> None:
        self._bells: dict[Bell, None] = {}
        self._told: dict[str, tuple[bytes, WeakMethod[Callable[[], None]]]] = {}
        self._thread: threading.Thread | None = None
        self._starting, self._stop = threading.Lock(), threading.Event()
        self._ear: Ear | None = None
        self._hearing, self._pause = False, _FIRST_PAUSE

    def bell(self, token: bytes) -> Bell:
        """Return a bell for a lease. It has rung if the lease may have become free before."""
        bell = Bell(token, self._bells)
        self._bells[bell] = None
        if self._hearing:
            bell.ring()  # from now on we hear of it, so asking once more misses nothing
        self._start()
        return bell

    def tell(self, owner: str, token: bytes, told: WeakMethod[Callable[[], None]]) -> None:
        """Call `told`, as long as it lives, when somebody wants a session of this owner."""
        self._told[owner] = (token, told)
        self._start()

    def tells(self, owner: str) -> bool:
        """Return True if an owner wants to hear who wants its sessions."""
        return owner in self._told

    def close(self) -> None:
        """End the thread and its connection; idempotent."""
        self._end()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_SILENCE)

    def abandon(self) -> None:
        """Close without waiting."""
        self._end()

    def _end(self) -> None:
        self._closed = True
        self._stop.set()
        if (ear := self._ear) is not None:
            ear.interrupt()

    def suspend(self, patience: float) -> bool:  # noqa: ARG002 - as others that have connections
        """A fork is coming, which does not disturb the parent."""
        return False

    def resume(self) -> None:
        """See `suspend`."""

    def start_anew(self, *, inherited: bool) -> None:
        """Forget in a forked child what belongs to its parent."""
        if inherited and self._ear is not None:
            self._ear.disown()
        self._reset()

    def _start(self) -> None:
        if self._thread is not None or self._closed or not self._starting.acquire(blocking=False):
            return  # whoever has the lock is just starting it
        try:
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="floodline-ears", daemon=True)
                self._thread = thread
                try:
                    thread.start()
                except RuntimeError:  # at exit, or no more threads available
                    self._thread = None
        finally:
            self._starting.release()

    def _work(self) -> None:
        while not self._done():
            try:
                self._listen()
            except Exception:  # waiters and owners ask by themselves meanwhile
                self._stop.wait(self._pause)
                self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _done(self) -> bool:
        """Return True if nobody needs this thread, which then no longer counts as one."""
        if not self._closed and self._needed():
            return False
        self._thread = None
        if self._closed or not self._needed():
            return True
        self._start()  # somebody came between the lines above, and relied on us
        return True

    def _needed(self) -> bool:
        for owner, (_, told) in list(self._told.items()):
            if told() is None:
                self._told.pop(owner, None)
        return bool(self._bells or self._told)

    def _listen(self) -> None:
        self._ear = ear = self._connect()
        try:
            self._hearing, self._pause = True, _FIRST_PAUSE
            for bell in list(self._bells):
                bell.ring()  # for what was said before
            self._deliver([WANTED + token for token, _ in list(self._told.values())])
            idle = 0
            while idle < _IDLE and not self._closed:
                messages = ear.hear(_SILENCE)
                self._deliver(messages)
                idle = 0 if messages or self._needed() else idle + 1
        finally:
            self._hearing, self._ear = False, None
            ear.close()

    def _deliver(self, messages: list[bytes]) -> None:
        free = {message[1:] for message in messages if message[:1] == FREE}
        wanted = {message[1:] for message in messages if message[:1] == WANTED}
        if free:
            for bell in list(self._bells):
                if bell.token in free:
                    bell.ring()
        if wanted:
            for token, told in list(self._told.values()):
                if token in wanted and (call := told()) is not None:
                    call()
