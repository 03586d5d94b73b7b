from __future__ import annotations

from itertools import chain, count, repeat

from floodline.leaks._figures.candidates import Candidate
from floodline.leaks._figures.suspect import Suspect
from floodline.leaks._figures.trend import Trend
from floodline.leaks._figures.verdict import decide
from floodline.leaks._heap.slot_lookup import Places
from floodline.leaks._heap.slots import Slots
from floodline.leaks._live.judge import CALM, LEAST_SPAN, Judge, _in_step
from floodline.leaks._live.readings.tracks import Process, Tracks
from floodline.leaks._live.walk.sliced_walk import SlicedWalk
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
        for _ in range(5):
            judge.walked(walk)
            judge.work(100.0)
        found = judge.answer(watched=1, objects=1, walks=1, expected=0, cost=0, blind=())
        assert found.verdict == expected
    assert "7 objects" in found.needed["why"]


def judged(rows, full_passes=None):
    """Return a judge of a process without any slot, and the figures of the process."""
    process, slots = Process(full_passes or count().__next__), Slots()
    judge = Judge(Tracks(slots), Tracks(slots), Places(Outlines(), {}), process)
    judge.settled(0.0)
    for second in range(200):
        process.add(float(second), (second, *rows(second)))
    return judge, slots


def flat(second):
    return (5000, 0, 1 << 20, 100, 0, 0, 0, 0)


def verdicts(judge, times, cut=0, at=200.0):
    found = []
    for _ in range(times):
        walk = SlicedWalk(Slots(), Outlines(), {})
        walk.cut = cut
        judge.walked(walk)
        judge.work(at)
        found.append(str(judge._verdict.verdict))
    return found


def test_a_new_verdict_takes_three_equal_answers_and_a_doubt_five():
    judge, _ = judged(flat)
    assert verdicts(judge, 3) == ["undecided", "undecided", "bounded"]
    assert verdicts(judge, 4, cut=7) == ["bounded"] * 4
    assert verdicts(judge, 1) == ["bounded"]  # the doubts start over
    assert verdicts(judge, 5, cut=7) == [*["bounded"] * 4, "undecided"]


def test_what_grows_outside_of_python_stays_so_while_it_rises_less_surely():
    judge, _ = judged(lambda s: (5000, 0, 1 << 20, 100, 200_000 * s, 0, 0, 0))
    assert verdicts(judge, 3)[-1] == "growing"
    judge._process.restart()
    for second in range(200):
        least = min(second, 170)
        row = (5000, 0, (1 << 20) + 200_000 * least, 100, 150_000 * least, 0, 0, 0)
        judge._process.add(float(second), (second, *row))
    assert decide(judge._process, [], []).verdict == "undecided"
    assert verdicts(judge, 6) == ["growing"] * 6


def test_objects_that_multiply_without_a_name_are_never_bounded():
    judge, _ = judged(lambda s: (5000 + 30 * s, 0, 1 << 20, 100, 0, 0, 0, 0))
    assert verdicts(judge, 3)[-1] == "growing"
    assert judge.unnamed
    slower, _ = judged(lambda s: (5000 + round(200 * s**0.5), 0, 1 << 20, 100, 0, 0, 0, 0))
    assert verdicts(slower, 3)[-1] == "undecided"
    assert "more objects per second" in slower._verdict.why


def test_what_no_full_collection_has_looked_at_may_be_garbage(monkeypatch):
    def rising(second):
        return (5000 + 30 * second, 0, 1 << 20, 100, 0, 0, 0, 0)

    judge, _ = judged(rising, lambda: 7)
    assert set(verdicts(judge, 6)) == {"undecided"}
    assert "perhaps cycles of objects, which a full garbage collection frees" in judge._verdict.why
    assert judge.unnamed  # it looks for their holders all the same
    passes = chain(repeat(7, 50), repeat(8))
    early, _ = judged(rising, passes.__next__)
    assert verdicts(early, 3)[-1] == "undecided"
    passes = chain(repeat(7, 150), repeat(8))
    late, _ = judged(rising, passes.__next__)
    assert verdicts(late, 3)[-1] == "growing"
    monkeypatch.setattr("gc.isenabled", lambda: False)
    assert verdicts(judge, 3)[-1] == "growing"


