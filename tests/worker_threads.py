"""Threads for tests: what they raise is raised where they are joined, and none is left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from event_loops import StillClock as StillClock
from event_loops import assert_balanced as assert_balanced
from event_loops import events_of as events_of
from floodline import Sessions
from floodline.stores import MemoryStore

PATIENCE = 100.0  # a safety net, not a measure


class Worker:
    """A thread whose result or error is asked for later."""

    def __init__(self, work: Callable[..., Any], *args: Any) -> None:
        self._work, self._args = work, args
        self._result: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._work(*self._args)
        except BaseException as error:
            self.error = error

    def wait(self) -> Worker:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "a worker did not end"
        return self

    def result(self) -> Any:
        self.wait()
        if self.error is not None:
            raise self.error
        return self._result

    def running(self) -> bool:
        return self._thread.is_alive()


class Holder:
    """Another thread that holds a session until it is told to let go."""

    def __init__(self, sessions: Sessions[Any], id: str, **how: Any) -> None:
        self.state: Any = None
        self._held, self._stop = threading.Event(), threading.Event()
        self._worker = Worker(self._hold, sessions, id, how)
        while not self._held.wait(0.01):
            if not self._worker.running():
                self._worker.result()

    def _hold(self, sessions: Sessions[Any], id: str, how: dict[str, Any]) -> None:
        with sessions.use(id, **how) as self.state:
            self._held.set()
            assert self._stop.wait(PATIENCE)
            self.state = None

    def release(self) -> None:
        self._stop.set()
        self._worker.result()


@contextmanager
def holding(sessions: Sessions[Any], id: str, **how: Any) -> Iterator[Holder]:
    """Have another thread hold a session during the block."""
    holder = Holder(sessions, id, **how)
    try:
        yield holder
    finally:
        holder.release()


def until(condition: Callable[[], object]) -> None:
    """Let other threads run until `condition` holds."""
    pause = threading.Event()
    for _ in range(int(PATIENCE * 1000)):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("it did not come to that")


def waiting(sessions: Sessions[Any], number: int) -> None:
    """Let other threads run until so many wait."""
    until(lambda: sessions.stats().waiting == number)


class Faulty:
    """A store whose calls can be made to raise, before or after the work is done."""

    def __init__(self, store: Any = None) -> None:
        self.store = store or MemoryStore()
        self.before: dict[str, BaseException] = {}
        self.after: dict[str, BaseException] = {}
        self.calls: list[str] = []
        self.entering: Callable[[str], object] = lambda method: None

    def __getattr__(self, method: str) -> Any:
        real = getattr(self.store, method)
        if not callable(real) or method == "is_writer_thread":
            return real

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(method)
            self.entering(method)
            if method in self.before:
                raise self.before[method]
            answer = real(*args, **kwargs)
            if method in self.after:
                raise self.after[method]
            return answer

        return call

    def fail(self, *methods: str) -> None:
        """From now on these calls raise and do nothing."""
        self.before = {method: OSError(f"{method} is out of order") for method in methods}

    def recover(self) -> None:
        self.before, self.after = {}, {}
