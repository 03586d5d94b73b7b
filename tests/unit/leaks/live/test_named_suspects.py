from __future__ import annotations

from floodline.leaks import Suspect
from floodline.leaks._figures.candidates import Candidate
from floodline.leaks._figures.trend import Trend
from floodline.leaks._heap.slot_lookup import Places
from floodline.leaks._heap.slots import Slots
from floodline.leaks._live.named_suspects import Named, echoes_of, name, renewed
from floodline.leaks._live.readings.tracks import Tracks
from floodline.leaks._live.readings.watched_slots import LOST, Ticks
from floodline.leaks._objects.outline import Outlines


def suspect(owner, rate):
    return Suspect(1, "growing", owner, "app", "app", "dict", "", 5, rate, 1.0)


def test_a_library_container_at_the_same_pace_is_an_echo():
    mine, theirs = suspect("asyncio.tasks._all", 2.0), suspect("app.TASKS", 2.0)
    one, other = (Named(s, 0.0, frozenset(), ()) for s in (mine, theirs))
    assert echoes_of(one, mine, other, theirs)
    assert not echoes_of(other, theirs, one, mine)


def test_a_cap_stands_for_as_many_containers_as_there_are_now():
    slots = Slots()
    slot = slots[slots.child(slots.root("app"), "app", ".LOGS")]
    capped = suspect("app.LOGS", 2.0).but(cap=100, capped=True)
    named = Named(capped, 0.0, frozenset(), (), places=2)
    length, count = (
        Candidate(slot, column, Trend("growing", 2.0), 1.0, 5) for column in ("length", "count")
    )
    assert renewed(named, length, 1, places=6).cap == 300
    assert renewed(named, length, 1, places=1).cap == 100
    assert renewed(named, count, 1, places=6).cap == 100


def test_what_no_path_leads_back_to_is_named_by_its_slot():
    slots = Slots()
    slot = slots.child(slots.root("no_such_module"), "no_such_module", ".ROWS")
    places = Places(Outlines(), {})
    named = name(Candidate(slots[slot], "length", Trend("growing", 2.0), 1.0, 5), places).suspect
    assert (named.owner, named.path, named.len) == ("no_such_module.ROWS", "no_such_module.ROWS", 5)
    assert (named.type, named.holds, named.file, named.line_source) == ("", "", None, None)
    ticks = Ticks(Tracks(slots), places, Outlines())
    ticks.watch(slot)
    for _ in range(LOST):
        ticks.begin()
        ticks.advance(lambda: False, lambda: 0.0)
    assert len(ticks) == 0
