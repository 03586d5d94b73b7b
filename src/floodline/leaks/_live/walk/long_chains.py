"""Counts the links of a chain that is too long to be inspected, without what they hold."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from floodline.leaks._objects.anatomy import mro_of, names_of_type
from floodline.leaks._objects.identity_set import Seen
from floodline.leaks._objects.outline import Outlines

MOST_LINKS = 10_000  # in one go: 4 ms
ASKED = 4  # times as long takes a link for which the collector is asked
FEW = 8  # referents of a link


def count_links(first: Any, outlines: Outlines, seen: Seen, most: int) -> tuple[int, bool]:
    """Return how many links of its type follow an object, and whether the end was reached.

    Slots and what the collector knows are followed, since they run no code; what was seen before
    ends the chain.
    """
    for step in _slots_of(type(first)):
        count = _count(first, step, seen, most)
        if count:
            return count, count < most
    return count_behind(first, outlines, seen, most)


def count_behind(first: Any, outlines: Outlines, seen: Seen, most: int) -> tuple[int, bool]:
    """Return the same for objects of C types that hold each other, directly or in tuples."""
    some = first[:FEW] if type(first) is tuple else (first,)
    for one in some:
        plan = outlines.of(type(one))
        if plan.hidden or plan.kind == "opaque":
            count = _count(one, _next_of_type, seen, most // ASKED)
            return count, 0 < count < most // ASKED
    return 0, False


def _count(first: Any, step: Callable[[Any], Any], seen: Seen, most: int) -> int:
    kind, count = type(first), 0
    try:
        at = step(first)
        while type(at) is kind and count < most and seen.mark(id(at)):
            count += 1
            at = step(at)
    except AttributeError:  # never assigned: another slot, or the end
        pass
    return count


def _next_of_type(obj: Any) -> Any:
    below = gc.get_referents(obj)[:FEW]
    inner = (one[:FEW] for one in below if type(one) is tuple)
    return next((one for one in chain(below, *inner) if type(one) is type(obj)), None)


def _slots_of(kind: type) -> Iterator[Callable[[Any], Any]]:
    for base in mro_of(kind):
        for descriptor in list(names_of_type(base).values()):
            if type(descriptor) is types.MemberDescriptorType:
                yield descriptor.__get__
