"""The hold of a `with` block on one value of a map."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic

from floodline.bounded._entry import Hold, K, V


class Pin(Generic[K, V]):
    """A context manager that can be reused, but not while it is in use.

    Inside a finalizer that has interrupted the map nothing can be evicted, so the pin is taken only
    afterwards, and only if the block has not ended by then.
    """

    __slots__ = ("_hold", "_key", "_late", "_pin", "_unpin", "_used")

    def __init__(
        self,
        key: K,
        pin: Callable[[K], tuple[V, Hold[K, V] | None]],
        unpin: Callable[[Hold[K, V]], None],
        late: deque[Callable[[], Any]],
    ) -> None:
        self._key, self._pin, self._unpin, self._late = key, pin, unpin, late
        self._hold: Hold[K, V] | None = None
        self._used = False

    def __enter__(self) -> V:
        if self._used:
            raise RuntimeError(f"this pin on {self._key!r} is in use; call pin() again for another")
        value, self._hold = self._pin(self._key)
        self._used = True
        if self._hold is None:
            self._late.append(self._catch_up)
        return value

    def __exit__(self, *exc_info: object) -> None:
        hold, self._hold = self._hold, None
        self._used = False
        if hold is not None:
            self._unpin(hold)

    def _catch_up(self) -> None:
        if self._used and self._hold is None:
            try:
                _, self._hold = self._pin(self._key)
            except KeyError:  # it has left in the meantime, for example replaced
                return
