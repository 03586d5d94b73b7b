from __future__ import annotations

import gc

from floodline.leaks._figures import reasons
from floodline.leaks._live.readings import listed_objects, type_census
from floodline.leaks._live.readings.rare_steps import RareSteps
from floodline.leaks._live.readings.type_census import EVERY, LATER, SOME, TypeCensus


class Node:
    pass


def work(census: TypeCensus, now: float, objects: int) -> None:
    rare = RareSteps(lambda: now, lambda: 0.0)
    if census.is_due(now, objects, rare):
        census.work(now, objects, rare)


def test_the_types_that_multiply_are_named():
    census, kept = TypeCensus(), []
    work(census, 0.0, 10_000)
    assert census.kinds == ()
    kept += [Node() for _ in range(5000)]
    work(census, EVERY / 2, 10_000)
    assert census.taken == 1  # twice a minute at most
    work(census, EVERY, 10_000)
    assert census.kinds[0] == f"{__name__}.Node"
    told = reasons.unnamed_objects(50.0, "second", census).text
    assert f"50 more objects per second, mostly {__name__}.Node" in told
    assert "counted by type 2 times" in told


def test_of_many_objects_some_are_counted(monkeypatch):
    steps = []
    monkeypatch.setattr(
        type_census, "_count", lambda *how: steps.append(how) or ({id(Node): 1}, {})
    )
    census = TypeCensus()
    for second in range(0, 2000, 10):
        work(census, float(second), 300_000)
    assert set(steps) == {(4, 0)}
    assert SOME + 1500 / LATER <= census.taken <= SOME + 1 + 2000 / LATER


def test_of_many_objects_all_of_the_newest_are_counted(monkeypatch):
    passes = [1]
    monkeypatch.setattr(listed_objects, "full_passes", lambda: passes[0])
    monkeypatch.setattr(type_census, "AT_ONCE", 1_000)
    census, kept = TypeCensus(), []
    gc.collect()
    work(census, 0.0, 100_000)
    kept += [Node() for _ in range(600)]  # by chance, as many more may be among every hundredth
    gc.collect(1)  # they have survived, and it is not a full pass
    work(census, EVERY, 100_600)
    assert census.kinds == (f"{__name__}.Node",)
    passes[0] += 1  # which leaves them anywhere in the list
    work(census, 2 * EVERY, 101_200)
    assert census.kinds == ()


def test_a_collector_that_is_disabled_is_told(monkeypatch):
    monkeypatch.setattr(reasons.gc, "isenabled", lambda: False)
    assert "the garbage collector is disabled" in reasons.unnamed_objects(5.0, "second").text
