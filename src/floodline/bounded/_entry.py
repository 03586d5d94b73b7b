"""What a map stores for each key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from floodline.telemetry import Reason

if TYPE_CHECKING:
    import typing_extensions  # type checkers include it; `typing` supports defaults from 3.13 on

    K = typing_extensions.TypeVar("K", default=Any)
    V = typing_extensions.TypeVar("V", default=Any)
else:
    K, V = TypeVar("K"), TypeVar("V")

Exit = tuple[K, V, Reason]


class Entry(Generic[K, V]):
    """A key with its value and the numbers and times that decide when it leaves.

    A hit writes `stamp` and `touched` without a lock; everything else changes only under the lock.
    `dies` is `-inf` once the entry has left, so that code still holding it can see that. The one
    place that creates entries sets every field; a constructor would double the cost.
    """

    __slots__ = (
        "dies",
        "filed",
        "hold",
        "key",
        "place",
        "renewed",
        "stamp",
        "touched",
        "value",
        "weight",
    )

    key: K
    value: V
    weight: int
    stamp: int  # the last touch
    filed: int  # the touch by which it is queued
    renewed: int  # the last set
    place: int  # the first set
    touched: float
    dies: float
    hold: Hold[K, V] | None


class Hold(Generic[K, V]):
    """The pins on one value of one entry; they outlive an entry that is replaced or deleted."""

    __slots__ = ("count", "entry", "exit", "parked")

    def __init__(self, entry: Entry[K, V]) -> None:
        self.entry = entry
        self.count = 0
        self.parked = False  # out of the orders, because an eviction came across it
        self.exit: Exit[K, V] | None = None  # the value has left; reported at the last unpin
