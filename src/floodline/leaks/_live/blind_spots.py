"""What a live watch does not see, in words."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from floodline.leaks._heap.slots import MAX_SLOTS, Slots, shorten
from floodline.leaks._live.sliced_walk import SlicedWalk
from floodline.leaks._objects.frames import READS_RUNNING

MOST_NAMED = 3


class BlindSpot(StrEnum):
    """What an answer does not cover, and the sentence that says so."""

    HELD_BY_C = (
        "objects that only C code holds are counted in the census of a small heap, not named"
    )
    CHAINS = "chains without a container are counted by walks, not between them"
    RUNNING = "variables of running functions are read on Python 3.13 and later"
    SUSPENDED = (
        "before Python 3.13 a variable of a waiting coroutine may be shown by its neighbour's name"
    )
    INHERITED = "what this process inherited by a fork is not looked at, nor counted in the census"
    NO_CENSUS = "no census: the heap is too large to list it in a moment"
    SHORT = "stopped: less than a tenth of the memory limit is left"
    FULL = "more than {most:,} named places: new ones are counted in their holders"
    SAMPLED = "{path} has {size:,} items: a part of them is looked into"
    MORE_SAMPLED = "of {count} more large containers a part is looked into"
    CUT = "{cut:,} objects lie too deep, or too many waited, to look into"


def blind_spots(
    slots: Slots, walk: SlicedWalk | None, *, short: bool, inherited: bool, census: bool
) -> tuple[str, ...]:
    """Return what the answer does not cover; `walk` is the last one that has ended.

    `inherited` is whether something is left out because a fork shares it.
    """
    found = [BlindSpot.HELD_BY_C, BlindSpot.CHAINS]
    if not READS_RUNNING:
        found += [BlindSpot.RUNNING, BlindSpot.SUSPENDED]
    if inherited:
        found.append(BlindSpot.INHERITED)
    elif not census:
        found.append(BlindSpot.NO_CENSUS)
    if short:
        found.append(BlindSpot.SHORT)
    texts = [one.value for one in found]
    if len(slots) >= MAX_SLOTS:
        texts.append(BlindSpot.FULL.format(most=MAX_SLOTS))
    return (*texts, *(_of_walk(slots, walk) if walk is not None else ()))


def _of_walk(slots: Slots, walk: SlicedWalk) -> Iterator[str]:
    largest = sorted(walk.sampled.items(), key=lambda pair: -pair[1])
    for index, size in largest[:MOST_NAMED]:
        yield BlindSpot.SAMPLED.format(path=shorten(slots[index].path), size=size)
    if len(largest) > MOST_NAMED:
        yield BlindSpot.MORE_SAMPLED.format(count=len(largest) - MOST_NAMED)
    if walk.cut:
        yield BlindSpot.CUT.format(cut=walk.cut)
