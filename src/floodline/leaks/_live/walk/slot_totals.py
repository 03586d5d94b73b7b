"""Adds up what is below each slot, in short steps; places of many are shared among their holders.

Below the items of a container, one slot stands for many places, and several slots may lead to it.
What is in it is divided among them by how many objects each of them has. A path that leads back
to itself is cut there.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import accumulate, islice

from floodline.leaks._heap.slots import ANCHOR, NOWHERE, Slots
from floodline.leaks._live.walk.outline_walk import OutlineWalk

AT_ONCE = 300  # slots or steps between two looks at the clock
HEADER = 16  # bytes of the collector before each object that it tracks
INSTANCE = 40  # bytes of an object with attributes, beside its own and theirs
VALUE = 8  # bytes that an attribute takes in its object
FEW = 4  # attributes, at least: numbers and short texts have no slot
ROUNDED = 8  # bytes that the allocator rounds up, on average
_WAITING, _DONE = 1, 2


class SlotTotals:
    """The figures of a walk, added up; `run` yields about every tenth of a millisecond."""

    def __init__(self, slots: Slots, walk: OutlineWalk) -> None:
        self._slots, self._walk = slots, walk
        self.size = size = len(walk.count)
        self.own, self.total, self.scale = (_zeros(size) for _ in range(3))
        self._first = array("l", bytes(8 * (size + 2)))  # of a slot's edges in `_to`
        self._to = array("l")
        self._kept = bytearray()
        self._order = array("l")  # children before their parents
        self._met = _zeros(size)  # objects of all parents of a slot together
        self._behind = _zeros(size)  # those that stand behind them

    def run(self) -> Iterator[None]:
        """Compute all figures."""
        yield from self._find_edges()
        yield from self._sort()
        yield from self._find_scales()
        yield from self._add_up()

    def _find_edges(self) -> Iterator[None]:
        """Store the edges by parent: counted first, so that flat columns suffice."""
        pages = range(0, len(self._slots.kids), AT_ONCE)
        first = self._first
        for begin in pages:
            for parent, _ in self._page(begin):
                first[parent + 2] += 1
            yield
        self._first = first = array("l", accumulate(first))
        self._to = array("l", bytes(8 * first[-1]))
        self._kept = bytearray(first[-1])
        for begin in pages:
            for parent, child in self._page(begin):
                if first[parent + 1] < len(self._to):
                    self._to[first[parent + 1]] = child
                    first[parent + 1] += 1
            yield

    def _page(self, begin: int) -> Iterator[tuple[int, int]]:
        count, parents, size = self._walk.count, self._slots.parents, self.size
        for key, child in islice(self._slots.kids.items(), begin, begin + AT_ONCE):
            parent = key >> 32
            if parent == ANCHOR:
                parent = parents[child]
            if parent != child and parent < size and child < size and count[child]:
                yield parent, child

    def _sort(self) -> Iterator[None]:
        """Visit every slot depth first, to order them and to cut the paths that lead back."""
        state, roots = bytearray(self.size), self._slots.parents
        steps = 0
        for pick in (True, False):  # what no root leads to comes last
            for root in range(self.size):
                if state[root] or (pick and roots[root] != NOWHERE):
                    continue
                stack = [(root, self._first[root])]
                state[root] = _WAITING
                while stack:
                    steps += 1
                    if not steps % AT_ONCE:
                        yield
                    slot, at = stack[-1]
                    if at >= self._first[slot + 1]:
                        stack.pop()
                        state[slot] = _DONE
                        self._order.append(slot)
                        continue
                    stack[-1] = slot, at + 1
                    child = self._to[at]
                    if state[child] == _WAITING:
                        continue
                    self._kept[at] = True
                    self._met[child] += self._objects(slot)
                    if not state[child]:
                        state[child] = _WAITING
                        stack.append((child, self._first[child]))

    def _objects(self, slot: int) -> int:
        return max(1, self._walk.count[slot])

    def _find_scales(self) -> Iterator[None]:
        """Find how many objects stand behind each that was met, from the roots down."""
        labels, scale = self._slots.labels, self.scale
        for done, slot in enumerate(reversed(self._order)):
            scale[slot] = scale[slot] / self._met[slot] if self._met[slot] else 1.0
            behind = self._objects(slot) * scale[slot]
            for at in range(self._first[slot], self._first[slot + 1]):
                if self._kept[at]:
                    child = self._to[at]
                    more = self._unseen(slot) if labels[child][0] == "[" else 1.0
                    scale[child] += behind * more
                    self._behind[child] += behind
            if not done % AT_ONCE:
                yield

    def _unseen(self, slot: int) -> float:
        """Return by how much to multiply what was met in the items of a slot's containers."""
        length, unseen = self._walk.length[slot], self._walk.unseen.get(slot, 0)
        return length / (length - unseen) if 0 < unseen < length else 1.0

    def _add_up(self) -> Iterator[None]:
        total = self.total
        for done, slot in enumerate(self._order):
            total[slot] += self.own_bytes(slot)
            behind = self._objects(slot) * self.scale[slot]
            for at in range(self._first[slot], self._first[slot + 1]):
                if self._kept[at]:
                    child = self._to[at]
                    total[slot] += total[child] * behind / self._behind[child]
            if not done % AT_ONCE:
                yield

    def own_bytes(self, slot: int) -> float:
        """Return the bytes of the objects in a slot themselves."""
        walk, scale = self._walk, self.scale[slot]
        size, text, count = walk.bytes[slot], walk.text[slot], walk.count[slot]
        if text > size:  # a C type reports its buffers apart
            size += text
        if slot < len(walk.amended):
            size = max(0, size + round(walk.amended[slot]))
        size += ROUNDED * count
        if text:
            return size * scale
        names = sum(
            self._slots.labels[self._to[at]][0] == "."
            for at in range(self._first[slot], self._first[slot + 1])
        )
        # in attributes without a slot; what is in a container is counted with its items
        texts = slot < len(walk.amended) and walk.amended[slot] > 0 and not walk.length[slot]
        if names or texts:
            size += count * (INSTANCE + VALUE * max(names, FEW))
        return (size + count * HEADER) * scale


def _zeros(size: int) -> array[float]:
    return array("d", bytes(8 * size))
