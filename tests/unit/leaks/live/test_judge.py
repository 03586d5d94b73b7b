from __future__ import annotations

from floodline.leaks._heap.slot_lookup import Places
from floodline.leaks._heap.slots import Slots
from floodline.leaks._live.judge import Judge
from floodline.leaks._live.sliced_walk import SlicedWalk
from floodline.leaks._live.tracks import Process, Tracks
from floodline.leaks._objects.outline import Outlines


def test_what_lies_too_deep_is_not_called_bounded():
    slots = Slots()
    places, process = Places(Outlines(), {}), Process()
    judge = Judge(Tracks(slots), Tracks(slots), places, process)
    for second in range(100):
        process.add(float(second), (second, 0, 0, 1 << 20, 100, 0, 0, 0, 0))
    judge.settled(0.0)
    for cut, expected in ((0, "bounded"), (7, "undecided")):
        walk = SlicedWalk(slots, Outlines(), {})
        walk.cut = cut
        for _ in range(3):
            judge.walked(walk)
            judge.work(100.0)
        found = judge.answer(watched=1, objects=1, walks=1, expected=0, cost=0, blind=())
        assert found.verdict == expected
    assert "7 objects" in found.needed["why"]
