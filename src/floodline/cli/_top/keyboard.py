"""States and keys as they come: what `floodline top` waits for."""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

from floodline.recorder._snapshot import Snapshot

MOST_KEYS = 64


@contextmanager
def keys_at_once() -> Iterator[int | None]:
    """Yield the terminal's descriptor, read key by key and without echo; None without one."""
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield None
        return
    try:
        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        tty.setcbreak(terminal)  # Ctrl-C stays what it is
    except (OSError, ValueError, AttributeError, termios.error):  # a pipe, a file, nothing
        yield None
        return
    try:
        yield terminal
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class Feed:
    """Follows `states` on a thread, because their source blocks, and reads keys meanwhile."""

    def __init__(self, states: Iterable[Snapshot], terminal: int | None) -> None:
        self._states, self._terminal = states, terminal
        self._queue: SimpleQueue[Snapshot | BaseException | None] = SimpleQueue()
        self._wake, self._woken = socket.socketpair()
        threading.Thread(target=self._follow, name="floodline-top", daemon=True).start()

    def _follow(self) -> None:
        end: BaseException | None = None
        try:
            for state in self._states:
                self._put(state)
        except BaseException as error:
            end = error
        self._put(end)

    def _put(self, news: Snapshot | BaseException | None) -> None:
        self._queue.put(news)
        with suppress(OSError):  # nobody is waiting any more
            self._wake.send(b".")

    def __iter__(self) -> Iterator[Snapshot | str]:
        """Yield each state and each key until the states end; what their source raises is raised.

        Leaving early is allowed: the thread is a daemon, and the program is about to end.
        """
        terminal = self._terminal
        try:
            while True:
                sources: list[int | socket.socket] = [self._woken]
                ready, _, _ = select.select(
                    [*sources, *([] if terminal is None else [terminal])], [], []
                )
                if self._woken in ready:
                    self._woken.recv(1)
                    with suppress(Empty):
                        news = self._queue.get_nowait()
                        if news is None:
                            return
                        if isinstance(news, BaseException):
                            raise news
                        yield news
                if terminal in ready and terminal is not None:
                    pressed = os.read(terminal, MOST_KEYS)
                    if not pressed:  # the terminal is gone
                        terminal = None
                    yield from pressed.decode("utf-8", "replace")
        finally:
            self._wake.close()
            self._woken.close()
