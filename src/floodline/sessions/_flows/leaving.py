"""The one way out: save, run the finalizer, clear the scope, close the state."""

from __future__ import annotations

from asyncio import CancelledError
from typing import Any

from floodline import telemetry
from floodline.errors import SessionClosed, SessionConflict
from floodline.sessions._flows.guarded_table import Core, who
from floodline.sessions._flows.leases import acquire, give_lease_back
from floodline.sessions._flows.requests import Flow, SeeOut, StoreCall, UserCall
from floodline.sessions._flows.saving import deliver, save
from floodline.sessions._table.entry import BURIED, EXIT_FAILED, GONE, PARKING, Entry, Hold, Work
from floodline.sessions._table.unsaved import delete_failed, park_failed
from floodline.telemetry import Reason


def leave(core: Core, entry: Entry) -> Flow[BaseException | None]:
    """See out an entry that the table has begun to park.

    Return the problem that kept it in memory or came up, which has already been reported.
    """
    if not core.locked(_tend, entry, core.work()):
        return None  # another caller sees it out
    reason = entry.leave
    assert reason is not None
    entry.runner = who()
    entry.used_at = core.clock()
    problem: BaseException | None = None
    try:
        if core.policy.stored:
            yield from _settle_with_store(core, entry, reason)
    except SessionConflict as error:
        problem, reason = error, Reason.discarded
    except BaseException as error:
        core.locked(park_failed, core.table, entry, core.clock())
        telemetry.emit(
            "save_failed", core.policy.name, id=entry.id, error=telemetry.describe(error)
        )
        if not isinstance(error, Exception):
            raise
        return error
    if entry.seated:  # nothing of it can be lost: others may have its seat
        core.locked(core.table.seats.give_up, entry)
    row_gone = reason is Reason.closed or not core.policy.stored
    try:
        yield from bury(core, entry, reason)
    finally:
        done = core.locked(core.left, entry, reason, row_gone)
        if not done and (yield from _delete_late(core, entry)):
            core.locked(core.left, entry, reason, True)
    return problem


def _tend(entry: Entry, work: Work) -> bool:
    if entry.phase != PARKING or not entry.is_untended():
        return False
    entry.work = work
    return True


def _settle_with_store(core: Core, entry: Entry, reason: Reason) -> Flow[None]:
    if reason is Reason.closed:
        yield from deliver(core, entry.id, core.codec.parts(entry.state))
        yield from delete(core, entry)
    elif entry.dirty:
        if not entry.fence:
            yield from acquire(core, entry, known=entry.version, until=core.clock())
        yield from save(core, entry, release=True)
    else:
        yield from give_lease_back(core, entry)


def delete(core: Core, entry: Entry) -> Flow[None]:
    """Delete the row of an entry, under a lease."""
    while True:
        fresh = not entry.fence
        if fresh:
            until = core.clock() + core.policy.busy_wait
            yield from acquire(core, entry, known=entry.version, until=until)
        fence = entry.fence
        core.locked(core.lease_ended, entry)
        try:
            yield StoreCall("delete", (core.policy.name, entry.id), {"fence": fence})
            return
        except SessionConflict:  # the lease had expired; take a fresh one
            if fresh:
                raise


def _delete_late(core: Core, entry: Entry) -> Flow[bool]:
    """Delete the row of a session that was closed while parked or opened, or retry later."""
    done = False
    try:
        yield from delete(core, entry)
        done = True
    except Exception as error:
        core.hook_failed("store.delete", entry.id, error)
    finally:
        if not done:
            core.locked(delete_failed, core.table, entry)
    return done


def bury(core: Core, entry: Entry, reason: Reason) -> Flow[None]:
    """Run the finalizer, clear the scope, close the state; errors are counted and stop nothing."""
    if entry.state is BURIED:
        return
    state, on_leave = entry.state, core.hooks.on_leave
    try:
        if on_leave is not None and not entry.said:
            entry.said = 1
            call = UserCall(on_leave, (entry.id, state, reason))
            yield from _guarded(core, "on_leave", entry.id, call)
        if entry.said < 2:
            entry.said = 2
            yield from close_state(core, entry.id, state)
    finally:
        if core.scope is not None and entry.phase != GONE:  # else the id has a new session
            core.scope.leave(entry.id, reason)
        entry.state = None
        entry.owners = None
        core.departed.watch(state, f"session {entry.id}", core.clock())


