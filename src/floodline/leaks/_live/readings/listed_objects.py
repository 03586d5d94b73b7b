"""One list of all objects that the collector tracks, and how to let go of it.

What is done with the list must be a single call into C code. No line of Python runs in between, so
no other thread can leave it to this one to drop the last reference to what is listed. The list is
emptied in the same call: it is cut short first, because malloc keeps large blocks that are freed
whole, and raises the size from which it gives others back.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import chain, repeat, starmap, tee
from operator import delitem
from typing import Any

SHORT = 64  # items of a list whose block malloc gives back


def listing(*generation: int) -> tuple[Iterator[list[Any]], Iterator[None]]:
    """Return an iterator over the one list, and one whose two steps empty it."""
    found, long, short = tee(starmap(gc.get_objects, (generation,)), 3)
    return found, chain(map(delitem, long, repeat(slice(SHORT, None))), map(list.clear, short))


def count() -> int:
    """Return how many objects there are."""
    found, emptied = listing()
    return next(zip(map(len, found), emptied, emptied, strict=False))[0]
