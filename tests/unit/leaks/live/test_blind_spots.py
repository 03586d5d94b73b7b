from __future__ import annotations

from floodline.leaks._heap.slots import MAX_SLOTS, Slots
from floodline.leaks._live.blind_spots import blind_spots


def test_a_full_table_of_places_and_a_large_heap_are_said():
    slots = Slots()
    slots.labels += [""] * MAX_SLOTS
    spots = blind_spots(slots, None, short=True, inherited=False, census=False)
    assert any("named places" in spot for spot in spots)
    assert any("no census" in spot for spot in spots)
