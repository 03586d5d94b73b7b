"""The bounds of a map."""

from __future__ import annotations

from typing import NamedTuple

from floodline._units import Duration, Size, parse_choice
from floodline.bounded import _bounds as bounds

ORDERS = ("lru", "fifo", "oldest")


class Limits(NamedTuple):
    """What was given, as plain numbers; what was not given is never reached."""

    max_items: int
    max_bytes: int
    ttl: float
    idle: float
    order: str

    @property
    def timed(self) -> bool:
        """Tell whether time matters."""
        return min(self.ttl, self.idle) != bounds.INFINITE


def read_limits(
    max_items: int | None,
    max_bytes: Size | None,
    ttl: Duration | None,
    idle: Duration | None,
    order: str,
) -> Limits:
    """Check the arguments of a map; at least one bound is needed."""
    bounds.need_one("BoundedMap", max_items=max_items, max_bytes=max_bytes, ttl=ttl, idle=idle)
    return Limits(
        bounds.count(max_items, "max_items"),
        bounds.size(max_bytes, "max_bytes"),
        bounds.span(ttl, "ttl"),
        bounds.span(idle, "idle"),
        parse_choice(order, "order", ORDERS),
    )
