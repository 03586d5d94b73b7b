"""What a live watch does not see, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from floodline.leaks._heap.slots import Slots, shorten
from floodline.leaks._live.walk.sliced_walk import SlicedWalk
from floodline.leaks._objects.frames import READS_RUNNING, SEES_RUNNING

MOST_NAMED = 3


class BlindSpot(StrEnum):
    """What an answer does not cover, and the sentence that says so."""

    HELD_BY_C = "what only C code holds is named if a function or an object behind it can be found"
    CHAINS = "chains without a container are counted during walks only"
    RUNNING = "variables of running functions cannot be read in this build of Python"
    SUSPENDED = (
        "before Python 3.13, a suspended coroutine's variable may be shown under a neighbour's name"
    )
    INHERITED = (
        "what this process inherited in a fork is neither inspected nor counted in the census"
    )
    NO_CENSUS = "no census: the heap is too large to list at once"
    SHORT = "paused: less than a tenth of the memory limit is left"
    PARTIAL = "there was no time to inspect all objects: what holders hold is at least this much"
    FULL = "more than {most:,} named places: new ones are counted with their holders"
    SAMPLED = "{path} has {size:,} items: only some of them are inspected"
    MORE_SAMPLED = "{count} more large containers are inspected only in part"
    CUT = "{cut:,} objects were not inspected: too deep, or too many waiting"


def blind_spots(
    slots: Slots,
    walk: SlicedWalk | None,
    *,
    short: bool,
    inherited: bool,
    census: bool,
    partial: bool = False,
) -> tuple[str, ...]:
    """Return what the answer does not cover; `walk` is the last that finished.

    `inherited` is True if something is left out because it is shared with the parent of a fork,
    `partial` if the holders were weighed before a walk had finished.
    """
    found = [BlindSpot.HELD_BY_C, BlindSpot.CHAINS]
    if not SEES_RUNNING:  # pragma: no cover  # a Python that is not known here
        found.append(BlindSpot.RUNNING)
    if not READS_RUNNING:
        found.append(BlindSpot.SUSPENDED)
    if inherited:
        found.append(BlindSpot.INHERITED)
    elif not census:
        found.append(BlindSpot.NO_CENSUS)
    if short:
        found.append(BlindSpot.SHORT)
    if partial:
        found.append(BlindSpot.PARTIAL)
    texts = [one.value for one in found]
    if len(slots) >= slots.most:
        texts.append(BlindSpot.FULL.format(most=slots.most))
    return (*texts, *(_of_walk(slots, walk) if walk is not None else ()))


def _of_walk(slots: Slots, walk: SlicedWalk) -> Iterator[str]:
    largest = sorted(walk.sampled.items(), key=lambda pair: -pair[1])
    for index, size in largest[:MOST_NAMED]:
        yield BlindSpot.SAMPLED.format(path=shorten(slots[index].path), size=size)
    if len(largest) > MOST_NAMED:
        yield BlindSpot.MORE_SAMPLED.format(count=len(largest) - MOST_NAMED)
    if walk.cut:
        yield BlindSpot.CUT.format(cut=walk.cut)
