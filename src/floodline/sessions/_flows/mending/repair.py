"""Repairs what an exception left behind that arrived while a use was entered or left.

A call that works on a session leaves a `Work` with it, which ends with the call, however that ends.
A hold or a leaving session whose work has ended while it is still in the table was abandoned; so
was a hold whose `with` statement has been left (see `with_blocks`) or whose `ExitStack` has dropped
it (`exit_stacks`). The next caller that would have to wait for it, the sweeper, or a shutdown
finishes what was not done.
"""

from __future__ import annotations

from asyncio import CancelledError

from floodline.sessions._flows.guarded_table import Core
from floodline.sessions._flows.leaving import exit_hold, leave
from floodline.sessions._flows.mending.exit_stacks import has_dropped
from floodline.sessions._flows.mending.with_blocks import has_left
from floodline.sessions._flows.opening import fail, let_go
from floodline.sessions._flows.requests import Flow, SeeOut, StoreCall
from floodline.sessions._table.entry import (
    ENTER_FAILED,
    EXIT_FAILED,
    IN_BODY,
    OPENING,
    PARKING,
    Entry,
    Hold,
)


def mend_for(core: Core, hold: Hold) -> Flow[bool]:
    """Repair the session that `hold` asks for, if its holder or finalizer is gone."""
    entry = core.table.entries.get(hold.id)
    if entry is None:
        return False
    done = yield from _mend_entry(core, entry, hold)
    return done


def is_worth_mending(core: Core, hold: Hold) -> bool:
    """Return True if `mend_for` would do something about the holder of a session."""
    entry = core.table.entries.get(hold.id)
    holder = None if entry is None else entry.holder  # read once: it may leave at any moment
    return holder is not None and is_left_behind(holder, hold)


def keeps_dead_leases(core: Core) -> bool:
    """Return True if a lease is renewed for an abandoned hold while others wait."""
    holders = [entry.holder for entry in list(core.table.leased.values())]
    return any(holder is not None and is_left_behind(holder) for holder in holders)


def mend_all(core: Core) -> Flow[None]:
    """Repair everything that was left behind."""
    table = core.table
    if table.undo.pending:
        core.locked(bool)
    if len(table.entries) > len(table.idle) + len(table.unsaved):
        held = [(entry, entry.holder) for entry in list(table.entries.values())]
        newest = _newest([holder for _, holder in held if holder is not None])
        for entry, holder in held:
            other = None if holder is None else newest.get(_place(holder))
            yield from _mend_entry(core, entry, other)
    for hold in list(table.shared):
        yield from mend(core, hold)
    for (key, fence), work in list(core.returning.items()):
        if work.ended:
            try:
                yield StoreCall("release", (core.policy.name, key, fence))
            except Exception as error:  # it expires by itself
                core.hook_failed("store.release", key, error)
            core.returning.pop((key, fence), None)


def _place(hold: Hold) -> tuple[int, int]:
    return id(hold.frame), hold.site


def _newest(holds: list[Hold]) -> dict[tuple[int, int], Hold]:
    """Return the last hold to enter each `with` statement: earlier ones have left it."""
    newest: dict[tuple[int, int], Hold] = {}
    for hold in holds:
        if hold.frame is not None:
            last = newest.setdefault(_place(hold), hold)
            if last.since < hold.since:
                newest[_place(hold)] = hold
    return newest


def _mend_entry(core: Core, entry: Entry, other: Hold | None) -> Flow[bool]:
    if entry.phase == PARKING:
        if entry.id in core.table.undeleted or not entry.is_untended():
            return False
        yield SeeOut(leave(core, entry))
        return True
    for waiter in list(entry.waiters or ()):
        yield from mend(core, waiter)
    holder = entry.holder
    if holder is None:
        return False
    done = yield from mend(core, holder, other)
    return done


def mend(core: Core, hold: Hold, other: Hold | None = None) -> Flow[bool]:
    """Finish an abandoned hold, if nothing else will; `other` may have come after it."""
    if not (is_left_behind(hold, other) and core.locked(_take_over, core, hold, other)):
        return False
    entry = hold.entry
    assert entry is not None
    if hold in (entry.waiters or ()):
        core.locked(core.table.waiting.remove, entry, hold)
    elif entry.phase == OPENING:
        yield from fail(core, hold, CancelledError())
    elif hold.step == EXIT_FAILED:
        yield from exit_hold(core, hold, CancelledError())
    else:
        yield from let_go(core, hold)
    return True


def is_left_behind(hold: Hold, other: Hold | None = None) -> bool:
    """Return True if nothing will ever continue a hold that the table still has."""
    if hold.entry is None:
        return False
    if hold.step == IN_BODY:
        return _body_is_over(hold, other)
    return hold.step in (ENTER_FAILED, EXIT_FAILED) and (hold.work is None or hold.work.ended)


def _body_is_over(hold: Hold, other: Hold | None) -> bool:
    frame = hold.frame
    if frame is None:
        return False
    if hold.queue is not None:
        return has_dropped(hold.queue, hold)
    if has_left(frame, hold.site):
        return True
    again = other is not None and other is not hold
    return again and other.frame is frame and other.site == hold.site  # type: ignore[union-attr]


def _take_over(core: Core, hold: Hold, other: Hold | None) -> bool:
    if not is_left_behind(hold, other):
        return False
    work = core.work()
    if hold.step == IN_BODY:
        hold.step = EXIT_FAILED
    hold.work = work
    return True
