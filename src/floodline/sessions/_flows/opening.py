"""The way into memory: waiting for a turn, a seat and a lease; creating or loading the state."""

from __future__ import annotations

import threading
import traceback
from hashlib import blake2b
from typing import Any
from weakref import ref

from floodline import telemetry
from floodline._error_copies import twin_of
from floodline._units import format_duration
from floodline.errors import (
    CodecError,
    SessionBusy,
    SessionClosed,
    SessionConflict,
    SessionNotFound,
    SessionsFull,
    UnreadableRecord,
    WouldBlockLoop,
)
from floodline.sessions._flows.guarded_table import Core, who
from floodline.sessions._flows.leases import acquire, give_lease_back, is_leased, own_write
from floodline.sessions._flows.leaving import (
    close_state,
    give_open_up,
    leave,
    part_with,
    release,
    see_out,
)
from floodline.sessions._flows.requests import Await, Flow, SeeOut, StoreCall, UserCall
from floodline.sessions._flows.saving import adopt, save
from floodline.sessions._table.entry import HELD, LEAVE, OPEN, OPENING, WAIT, Entry, Hold
from floodline.sessions._table.table import Table
from floodline.stores import Grant, Record, unseal
from floodline.stores._encoding.codec import code_and_find
from floodline.stores._encoding.envelope import codec_of
from floodline.telemetry import Reason

_OWN = (SessionsFull, SessionBusy, WouldBlockLoop)


def enter(core: Core, hold: Hold, step: int, wait: float | None) -> Flow[None]:
    """Continue from what the table said until the session is held."""
    if step in (LEAVE, WAIT):
        step = yield from wait_turn(core, hold, step, wait)
    yield from bring_in(core, hold, step, wait)


def wait_turn(core: Core, hold: Hold, step: int, wait: float | None) -> Flow[int]:
    """Wait until the hold is served, or must open the session."""
    until = core.clock() + (core.policy.busy_wait if wait is None else wait)
    if step == LEAVE:
        assert hold.entry is not None
        yield SeeOut(leave(core, hold.entry))
        step = hold.outcome
    while step == WAIT:
        yield from _wait(core, hold, until)
        step = hold.outcome
    return step


def bring_in(core: Core, hold: Hold, step: int, wait: float | None) -> Flow[None]:
    """Open the session, or make sure that the live one is ours in the store too."""
    hold.work = core.work()
    now, policy = core.clock(), core.policy
    busy_until = now + (policy.busy_wait if wait is None else wait)
    if step == OPEN:
        room_until = now + (policy.wait if wait is None else wait)
        yield from _open(core, hold, room_until, busy_until)
    else:
        yield from take_lease(core, hold, busy_until)


def needs_bringing_in(core: Core, hold: Hold, step: int) -> bool:
    """Return True if `bring_in` has anything to do."""
    if step == OPEN:
        return True
    return core.policy.stored and not hold.shared and not (hold.entry and is_leased(hold.entry))


def _wait(core: Core, hold: Hold, until: float) -> Flow[None]:
    try:
        woken = yield Await(hold, until)
    except BaseException:  # cancelled, interrupted, or not allowed to wait here
        yield from abandon(core, hold)
        raise
    if hold.error is not None:
        raise twin_of(hold.error, hold.error_from)
    if not woken:
        error = busy_error(core, hold)
        if core.locked(core.table.give_up, hold):
            raise error


def abandon(core: Core, hold: Hold) -> Flow[None]:
    """Clean up after a cancelled waiter, whatever it was given in the meantime."""
    yield from see_out(core, core.locked(_abandon, core.table, hold, core.clock()))
    if hold.outcome == OPEN and hold.entry is not None:
        yield from give_open_up(core, hold)


def let_go(core: Core, hold: Hold) -> Flow[None]:
    """Give up a session, or the opening of one, before anything was done with it."""
    entry = hold.entry
    if entry is None:
        return
    if hold.outcome == HELD:
        if not (hold.shared or entry.dirty):
            yield from give_lease_back(core, entry)
        entry.runner = None  # we do not keep the next holder from it
        yield from release(core, hold, stamp=False)
    else:
        yield from give_open_up(core, hold)


