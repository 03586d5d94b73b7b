"""All or nothing: remembers what a section has changed, so that it can be undone.

An exception may arrive in the middle of a section, from a signal handler or another thread. Code
that changes an entry or a hold says so first (`keep`); the images are forgotten when the section
has ended well, and put back when it has not. Putting back may be interrupted too, and is then done
again from the start by the next section: every step of it sets what was, however often it runs.

A run of statements without a call and without a loop needs none of this: CPython delivers
exceptions at calls, at the entry of functions and at jumps backwards only.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from operator import attrgetter
from typing import Any, Final

from floodline.sessions._table.entry import Entry, Hold
from floodline.sessions._table.policy import NEVER

_ABSENT: Final = object()
_ENTRY = tuple(name for name in Entry.__slots__ if name not in ("waiters", "state"))
_HOLD = tuple(name for name in Hold.__slots__ if name not in ("step", "work", "frame", "site"))
_TABLE = ("live", "bytes", "next_check")
_SEATS = ("taken", "parking", "grown")
_BY_ID = ("entries", "idle", "unsaved", "undeleted", "by_age", "lingering", "leased")
_of_entry, _of_hold = attrgetter(*_ENTRY), attrgetter(*_HOLD)
_of_table, _of_seats, _dicts = attrgetter(*_TABLE), attrgetter(*_SEATS), attrgetter(*_BY_ID)


class Undo:
    """The images of what a section changes, and the waiters to wake when it has ended well."""

    __slots__ = ("_images", "_table", "_woken", "deferring", "pending")

    def __init__(self, table: Any) -> None:  # a Table, which knows us
        self._table = table
        self._images: dict[object, tuple[Any, ...]] = {}
        self._woken: list[Hold] = []
        self.deferring = False  # a driver runs sections; otherwise each operation is its own
        self.pending = False  # there is something to be put back, forgotten, or woken

    def keep(self, *things: Entry | Hold | None) -> None:
        """Remember how things are, before the first of them is changed."""
        images = self._images
        for thing in things:
            if thing is None or thing in images or not self.deferring:
                continue
            table = self._table
            if not images:
                self.pending = True
                rest = (tuple(table.seats.room), tuple(table.ownerless), dict(table.left_by))
                images[self] = (_of_table(table), _of_seats(table.seats), rest)
            if isinstance(thing, Entry):
                key, none = thing.id, _ABSENT
                waiters = None if thing.waiters is None else tuple(thing.waiters)
                places = (
                    table.entries.get(key, none),
                    table.idle.get(key, none),
                    table.unsaved.get(key, none) if table.unsaved else none,
                    table.undeleted.get(key, none) if table.undeleted else none,
                    table.by_age.get(key, none) if table.by_age else none,
                    table.lingering.get(key, none) if table.lingering else none,
                    table.leased.get(key, none) if table.leased else none,
                )
                images[thing] = (_of_entry(thing), waiters, places)
            else:
                waiting = table.waiting.entries
                waits = waiting.get(thing.who, _ABSENT) if waiting else _ABSENT
                images[thing] = (_of_hold(thing), thing.who, waits, thing in table.shared)

    def wake(self, hold: Hold) -> None:
        """Wake a waiter when nothing can be undone any more."""
        if self.deferring:
            self.pending = True
            self._woken.append(hold)
        else:
            hold.wake()

    def commit(self) -> None:
        """Finish a section that has ended well."""
        self._images = {}
        while self._woken:
            self._woken[-1].wake()  # once more, if it is interrupted between the two
            del self._woken[-1]
        self.pending = False

    def roll_back(self) -> None:
        """Put everything back; if a section had ended well already, what it left is done."""
        if self._images:
            self._woken = []
            for thing, image in reversed(list(self._images.items())):
                if isinstance(thing, Entry):
                    self._restore_entry(thing, *image)
                elif isinstance(thing, Hold):
                    self._restore_hold(thing, *image)
                else:
                    self._restore_table(*image)
        self.commit()

    def _restore_table(self, counts: Any, seated: Any, rest: Any) -> None:
        table = self._table
        _put(table, _TABLE, counts)
        _put(table.seats, _SEATS, seated)
        room, ownerless, left_by = rest
        table.seats.room, table.ownerless = deque(room), deque(ownerless)
        table.left_by = Counter(left_by)
        free = sorted(table.idle.values(), key=attrgetter("used_at"))  # as it almost always was
        table.idle = OrderedDict((entry.id, entry) for entry in free)
        table.next_check = -NEVER  # the first of them may be due

    def _restore_entry(self, entry: Entry, values: Any, waiters: Any, places: Any) -> None:
        _put(entry, _ENTRY, values)
        entry.waiters = None if waiters is None else deque(waiters)
        for one, was in zip(_dicts(self._table), places, strict=True):
            if was is _ABSENT:
                one.pop(entry.id, None)
            elif one.get(entry.id, _ABSENT) is not was:
                one[entry.id] = was

    def _restore_hold(self, hold: Hold, values: Any, who: object, waits: Any, shares: bool) -> None:
        _put(hold, _HOLD, values)
        if waits is _ABSENT:
            self._table.waiting.entries.pop(who, None)
        else:
            self._table.waiting.entries[who] = waits
        if shares:
            self._table.shared[hold] = None
        else:
            self._table.shared.pop(hold, None)


def _put(thing: object, names: tuple[str, ...], values: tuple[Any, ...]) -> None:
    for name, value in zip(names, values, strict=True):
        setattr(thing, name, value)
