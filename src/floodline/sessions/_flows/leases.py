"""Leases: taking, releasing and renewing them, and finding out about lost answers."""

from __future__ import annotations

from asyncio import CancelledError

from floodline import telemetry
from floodline.errors import SessionBusy
from floodline.sessions._flows.guarded_table import Core
from floodline.sessions._flows.requests import Flow, Pause, StoreCall
from floodline.sessions._table.entry import Entry, Hold
from floodline.stores import Grant, Held

FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.25
_JUST_OVER = 0.002


def acquire(
    core: Core, entry: Entry, *, known: int | None, until: float, hold: Hold | None = None
) -> Flow[Grant]:
    """Take the lease of an entry, waiting for a remote owner as for a local one.

    If it is for `hold`, that may be cancelled in the meantime.
    """
    pause, now, bell = FIRST_PAUSE, core.clock(), None
    core.hear_wishes()
    try:
        while True:
            answer = yield from _ask(core, entry, known)
            if isinstance(answer, Grant):
                core.locked(core.lease_taken, entry, answer.fence)
                return answer
            entry.asking = False
            left = until - max(now, core.clock())
            if left <= 0:
                raise SessionBusy(
                    f"session {entry.id!r} is held by another owner ({answer.owner}); its lease "
                    f"lasts {answer.seconds:.3g} s more unless renewed; retry later, or wait "
                    "longer (busy_wait=)"
                )
            bell = bell or core.bell(entry.id)
            wait = min(pause, left, answer.seconds + _JUST_OVER)  # a dead owner says nothing
            rung = yield Pause(wait, bell)
            if hold is not None and hold.error is not None:
                raise hold.error
            if not rung:
                now += wait  # an injected clock may stand still
                pause = min(pause * 2, LONGEST_PAUSE)
    finally:
        if bell is not None:
            bell.close()


def _ask(core: Core, entry: Entry, known: int | None) -> Flow[Grant | Held]:
    entry.asking = True
    terms = {"lease": core.policy.lease, "known": known}
    try:
        answer: Grant | Held = yield StoreCall(
            "acquire", (core.policy.name, entry.id, core.owner), terms
        )
    except CancelledError:  # the loop is ending, and nothing can be asked: it will expire
        entry.asking = False
        raise
    return answer


def is_leased(entry: Entry) -> bool:
    """Return True if a lease is certainly held: an unanswered write may have ended it."""
    return bool(entry.fence) and entry.write_id is None


def give_lease_back(core: Core, entry: Entry) -> Flow[None]:
    """Release a lease without writing; if the store cannot do so now, it expires by itself."""
    if entry.asking and not entry.fence:
        yield from _find_lease(core, entry)
    fence = entry.fence
    if fence:
        core.returning[entry.id, fence] = core.work()
        core.locked(core.lease_ended, entry)
        try:
            yield StoreCall("release", (core.policy.name, entry.id, fence))
        except Exception as error:  # retried once by the sweeper
            core.hook_failed("store.release", entry.id, error)
        else:
            core.returning.pop((entry.id, fence), None)


def _find_lease(core: Core, entry: Entry) -> Flow[None]:
    """Ask again after an answer was lost, because the lease may be ours."""
    try:
        yield from acquire(core, entry, known=entry.version, until=core.clock())
    except Exception:  # it expires by itself
        entry.asking = False


def own_write(core: Core, entry: Entry) -> Flow[int | None]:
    """Ask the store whether an unanswered write was done; note its version."""
    if entry.write_id is None:
        return None
    version: int | None = yield StoreCall("written", (core.policy.name, entry.id, entry.write_id))
    entry.write_id = None
    if version is not None:
        entry.version, entry.digest = version, b""
    return version


def take_wishes(core: Core) -> Flow[None]:
    """Ask the store which of our idle sessions others want; used ones have no lease otherwise."""
    if core.policy.durability == "park" and hasattr(core.row_store, "wanted"):
        core.wanted |= yield StoreCall("wanted", (core.policy.name, core.owner))


def renew(core: Core) -> Flow[int]:
    """Extend all leases in use and return their number. A lost one can no longer write."""
    core.tending.add("renew")  # set before looking: a shutdown waits for it from now on
    try:
        leased = list(core.table.leased.values())
        fences = {entry.id: entry.fence for entry in leased if entry.fence}
        if not fences:
            return 0
        lost = yield StoreCall(
            "renew", (core.policy.name, core.owner, fences), {"lease": core.policy.lease}
        )
        yield from take_wishes(core)
    finally:
        core.tending.discard("renew")
    for lost_id in lost:
        entry = core.table.leased.get(lost_id)
        if entry is not None and entry.fence == fences[lost_id]:
            core.counters.leases_lost += 1
            core.locked(core.lease_ended, entry)
            telemetry.emit("lease_lost", core.policy.name, id=lost_id)
    return len(fences)