def let_go_closed(core: Core, hold: Hold) -> Flow[None]:
    """Give up a session that was closed before its body could begin."""
    yield from let_go(core, hold)
    raise SessionClosed(f"session {hold.id!r} was closed while this use waited for it")


def _abandon(table: Table, hold: Hold, now: float) -> Entry | None:
    """Leave the queue, or pass on what was given at the same time."""
    if table.give_up(hold) or hold.error is not None:
        return None
    return table.release(hold, now, False) if hold.outcome == HELD else None


def busy_error(core: Core, hold: Hold) -> SessionBusy:
    """Return an error that says who holds a session, for how long, and where it was taken."""
    entry = hold.entry
    holder = entry.holder if entry is not None else None
    if holder is None:
        return SessionBusy(f"session {hold.id!r} is still being saved or finalized; retry later")
    if entry is not None and entry.phase == OPENING:
        return SessionBusy(
            f"session {hold.id!r} is still being opened by {name_of(entry.runner)}, asked for at\n"
            f"{where_taken(holder)}retry later, or wait longer (busy_wait=)"
        )
    age = format_duration(core.clock() - holder.since)
    return SessionBusy(
        f"session {hold.id!r} has been held by {name_of(holder.who)} for {age}, taken at\n"
        f"{where_taken(holder)}retry later, shorten the hold, or wait longer (busy_wait=)"
    )


def name_of(who: object) -> str:
    """Return a readable name of a thread or task."""
    for thread in threading.enumerate():
        if thread.ident == who:
            return f"thread {thread.name!r}"
    return str(who() if isinstance(who, ref) else who)


def where_taken(hold: Hold) -> str:
    """Format the last lines of the stack that took a hold."""
    frame = hold.frame
    if frame is None:
        return "  (unknown place)\n"
    return "".join(traceback.format_stack(frame, limit=5))


def _open(core: Core, hold: Hold, room_until: float, busy_until: float) -> Flow[None]:
    entry = hold.entry
    assert entry is not None
    entry.runner = who()
    try:
        yield from _find_seat(core, hold, room_until)
        if not core.policy.stored:
            yield from _fill(core, hold, None)
        elif hold.shared:
            yield from _fill(core, hold, (yield StoreCall("load", (core.policy.name, hold.id))))
        else:
            grant = yield from acquire(core, entry, known=None, until=busy_until, hold=hold)
            yield from _fill(core, hold, grant)
    except BaseException as error:
        yield from fail(core, hold, error)
        raise


def fail(core: Core, hold: Hold, error: BaseException) -> Flow[None]:
    """Undo an open: close what was created, give the lease back, and tell the waiters."""
    entry = hold.entry
    if entry is None:
        return
    if entry.phase != OPENING:  # the exception came after everything was done
        yield from let_go(core, hold)
        return
    state, entry.state = entry.state, None
    try:
        if state is not None:
            yield from close_state(core, hold.id, state)
        yield from give_lease_back(core, entry)
    finally:
        if isinstance(error, SessionNotFound):
            core.locked(core.table.not_found, hold, error)
        else:
            # a cancel, an interrupt and a timeout concern only the opener
            own = isinstance(error, _OWN) or not isinstance(error, Exception)
            yield from give_open_up(core, hold, None if own else error)


def _find_seat(core: Core, hold: Hold, until: float) -> Flow[None]:
    entry = hold.entry
    assert entry is not None
    while not entry.seated:
        victim = core.locked(core.table.seat, hold, core.clock())
        if victim is not None:
            yield SeeOut(leave(core, victim))
        elif core.table.seats.over():
            telemetry.emit("over_limit", core.policy.name, sessions=core.table.seats.taken)
        if hold.outcome != WAIT and hold.error is None:
            continue
        woken = yield Await(hold, until)
        if hold.error is not None:
            raise hold.error  # the caller was cancelled
        if not woken and not entry.seated:
            raise core.table.seats.full(hold)


