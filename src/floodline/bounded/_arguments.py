"""The limits of a container: read, checked and weighed once, for all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import repeat
from typing import Any, Literal, NamedTuple, Protocol, get_args

from floodline import _clock
from floodline._clock import Clock
from floodline._units import (
    Duration,
    Size,
    format_size,
    parse_choice,
    parse_count,
    parse_duration,
    parse_size,
)
from floodline.errors import ConfigError, TooLarge, Unweighable

Weigh = Callable[[Any], int]

INFINITE = float("inf")
GONE = -INFINITE
NO_LIMIT = sys.maxsize
EvictionOrder = Literal["lru", "fifo", "oldest"]


class Sheds(Protocol):
    """What a source of pressure sees of a container."""

    def shed(self, limit: int) -> Any:
        """Give up to `limit` items away, in the container's own order; return how many went.

        A holder on an event loop returns a coroutine, which must run there.
        """
        ...


class Pressure(Protocol):
    """A source of memory pressure, such as a budget for the whole process."""

    def attach(self, holder: Sheds) -> None:
        """Remember `holder`, weakly, and call its `shed` when memory is short."""
        ...


def count(value: int | None, what: str) -> int:
    """Return a limit on items, or one that is never reached."""
    return NO_LIMIT if value is None else parse_count(value, what)


def size(value: Size | None, what: str) -> int:
    """Return a limit on bytes, or one that is never reached."""
    return NO_LIMIT if value is None else parse_size(value, what)


def span(value: Duration | None, what: str) -> float:
    """Return seconds, or for ever."""
    return INFINITE if value is None else parse_duration(value, what)


def shown(limit: int) -> int | None:
    """Return a limit as the user gave it."""
    return None if limit == NO_LIMIT else limit


def shown_span(seconds: float) -> float | None:
    """Return a time as the user gave it."""
    return None if seconds == INFINITE else seconds


def need_one(holder: str, **bounds: object) -> None:
    """Refuse a container without any bound: it would be the leak that it should prevent."""
    if all(bound is None for bound in bounds.values()):
        names = ", ".join(bounds)
        raise ConfigError(f"{holder} has no bound; give at least one of {names}")


def callable_or_none(value: object, what: str) -> None:
    """Refuse what cannot be called, at construction rather than at the first eviction."""
    if value is not None and not callable(value):
        raise ConfigError(f"{what}={value!r} cannot be called; give a function or None")


def pressure_or_none(value: object) -> None:
    """Refuse what no holder can be attached to."""
    if value is not None and not hasattr(value, "attach"):
        raise ConfigError(f"pressure={value!r} cannot be used; give a MemoryBudget, or None")


class Scale:
    """Weighs items against `max_bytes`; str and bytes need no `weigh`."""

    __slots__ = ("_holder", "_limit", "_weigh")

    def __init__(self, holder: str, weigh: Weigh | None, limit: int) -> None:
        callable_or_none(weigh, "weigh")
        self._holder, self._weigh, self._limit = holder, weigh, limit

    def __call__(self, item: object) -> int:
        """Return the bytes of `item`; above the limit alone it is `TooLarge`."""
        weight = self._own(item) if self._weigh is None else self._weigh(item)
        if type(weight) is not int or weight < 0:
            raise ConfigError(
                f"{self._holder}: weigh returned {weight!r} for a {type(item).__name__}; "
                "it must return a whole number of bytes, 0 or more"
            )
        if weight > self._limit:
            raise TooLarge(
                f"{self._holder}: one {type(item).__name__} weighs {format_size(weight)}, above "
                f"max_bytes={format_size(self._limit)}; store less of it or raise max_bytes"
            )
        return weight

    def _own(self, item: object) -> int:
        if isinstance(item, bytes):
            return len(item)
        if isinstance(item, str):
            return len(item) if item.isascii() else len(item.encode("utf-8", "surrogatepass"))
        raise Unweighable(
            f"{self._holder}: max_bytes cannot weigh a {type(item).__name__}, only str and bytes; "
            "give weigh=, a function that returns an item's size in bytes"
        )


def scale(holder: str, weigh: Weigh | None, limit: int) -> Scale | None:
    """Return a scale if bytes matter to this container."""
    if weigh is None and limit == NO_LIMIT:
        return None
    return Scale(holder, weigh, limit)


def forward(clock: Clock | None, *, timed: bool = True) -> Clock:
    """Return a clock that never goes back; see `_clock.forward`.

    One that is not `timed` stands still, which costs a read less than asking whether it is.
    """
    callable_or_none(clock, "clock")
    return _clock.forward(clock) if timed else repeat(0.0).__next__


class Limits(NamedTuple):
    """What was given, as plain numbers; what was not given is never reached."""

    max_items: int
    max_bytes: int
    ttl: float
    idle: float
    order: EvictionOrder

    @property
    def timed(self) -> bool:
        """Tell whether time matters."""
        return min(self.ttl, self.idle) != INFINITE


def read_limits(
    max_items: int | None,
    max_bytes: Size | None,
    ttl: Duration | None,
    idle: Duration | None,
    order: EvictionOrder,
) -> Limits:
    """Check the arguments of a map; at least one bound is needed."""
    need_one("BoundedMap", max_items=max_items, max_bytes=max_bytes, ttl=ttl, idle=idle)
    return Limits(
        count(max_items, "max_items"),
        size(max_bytes, "max_bytes"),
        span(ttl, "ttl"),
        span(idle, "idle"),
        parse_choice(order, "order", get_args(EvictionOrder)),
    )