def close_state(core: Core, id: str, state: Any) -> Flow[None]:
    """Call the state's own `close()` or `aclose()`, if it has one and the user wants it."""
    if not core.hooks.close_state:
        return
    for name in core.closers:
        closer = getattr(state, name, None)
        if callable(closer):
            yield from _guarded(core, name, id, UserCall(closer))
            return


def _guarded(core: Core, hook: str, id: str, call: UserCall) -> Flow[None]:
    try:
        yield call
    except GeneratorExit:
        raise
    except BaseException as error:
        core.hook_failed(hook, id, error)
        if not isinstance(error, (Exception, CancelledError)):
            raise


def exit_hold(core: Core, hold: Hold, error: BaseException | None) -> Flow[BaseException | None]:
    """Save what a hold may have changed, then release it; return what went wrong."""
    hold.work, hold.step = core.work(), EXIT_FAILED  # if it fails, others continue
    try:
        problem = yield from _finish(core, hold, error)
        _weigh(core, hold)
    except CancelledError:  # the event loop is ending, and nothing will ever continue
        yield from release(core, hold)
        raise
    yield from release(core, hold)
    return problem


def release(core: Core, hold: Hold, *, stamp: bool = True) -> Flow[None]:
    """End a hold, and see out what may leave as a result."""
    yield from see_out(core, core.locked(core.table.release, hold, core.clock(), stamp))


def see_out(core: Core, entry: Entry | None, *, wait: bool = False) -> Flow[BaseException | None]:
    """See out what the table said must go, if anything."""
    if entry is None:
        return None
    if entry.phase == GONE:  # a stale or discarded state, with its last pin gone
        assert entry.leave is not None
        yield SeeOut(bury(core, entry, entry.leave), wait)
        return None
    problem: BaseException | None = yield SeeOut(leave(core, entry), wait)
    return problem


def _weigh(core: Core, hold: Hold) -> None:
    entry, weigh = hold.entry, core.hooks.weigh
    if entry is None or weigh is None or hold.shared:
        return
    try:
        weight = weigh(entry.state)
    except Exception as error:
        core.hook_failed("weigh", hold.id, error)
    else:
        core.locked(core.table.weigh, entry, weight)


def _finish(core: Core, hold: Hold, error: BaseException | None) -> Flow[BaseException | None]:
    entry = hold.entry
    if entry is None or hold.shared or entry.holder is not hold:
        return None
    if entry.leave is Reason.closed:
        return closed_elsewhere(hold, entry)
    if hold.discarded or (error is not None and core.policy.on_error == "discard"):
        yield from discard(core, hold)
        return None
    if not core.policy.stored:
        return None
    if core.policy.durability == "park":
        entry.dirty = True
        return None
    try:
        yield from save(core, entry, release=True)
    except SessionConflict as conflict:
        yield from discard(core, hold)
        return conflict
    except Exception as problem:
        entry.dirty = entry.failed = True  # it may have arrived before the save began
        return problem
    return None


def closed_elsewhere(hold: Hold, entry: Entry) -> SessionClosed | None:
    """Return the error for a holder whose session was closed, unless that was its own doing."""
    if hold.who is None or hold.who == entry.closed_by:
        return None
    return SessionClosed(
        f"session {hold.id!r} was closed by another caller while it was in use; "
        "nothing that this use changed was saved"
    )


def discard(core: Core, hold: Hold) -> Flow[None]:
    """Drop the held object unsaved; the next use loads the last saved version."""
    assert hold.entry is not None
    cancelled: CancelledError | None = None
    try:
        yield from give_lease_back(core, hold.entry)
    except CancelledError as error:  # the loop is ending; the lease expires by itself
        cancelled = error
    old = core.locked(core.detach, hold, Reason.discarded)
    hold.discarded = False
    try:
        yield from part_with(core, hold.id, old, Reason.discarded)
    finally:
        yield from give_open_up(core, hold)
    if cancelled is not None:
        raise cancelled


def part_with(core: Core, id: str, old: Entry | None, reason: Reason) -> Flow[None]:
    """See out a detached state; if others still use it, only what belongs to the id goes now."""
    try:
        if old is not None:
            yield from bury(core, old, reason)
    finally:
        if core.scope is not None:
            core.scope.leave(id, reason)


def give_open_up(core: Core, hold: Hold, error: BaseException | None = None) -> Flow[None]:
    """Report a failed open to the table; a session closed in the meantime is deleted first."""
    entry, row_gone = hold.entry, not core.policy.stored
    assert entry is not None
    done = core.locked(core.table.open_failed, hold, error, row_gone)
    if not done and (yield from _delete_late(core, entry)):
        core.locked(core.table.open_failed, hold, error, True)
