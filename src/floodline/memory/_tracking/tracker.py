"""Tracks the memory of a program through its stages."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import NamedTuple, get_args

from floodline import telemetry
from floodline._clock import Clock, forward, sampler
from floodline._interruptible_lock import Guard
from floodline._units import Duration, parse_choice, parse_count, parse_duration
from floodline.bounded import BoundedLog
from floodline.bounded._arguments import callable_or_none
from floodline.bounded._registry import name_of
from floodline.errors import ConfigError
from floodline.memory._measuring.probes import Probe, rss
from floodline.memory._tracking.allocation_lines import Lines, allocated, grown, tracing
from floodline.memory._tracking.report import Format, render
from floodline.memory._tracking.span import Span, StageRun
from floodline.memory._tracking.stage_stats import MIB, StageStats, Tally, TrackerStats

Listener = Callable[[StageRun], object]

OTHER = "(other)"
MAX_TRACED = 16  # spans at a time that keep a snapshot of all allocations


class Sample(NamedTuple):
    """The resident bytes at a time, and the stage that began or ended then."""

    at: float
    bytes: int
    stage: str | None = None


class MemoryTracker:
    """Measures resident memory around stages: `with tracker.stage("load"): …`.

    Spans nest, and may run in any number of threads and tasks. Keeps the last `max_samples`
    samples and at most `max_stages` names; further names are counted together as `(other)`. With
    `trace`, tracemalloc is on while something is measured, and each stage lists the `top` lines
    that allocated what stayed; that is slow. With `interval`, a thread samples meanwhile, so that
    a peak between two edges is seen. `probe` returns bytes; the default is the resident size.
    """

    def __init__(
        self,
        max_samples: int = 1000,
        trace: bool = False,
        *,
        max_stages: int = 200,
        top: int = 10,
        interval: Duration | None = None,
        probe: Probe | None = None,
        name: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        callable_or_none(probe, "probe")
        callable_or_none(clock, "clock")
        self.name = name_of("tracker", name)
        self._samples: BoundedLog[Sample] = BoundedLog(
            parse_count(max_samples, "max_samples"), name=f"{self.name}.samples"
        )
        self._trace = trace
        self._max_stages = parse_count(max_stages, "max_stages")
        self._top = parse_count(top, "top")
        self._interval = None if interval is None else parse_duration(interval, "interval")
        self._probe: Probe = probe or rss
        self._clock = forward(clock)
        self._listeners: dict[int, Listener] = {}
        self._listener_numbers = itertools.count()
        self._guard = Guard()
        self._start()
        telemetry.register(self)

    def _start(self) -> None:
        self._tallies: dict[str, Tally] = {}
        self._open: weakref.WeakSet[Span] = weakref.WeakSet()
        self._first: int | None = None
        self._pictured: weakref.WeakSet[Span] = weakref.WeakSet()
        self._last = self._peak = self._opened = self._entered = 0
        self._hook_errors = 0
        self._ticking = False

    # ---- measuring

    def stage(self, name: str) -> Span:
        """Return one run of a stage, for a `with` statement."""
        return Span(self, _checked(name))

    def read(self) -> int:
        """Return the current bytes without keeping a sample."""
        return int(self._probe() or 0)

    def sample(self) -> Sample:
        """Measure now; open spans see it too."""
        size = self.read()
        sample = Sample(self._clock(), size)
        self._guard.run(partial(self._seen_by_all, size))
        self._samples.append(sample)
        return sample

    def __enter__(self) -> MemoryTracker:
        self.sample()  # first: a probe that raises must leave nothing half begun
        self._guard.run(partial(self._enter, 1))
        if self._trace:
            tracing.acquire()
        self._want_tick()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._guard.run(partial(self._enter, -1))
        try:
            self.sample()
        finally:
            if self._trace:
                tracing.release()

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(run)` at the end of each span; call the returned function to stop.

        A listener that raises is counted and reported, and stops nothing.
        """
        key = next(self._listener_numbers)
        self._listeners[key] = listener

        def end() -> None:
            self._listeners.pop(key, None)

        return end

    # ---- reading

    @property
    def peak_mb(self) -> float:
        """The highest resident size so far, in MiB."""
        return self._peak / MIB

    @property
    def growth_mb(self) -> float:
        """The last resident size minus the first, in MiB."""
        return (self._last - (self._first or 0)) / MIB

    @property
    def samples(self) -> list[Sample]:
        """The last samples, oldest first."""
        return list(self._samples)

    @property
    def stages(self) -> Mapping[str, StageStats]:
        """What each stage did, by name, in the order in which they first ended."""
        return {name: tally.stats() for name, tally in self._tallies.copy().items()}

    def report(self, format: Format = "text") -> str:  # as people ask for it
        """Return the table of the stages as `"text"`, `"json"` or `"markdown"`."""
        parse_choice(format, "format", get_args(Format))
        return render(format, self.stats(), list(self.stages.values()))

    def reset(self) -> None:
        """Forget stages, samples and the peak; open spans continue and count when they end."""
        self._guard.run(self._forget)
        self._samples.clear()

    def stats(self) -> TrackerStats:
        """Return the current figures."""
        log = self._samples.stats()
        return TrackerStats(
            kind="tracker",
            name=self.name,
            items=log.items,
            max_items=log.max_items,
            bytes=self._last,
            hook_errors=self._hook_errors,
            samples=log.added,
            stages=len(self._tallies),
            open=len(self._open),
            peak=self._peak,
            growth=self._last - (self._first or 0),
        )

    def __repr__(self) -> str:
        return f"<MemoryTracker {self.name!r}: {len(self._tallies)} stages>"

    # ---- spans

    def _begun(self, span: Span) -> int:
        if self._trace:
            tracing.acquire()
            self._picture(span)
        size = self._read_for(span)
        self._guard.run(partial(self._open_span, span, size))
        self._samples.append(Sample(self._clock(), size, span.name))
        if self._interval is not None:
            self._want_tick()
        return size

    def _ended(self, span: Span, size: int) -> None:
        lines = self._lines(span) if self._trace else {}
        self._guard.run(partial(self._close_span, span, size, lines))
        self._samples.append(Sample(self._clock(), size, span.name))

    def _read_for(self, span: Span) -> int:
        """Measure at an edge of a span; if the probe raises, the span is over and not counted."""
        try:
            return self.read()
        except BaseException:
            self._guard.run(partial(self._drop_span, span))
            if self._trace:
                span.before = None
                tracing.release()
            raise

    def _drop_span(self, span: Span) -> None:
        self._open.discard(span)
        self._pictured.discard(span)

    def _open_span(self, span: Span, size: int) -> None:
        self._seen(size)
        self._opened += 1
        span.open_among(self._opened, len(self._open))
        self._open.add(span)

    def _close_span(self, span: Span, size: int, lines: dict[tuple[str, int], int]) -> None:
        self._seen(size)
        self._open.discard(span)
        if self._trace:
            self._pictured.discard(span)
        span.close_among(self._opened)
        name = span.name
        if name not in self._tallies and len(self._tallies) >= self._max_stages:
            name = OTHER
        tally = self._tallies.get(name)
        if tally is None:
            tally = self._tallies[name] = Tally(name, self._top)
        tally.add(span, lines)
        if self._listeners:
            self._guard.late.append(partial(self._tell, span.run()))

    def _tell(self, run: StageRun) -> None:
        for listener in list(self._listeners.values()):
            try:
                listener(run)
            except Exception as error:  # each on its own
                self._hook_errors += 1
                telemetry.emit("hook_error", self.name, error=telemetry.describe(error))

    def _enter(self, step: int) -> None:
        self._entered += step

    def _seen(self, size: int) -> None:
        if self._first is None:
            self._first = size
        self._last = size
        if size > self._peak:
            self._peak = size

    def _seen_by_all(self, size: int) -> None:
        self._seen(size)
        if self._open:
            for span in self._open:
                span.peak = max(span.peak, size)

    def _forget(self) -> None:
        self._tallies = {}
        self._first = None
        self._last = self._peak = 0

    # ---- tracing

    def _picture(self, span: Span) -> None:
        if not self._guard.is_guest():  # otherwise it would be claimed too late
            self._guard.run(partial(self._claim_picture, span))
        if span.before is not None:
            span.before = allocated()

    def _claim_picture(self, span: Span) -> None:
        if len(self._pictured) < MAX_TRACED:
            self._pictured.add(span)
            span.before = {}

    def _lines(self, span: Span) -> dict[tuple[str, int], int]:
        before: Lines | None = span.before
        more: dict[tuple[str, int], int] = {}
        if before is not None:
            span.before = None
            more = grown(before, allocated())
        tracing.release()
        return more

    # ---- ticking

    def _want_tick(self) -> None:
        if self._interval is not None and not self._ticking:
            self._ticking = True
            sampler.want(self._tick, self._interval)

    def _tick(self) -> float | None:
        self.sample()
        if not self._busy():
            self._ticking = False
            if not self._busy():
                return None
            self._ticking = True  # something began between the two lines above
        return self._interval

    def _busy(self) -> bool:
        return self._entered > 0 or len(self._open) > 0

    def _after_fork(self) -> None:
        self._guard.reset()
        self._start()


def _checked(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise ConfigError(f"a stage needs a name, not {name!r}; give a non-empty string")
    return name
