"""One run of a stage, and which one is current in this thread or task."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from floodline.errors import ConfigError
from floodline.memory._tracking.allocation_lines import Lines

_current: ContextVar[Span | None] = ContextVar("floodline_memory_span", default=None)


@dataclass(slots=True, frozen=True)
class StageRun:
    """What listeners receive when a span has ended; sizes are bytes."""

    name: str
    growth: int
    own: int
    peak: int
    seconds: float
    failed: bool
    overlapped: bool


class Tracker(Protocol):
    """What a span reports its start and end to, and asks for the size and the time."""

    name: str

    def read(self) -> int:
        """Return the current bytes."""

    def _clock(self) -> float: ...

    def _begun(self, span: Span) -> int: ...

    def _read_for(self, span: Span) -> int: ...

    def _ended(self, span: Span, size: int) -> None: ...


class Span:
    """One run of a stage: `with tracker.stage("load") as span:`. Its figures are final at its end.

    `growth` is resident memory at the end minus that at the start. `ran` leaves out the time in
    which a tracked coroutine or generator around it was suspended; `own` is `ran` minus the nested
    spans. `peak` is the highest seen at its edges, in nested spans and by `sample()` meanwhile.
    `overlapped` means that other spans, neither around nor inside it, ran at the same time, so
    `growth` includes theirs.
    """

    __slots__ = (
        "__weakref__",
        "_given",
        "_high",
        "_inner",
        "_nested",
        "_number",
        "_outer",
        "_resumed",
        "_resumer",
        "_start",
        "_tracker",
        "before",
        "began",
        "closed",
        "descendants",
        "failed",
        "growth",
        "name",
        "overlapped",
        "peak",
        "ran",
        "seconds",
    )

    def __init__(self, tracker: Tracker, name: str) -> None:
        self._tracker, self.name = tracker, name
        self.began: float | None = None
        self.before: Lines | None = None
        self._resumed: int | None = None
        self._outer: Span | None = None
        self._inner: Span | None = None
        self._resumer: Span | None = None
        self.closed = self.failed = self.overlapped = False
        self.growth = self.ran = self.peak = self.descendants = 0
        self._start = self._nested = self._given = self._number = 0
        self._high = 0  # seen by this span; others write `peak` too, under the lock
        self.seconds = 0.0

    @property
    def own(self) -> int:
        """Growth while it was running itself, not a span inside it."""
        return self.ran - self._nested

    @property
    def peak_growth(self) -> int:
        """The highest size seen so far minus that at the start."""
        return max(self.peak, self._high) - self._start

    @property
    def attributable(self) -> int:
        """The growth that can be attributed to it: all of it, unless others ran meanwhile."""
        return self.ran if self.overlapped else self.growth

    def __enter__(self) -> Span:
        self.begin()
        self._resumed = self._start
        _current.set(self)
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.leave()
        self.end(failed=error is not None)

    def leave(self) -> None:
        """Stop being the current span, unless it ends in another context or out of order."""
        if _current.get() is self:
            _current.set(self._outer)

    def begin(self) -> None:
        """Start counting; what runs from now on is not inside yet."""
        if self.began is not None:
            raise ConfigError(f"this run of {self.name!r} has already begun; call stage() again")
        outer = _current.get()
        while outer is not None and outer.closed:
            outer = outer._outer
        self._outer = outer
        self._start = self._high = self._tracker._begun(self)
        self.began = self._tracker._clock()

    def end(self, *, failed: bool) -> None:
        """Stop counting, and report to the tracker."""
        if self.closed or self.began is None:
            return
        self.closed, self.failed = True, failed
        size = self._tracker._read_for(self)
        self.seconds = self._tracker._clock() - self.began
        if self._resumed is not None:
            self._settle(size)
        self.growth = size - self._start
        if size > self._high:
            self._high = size
        self._tracker._ended(self, size)
        outer = self._outer
        while outer is not None and outer.closed:
            self._outer = outer = outer._outer  # a chain of tasks must not keep its whole history

    def resume(self) -> None:
        """Resume with a tracked coroutine or generator, along with what was open inside it."""
        self._resumer = _current.get()
        _current.set(self._inner or self)
        for span in self._chain():
            span._resumed = span._tracker.read()

    def suspend(self) -> None:
        """Suspend with a tracked coroutine or generator: what grows now is not its doing."""
        inner = _current.get()
        self._inner = inner if inner is not None and self in inner._line() else None
        for span in self._chain():
            if span._resumed is not None:
                span._settle(span._tracker.read())
        _current.set(self._resumer)
        self._resumer = None

    def _chain(self) -> Iterator[Span]:
        """Yield what is open, from the innermost span out to this one."""
        for span in (self._inner or self)._line():
            if not span.closed:
                yield span
            if span is self:
                return

    def _line(self) -> Iterator[Span]:
        span: Span | None = self
        while span is not None:
            yield span
            span = span._outer

    def _settle(self, size: int) -> None:
        assert self._resumed is not None
        grown = size - self._resumed
        self._resumed = None
        self.ran += grown
        if size > self._high:
            self._high = size
        around = self._around()
        if around is not None and around._resumed is not None:
            self._given += grown

    def _around(self) -> Span | None:
        """Return the nearest open span of the same tracker around this one."""
        span = self._outer
        while span is not None and (span.closed or span._tracker is not self._tracker):
            span = span._outer
        return span

    def open_among(self, opened: int, open_now: int) -> None:
        """Become number `opened`, with `open_now` others open; the tracker holds its lock."""
        ancestors = 0
        around = self._around()
        while around is not None:
            ancestors += 1
            around.descendants += 1
            around = around._around()
        self._number = opened
        self.overlapped = open_now > ancestors

    def close_among(self, opened: int) -> None:
        """End after `opened` spans were opened in total; the tracker holds its lock."""
        if opened - self._number > self.descendants:
            self.overlapped = True
        if self._high > self.peak:
            self.peak = self._high
        around = self._around()
        if around is not None:
            around._nested += self._given
            around.peak = max(around.peak, self.peak)

    def run(self) -> StageRun:
        """Return the figures as a record, once it has ended."""
        return StageRun(
            self.name,
            self.growth,
            self.own,
            self.peak,
            self.seconds,
            self.failed,
            self.overlapped,
        )
