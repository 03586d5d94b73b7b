from __future__ import annotations

from itertools import pairwise

from floodline.soak._schedule import default_warmup, positions, traced_rounds


def test_samples_are_spread_over_the_run_and_dense_at_its_end():
    chosen = positions(30, 400, 0.2, 6.0)
    assert (chosen[0], chosen[-1]) == (30, 400)
    assert len(chosen) <= 40
    assert sum(at >= 363 for at in chosen) >= 6
    assert len({b - a for a, b in pairwise(chosen)}) > 3
    assert positions(1, 5, 1.0, 1.0) == [1, 2, 3, 4, 5]


def test_the_budget_of_rounds_is_shared_out():
    assert [default_warmup(n) for n in (1, 2, 50, 300, 5000)] == [0, 1, 5, 30, 100]
    assert [traced_rounds(n) for n in (5, 20, 100, 1000)] == [0, 1, 5, 10]
