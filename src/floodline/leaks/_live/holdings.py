"""What is in memory now: the places that hold the most, estimated from the figures of a walk.

A walk counts each object once, in the first place that leads to it, and looks at some of the items
of a large container. So what is below a place is added up and scaled: an estimate, which says so.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from heapq import nlargest
from typing import Any

from floodline.leaks._figures.rss_split import split_record
from floodline.leaks._heap.owner_names import owner_of
from floodline.leaks._heap.slot_lookup import Places
from floodline.leaks._heap.slots import NOWHERE, Slots, is_name, shorten
from floodline.leaks._heap.walk import Held
from floodline.leaks._live.readings.rare_steps import RareSteps
from floodline.leaks._live.walk.outline_walk import OURS, OutlineWalk
from floodline.leaks._live.walk.slot_totals import SlotTotals
from floodline.leaks._objects.anatomy import INERT
from floodline.leaks._objects.items import part, some
from floodline.leaks._objects.outline import Outlines
from floodline.leaks._source.excerpt import forget_trees
from floodline.leaks._suspect_record import HoldingRecord, SplitRecord

MOST_SHOWN = 12
MOST_TRIED = 60  # places that are looked up before there are so many
EACH = 10e-6  # seconds per MiB that it takes to split resident memory, until it was measured
DEAR = 3000  # times what it takes to split resident memory, until it is split again
WEIGHED = 64  # items whose numbers and keys are weighed
SPLIT = "split"  # the rare step that splits resident memory
LEAST = 0.001  # of resident memory: what is smaller is not listed
_NUMBERS = (int, float, complex)
_HOLDS = ("container", "text", "cache")


class Holdings:
    """Estimates the largest holders after each walk, a slice at a time."""

    def __init__(
        self, slots: Slots, places: Places, outlines: Outlines, rare: RareSteps,
        resident: Callable[[], int],
    ) -> None:  # fmt: skip
        self._slots, self._places, self._outlines = slots, places, outlines
        self._rare, self._resident = rare, resident
        rare.reserved = SPLIT  # somebody may be waiting for the first
        self._job: Iterator[None] | None = None
        self._split_again = 0.0
        self.found: tuple[HoldingRecord, ...] = ()
        self.split: SplitRecord | None = None
        self.partial = False
        self.ready = False  # True once they were estimated

    def walked(self, walk: OutlineWalk, *, partial: bool = False) -> None:
        """Estimate soon, from the figures of a walk; the previous estimate stands until then.

        With `partial`, the walk has not finished, and the sizes are lower bounds.
        """
        self._job, self.partial = self._estimate(walk), partial

    @property
    def due(self) -> bool:
        """True if an estimate is under way."""
        return self._job is not None

    @property
    def urgent(self) -> bool:
        """True if somebody waits for it, and the walk has to wait."""
        return self.due and self.partial

    def work(self, due: Callable[[], bool]) -> None:
        """Continue until `due` returns True."""
        while self._job is not None and not due():
            if next(self._job, self) is self:
                self._job = None

    def _estimate(self, walk: OutlineWalk) -> Iterator[None]:
        totals = SlotTotals(self._slots, walk)
        yield from totals.run()
        resident = self._resident()
        kept: list[tuple[int, HoldingRecord]] = []
        for index in self._largest(walk, totals, resident * LEAST):
            yield
            record = self._record(walk, index, totals, resident)
            forget_trees()
            if record is not None:
                kept.append((index, {**record, "within": self._within(index, kept)}))
                if len(kept) >= MOST_SHOWN:
                    break
        yield
        self._measure_split()
        records = sorted((one for _, one in kept), key=lambda one: -one["bytes"])
        self.found, self.ready = tuple(records), True

    def _measure_split(self) -> None:
        """Ask the allocators, which takes milliseconds in a large heap: then seldom."""
        began, size = time.perf_counter(), self._resident() >> 20
        likely = self._rare.expected(SPLIT, size, EACH)
        if began >= self._split_again and self._rare.allows(SPLIT, likely):
            self.split, self._rare.reserved = self._rare.take(SPLIT, split_record, size), ""
            took = time.perf_counter() - began
            self._split_again = began + DEAR * took

    def _largest(self, walk: OutlineWalk, totals: SlotTotals, least: float) -> list[int]:
        labels, parents, total = self._slots.labels, self._slots.parents, totals.total
        named = (
            index
            for index in range(len(total))
            if total[index] > least
            and parents[index] != NOWHERE
            and is_name(labels[index])
            and (walk.length[index] or walk.text[index])
        )
        return nlargest(MOST_TRIED, named, key=lambda index: total[index])

    def _record(
        self, walk: OutlineWalk, index: int, totals: SlotTotals, resident: int
    ) -> HoldingRecord | None:
        slot = self._slots[index]
        try:
            held = self._places.held(slot)
        except RuntimeError:  # a dict that another thread or a finalizer changed meanwhile
            held = []
        plans = [self._outlines.of(type(one.value)) for one in held]
        if not any(plan.kind in _HOLDS or plan.extra is not None for plan in plans):
            return None  # an object or a module: what its attributes hold is listed
        items = round(walk.length[index] * totals.scale[index])
        since = 1.0
        if not slot.starred and items and any(plan.length is not None for plan in plans):
            since = self._length(held) / items  # it may be much longer than when it was met
            items = round(items * since)
        total = totals.total[index] * since
        total += items * self._unmet(held, texts=self._lacks_texts(walk, index))
        kinds = Counter(plan.label for plan in plans)
        owner, _ = owner_of(slot, held)
        size = min(total, resident)
        return {
            "owner": owner,
            "path": shorten(slot.path),
            "type": kinds.most_common(1)[0][0],
            "items": items,
            "own": round(min(totals.own_bytes(index), size)),
            "bytes": round(size),
            "share": round(size / resident, 4) if resident else 0.0,
            "within": None,
        }

    def _length(self, held: list[Held]) -> int:
        """Return how many items are in the containers of a slot now."""
        found = [(one.value, self._outlines.of(type(one.value))) for one in held]
        return sum(plan.length(value) for value, plan in found if plan.length is not None)

    def _lacks_texts(self, walk: OutlineWalk, index: int) -> bool:
        """Return True if short texts were counted with their container, though not all of them."""
        return index in walk.unseen and index << 32 not in self._slots.kids

    def _unmet(self, held: list[Held], *, texts: bool) -> float:
        """Return the bytes per item that a walk leaves out.

        These are keys, numbers beside other things, and `texts` if told.
        """
        weighed = looked = 0.0
        for one in held[:WEIGHED]:
            plan = self._outlines.of(type(one.value))
            if plan.kind != "container" or plan.length is None:
                continue
            size = plan.length(one.value)
            values = some(one.value, plan.base, size, WEIGHED)
            looked += len(values)
            if not {id(type(value)) for value in values} <= INERT:  # else the walk counts them
                weighed += _numbers(values)
            weighed += _sizes(values) if texts else 0
            if plan.base is dict:
                keys = part(one.value, dict, 0, len(values), keys=True)
                weighed += _numbers(keys) + _sizes(keys)
        return weighed / looked if looked else 0.0

    def _within(self, index: int, kept: list[tuple[int, HoldingRecord]]) -> str | None:
        """Return the nearest place above that is listed too: its bytes include these."""
        listed = {one: record["owner"] for one, record in kept}
        at = self._slots.parents[index]
        while at != NOWHERE:
            if at in listed:
                return listed[at]
            at = self._slots.parents[at]
        return None


def _numbers(values: list[Any]) -> int:
    """Return the bytes of the numbers among some values; small ones are shared by all."""
    found = {
        id(value): value.__sizeof__()
        for value in values
        if type(value) in _NUMBERS and not (type(value) is int and -6 < value < 257)
    }
    return sum(found.values())


def _sizes(items: list[Any]) -> float:
    """Return the bytes of the texts among some items; those that others hold too count in part."""
    size = 0.0
    for item in items:
        if type(item) is str or type(item) is bytes:
            size += sys.getsizeof(item) / max(1, sys.getrefcount(item) - OURS)
    return size
