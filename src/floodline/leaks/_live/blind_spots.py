"""What a live watch does not see, in words."""

from __future__ import annotations

from floodline.leaks._heap.slots import MAX_SLOTS, Slots, shorten
from floodline.leaks._live.sliced_walk import SlicedWalk
from floodline.leaks._objects.frames import READS_RUNNING

MOST_NAMED = 3
ALWAYS = (
    "objects that only C code holds are counted in the census of a small heap, not named",
    "chains without a container are counted by walks, not between them",
)
RUNNING = "variables of running functions are read on Python 3.13 and later"
SUSPENDED = (
    "before Python 3.13 a variable of a waiting coroutine may be shown by its neighbour's name"
)
INHERITED = "what this process inherited by a fork is not looked at, nor counted in the census"
SHORT = "stopped: less than a tenth of the memory limit is left"


def blind_spots(
    slots: Slots, walk: SlicedWalk | None, *, short: bool, inherited: bool, census: bool
) -> tuple[str, ...]:
    """Return what the answer does not cover; `walk` is the last one that has ended.

    `inherited` is whether something is left out because a fork shares it.
    """
    found = list(ALWAYS)
    if not READS_RUNNING:
        found += [RUNNING, SUSPENDED]
    if inherited:
        found.append(INHERITED)
    elif not census:
        found.append("no census: the heap is too large to list it in a moment")
    if short:
        found.append(SHORT)
    if len(slots) >= MAX_SLOTS:
        found.append(f"more than {MAX_SLOTS:,} named places: new ones are counted in their holders")
    return (*found, *(_of_walk(slots, walk) if walk is not None else ()))


def _of_walk(slots: Slots, walk: SlicedWalk) -> list[str]:
    found = []
    largest = sorted(walk.sampled.items(), key=lambda pair: -pair[1])
    for index, size in largest[:MOST_NAMED]:
        path = shorten(slots[index].path)
        found.append(f"{path} has {size:,} items: a part of them is looked into")
    if len(largest) > MOST_NAMED:
        found.append(f"of {len(largest) - MOST_NAMED} more large containers a part is looked into")
    if walk.cut:
        found.append(f"{walk.cut:,} objects lie too deep, or too many waited, to look into")
    return found
