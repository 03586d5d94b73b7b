"""`@track_memory`: every call of a function is a run of a stage."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast, overload

from floodline import telemetry
from floodline._units import Size, format_size, parse_size
from floodline.errors import ConfigError
from floodline.memory._tracking.span import Span
from floodline.memory._tracking.tracker import MemoryTracker

P = ParamSpec("P")
R = TypeVar("R")
NewSpan = Callable[[], Span]
EndSpan = Callable[[Span, bool], None]


_shared: dict[str, MemoryTracker] = {}


def default_tracker() -> MemoryTracker:
    """Return the tracker that `@track_memory` uses if none is given; created at first use."""
    made = _shared.get("tracker")
    return made or _shared.setdefault("tracker", MemoryTracker(name="track_memory"))


@overload
def track_memory(function: Callable[P, R], /) -> Callable[P, R]: ...


@overload
def track_memory(
    *,
    tracker: MemoryTracker | None = None,
    name: str | None = None,
    warn_over: Size | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def track_memory(
    function: Callable[..., Any] | None = None,
    /,
    *,
    tracker: MemoryTracker | None = None,
    name: str | None = None,
    warn_over: Size | None = None,
) -> Any:
    """Measure each call of a function, method, coroutine, generator or async generator.

    The stage is named `name`, or else after the function (`Loader.run`). Time spent suspended does
    not count as its own: see `own` and `ran` of a span. A call that grows by more than `warn_over`
    is reported as the event `memory_growth`. The function keeps its kind, signature and type.
    """
    limit = None if warn_over is None else parse_size(warn_over, "warn_over")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(function, (staticmethod, classmethod)):
            return cast("Callable[..., Any]", type(function)(decorate(function.__func__)))
        if not callable(function):
            raise ConfigError(f"@track_memory takes a function, not {function!r}")
        stage = str(name or getattr(function, "__qualname__", type(function).__qualname__))

        def new_span() -> Span:
            return (default_tracker() if tracker is None else tracker).stage(stage)

        def end(span: Span, failed: bool) -> None:
            span.end(failed=failed)
            if limit is not None and span.attributable > limit:
                _warn(span, limit)

        return _tracked(function, new_span, end)

    return decorate if function is None else decorate(function)


def _warn(span: Span, limit: int) -> None:
    telemetry.emit(
        "memory_growth",
        span._tracker.name,
        stage=span.name,
        grew=format_size(span.attributable),
        warn_over=format_size(limit),
    )


def _tracked(function: Callable[..., Any], new: NewSpan, end: EndSpan) -> Callable[..., Any]:
    kind: Any = function
    if not (inspect.isroutine(kind) or isinstance(kind, (type, partial))):
        kind = kind.__call__  # an object's may be async
    if inspect.iscoroutinefunction(kind):
        return _coroutine(function, new, end)
    if inspect.isasyncgenfunction(kind):
        return _async_generator(function, new, end)
    if inspect.isgeneratorfunction(kind):
        return _generator(function, new, end)

    @wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        span = new()
        failed = True
        span.__enter__()
        try:
            answer = function(*args, **kwargs)
            failed = False
        finally:
            span.leave()
            end(span, failed)
        return answer

    return plain


def _coroutine(function: Callable[..., Any], new: NewSpan, end: EndSpan) -> Callable[..., Any]:
    @wraps(function)
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        span = new()
        span.begin()
        failed = True
        try:
            answer = await _Steps(span, function(*args, **kwargs))
            failed = False
        finally:
            end(span, failed)
        return answer

    return coroutine


def _generator(function: Callable[..., Any], new: NewSpan, end: EndSpan) -> Callable[..., Any]:
    @wraps(function)
    def generator(*args: Any, **kwargs: Any) -> Any:
        span = new()
        span.begin()
        failed = True
        try:
            answer = yield from _drive(span, function(*args, **kwargs))
            failed = False
        except GeneratorExit:  # its consumer stopped early
            failed = False
            raise
        finally:
            end(span, failed)
        return answer

    return generator


def _async_generator(
    function: Callable[..., Any], new: NewSpan, end: EndSpan
) -> Callable[..., Any]:
    @wraps(function)
    async def async_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        span = new()
        span.begin()
        inner = function(*args, **kwargs)
        step = inner.__anext__()
        failed = True
        try:
            while True:
                try:
                    item = await _Steps(span, step)
                except StopAsyncIteration:
                    break
                finally:
                    step = None
                try:
                    step = inner.asend((yield item))
                except GeneratorExit:
                    failed = False
                    raise
                except BaseException as error:
                    step = inner.athrow(error)
            failed = False
        finally:
            await _Steps(span, inner.aclose())
            end(span, failed)

    return async_generator


class _Steps:
    """Awaits something so that the span runs only while it does."""

    __slots__ = ("_awaitable", "_span")

    def __init__(self, span: Span, awaitable: Any) -> None:
        self._span, self._awaitable = span, awaitable

    def __await__(self) -> Generator[Any, Any, Any]:
        return _drive(self._span, self._awaitable.__await__())


def _drive(span: Span, inner: Any) -> Generator[Any, Any, Any]:
    """Run a generator or an awaited object as `yield from` does, the span resumed at each step."""
    step, value = inner.send, None
    while True:
        span.resume()
        try:
            item = step(value)
        except StopIteration as stop:
            return stop.value
        finally:
            span.suspend()
            value = None  # an error that was thrown in must not keep this frame alive
        step = inner.send
        try:
            value = yield item
        except GeneratorExit:
            span.resume()
            try:
                inner.close()
            finally:
                span.suspend()
            raise
        except BaseException as error:
            step, value = inner.throw, error
        del item
