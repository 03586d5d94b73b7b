"""The injected clock, and the daemon threads that tick."""

from __future__ import annotations

import heapq
import math
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue

from floodline import telemetry
from floodline.errors import ConfigError

Clock = Callable[[], float]
Tick = Callable[[], float | None]

monotonic: Clock = time.monotonic
BREATH = 0.05  # between two tries of a ticker that fails in its own work, say out of memory


def forward(clock: Clock | None) -> Clock:
    """Return a clock that never goes back: orders by time and by count then always agree."""
    if clock is None or clock is monotonic or clock is time.perf_counter:
        return clock or monotonic
    return _Forward(clock)


def checked(clock: Clock, name: str = "clock") -> Clock:
    """Return a given clock, if it returns seconds."""
    if not callable(clock):
        raise ConfigError(f"{name}={clock!r} cannot be called; give a function or None")
    now: object = clock()
    if isinstance(now, bool) or not isinstance(now, (int, float)) or not math.isfinite(now):
        raise ConfigError(f"{name}={clock!r} says {now!r}; give one that returns seconds")
    return clock


class _Forward:
    """Counts only the steps forward: a clock that was set back continues from where it was."""

    __slots__ = ("_clock", "_state")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._state = (float("-inf"), 0.0)

    def __call__(self) -> float:
        last, shift = self._state  # read before the clock, so that no other thread is ahead of it
        now = self._clock()
        if now < last:
            shift += last - now
        self._state = (now, shift)
        return now + shift


class Ticker:
    """One daemon thread, started on demand, that calls what is due and ends when nothing is left.

    A tick is a bound method, held weakly, that returns in how many seconds it wants to be called
    again, or None for never. One that raises is reported and retried; one that hangs is left
    behind: the next `want` after `patience` seconds starts a new thread for the others.
    """

    def __init__(self, name: str, *, patience: float = 300.0, clock: Clock = monotonic) -> None:
        self._name, self._patience, self._clock = name, patience, clock
        self._starting: dict[str, object] = {}  # the caller that is starting a thread
        self.errors = 0  # ticks that raised, threads that could not be started
        self._reset()

    def _reset(self) -> None:
        # SimpleQueue.put is reentrant, so finalizers can ask for a tick
        self._wishes: SimpleQueue[tuple[float, weakref.WeakMethod[Tick]]] = SimpleQueue()
        self._heap: list[tuple[float, int, weakref.WeakMethod[Tick]]] = []
        self._next: dict[weakref.WeakMethod[Tick], float] = {}
        self._thread: threading.Thread | None = None
        self._calling_since: float | None = None
        self._count = 0

    def want(self, tick: Tick, delay: float, *, start: bool = True) -> bool:
        """Call `tick` in `delay` seconds, or when it was wanted earlier.

        With `start=False`, which is for finalizers, no thread is started for it. Return False if
        there is no thread for it: ask again later, when one may start.
        """
        now = self._clock()
        self._wishes.put((now + delay, weakref.WeakMethod(tick)))
        since = self._calling_since
        stuck = since is not None and now - since > self._patience
        missing = self._thread is None or stuck
        if start and missing:
            self._start_if_alone(now, since if stuck else None)
        return self._thread is not None

    def _start_if_alone(self, now: float, stuck_since: float | None) -> None:
        starting, mine = self._starting, object()
        try:
            if starting.setdefault("it", mine) is not mine:
                return
            if stuck_since is not None and self._calling_since == stuck_since:
                telemetry.emit("ticker_stuck", self._name, seconds=round(now - stuck_since))
                self._calling_since = self._thread = None
            if self._thread is None:
                self._start()
        finally:  # a lock would stay locked if an exception arrived just after it was taken
            if "it" in starting and starting["it"] is mine:
                del starting["it"]

    def running(self) -> bool:
        """Return True if the thread exists; for tests and for `stats`."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread = thread
        try:
            thread.start()
        except BaseException as error:
            if not thread.is_alive():  # else an interrupt came after the start
                self._thread = None
            if not isinstance(error, Exception):
                raise
            self.failed(error)  # no thread available now, or at interpreter exit

    def _run(self) -> None:
        mine = threading.current_thread()
        try:
            while self._thread is mine:
                try:
                    self._step(mine)
                except BaseException as error:  # no failure of one may end the ticks of all
                    self.failed(error)
                    time.sleep(BREATH)
        finally:
            if self._thread is mine:
                self._thread = None

    def failed(self, error: BaseException) -> None:
        """Count and report an error; also for ticks that survive it and reschedule themselves."""
        self.errors += 1
        with suppress(Exception):  # there may be no memory for it
            telemetry.emit("tick_error", self._name, error=telemetry.describe(error))

    def _step(self, mine: threading.Thread) -> None:
        self._take_wishes()
        if self._heap:
            self._call_due(mine)
        else:
            self._thread = None
            if not self._wishes.empty():
                self._thread = mine  # a request came between the two lines above

    def _take_wishes(self) -> None:
        while self._heap and self._next.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)  # it was wanted earlier, and was called then
        wait = max(0.0, self._heap[0][0] - self._clock()) if self._heap else 0.0
        try:
            due, tick = self._wishes.get(timeout=min(wait, threading.TIMEOUT_MAX))
        except Empty:
            return
        try:
            self._schedule(due, tick)
        except BaseException:
            self._wishes.put((due, tick))
            raise

    def _schedule(self, due: float, tick: weakref.WeakMethod[Tick]) -> None:
        alive = tick()
        if alive is None:  # it could not even be hashed
            return
        if due < self._next.get(tick, float("inf")):
            self._next.pop(
                tick, None
            )  # the key must be this very reference: dead ones equal no other
            self._next[tick] = due
            self._count += 1
            heapq.heappush(self._heap, (due, self._count, tick))

    def _call_due(self, mine: threading.Thread) -> None:
        if self._heap[0][0] > (now := self._clock()):
            return
        due, _, ref = heapq.heappop(self._heap)
        if self._next.get(ref) != due:
            return  # it was wanted earlier, and was called then
        del self._next[ref]
        self._calling_since = now
        again: float | None = None
        tick: Tick | None = None
        try:
            tick = ref()
            again = tick() if tick is not None else None
        except BaseException as error:
            again = 60.0
            self.failed(error)
        finally:
            del tick
            if self._thread is mine:
                self._calling_since = None
        if again is not None:
            self._wishes.put((self._clock() + again, ref))


sweeper = Ticker("floodline-sweeper")  # runs users' finalizers, so it may hang
renewer = Ticker("floodline-leases")  # runs no user code, so leases outlive a hanging finalizer
sampler = Ticker("floodline-sampler")  # measures at short intervals, and must not wait for others


def _after_fork() -> None:
    for ticker in (sweeper, renewer, sampler):
        ticker._starting = {}
        ticker._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
