"""One list of all objects that the collector tracks, and how to let go of it.

What is done with the list must be a single call into C code. No line of Python runs in between, so
no other thread can leave it to this one to drop the last reference to what is listed. The list is
emptied in the same call, a piece at a time: malloc keeps large blocks that are freed whole, and
raises the size from which it gives others back.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from itertools import chain, repeat, starmap, tee
from operator import delitem
from typing import Any

PIECE = slice(-8192, None)  # 64 KiB, which Python copies before it cuts them off
PIECES = 1_000


def listing(*generation: int) -> tuple[Iterator[list[Any]], Iterator[Any]]:
    """Return an iterator over the one list, and one that empties it and yields nothing."""
    found, long, rest = tee(starmap(gc.get_objects, (generation,)), 3)
    cut = map(delitem, chain.from_iterable(map(repeat, long, repeat(PIECES))), repeat(PIECE))
    return found, filter(None, chain(cut, map(list.clear, rest)))


def full_passes() -> int:
    """Return how often the collector has looked at all objects; 3.14 does so bit by bit."""
    older = gc.get_stats()[1:] if sys.version_info >= (3, 14) else gc.get_stats()[-1:]
    return sum(generation["collections"] for generation in older)


def count() -> int:
    """Return how many objects there are."""
    found, emptied = listing()
    number: int = max(chain(map(len, found), emptied))
    return number
