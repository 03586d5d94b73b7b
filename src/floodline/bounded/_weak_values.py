"""Values that were evicted from a weak map but may still be referenced."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any

from floodline._interruptible_lock import Guard


class Leftover(weakref.ref[Any]):
    """A weak reference with what is needed to bring the value back."""

    __slots__ = ("key", "weight")

    key: Any
    weight: int


def forget(guard: Guard, leftovers: dict[Any, Leftover], leftover: Leftover) -> None:
    """Drop a leftover whose value has died; the garbage collector calls this."""

    def section() -> None:
        if leftovers.get(leftover.key) is leftover:
            del leftovers[leftover.key]

    guard.soon(partial(guard.run, section))
