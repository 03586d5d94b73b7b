from __future__ import annotations

import random

import pytest

from floodline.leaks._figures import trend as trend_module
from floodline.leaks._figures.trend import (
    _bend,
    comes_evenly,
    comes_seldom,
    keeps_pace,
    trend,
    typical_slope,
)

ROUNDS = list(range(0, 300, 6))


def kind(values, *, tests=200, at=ROUNDS):
    return trend(at, values, tests=tests).kind


def test_one_item_a_round_grows_at_that_rate():
    found = trend(ROUNDS, ROUNDS, tests=1000)
    assert (found.kind, found.rate, found.last) == ("growing", 1.0, 1.0)


def test_a_leak_that_strikes_at_random_grows():
    dice, value, values = random.Random(3), 0, []
    for _ in ROUNDS:
        value += sum(dice.random() < 0.4 for _ in range(6))
        values.append(value)
    assert kind(values) == "growing"


@pytest.mark.parametrize("period", [5, 17, 26])
def test_what_comes_every_few_rounds_comes_evenly(period):
    assert comes_evenly(ROUNDS, [(r + 3) // period for r in ROUNDS])


def test_what_comes_late_now_and_then_or_too_seldom_does_not_come_evenly():
    assert not comes_evenly(ROUNDS, [r // 40 for r in ROUNDS])
    assert not comes_evenly(ROUNDS, [min(r, 230) // 20 for r in ROUNDS])
    dice, value, values = random.Random(5), 0, []
    for _ in ROUNDS:
        value += sum(dice.random() < 0.05 for _ in range(6))
        values.append(value)
    assert values[-1] - values[0] >= 10
    assert not comes_evenly(ROUNDS, values)
    assert not comes_evenly([0] * 50, values)


def test_a_leak_below_a_saw_tooth_grows():
    assert kind([r * 5 + (r * 7) % 60 for r in ROUNDS], tests=1) == "growing"


def test_a_saw_tooth_does_not_grow():
    assert kind([(r * 7) % 400 for r in ROUNDS]) != "growing"


def test_a_fall_of_more_than_half_the_gain_is_not_growing():
    values = [float(r) for r in ROUNDS]
    values[-5:] = [v - 200 for v in values[-5:]]
    assert kind(values) != "growing"


def test_a_cache_that_fills_and_stays_does_not_grow():
    assert kind([1500 * (1 - 0.97**r) for r in ROUNDS]) != "growing"


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("keys", [50, 400])
def test_a_finite_set_of_keys_that_are_met_at_random_is_not_called_growing(keys, seed):
    dice, met, values = random.Random(seed), set(), []
    for _ in ROUNDS:
        met |= {int(keys * dice.random()) for _ in range(12)}
        values.append(len(met))
    assert kind(values) != "growing"


@pytest.mark.parametrize("seed", range(10))
def test_keys_of_which_few_are_common_and_most_are_rare_are_not_called_growing(seed):
    dice, met, values = random.Random(seed), set(), []
    for _ in ROUNDS:
        met |= {int(20_000 ** dice.random()) for _ in range(60)}
        values.append(len(met))
    assert kind(values) != "growing"


def test_a_leak_that_was_faster_at_first_grows():
    assert kind([float(r + min(r, 30)) for r in ROUNDS]) == "growing"


def test_a_leak_that_becomes_faster_grows():
    assert kind([r + r * r / 300 for r in ROUNDS]) == "growing"


@pytest.mark.parametrize("seed", range(40))
def test_a_population_that_drifts_is_not_called_growing(seed):
    dice, value, values = random.Random(seed), 1000.0, []
    for _ in ROUNDS:
        value += dice.gauss(0, 10)
        values.append(value)
    assert kind(values) != "growing"


@pytest.mark.parametrize("seed", range(20))
def test_figures_that_hang_together_are_not_called_growing(seed):
    dice, value, values = random.Random(seed), 0.0, []
    for _ in ROUNDS:
        value = 0.9 * value + dice.gauss(0, 10)
        values.append(value)
    assert kind(values) != "growing"


def test_what_rises_unsteadily_may_be_a_leak():
    dice = random.Random(5)
    values = [r * 0.5 + dice.gauss(0, 12) for r in ROUNDS]
    assert kind(values, tests=100_000_000) in ("rising", "flat")
    steps = [0.0]
    for k in range(1, len(ROUNDS)):
        steps.append(steps[-1] + (40 if k % 9 == 0 else 1))
    assert kind(steps, tests=10**9) == "rising"


@pytest.mark.parametrize(
    "values",
    [[1.0] * 50, [float(-r) for r in ROUNDS], [0.0, 1.0, 2.0], [2.0] * 49 + [3.0]],
    ids=["constant", "falling", "too few", "one step"],
)
def test_nothing_to_see_is_flat(values):
    assert kind(values, at=ROUNDS[: len(values)]) == "flat"


def test_a_run_of_no_length_is_flat():
    assert kind([float(k) for k in range(20)], at=[5] * 20) == "flat"


def test_the_slope_of_too_little_is_zero():
    assert typical_slope([], []) == 0.0
    assert typical_slope([1], [7]) == 0.0


def test_one_step_does_not_move_the_typical_slope():
    assert typical_slope(ROUNDS, [0.0] * 3 + [1000.0] * 47) == 0.0


def test_too_few_steps_are_no_trend():
    assert kind([float(k) for k in range(12)], at=[0] * 8 + [1, 2, 3, 4]) == "flat"


def test_the_pace_of_too_little_may_have_changed_by_anything():
    assert _bend([0, 1, 2], [0, 1, 2]) == (0.0, float("inf"))
    assert _bend(range(9), [1.0] * 9) == (0.0, float("inf"))


def test_too_few_steps_prove_nothing():
    assert trend_module._chance([0, 1, 2], [0, 1, 2]) == 1.0
    assert trend_module._chance(list(range(9)), list(range(9, 0, -1))) == 1.0


def test_one_item_in_twenty_rounds_grows():
    at = list(range(30, 300, 7))
    assert kind([r // 20 for r in at], at=at, tests=3) == "growing"


@pytest.mark.parametrize("seed", range(10))
def test_a_slow_leak_that_strikes_at_random_is_not_called_flat(seed):
    dice, value, values = random.Random(seed), 0, []
    for _ in ROUNDS:
        value += sum(dice.random() < 0.1 for _ in range(6))
        values.append(value)
    assert kind(values, tests=3) != "flat"


@pytest.mark.parametrize("seed", range(10))
def test_noise_after_a_fill_is_flat(seed):
    dice = random.Random(seed)
    values = [min(25 * r, 1500) + dice.randrange(-50, 51) for r in ROUNDS]
    assert kind(values, tests=3) == "flat"


def test_pace_is_kept_if_the_second_half_rises_as_the_first():
    assert keeps_pace(ROUNDS, ROUNDS)
    assert not keeps_pace(ROUNDS, [min(r, 160) for r in ROUNDS])


SPREAD = [30, 45, 54, 75, 97, 124, 139, 161, 187, 206, 227, 251, 264, 268, 273, 277, 281, 286, 290]


@pytest.mark.parametrize(
    ("values", "seldom"),
    [
        ([at // 30 for at in SPREAD], True),
        ([at // 60 for at in SPREAD], False),  # too few rises to tell
        ([min(at, 150) // 20 for at in SPREAD], False),  # has stopped
        ([at // 30 - 2 * (at > 280) for at in SPREAD], False),  # falls
        ([10 - 300 // at for at in SPREAD], False),  # fills up
        ([at // 6 for at in SPREAD], False),  # more at a time: the trend tells
    ],
)
def test_what_comes_now_and_then_and_stays_is_not_flat(values, seldom):
    assert comes_seldom(SPREAD, values) is seldom