def test_objects_without_a_name_are_told_before_they_are_called_growing():
    judge, _ = judged(lambda s: (5000 + 30 * s, 0, 1 << 20, 100, 0, 0, 0, 0))
    assert verdicts(judge, 4, at=50.0)[-1] == "undecided"
    assert "watched for only 50 seconds" in judge._verdict.why
    assert verdicts(judge, 4, at=100.0)[-1] == "undecided"
    assert "more objects per second" in judge._verdict.why
    assert judge._verdict.rounds == 50


def test_memory_of_c_code_may_belong_to_cycles_that_are_not_collected_yet():
    def teeth(second):  # two teeth of garbage, each of which holds memory of C code
        return (5000 + 30 * (second % 100), 0, 1 << 20, 100, 200_000 * second, 0, 0, 0)

    passes = chain(repeat(7, 101), repeat(8))
    judge, _ = judged(teeth, passes.__next__)
    assert set(verdicts(judge, 6)) == {"undecided"}
    assert "or perhaps cycles of objects" in judge._verdict.why
    still, _ = judged(lambda s: (5000, *teeth(s)[1:]), lambda: 7)
    assert verdicts(still, 3)[-1] == "growing"


def test_what_rose_a_moment_ago_is_not_called_bounded_yet():
    judge, slots = judged(flat)
    rows = slots.child(slots.root("app"), "app", ".ROWS")
    for second in range(0, 200, 5):
        judge._ticks.add(rows, float(second), (1, round(300 * second**0.5), 0, 0))
    assert verdicts(judge, 1) == ["undecided"]
    while judge.due(200.0):  # it is named
        judge.work(200.0)
    assert [one.owner for one in judge._suspects] == ["app.ROWS"]
    del judge._ticks.by_index[rows]
    assert verdicts(judge, 4, at=199 + CALM) == ["undecided"] * 4
    assert "app.ROWS rose" in judge._verdict.why
    assert verdicts(judge, 3, at=201 + CALM)[-1] == "bounded"


def test_what_is_sure_of_one_is_sure_of_what_rises_in_step_with_it():
    slots = Slots()
    slot = slots[slots.child(slots.root("app"), "app", ".ROWS")]

    def candidate(rate, last, column="length"):
        return Candidate(slot, column, Trend("rising", rate, 100.0, last), 1.0, 5)

    sure = candidate(10.0, 10.0)
    assert _in_step(candidate(10.4, 6.0), sure)
    assert not _in_step(candidate(10.4, 4.0), sure)
    assert not _in_step(candidate(11.0, 11.0), sure)
    assert not _in_step(candidate(10.0, 10.0, "text"), sure)


def test_more_objects_in_each_third_are_never_bounded_however_noisy():
    def noisy(second):
        return (5000 + 20 * second + (900 if second % 3 else 0), *flat(second)[1:])

    judge, _ = judged(noisy)
    assert "bounded" not in verdicts(judge, 6)

    def filled(second):
        return (5000 + 50 * min(second, 100), *flat(second)[1:])

    judge, _ = judged(filled)
    assert verdicts(judge, 3)[-1] == "bounded"


def test_what_readings_do_not_see_move_is_judged_by_the_walks():
    slots = Slots()
    ticks, walks = Tracks(slots), Tracks(slots)
    judge = Judge(ticks, walks, Places(Outlines(), {}), Process())
    for second in range(20):
        walks.add(1, float(second), (second, 0, 0, 0))
    assert not judge._is_read(1)
    for second in range(3):
        ticks.add(1, 20.0 + second, (1, 0, 0, 0))
    assert not judge._is_read(1)
    ticks.add(1, 24.0, (2, 0, 0, 0))
    assert judge._is_read(1)


def test_what_echoed_something_that_has_stopped_must_go_on_by_itself():
    judge, _ = judged(flat)
    echo = Suspect(1, "growing", "library.TIMERS", "library", "", "list", "", 9, 1.0, 8.0)
    assert not judge._is_left_over(echo, 100.0)
    judge._echoed[echo.owner] = 90.0
    assert judge._is_left_over(echo, 100.0)
    assert not judge._is_left_over(echo.but(echoes=("app.ROWS",)), 100.0)
    assert not judge._is_left_over(echo, 90.0 + LEAST_SPAN)


def test_blocks_that_the_watch_itself_may_take_are_no_growth():
    def blocks(before):
        return lambda second: (5000, 0, 1 << 20, before + 60 * second, 0, 0, 0, 0)

    assert "bounded" not in verdicts(judged(blocks(100_000))[0], 5)
    assert verdicts(judged(blocks(900_000))[0], 3)[-1] == "bounded"
