"""The limits of a container: reading and checking them, and weighing items."""

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
    """A container as a source of pressure sees it."""

    def shed(self, limit: int) -> Any:
        """Give up at most `limit` items, in the container's own order; return how many left.

        A holder on an event loop returns a coroutine, which must run there.
        """
        ...


class Pressure(Protocol):
    """A source of memory pressure, such as a budget for the whole process."""

    def attach(self, holder: Sheds) -> None:
        """Keep a weak reference to `holder`, and call its `shed` when memory is short."""
        ...


def count(value: int | None, what: str) -> int:
    """Return a limit on items, or one that is never reached."""
    return NO_LIMIT if value is None else parse_count(value, what)


def size(value: Size | None, what: str) -> int:
    """Return a limit on bytes, or one that is never reached."""
    return NO_LIMIT if value is None else parse_size(value, what)


def span(value: Duration | None, what: str) -> float:
    """Return a time in seconds, or infinity."""
    return INFINITE if value is None else parse_duration(value, what)


def shown(limit: int) -> int | None:
    """Return a limit as the user gave it, None if there is none."""
    return None if limit == NO_LIMIT else limit


def shown_span(seconds: float) -> float | None:
    """Return a time as the user gave it, None if there is none."""
    return None if seconds == INFINITE else seconds


def need_one(holder: str, **bounds: object) -> None:
    """Refuse a container without any bound: it would be the very leak that it should prevent."""
    if all(bound is None for bound in bounds.values()):
        names = ", ".join(bounds)
        raise ConfigError(f"{holder} has no bound; give at least one of {names}")


def callable_or_none(value: object, what: str) -> None:
    """Refuse a non-callable at construction rather than at the first eviction."""
    if value is not None and not callable(value):
        raise ConfigError(f"{what}={value!r} cannot be called; give a function or None")


def pressure_or_none(value: object) -> None:
    """Refuse an object that no holder can be attached to."""
    if value is not None and not hasattr(value, "attach"):
        raise ConfigError(f"pressure={value!r} cannot be used; give a MemoryBudget, or None")


class Scale:
    """Weighs items against `max_bytes`; str and bytes need no `weigh`."""

    __slots__ = ("_holder", "_limit", "_weigh")

    def __init__(self, holder: str, weigh: Weigh | None, limit: int) -> None:
        callable_or_none(weigh, "weigh")
        self._holder, self._weigh, self._limit = holder, weigh, limit

    def __call__(self, item: object) -> int:
        """Return the bytes of `item`; raise `TooLarge` if it alone is above the limit."""
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
    """Return a scale if this container limits or weighs bytes."""
    if weigh is None and limit == NO_LIMIT:
        return None
    return Scale(holder, weigh, limit)


def forward(clock: Clock | None, *, timed: bool = True) -> Clock:
    """Return a clock that never goes back; see `_clock.forward`.

    One that is not `timed` stands still, which is cheaper than checking for it at every read.
    """
    callable_or_none(clock, "clock")
    if timed and clock is not None:
        _clock.checked(clock)
    return _clock.forward(clock) if timed else repeat(0.0).__next__


class Limits(NamedTuple):
    """The limits as plain numbers; one that was not given is never reached."""

    max_items: int
    max_bytes: int
    ttl: float
    idle: float
    order: EvictionOrder

    @property
    def timed(self) -> bool:
        """Return True if any limit depends on time."""
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
