"""Named places on the heap: walking to them, naming them, finding them again."""

from __future__ import annotations

from floodline.leaks._heap.counting_walk import CountingWalk
from floodline.leaks._heap.roots import survey
from floodline.leaks._heap.slots import Slots

__all__ = ["CountingWalk", "Slots", "survey"]