def take_lease(core: Core, hold: Hold, until: float) -> Flow[None]:
    """Make sure that a held session is ours in the store too, in the version stored there."""
    entry = hold.entry
    assert entry is not None
    if not core.policy.stored or hold.shared or is_leased(entry):
        return
    try:
        grant = yield from acquire(core, entry, known=entry.version, until=until, hold=hold)
        if grant.version == entry.version or (yield from own_write(core, entry)) == grant.version:
            return
        if entry.dirty:
            yield from _keep_conflicting_bytes(core, entry)
    except BaseException:
        yield from give_lease_back(core, entry)
        entry.runner = None  # we do not keep the next holder from it
        yield from release(core, hold, stamp=False)
        raise
    yield from _reload(core, hold, grant, until)


def _keep_conflicting_bytes(core: Core, entry: Entry) -> Flow[None]:
    """Have the store keep as a conflict what we could not save and another wrote over."""
    try:
        yield from save(core, entry, release=False)
    except (SessionConflict, CodecError):
        entry.dirty = False


def _reload(core: Core, hold: Hold, grant: Grant, until: float) -> Flow[None]:
    """Replace a stale copy in memory with what is stored."""
    assert hold.entry is not None
    core.locked(core.lease_ended, hold.entry)
    old = core.locked(core.detach, hold, Reason.stale)
    core.locked(core.lease_taken, hold.entry, grant.fence)
    hold.entry.runner = who()
    try:
        yield from part_with(core, hold.id, old, Reason.stale)
        if grant.version and grant.envelope is None:
            grant = yield from acquire(core, hold.entry, known=None, until=until, hold=hold)
        yield from _fill(core, hold, grant)
    except BaseException as error:
        yield from fail(core, hold, error)
        raise


def _fill(core: Core, hold: Hold, found: Grant | Record | None) -> Flow[None]:
    """Create or decode the state, and tell the table that the session is live."""
    entry, hooks, counters = hold.entry, core.hooks, core.counters
    assert entry is not None
    begun = found is not None and (yield from _is_begun(core, hold.id, found))
    if found is None or found.version == 0 or begun:
        if not hold.create and not begun:
            raise SessionNotFound(
                f"session {hold.id!r} is neither live nor stored; create=True would create it"
            )
        entry.version = found.version if begun and found is not None else 0
        entry.state = yield core.make_state(hold.id)
        parts = [entry.state]
        if core.policy.stored:
            core.codec.learn(entry.state)
            parts = core.codec.parts(entry.state)
        counters.created += 1
    else:
        assert found.envelope is not None
        entry.version = found.version
        entry.state, parts = yield from _decode(core, hold.id, found.envelope, entry)
        counters.loaded += 1
    adopt(core, hold.id, parts)
    if hooks.on_open is not None:
        yield UserCall(hooks.on_open, (hold.id, entry.state))
    if hooks.weigh is not None:
        entry.weight = hooks.weigh(entry.state)
    counters.opened += 1
    core.locked(core.opened, hold, core.clock())
    if core.scope is not None:
        core.scope.opened(hold.id)


def _is_begun(core: Core, id: str, found: Grant | Record) -> Flow[bool]:
    """Return True if rows began a session before it had a state; a damaged one is empty too."""
    if found.version == 0 or found.envelope != b"":
        return False
    version = yield StoreCall("written", (core.policy.name, id, ""))
    return bool(version == found.version)


def _decode(core: Core, id: str, envelope: bytes, entry: Entry) -> Flow[tuple[Any, list[Any]]]:
    try:
        payload = unseal(envelope)
        if core.codec.needs_sample(codec_of(envelope)):
            yield from _take_sample(core, id)
        state_and_parts = code_and_find(core.codec.decode, payload)
    except (UnreadableRecord, CodecError) as error:
        core.counters.quarantined += 1
        telemetry.emit(
            "unreadable_record", core.policy.name, id=id, error=telemetry.describe(error)
        )
        try:
            yield StoreCall("quarantine", (core.policy.name, id, envelope, str(error)))
        except Exception as problem:
            core.hook_failed("store.quarantine", id, problem)
        raise
    entry.digest = blake2b(payload, digest_size=16).digest()
    entry.weight = len(envelope)
    return state_and_parts


def _take_sample(core: Core, id: str) -> Flow[None]:
    """Call the factory to learn its type: a record came up before it created a state."""
    sample = yield core.make_state(id)
    try:
        core.codec.learn(sample)
    finally:
        yield from close_state(core, id, sample)
