"""Counts the links of a chain that is too long to be inspected, without what they hold."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

from floodline.leaks._objects.anatomy import mro_of, names_of_type
from floodline.leaks._objects.identity_set import Seen

MOST_LINKS = 50_000  # in one go: some milliseconds, in which other threads may run


def count_links(first: Any, seen: Seen) -> tuple[int, bool]:
    """Return how many links of its type follow an object, and whether the end was reached.

    Only slots are followed, since they run no code; what was seen before ends the chain.
    """
    kind, count = type(first), 0
    for step in _slots_of(kind):
        try:
            at = step(first)
            while type(at) is kind and count < MOST_LINKS and seen.mark(id(at)):
                count += 1
                at = step(at)
        except AttributeError:  # never assigned: another slot, or the end
            pass
        if count:
            return count, count < MOST_LINKS
    return 0, False


def _slots_of(kind: type) -> Iterator[Callable[[Any], Any]]:
    for base in mro_of(kind):
        for descriptor in list(names_of_type(base).values()):
            if type(descriptor) is types.MemberDescriptorType:
                yield descriptor.__get__
