from __future__ import annotations

from floodline.leaks._figures.rss_split import Split
from floodline.leaks._figures.series import Series
from floodline.leaks._heap.slots import Slots

SPLIT = Split(1, 2, 3, 4, 5)


def test_only_changes_are_kept_and_columns_are_whole(walk):
    slots = Slots()
    series = Series(slots)
    series.add(0, walk((1, 5, 0, 9), (1, 1, 1, 1)), 10, SPLIT)
    series.add(1, walk((1, 5, 0, 9), (1, 2, 1, 1), (1, 7, 0, 0)), 11, SPLIT)
    series.add(2, walk((1, 5, 0, 9)), 12, SPLIT)
    series.add(3, walk((1, 5, 0, 9)), 12, SPLIT)
    assert series.changed() == [1, 2]
    assert series.column(0, "length") == [5, 5, 5, 5]
    assert series.column(1, "length") == [1, 2, 0, 0]
    assert series.column(2, "length") == [0, 7, 0, 0]
    assert series.last(99, "count") == 0
    assert series.process("rss") == [1, 1, 1, 1]
    assert series.is_like(walk((1, 5, 0, 9)))
    assert series.is_like(walk((1, 5, 0, 9), (0, 0, 0, 0)))
    assert not series.is_like(walk((1, 6, 0, 9)))
    assert not series.is_like(walk((1, 5, 0, 9), (1, 0, 0, 0)))
    series.repeat(4, SPLIT)
    assert (series.rounds[-1], series.process("objects")[-1]) == (4, 12)
    assert series.column(1, "length") == [1, 2, 0, 0, 0]
    series.restart()
    assert (len(series), series.changed()) == (0, [])
    series.add(4, walk((2, 6, 0, 9)), 12, SPLIT)
    assert series.column(0, "length") == [6]
