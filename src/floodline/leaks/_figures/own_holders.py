"""Floodline's own containers and sessions: read through their `stats()`, never suspected."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from floodline import telemetry
from floodline.leaks._figures.trend import trend
from floodline.leaks._heap.slots import Slot

_PACKAGE = __name__.split(".", 1)[0]
_GIVEN = frozenset((".state", ".value"))  # where our entries keep what is the program's
MAX_HOLDERS = 200
MAX_POINTS = 48
FULL = 0.98  # of the limit


@dataclass(slots=True, frozen=True)
class Filling:
    """A holder that has not reached its limit yet; `rate` is per round or second."""

    kind: str
    name: str
    items: int
    limit: int
    rate: float

    @property
    def left(self) -> int:
        """The rounds or seconds until it is full."""
        return max(1, round((self.limit - self.items) / max(self.rate, 1e-9)))


class OwnHolders:
    """How full each holder was over time; some of the older points are dropped."""

    def __init__(self, holders: Callable[[], Iterable[Any]] = telemetry.holders) -> None:
        self._holders = holders
        self._points: dict[tuple[str, str], list[tuple[float, int]]] = {}
        self._limits: dict[tuple[str, str], int] = {}

    def note(self, at: float) -> None:
        """Read all holders now."""
        for holder in self._holders():
            try:
                stats = holder.stats()
                key = (stats.kind, stats.name)
                limit = stats.max_items or stats.max_bytes
                used = stats.items if stats.max_items else stats.bytes
            except Exception:  # a holder's code may not be ours
                continue
            if limit and used is not None and (key in self._points or self._has_room):
                self._limits[key] = limit
                self._add(self._points.setdefault(key, []), at, used)

    @property
    def _has_room(self) -> bool:
        return len(self._points) < MAX_HOLDERS

    def _add(self, points: list[tuple[float, int]], at: float, used: int) -> None:
        if points and used < points[-1][1] / 2:
            points.clear()  # emptied: what counts is how it fills from here
        points.append((at, used))
        if len(points) > MAX_POINTS:
            points[: MAX_POINTS // 2] = points[: MAX_POINTS // 2 : 2]

    def restart(self) -> None:
        """Forget the readings so far."""
        self._points.clear()

    def filling(self) -> list[Filling]:
        """Return the holders that fill, the one that is full last first."""
        found = []
        for (kind, name), points in self._points.items():
            at, used = [when for when, _ in points], [items for _, items in points]
            figures, limit = trend(at, used), self._limits[kind, name]
            if figures.kind != "flat" and used[-1] < FULL * limit:
                found.append(Filling(kind, name, used[-1], limit, figures.rate))
        return sorted(found, key=lambda one: -one.left)


def is_internal(slot: Slot) -> bool:
    """Return True for a place in our own objects, except for what the program put there."""
    at: Slot | None = slot
    while at is not None and not at.named:
        at = at.parent
    if at is None:
        return False
    name = at.anchor or at.label
    return name.split(".", 1)[0] == _PACKAGE and at.label not in _GIVEN
