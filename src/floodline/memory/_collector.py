"""Controls when the garbage collector runs, and records what that freed."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from types import TracebackType

from floodline import telemetry
from floodline._clock import Clock, forward
from floodline._interruptible_lock import Guard
from floodline._units import Size, parse_size
from floodline.bounded._arguments import callable_or_none
from floodline.bounded._registry import name_of
from floodline.errors import ConfigError
from floodline.memory._malloc_trim import trim_malloc
from floodline.memory._measuring.probes import Probe, rss
from floodline.memory._tracking.span import StageRun
from floodline.memory._tracking.tracker import MemoryTracker
from floodline.telemetry import Stats


@dataclass(slots=True, frozen=True)
class Collection:
    """One forced collection: unreachable objects found, bytes freed, seconds of pause."""

    objects: int
    reclaimed: int
    seconds: float
    trimmed: bool


@dataclass(slots=True, frozen=True, kw_only=True)
class GCStats(Stats):
    """`items` are the process's frozen objects; the rest are totals over all collections."""

    collections: int
    objects: int
    reclaimed: int
    pause: float
    longest_pause: float
    trims: int
    paused: bool


class _Pause:
    """Keeps automatic collection off while anyone asks for it, then restores it."""

    def __init__(self) -> None:
        self._guard = Guard()
        self.holders = 0
        self._was_on = False

    def begin(self) -> None:
        self._guard.run(partial(self._count, 1))

    def end(self) -> None:
        self._guard.run(partial(self._count, -1))

    def _count(self, step: int) -> None:
        self.holders += step
        if self.holders == 1 and step == 1:
            self._was_on = gc.isenabled()
            gc.disable()
        elif self.holders == 0 and self._was_on:
            gc.enable()


_pause = _Pause()  # one, because a process has one collector

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pause._guard.reset)


class GCController:
    """Collects where it does no harm: between stages, or once memory has grown by `threshold`.

    `check()` collects if resident memory has grown by `threshold` since the last collection; with
    `aggressive` it always does, and then also returns free memory to the system. `with controller:`
    keeps automatic collection off in a critical section; such sections may nest and overlap, and
    the last one restores the original state. Nothing is collected unless requested.
    """

    def __init__(
        self,
        aggressive: bool = False,
        threshold: Size | None = "64 MiB",
        *,
        trim: bool | None = None,
        probe: Probe | None = None,
        name: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        callable_or_none(probe, "probe")
        callable_or_none(clock, "clock")
        self.name = name_of("gc", name)
        self._aggressive = aggressive
        self._threshold = None if threshold is None else parse_size(threshold, "threshold")
        self._trim = aggressive if trim is None else trim
        self._probe: Probe = probe or rss
        self._clock = forward(clock or perf_counter)
        self._floor = self._read()
        self._collections = self._objects = self._reclaimed = self._trims = 0
        self._seconds = self._longest = 0.0
        self._guard = Guard()
        telemetry.register(self)

    def check(self) -> Collection | None:
        """Collect if it is due; return what that freed."""
        if self._aggressive:
            return self.collect()
        if self._threshold is None:
            return None
        size = self._read()
        if size - self._floor >= self._threshold:
            return self.collect()
        self._floor = min(self._floor, size)
        return None

    def collect(self, generation: int = 2, *, trim: bool | None = None) -> Collection:
        """Collect now, up to `generation`, and trim if requested here or by default."""
        if generation not in (0, 1, 2):
            raise ConfigError(f"generation={generation!r} does not exist; give 0, 1 or 2")
        before, began = self._read(), self._clock()
        objects = gc.collect(generation)
        trimmed = (self._trim if trim is None else trim) and trim_malloc()
        seconds = self._clock() - began
        self._floor = size = self._read()
        done = Collection(objects, max(0, before - size), seconds, trimmed)
        self._guard.run(partial(self._add, done))
        return done

    def _add(self, done: Collection) -> None:
        self._collections += 1
        self._objects += done.objects
        self._reclaimed += done.reclaimed
        self._seconds += done.seconds
        self._longest = max(self._longest, done.seconds)
        self._trims += done.trimmed

    def follow(self, tracker: MemoryTracker) -> Callable[[], None]:
        """Check after each stage of a tracker; call the returned function to stop."""

        def between_stages(_run: StageRun) -> None:
            self.check()

        return tracker.listen(between_stages)

    def freeze(self) -> int:
        """Collect, then exempt everything that exists from later collections; for after start-up.

        Returns how many objects are frozen. `unfreeze()` undoes it.
        """
        self.collect()
        gc.freeze()
        return gc.get_freeze_count()

    def unfreeze(self) -> None:
        """Let the collector look at everything again."""
        gc.unfreeze()

    def __enter__(self) -> GCController:
        _pause.begin()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        _pause.end()

    def stats(self) -> GCStats:
        """Return the current figures."""
        return GCStats(
            kind="gc",
            name=self.name,
            items=gc.get_freeze_count(),
            collections=self._collections,
            objects=self._objects,
            reclaimed=self._reclaimed,
            pause=self._seconds,
            longest_pause=self._longest,
            trims=self._trims,
            paused=_pause.holders > 0,
        )

    def __repr__(self) -> str:
        return f"<GCController {self.name!r}: {self._collections} collections>"

    def _read(self) -> int:
        return int(self._probe() or 0)

    def _after_fork(self) -> None:
        self._guard.reset()
