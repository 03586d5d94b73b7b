"""The figures of each slot at each sample, kept small by storing only changes."""

from __future__ import annotations

from array import array
from itertools import zip_longest
from math import inf

from floodline.leaks._figures.own_holders import OwnHolders
from floodline.leaks._figures.rss_split import Split
from floodline.leaks._heap.slots import Slots
from floodline.leaks._heap.walk import Walk
from floodline.leaks._vocabulary import Step

NOTHING = (0, 0, 0, 0)
COLUMNS = ("count", "length", "text", "bytes")
PROCESS = (
    *("round", "objects", "bytes"),
    *("rss", "blocks", "malloc_used", "malloc_free", "malloc_mapped", "arenas"),
)


class Series:
    """The samples of a run in flat arrays; memory use grows only with what changes."""

    unit: Step = "round"
    least_resident = 1 << 19
    least_native = 1 << 17  # freed blocks in a thread's cache count as in use
    least_growth, least_rise = 0.0, inf  # every sample is a complete walk
    counted = None
    may_be_garbage = garbage_waits = False  # it is collected before each sample

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
        self.holders = OwnHolders()
        self._process = {name: array("q") for name in PROCESS}
        self._last: list[tuple[int, ...]] = []
        self._changes: dict[int, array[int]] = {}

    def __len__(self) -> int:
        return len(self._process["round"])

    @property
    def rounds(self) -> list[int]:
        """The round after which each sample was taken."""
        return self.process("round")

    def process(self, name: str) -> list[int]:
        """Return a figure of the whole process, one per sample."""
        return self._process[name].tolist()

    def restart(self) -> None:
        """Forget the samples so far; their memory is reused."""
        for values in self._process.values():
            del values[:]
        self._changes.clear()
        self.holders.restart()

    def add(self, at: int, walk: Walk, objects: int, split: Split) -> None:
        """Record the figures of one walk at the end of round `at`."""
        sample = len(self)
        self.holders.note(at)
        self._add_process(at, objects, sum(walk.bytes), split)
        known = len(self._last)
        rows = zip(walk.count, walk.length, walk.text, walk.bytes, strict=True)
        if not sample:
            self._last[:] = rows
            return
        for index, row in enumerate(rows):
            if index >= known:
                self._last.append(NOTHING)
            if self._last[index] != row:
                self._note(index, sample, row)
        for index in range(len(walk.count), known):
            if any(self._last[index]):
                self._note(index, sample, NOTHING)

    def repeat(self, at: int, split: Split) -> None:
        """Record a sample at which each slot was as at the last one."""
        process = self._process
        self._add_process(at, process["objects"][-1], process["bytes"][-1], split)

    def _add_process(self, at: int, objects: int, size: int, split: Split) -> None:
        for name, value in (("round", at), ("objects", objects), ("bytes", size)):
            self._process[name].append(value)
        for name in PROCESS[3:]:
            self._process[name].append(getattr(split, name))

    def is_like(self, walk: Walk) -> bool:
        """Return True if a walk found in each slot what the last recorded one found."""
        rows = zip(walk.count, walk.length, walk.text, walk.bytes, strict=True)
        pairs = zip_longest(rows, self._last, fillvalue=NOTHING)
        return all(row == known for row, known in pairs)

    def _note(self, index: int, sample: int, row: tuple[int, ...]) -> None:
        changes = self._changes.get(index)
        if changes is None:
            self._changes[index] = changes = array("q", (0, *self._last[index]))
        changes.extend((sample, *row))
        self._last[index] = row

    def changed(self) -> list[int]:
        """Return the indices of the slots that have changed."""
        return list(self._changes)

    def at(self, _: int) -> list[int]:
        """Return the rounds of the samples, which are the same for each slot."""
        return self.rounds

    def last(self, index: int, column: str) -> int:
        """Return the newest figure of a slot."""
        return self._last[index][COLUMNS.index(column)] if index < len(self._last) else 0

    def column(self, index: int, column: str) -> list[int]:
        """Return the figures of one slot, one per sample."""
        which = 1 + COLUMNS.index(column)
        changes = self._changes.get(index)
        if changes is None:
            return [self.last(index, column)] * len(self)
        values: list[int] = []
        for at in range(0, len(changes), 5):
            until = changes[at + 5] if at + 5 < len(changes) else len(self)
            values += [changes[at + which]] * (until - len(values))
        return values
