"""All or nothing: remembers what a section has changed, so that it can be undone.

An exception may arrive in the middle of a section, from a signal handler or another thread. Code
that changes an entry or a hold says so first (`keep`); the images are forgotten when the section
has ended well, and put back when it has not. Putting back may be interrupted too, and is then done
again from the start by the next section: every step of it sets what was, however often it runs.

The sections of almost every use need none of this: see `unbroken`.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, Final

from floodline.sessions._table.entry import Entry, Hold
from floodline.sessions._table.policy import NEVER
from floodline.telemetry import Reason

_ABSENT: Final = object()
# what sections change; the rest belongs to the caller that works on a session, which may change it
# without the lock while the section of another one is undone
_ENTRY = (
    *("phase", "holder", "pins", "leave", "closed_by", "seated", "seat_for", "opened_at"),
    *("used_at", "work"),
)
_HOLD = ("entry", "who", "outcome", "error", "error_from", "victim", "since")
_WORKING = ("runner", "state", "owners", "failed")
_TABLE = ("live", "bytes", "next_check")
_SEATS = ("taken", "parking", "grown")
_BY_ID = ("entries", "idle", "unsaved", "undeleted", "by_age", "lingering")
_of_entry, _of_hold, _of_work = attrgetter(*_ENTRY), attrgetter(*_HOLD), attrgetter(*_WORKING)
_of_table, _of_seats, _dicts = attrgetter(*_TABLE), attrgetter(*_SEATS), attrgetter(*_BY_ID)


class Undo:
    """The images of what a section changes, and the waiters to wake when it has ended well."""

    __slots__ = ("_disordered", "_images", "_table", "_woken", "deferring", "pending")

    def __init__(self, table: Any) -> None:  # a Table, which knows us
        self._table = table
        self._images: dict[object, tuple[Any, ...]] = {}
        self._woken: list[Hold] = []
        self._disordered = False  # what was put back into `idle` is not where it was
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
                self._keep_table()
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
                )
                images[thing] = (_of_entry(thing), waiters, places)
            else:
                waiting = table.waiting.entries
                waits = waiting.get(thing.who, _ABSENT) if waiting else _ABSENT
                images[thing] = (_of_hold(thing), thing.who, waits, thing in table.shared)

    def keep_with(self, what: object, put_back: Callable[[], object]) -> None:
        """Remember how to put back something else, which may be done several times."""
        if self.deferring and what not in self._images:
            if not self._images:
                self._keep_table()
            self._images[what] = (put_back,)

    def keep_all_of(self, entry: Entry) -> None:
        """Remember also what only the caller may change that works on a session."""
        self.keep(entry)
        self.keep_with((entry, "work"), partial(_put, entry, _WORKING, _of_work(entry)))

    def keep_count(self, reason: Reason) -> None:
        """Remember how many have left for a reason."""
        counts = self._table.left_by
        self.keep_with(reason, partial(counts.__setitem__, reason, counts[reason]))

    def _keep_table(self) -> None:
        self.pending = True
        self._images[self] = (_of_table(self._table), _of_seats(self._table.seats))

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
        self._disordered = False
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
                elif thing is self:
                    self._restore_table(*image)
                else:
                    image[0]()
        self.commit()

    def _restore_table(self, counts: Any, seated: Any) -> None:
        table = self._table
        _put(table, _TABLE, counts)
        _put(table.seats, _SEATS, seated)
        if self._disordered:
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
                self._disordered = self._disordered or one is self._table.idle
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
