"""The cheap part between walks: reads the current lengths of the watched slots."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Callable, Iterator
from typing import Any

from floodline.leaks._heap.roots import AT_EXIT
from floodline.leaks._heap.slot_lookup import Places
from floodline.leaks._heap.slots import Slot
from floodline.leaks._live.readings.tracks import Row, Track, Tracks
from floodline.leaks._objects.anatomy import LruWrapper, names_of_module, names_of_type, size_of
from floodline.leaks._objects.outline import Outline, Outlines

MAX_WATCHED = 5_000
MAX_MANY = 300  # of them, slots that stand for many places
NEVER = 3  # readings without any change, after which the slot is left to the walk
PATIENCE = 40  # the same for a slot of the program itself
QUIET = 12  # the same for one that has changed before
FRESH = 300  # unchanged slots of the program to read per round, in turn
FOREIGN = 40  # the same for those of libraries
PLACES = 3_000  # the same for the places of slots that stand for many
DEAR = 32  # objects that are met on the way to the places of a slot, from which on it is dear
GUESS = 100  # places of a slot that has not been read yet
FALLEN = 10  # readings after which a slot no longer than at first is left to the walk
MOST_PLACES = 2_500
LOST = 3  # readings that find nothing


class Ticks:
    """Reads the watched slots round after round, and forgets those that do not change."""

    def __init__(self, tracks: Tracks, places: Places, outlines: Outlines) -> None:
        self._tracks, self._places, self._outlines = tracks, places, outlines
        self._watched: dict[int, int] = {}
        self._todo: list[int] = []
        self._todo_many: list[int] = []
        self._met: dict[int, int] = {}  # objects on the way to all places of a slot
        self._foreign: set[int] = set()  # those of libraries
        self._many = 0

    def __len__(self) -> int:
        return len(self._watched)

    @property
    def busy(self) -> bool:
        """True while a round of readings of what is not dear is under way."""
        return bool(self._todo)

    def watch(self, index: int, *, foreign: bool = False) -> None:
        """Read a slot from now on; one that is `foreign` belongs to a library."""
        if index in self._watched or len(self._watched) >= MAX_WATCHED:
            return
        if foreign:
            self._foreign.add(index)
        starred = bool(self._tracks.slots.starred[index])
        if starred and self._many >= MAX_MANY:
            return
        self._many += starred
        self._watched[index] = 0

    def begin(self) -> None:
        """Begin a round of readings of a few places: what changes, and some of the others."""
        tracks, left, foreign = self._tracks.by_index, FRESH, FOREIGN
        chosen = []
        for index in self._near():
            track = tracks.get(index)
            if track is not None and track.moved:
                chosen.append(index)
            elif index in self._foreign and foreign <= 0:
                continue
            elif left > 0:
                left -= track.latest[0] if track else 1
                foreign -= index in self._foreign
                chosen.append(index)
        self._todo = self._in_turn(chosen)

    def _begin_many(self) -> None:
        """Begin a round of readings of slots that stand for many places, some of them in turn."""
        tracks, left = self._tracks.by_index, PLACES
        chosen = []
        for index in self._dear():
            if left <= 0:
                break
            track = tracks.get(index)
            left -= track.latest[0] if track else GUESS
            chosen.append(index)
        self._todo_many = self._in_turn(chosen)

    def _near(self) -> Iterator[int]:
        return (index for index in self._watched if not self._is_dear(index))

    def _dear(self) -> Iterator[int]:
        return (index for index in self._watched if self._is_dear(index))

    def _is_dear(self, index: int) -> bool:
        """Return True if it stands for many places and more than a few are met on the way there."""
        return bool(self._tracks.slots.starred[index]) and self._met.get(index, DEAR) >= DEAR

    def _in_turn(self, chosen: list[int]) -> list[int]:
        for index in chosen:  # the others come first in the next round
            self._watched[index] = self._watched.pop(index)
        return chosen[::-1]

    def advance(self, due: Callable[[], bool], now: Callable[[], float]) -> None:
        """Continue reading what is not dear until `due` returns True."""
        while self._todo and not due():
            self._update(self._todo.pop(), now)

    def advance_many(self, due: Callable[[], bool], now: Callable[[], float]) -> bool:
        """Continue reading slots of many places, or start over; return True at the end of a round.

        If they are dear to read, they have rounds of their own, and nothing else waits for them.
        """
        if not self._todo_many:
            self._begin_many()
        while self._todo_many:
            self._update(self._todo_many.pop(), now)
            if due():
                break
        return not self._todo_many

    def _update(self, index: int, now: Callable[[], float]) -> None:
        row = self._read(self._tracks.slots[index])
        if self._tracks.slots.starred[index]:
            self._met[index] = self._places.met
        if row is None:
            self._miss(index)
            return
        self._watched[index] = 0
        self._tracks.add(index, now(), row)
        track = self._tracks.by_index.get(index)
        never = NEVER if index in self._foreign else PATIENCE
        if track is None or _is_idle(track, never):
            self._forget(index)

    def _miss(self, index: int) -> None:
        self._watched[index] += 1
        if self._watched[index] >= LOST:
            self._forget(index)
            # what it did until then says nothing about now; walks still count it
            self._tracks.by_index.pop(index, None)

    def _forget(self, index: int) -> None:
        del self._watched[index]
        self._met.pop(index, None)
        self._foreign.discard(index)
        self._many -= self._tracks.slots.starred[index]
        track = self._tracks.by_index.get(index)
        if track is not None and not track.changes:
            del self._tracks.by_index[index]

    def _read(self, slot: Slot) -> Row | None:
        """Return a slot's figures as a walk counts them, None if it is not found."""
        if slot.key == AT_EXIT:  # the interpreter keeps them where nothing can be read
            return (1, atexit._ncallbacks(), 0, 0)
        count = length = text = size = 0
        try:
            # a sample would not show how the whole grows
            values = self._places.values(slot, most=MOST_PLACES, whole=True)
        except RuntimeError:  # a dict that another thread or a finalizer changed meanwhile
            return None
        for value in values:
            plan = self._outlines.of(type(value))
            count += 1
            size += size_of(value, plan.base)
            if plan.kind == "text":
                text += plan.length(value) if plan.length else 0
            elif plan.length is not None:
                length += plan.length(value)
            elif plan.kind == "cache":
                length += LruWrapper.cache_info(value).currsize
            elif plan.extra is not None:
                text += plan.extra(value)
            if not slot.starred and plan.kind != "cache":  # whose results were just counted
                length += _names_of(value, plan)
        return (count, length, text, size) if count else None


def _names_of(value: Any, plan: Outline) -> int:
    """Count the attributes of an object without a length, and what C code keeps in it.

    This creates no `__dict__`.
    """
    if plan.kind == "module":
        return dict.__len__(names_of_module(value))
    if plan.kind == "type":
        return len(names_of_type(value))
    inside = len(gc.get_referents(value)) if plan.kind == "opaque" or plan.hidden else 0
    names = plan.rest(value, [])[0] if plan.kind == "instance" and plan.dict_of else None
    return inside if names is None else inside + dict.__len__(names)


def _is_idle(track: Track, never: int) -> bool:
    if track.quiet >= QUIET * max(1, never // NEVER):
        return True
    if track.quiet >= never - 1 and not track.changes:
        return True
    _, length, text, _ = track.gains
    return len(track) >= FALLEN and length <= 0 and text <= 0
