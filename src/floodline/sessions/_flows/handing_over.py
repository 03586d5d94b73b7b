"""Handing over: an idle session that another process has asked for leaves ours.

Under `durability="park"` a session keeps its lease while it is in memory, used or not. The store
notes who asked for it in vain. We ask the store when it says that somebody did, and, in case we
missed that, whenever we renew our leases.
"""

from __future__ import annotations

from floodline.sessions._flows.guarded_table import Core
from floodline.sessions._flows.leases import renew, take_wishes
from floodline.sessions._flows.leaving import leave
from floodline.sessions._flows.requests import Flow, SeeOut
from floodline.sessions._table import wishes
from floodline.telemetry import Reason


def hand_over(core: Core) -> Flow[None]:
    """Park what others have asked for, now or when its holder is done."""
    while core.wanted:
        one = core.wanted.pop()
        entry = core.locked(wishes.park, core.table, one, Reason.parked, core.clock())
        if entry is not None:
            yield SeeOut(leave(core, entry))


def answer_wishes(core: Core) -> Flow[None]:
    """Find out what others have asked for, and park it."""
    core.tending.add("wanted")  # set before looking: a shutdown waits for it from now on
    try:
        if core.table.leased:
            yield from take_wishes(core)
    finally:
        core.tending.discard("wanted")
    yield from hand_over(core)


def renew_and_hand_over(core: Core) -> Flow[None]:
    """Extend all leases in use, and park what others have asked for."""
    yield from renew(core)
    yield from hand_over(core)
