"""The holders that a budget may ask to shed."""

from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass
from typing import Any, Protocol

from floodline import telemetry
from floodline.errors import ConfigError, WouldBlockLoop


class Keeper(Protocol):
    """An object that must live as long as its holders."""

    def _holder_gone(self, key: int) -> None:
        """Forget a holder that was collected."""
        ...


@dataclass(slots=True, frozen=True)
class Shed:
    """The result of a slice: items shed; `sure` is False if some holder did not answer."""

    items: int
    errors: int
    sure: bool


class Holders:
    """Weak references to holders, asked in proportion to what they hold."""

    __slots__ = ("_refs",)

    def __init__(self) -> None:
        self._refs: dict[int, weakref.ref[Any]] = {}

    def add(self, holder: Any, keeper: Keeper) -> None:
        """Remember a holder; its keeper then lives as long as it does."""
        if not callable(getattr(holder, "shed", None)):
            raise ConfigError(f"{holder!r} cannot be attached; it has no shed(limit) method")
        key = id(holder)
        if self._refs.get(key, lambda: None)() is holder:
            return
        self._refs[key] = weakref.ref(holder)
        # holders do not reference their budget, so this keeps it alive
        weakref.finalize(holder, keeper._holder_gone, key).atexit = False

    def forget(self, key: int) -> None:
        """Drop the reference to a collected holder."""
        ref = self._refs.get(key)
        if ref is not None and ref() is None:  # otherwise another holder has this id by now
            del self._refs[key]

    def __len__(self) -> int:
        return len(self._refs)

    def alive(self) -> list[Any]:
        """Return the holders that still exist."""
        return [holder for ref in list(self._refs.values()) if (holder := ref()) is not None]

    def held(self) -> int:
        """Return how many items they hold in total; a huge number if one cannot tell."""
        return sum(_size(holder, sys.maxsize) for holder in self.alive())

    def shed(self, limit: int, source: str) -> Shed:
        """Have all holders together shed about `limit` items; one that raises is skipped."""
        asked = [(holder, size) for holder in self.alive() if (size := _size(holder, limit))]
        total = sum(size for _, size in asked)
        items = errors = 0
        sure = True
        for holder, size in asked:
            try:
                items += _ask(holder, max(1, limit * size // total))
            except WouldBlockLoop:
                raise
            except Exception as error:
                errors += 1
                sure = sure and not isinstance(error, TimeoutError)
                telemetry.emit(
                    "shed_error",
                    source,
                    holder=str(getattr(holder, "name", type(holder).__name__)),
                    error=telemetry.describe(error),
                )
        return Shed(items, errors, sure)


def _size(holder: Any, limit: int) -> int:
    try:
        return len(holder)
    except Exception:  # it need not have a length
        return limit


def _ask(holder: Any, limit: int) -> int:
    ask = getattr(holder, "shed_threadsafe", None) or holder.shed
    return int(ask(limit))
