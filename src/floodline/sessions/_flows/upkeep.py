"""Upkeep: seeing out what is due, retrying failed saves, reporting what is stuck."""

from __future__ import annotations

from floodline import telemetry
from floodline.errors import SessionConflict
from floodline.sessions._flows.guarded_table import Core, who
from floodline.sessions._flows.handing_over import hand_over
from floodline.sessions._flows.leases import acquire, give_lease_back
from floodline.sessions._flows.leaving import discard, leave, release
from floodline.sessions._flows.mending.repair import mend_all
from floodline.sessions._flows.opening import name_of, take_lease, where_taken
from floodline.sessions._flows.requests import Flow, SeeOut, StoreCall
from floodline.sessions._flows.saving import save
from floodline.sessions._flows.store_counts import RECOUNT
from floodline.sessions._table import queries, wishes
from floodline.sessions._table.entry import ENTER_FAILED, LIVE, Hold
from floodline.sessions._table.unsaved import take_refused
from floodline.telemetry import Reason

PURGE_SLICE = 500
LONGEST_RETRY = 60.0


def sweep(core: Core, limit: float) -> Flow[int]:
    """See out at most `limit` sessions that are due; return how many."""
    done = 0
    while done < limit and not core.table.seats.crowded():
        entry = core.locked(core.table.next_leaver, core.clock())
        if entry is None:
            break
        yield SeeOut(leave(core, entry))
        done += 1
    return done


def shed(core: Core, limit: float, reason: Reason) -> Flow[int]:
    """See out at most `limit` unused sessions, least recently used first; return how many."""
    done = 0
    while done < limit and not core.table.seats.crowded():
        entry = core.locked(core.table.shed, reason)
        if entry is None:
            break
        yield SeeOut(leave(core, entry))
        done += 1
    return done


def upkeep(core: Core) -> Flow[int]:
    """Do everything that a tick does; return how many sessions were seen out."""
    if core.table.entries or not core.table.closing:  # else the store may already be closed
        yield from mend_all(core)
    yield from hand_over(core)
    done = yield from sweep(core, float("inf"))
    yield from retry_unsaved(core)
    now = core.clock()
    core.locked(core.table.tombs.clear_expired, now)
    _report_stuck(core, now)
    core.departed.check(now)
    core.tending.add("upkeep")
    try:
        if not core.table.closing:  # else the store may already be closed
            yield from _tend_store(core, now)
    finally:
        core.tending.discard("upkeep")
    return done


def _tend_store(core: Core, now: float) -> Flow[None]:
    if core.policy.retain is not None:
        yield from _purge(core, core.policy.retain)
    if core.policy.stored and now >= core.stored.recount_at:
        core.stored.recount_at = now + RECOUNT
        yield from _recount(core)


def _report_stuck(core: Core, now: float) -> None:
    for hold in core.locked(queries.stuck_holds, core.table, now):
        core.counters.stuck += 1
        telemetry.emit(
            "stuck_hold",
            core.policy.name,
            id=hold.id,
            seconds=now - hold.since,
            holder=name_of(hold.who),
            stack=where_taken(hold),
        )
    for entry in core.locked(queries.stuck_leavers, core.table, now):
        core.counters.stuck += 1
        telemetry.emit("stuck_leaving", core.policy.name, id=entry.id, seconds=now - entry.used_at)


def _purge(core: Core, retain: float) -> Flow[None]:
    more = True
    while more and not core.table.closing:  # one slice a tick could not keep up with new sessions
        try:
            ids = yield StoreCall(
                "purge", (core.policy.name,), {"unused": retain, "limit": PURGE_SLICE}
            )
        except Exception as error:
            core.hook_failed("store.purge", "*", error)
            return
        core.counters.purged += len(ids)
        core.locked(_rows_gone, core, ids)
        more = len(ids) >= PURGE_SLICE


def _rows_gone(core: Core, ids: list[str]) -> None:
    """Note deleted rows; one that is live, say for readers, is written when it leaves."""
    live = [entry for one in ids if (entry := core.table.entries.get(one)) is not None]
    for entry in live:
        if entry.phase == LIVE and not entry.fence:
            entry.version, entry.dirty = 0, True
    core.stored.deleted(len(ids) - len(live))


def _recount(core: Core) -> Flow[None]:
    try:
        rows = yield StoreCall("count", (core.policy.name,))
        figures = yield StoreCall("stats")
    except Exception:  # a store that is down shows where it matters: in failed saves
        core.stored.unknown()
        return
    core.stored.counted(rows, figures.file_bytes, list(core.table.entries.values()))


def retry_unsaved(core: Core) -> Flow[None]:
    """Retry saving what the store refused, at growing intervals while it keeps refusing."""
    table = core.table
    if not table.refused() or core.clock() < core.retry_at:
        return
    for refused_id in (*table.unsaved, *table.undeleted):
        hold = _own_hold(core, refused_id)
        hold.since = core.clock()
        entry = core.locked(take_refused, core.table, hold)
        problem: BaseException | None = None
        if entry is not None:
            problem = yield SeeOut(leave(core, entry), wait=True)
        elif hold.entry is not None:
            problem = yield from _save_again(core, hold)
        if problem is not None and not isinstance(problem, SessionConflict):
            core.retry_delay = min(LONGEST_RETRY, max(1.0, 2 * core.retry_delay))
            core.retry_at = core.clock() + core.retry_delay
            return
    core.retry_delay = 0.0


def _own_hold(core: Core, id: str) -> Hold:
    """Return a hold that is not entered by a `with` statement."""
    hold = Hold(id)
    hold.step, hold.work = ENTER_FAILED, core.work()
    return hold


def _save_again(core: Core, hold: Hold) -> Flow[BaseException | None]:
    assert hold.entry is not None
    hold.entry.runner = who()
    try:
        yield from take_lease(core, hold, core.clock())
        if hold.entry.dirty:
            yield from save(core, hold.entry, release=core.policy.durability == "use")
        else:  # it was kept from leaving, not from being saved
            hold.entry.failed = False
            yield from give_lease_back(core, hold.entry)
    except SessionConflict as error:
        yield from discard(core, hold)
        return error
    except Exception as error:
        return error
    finally:
        if hold.entry is not None:
            hold.entry.runner = None
        yield from release(core, hold, stamp=False)
    return None


def close(core: Core, id: str, by: object) -> Flow[bool]:
    """End a session for good; return True if there was one."""
    claim = _own_hold(core, id) if core.policy.stored else None
    entry = core.locked(wishes.close, core.table, id, core.clock(), claim, by)
    if entry is not None:
        problem = yield SeeOut(leave(core, entry), wait=True)
        if problem is not None:
            raise problem
        return True
    if claim is not None and claim.entry is not None:
        return (yield from _delete_parked(core, claim))
    if id in core.table.entries:
        return True  # marked: it goes when its holder, opener or finalizer is done
    if core.scope is not None:
        core.scope.leave(id, Reason.closed)
    return False


def _delete_parked(core: Core, claim: Hold) -> Flow[bool]:
    entry = claim.entry
    assert entry is not None
    entry.runner = who()
    try:
        until = core.clock() + core.policy.busy_wait
        grant = yield from acquire(core, entry, known=None, until=until)
        core.locked(core.lease_ended, entry)
        found: bool = yield StoreCall(
            "delete", (core.policy.name, entry.id), {"fence": grant.fence}
        )
        if core.scope is not None:
            core.scope.leave(entry.id, Reason.closed)
        core.locked(core.stored.deleted, int(found))
        return found
    finally:
        core.locked(core.table.open_failed, claim, None)
