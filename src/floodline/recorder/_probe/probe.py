"""The probe: inspects its own process within a budget, and reports to the recorder each second.

Standard library and floodline's own engine only. It all runs on one thread, and an error here ends
the watching, never the program.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from floodline import telemetry
from floodline.recorder._probe.link import Link
from floodline.recorder._probe.readings import Events, Holders, Readings, limit_of
from floodline.recorder._probe.relief import Relief

if TYPE_CHECKING:
    from floodline.recorder._probe.messages import Goodbye, Hello, LiveRecord, Sample

_floodline_engine = True  # the walk leaves this module out

TICK = 1.0
FIRST_TICKS = (0.1, 0.2, 0.3, 0.4, 0.5)  # faster at first, so that something shows at once
LONGEST_NAP = 0.5
FAILED_NAP = 5.0
BUDGET, IN_A_HURRY = 0.01, 0.3  # of one CPU; the second while somebody waits for the answer
ENOUGH = 0.7  # of the seconds that there are for it
MOST_MISSED = 3  # ticks that a temporary recorder may miss before it counts as gone

Nap = Callable[[float], bool]


class Engine(Protocol):
    """What finds the leaks: `floodline.leaks.Live`."""

    def step(self) -> float:
        """Work for about a millisecond; return the seconds until the next call is due."""
        ...

    def answer(self) -> Any:
        """Return what is known so far."""
        ...

    @property
    def weighed(self) -> bool:
        """True once the answer says what is in memory now."""
        ...

    def hurry(self) -> None:
        """Say it soon, from what is known."""
        ...


def make_engine(budget: float = BUDGET) -> Engine:
    """Import the live engine, by far the largest import of the probe."""
    from floodline import leaks

    engine: Engine = leaks.Live(limit=limit_of, budget=budget, alone=True)
    return engine


def make_weigher() -> Engine:
    """Return an engine for somebody who waits for what is in memory now."""
    return make_engine(IN_A_HURRY)


class Probe:
    """Watches this process and reports to `where`, which is `HOST:PORT:TOKEN`.

    `run(nap)` works until `nap(seconds)` says that the thread must end; calling it again continues.
    After `seconds`, if given, it ends for good, or earlier if the recorder goes away, so that
    another one can connect. With `now` it ends as soon as it has said what is in memory.
    """

    def __init__(
        self,
        where: str,
        *,
        seconds: float | None = None,
        now: bool = False,
        engine: Callable[[], Engine] | None = None,
        link: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        host, port, token = where.split(":", 2)
        self._clock = clock
        self._until = None if seconds is None else clock() + seconds
        # with `now`, what was met by then must do
        self._hurry = clock() + ENOUGH * (seconds or math.inf) if now else math.inf
        self._weighing = now
        self._link = link or Link(host, int(port), lambda: self._hello(token))
        self._readings, self._holders, self._events = Readings(), Holders(), Events()
        self._relief = Relief()
        self._unsubscribe = telemetry.subscribe(self._events.add)
        self._said: LiveRecord | None = None
        self._engine: Engine | None = None
        try:
            self._engine = (engine or (make_weigher if now else make_engine))()
        except Exception as error:
            self._fail(error)
        self._ticks = self._missed = 0
        self._cpu = 0.0
        self._due = clock()

    def run(self, nap: Nap) -> None:
        """Inspect and report until the nap is ended or the time is up."""
        began = time.thread_time() - self._cpu  # of this thread, which may not be the first
        try:
            while self._wanted():
                wanted = self._step()
                self._cpu = time.thread_time() - began
                if self._clock() >= self._due:
                    self.tick()
                if nap(min(wanted, LONGEST_NAP, max(0.0, self._due - self._clock()))):
                    return
        finally:
            self._cpu = time.thread_time() - began
        self.close()

    def _wanted(self) -> bool:
        if self._until is None:
            return True
        if self._weighing and self._engine is not None and self._engine.weighed:
            return False
        return self._clock() < self._until and self._missed < MOST_MISSED

    def _step(self) -> float:
        if self._engine is None:
            return FAILED_NAP
        try:
            if self._clock() >= self._hurry:
                self._engine.hurry()
            return self._engine.step()
        except Exception as error:
            self._fail(error)
            return FAILED_NAP

    def _fail(self, error: Exception) -> None:
        """Continue without the engine: the figures are still worth sending."""
        self._engine = None
        self._events.note("probe_error", f"no leak engine: {telemetry.describe(error)}")

    def tick(self) -> None:
        """Send one sample, and do what the recorder asks."""
        wait = FIRST_TICKS[self._ticks] if self._ticks < len(FIRST_TICKS) else TICK
        self._due = self._clock() + wait
        self._missed = 0 if self._link.send(self._sample()) else self._missed + 1
        self._ticks += 1
        for wish in self._link.receive():
            if wish["do"] == "shed":
                self._relief.want(wish["bytes"])

    def _sample(self) -> Sample:
        return {
            "kind": "tick",
            "at": time.time(),
            **self._readings.read(self._ticks),
            **self._holders.read(self._ticks),
            "answer": self._answer(),
            "events": self._events.take(),
            "cost": round(self._cpu, 6),
        }

    def _answer(self) -> LiveRecord | None:
        if self._engine is not None:
            try:
                self._said = self._engine.answer().as_record()
            except Exception as error:
                self._fail(error)
        return self._said  # the last known one if there is none now

    def _hello(self, token: str) -> Hello:
        return {
            "kind": "hello",
            "token": token,
            "pid": os.getpid(),
            "parent": os.getppid(),
            "command": command_line(),
            "python": sys.version.split()[0],
            "at": time.time(),
        }

    def interrupt(self) -> None:
        """Do nothing: the creator of the nap ends it."""

    def close(self) -> None:
        """Send the last sample and say goodbye, with a short timeout."""
        self._unsubscribe()
        holders = self._holders.last()
        self._link.send({**self._sample(), **holders})
        goodbye: Goodbye = {"kind": "bye", "at": time.time()}
        self._link.send(goodbye)
        self._link.close()

    def leave(self) -> None:
        """Say goodbye only: the thread is in the middle of a step, and the program is ending."""
        self._link.send({"kind": "bye", "at": time.time()})

    def abandon(self) -> None:
        """In a forked child: let go of what belongs to the parent."""
        self._link.close()


def command_line(arguments: list[str] | None = None) -> str:
    """Return how this process was started; `multiprocessing` children report as their parent."""
    words = list(sys.argv if arguments is None else arguments) or [""]
    folder, name = os.path.split(words[0])
    # python -m package: a spawned child only knows the file; both must read the same
    words[0] = f"-m {os.path.basename(folder)}" if name == "__main__.py" else name  # noqa: PTH119  # a word
    return " ".join(words)[:200]
