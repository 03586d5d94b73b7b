from __future__ import annotations

import json

import pytest

from floodline.leaks import Suspect
from floodline.leaks._figures.rss_split import Split
from floodline.leaks._figures.series import Series
from floodline.leaks._figures.verdict import decide
from floodline.leaks._heap.slots import Slots
from floodline.leaks._heap.walk import Walk
from floodline.leaks._vocabulary import Cause, LineSource, Outcome

MIB = 1 << 20


def series(*, rounds=60, **rates):
    """Make a run in which the named figures gain so much a round."""
    slots = Slots()
    found = Series(slots)
    for at in range(0, rounds, 2):
        moved = {name: 50 * MIB + int(rate * at) for name, rate in rates.items()}
        names = ("rss", "blocks", "malloc_used", "malloc_free", "malloc_mapped", "arenas")
        split = Split(*(moved.get(name, 50 * MIB) for name in names))
        found.add(at, Walk(slots), moved.get("objects", 1000), split)
    return found


def suspect(**changes):
    plain = Suspect(
        rank=1, verdict="growing", owner="app.CACHE", defined_in="app", path="app.CACHE",
        type="dict", holds="", len=100, per_round=2.0, bytes_per_round=80.0,
    )  # fmt: skip
    return plain.but(**changes)


def test_the_words_of_a_suspect_are_strings_in_json():
    record = suspect(verdict=Outcome.GROWING, line_source=LineSource.TRACE).as_dict()
    read = json.loads(json.dumps(record))
    assert (read["verdict"], read["line_source"]) == ("growing", "trace")
    assert suspect().as_dict()["line_source"] is None


def test_nothing_that_grows_is_bounded():
    assert decide(series(), [], []).verdict == "bounded"


def test_a_suspect_without_a_cap_is_growing():
    found = decide(series(), [suspect()], [])
    assert (found.verdict, found.where) == ("growing", "python")


def test_a_suspect_below_its_cap_is_undecided_and_says_when_it_is_full():
    found = decide(series(), [suspect(cap=300, capped=True)], [])
    assert (found.verdict, found.reason.cause) == ("undecided", Cause.FILLING)
    assert "full at 300 in about 100 rounds" in found.why
    assert found.rounds == 58 + 200


def test_a_cap_that_cannot_be_read_leaves_it_undecided():
    found = decide(series(), [suspect(capped=True)], [])
    assert (found.verdict, found.reason.cause) == ("undecided", Cause.MAY_FILL)


def test_a_suspect_above_its_cap_is_growing():
    assert decide(series(), [suspect(cap=50, capped=True)], []).verdict == "growing"


def test_too_few_samples_are_undecided():
    found = decide(series(rounds=4), [], [])
    assert (found.verdict, found.rounds) == ("undecided", 40)
    assert decide(Series(Slots()), [], []).verdict == "undecided"


@pytest.mark.parametrize(
    ("figure", "rate", "verdict", "cause"),
    [
        *(("objects", 3, "growing", Cause.UNNAMED_OBJECTS), ("objects", 0.2, "bounded", None)),
        *(("blocks", 9, "undecided", Cause.UNNAMED_BLOCKS), ("blocks", 1, "bounded", None)),
    ],
)
def test_objects_that_nobody_names_are_not_passed_over(figure, rate, verdict, cause):
    found = decide(series(**{figure: rate}), [], [])
    assert (found.verdict, found.reason and found.reason.cause) == (verdict, cause)
    assert ("no name leads" in str(found.why)) == (cause is not None)


def test_a_leak_of_malloc_is_native():
    found = decide(series(malloc_used=4000, rss=4000), [], [])
    assert (found.verdict, found.where) == ("growing", "native")
    assert "memray" in found.why


def test_what_a_thread_keeps_at_hand_of_freed_blocks_is_no_leak_of_malloc():
    assert decide(series(malloc_used=1000, rss=1000), [], []).verdict == "bounded"
    found = decide(series(malloc_used=1000, rss=1000, rounds=300), [], [])
    assert (found.verdict, found.where) == ("growing", "native")


def test_free_memory_that_malloc_holds_is_fragmentation():
    found = decide(series(malloc_free=90_000, rss=90_000), [], [])
    assert (found.verdict, found.where) == ("undecided", "fragmentation")
    assert "held by malloc" in found.why


def step(found, name, *, at, size):
    for k in range(at, len(found)):
        found._process[name][k] += size
    return found


def test_a_large_block_that_came_and_went_does_not_hide_a_leak_of_malloc():
    found = series(malloc_used=20_000, rss=20_000)
    for name in ("malloc_free", "rss"):
        step(found, name, at=9, size=9 * MIB)
    verdict = decide(found, [], [])
    assert (verdict.verdict, verdict.where) == ("growing", "native")


def test_a_leak_that_also_leaves_holes_is_native():
    found = decide(series(malloc_used=20_000, malloc_free=25_000, rss=45_000), [], [])
    assert (found.verdict, found.where) == ("growing", "native")


def test_small_pins_between_large_holes_are_fragmentation():
    found = decide(series(malloc_used=2_000, malloc_free=90_000, rss=92_000), [], [])
    assert (found.verdict, found.where) == ("undecided", "fragmentation")


def test_arenas_that_stay_are_fragmentation_too():
    found = decide(series(rss=90_000, arenas=90_000), [], [])
    assert (found.verdict, found.where) == ("undecided", "fragmentation")
    assert "Python's allocator" in found.why


def test_pages_that_no_allocator_knows_are_native():
    found = decide(series(rss=90_000), [], [])
    assert (found.verdict, found.where) == ("growing", "native")
    assert "mapped outside malloc" in found.why


def unsteady(name):
    found = series(rss=0)
    for k in range(len(found)):
        found._process["rss"][k] += MIB * (k // 6)
        if name != "rss":
            found._process[name][k] += MIB * (k // 6)
    return found


def test_resident_memory_that_rises_in_steps_is_never_bounded():
    found = decide(unsteady("rss"), [], [])
    assert (found.verdict, found.where) == ("undecided", "native")


def test_without_the_figures_of_malloc_it_is_unknown():
    found = unsteady("rss")
    for name in ("malloc_used", "malloc_mapped"):
        for k in range(len(found)):
            found._process[name][k] = 0
    assert decide(found, [], []).where == "unknown"


def test_steps_of_malloc_are_native_but_undecided():
    found = decide(unsteady("malloc_used"), [], [])
    assert (found.verdict, found.where) == ("undecided", "native")


def test_a_steady_rise_is_native_though_malloc_was_asked_seldom():
    found = unsteady("malloc_used")
    for k in range(len(found)):
        found._process["rss"][k] = 50 * MIB + MIB * k // 6
    found = decide(found, [], [])
    assert (found.verdict, found.where) == ("growing", "native")
    assert "in use by C code" in found.why


def test_what_rises_without_certainty_is_undecided():
    found = decide(series(), [], [suspect(verdict="undecided")])
    assert (found.verdict, found.where) == ("undecided", "python")
    assert "app.CACHE" in found.why
