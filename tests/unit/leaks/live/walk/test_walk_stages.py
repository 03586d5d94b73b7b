from __future__ import annotations

from floodline.leaks._heap.slots import Slots
from floodline.leaks._live.readings.own_memory import OwnMemory
from floodline.leaks._live.readings.tracks import Track
from floodline.leaks._live.walk.sliced_walk import SlicedWalk
from floodline.leaks._live.walk.stages import Progress, Rows
from floodline.leaks._objects.outline import Outlines


def test_the_rest_of_the_first_look_is_estimated_from_its_pace():
    progress = Progress(20.0)
    assert progress.left(5.0) == 15.0
    progress.begin(100, 10.0)
    for _ in range(50):
        progress.step()
    assert progress.left(15.0) == 5.0


def test_rows_stay_as_they_were_at_the_end_of_the_stage():
    walk = SlicedWalk(Slots(), Outlines(), {})
    walk.lengthen(0, 3)
    rows = Rows(walk, 1.0)
    walk.lengthen(0, 4)
    assert rows.row(0) == (0, 3, 0, 0)
    assert rows.row(9) == Rows().row(0) == (0, 0, 0, 0)


def test_own_memory_is_what_resident_memory_gains_during_the_steps():
    told = iter([100, 150, 400, 380, 380, 0, 0, 900])
    touched = iter([0, 4096, 4096, 4096, 4096, 4096, 4096, 4600])
    own, found = OwnMemory(lambda: next(told), lambda: next(touched)), []
    for _ in range(4):
        own.begin()
        own.end()
        found.append(own.bytes)
    assert found == [50, 30, 0, 504]  # the rest of the last step was another thread's


def test_a_track_rises_until_it_stalls_or_falls():
    track = Track()
    assert not track.rises(0.0)
    for second in range(20):
        track.add(float(second), (1, second, 0, 0))
    assert track.rises(10.0)
    for second in range(20, 40):
        track.add(float(second), (1, 19, 0, 0))
    assert not track.rises(25.0)
    track.add(40.0, (1, 25, 0, 0))
    assert track.rises(25.0)
    track.add(41.0, (1, 3, 0, 0))
    assert not track.rises(25.0)


def test_what_malloc_keeps_of_a_walk_is_given_back():
    resident, free = [90 << 20, 100 << 20], iter([1 << 20, 5 << 20])
    own = OwnMemory(lambda: resident[-1], lambda: 0, lambda: next(free), resident.pop)
    own.bytes = 12 << 20
    own.begin()
    own.give_back(0)
    own.end()
    assert resident == [90 << 20]
    assert own.bytes == 8 << 20  # of 10 MiB, no more than 4 were not free before the watch


def test_malloc_is_left_alone_if_little_or_very_much_is_free():
    trimmed, free = [], iter([1 << 20, 3 << 19, 100 << 20])
    own = OwnMemory(lambda: 0, lambda: 0, lambda: next(free), lambda: trimmed.append(1))
    for last in (100 << 20, 0, 0):
        own.give_back(last)
    assert not trimmed
    assert next(free, None) is None  # if very much was free, malloc is not even asked


def test_a_thread_that_only_imported_the_engine_counts_what_it_touched():
    assert OwnMemory(lambda: 0, lambda: 4096, alone=True).bytes == 4096


def test_a_chain_rises_by_its_objects():
    track = Track()
    for second in range(20):
        track.add(float(second), (second, 0, 0, 0))
    assert track.rises(10.0, counted=True)
    assert not track.rises(10.0)
