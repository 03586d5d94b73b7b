"""Finds where the containers of one slot really are.

Below items, an attribute of a library class is one slot for all objects of that class, named after
the first one met: of a hundred events, it may be another one whose waiters stay.
"""

from __future__ import annotations

import sys
import types
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from floodline.leaks._heap.roots import survey
from floodline.leaks._heap.slot_values import length
from floodline.leaks._heap.slots import Slot, Slots
from floodline.leaks._heap.walk import Held, Walk
from floodline.leaks._objects.anatomy import (
    derives,
    is_standard,
    label_of,
    names_of_module,
    names_of_type,
)


@dataclass(slots=True, frozen=True)
class Above:
    """The slot of the fullest containers' holders, those holders, and the containers."""

    slot: Slot
    holders: list[Held]
    held: list[Held]


class Finder(Walk):
    """A walk that notes the slot of each of some objects."""

    def __init__(self, slots: Slots, wanted: frozenset[int]) -> None:
        super().__init__(slots)
        self.found: dict[int, tuple[int, Held]] = {}
        self._wanted = wanted

    def _later(self, obj: Any, slot: int) -> None:
        if id(obj) in self._wanted:
            self.found[id(obj)] = slot, Held(self._holder, obj)
        super()._later(obj, slot)


def find_above(slots: Slots, groups: list[list[Held]], own: Iterable[Any]) -> list[Above | None]:
    """Return, for each group of containers, the place of those that together hold the most."""
    wanted = frozenset(id(held.holder) for group in groups for held in group)
    finder = Finder(slots, wanted)
    survey(slots, own=own, walk=finder)
    return [_fullest(slots, group, finder) for group in groups]


def _fullest(slots: Slots, group: list[Held], finder: Finder) -> Above | None:
    sums: Counter[int] = Counter()
    for held in group:
        if id(held.holder) in finder.found:
            sums[finder.found[id(held.holder)][0]] += length(held.value)
    if not sums:
        return None
    best = sums.most_common(1)[0][0]
    chosen = [held for held in group if finder.found.get(id(held.holder), (None,))[0] == best]
    return Above(Slot(slots, best), [finder.found[id(one.holder)][1] for one in chosen], chosen)


def kept_by_library(obj: Any) -> bool:
    """Return True if a global or class attribute of the standard library holds the object."""
    for name, module in list(sys.modules.items()):
        if not is_standard(name) or not derives(type(module), types.ModuleType):
            continue
        for value in list(names_of_module(module).values()):
            if value is obj:
                return True
            own = derives(type(value), type) and is_standard(label_of(value))
            if own and any(one is obj for one in list(names_of_type(value).values())):
                return True
    return False
