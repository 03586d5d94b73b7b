"""The figures of each slot at each sample, kept small by storing only changes."""

from __future__ import annotations

from array import array

from floodline.leaks._figures.rss_split import Split
from floodline.leaks._heap.slots import Slots
from floodline.leaks._heap.walk import Walk
from floodline.leaks._vocabulary import Step

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

    def __init__(self, slots: Slots) -> None:
        self.slots = slots
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

    def add(self, at: int, walk: Walk, objects: int, split: Split) -> None:
        """Record the figures of one walk at the end of round `at`."""
        sample = len(self)
        self._process["round"].append(at)
        self._process["objects"].append(objects)
        self._process["bytes"].append(sum(walk.bytes))
        for name in PROCESS[3:]:
            self._process[name].append(getattr(split, name))
        known = len(self._last)
        rows = zip(walk.count, walk.length, walk.text, walk.bytes, strict=True)
        if not sample:
            self._last[:] = rows
            return
        for index, row in enumerate(rows):
            if index >= known:
                self._last.append((0, 0, 0, 0))
            if self._last[index] != row:
                self._note(index, sample, row)
        for index in range(len(walk.count), known):
            if any(self._last[index]):
                self._note(index, sample, (0, 0, 0, 0))

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
