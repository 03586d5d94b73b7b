"""Series of figures that stay short."""

from __future__ import annotations

from itertools import pairwise

from floodline.recorder._recording.series import Points, crosses_in


def filled(count: int, value=lambda n: 100 * n, most: int = 600) -> Points:
    points = Points(1, most)
    for n in range(count):
        points.add(1000.0 + n, value(n))
    return points


def test_a_long_series_stays_short_and_keeps_its_ends_and_its_peak():
    points = filled(10_000)
    assert len(points.all) <= 600
    assert points.all[0] == [1000.0, 0]
    assert points.all[-1] == [1000.0 + 9999, 999_900]
    assert points.peak == points.last == 999_900


def test_the_newest_points_are_the_densest():
    points = filled(2000)
    gaps = [b[0] - a[0] for a, b in pairwise(points.all)]
    assert gaps[-1] == 1.0
    assert gaps[0] > gaps[-1]


def test_a_clock_that_goes_back_replaces_the_last_point():
    points = filled(3)
    points.unwritten()
    points.add(900.0, 7)
    assert points.all[-1] == [1002.0, 7]
    assert len(points.all) == 3
    assert points.unwritten() == (True, points.all)


def test_what_was_written_is_not_written_again():
    points = filled(3)
    assert points.unwritten() == (False, points.all)
    points.add(2000.0, 1)
    assert points.unwritten() == (False, [[2000.0, 1]])
    assert points.unwritten() == (False, [])


def test_a_point_that_is_replaced_before_it_was_written_is_written_once():
    points = filled(3)
    points.add(1002.0, 5)
    assert points.unwritten() == (False, points.all)


def test_after_thinning_or_a_failed_write_all_is_written_again():
    points = filled(11, most=10)
    replace, all_of_them = points.unwritten()
    assert (replace, all_of_them) == (True, points.all)
    points.rewrite()
    assert points.unwritten() == (True, points.all)


def test_the_rate_is_that_of_the_last_two_minutes():
    points = filled(600, lambda n: 0 if n < 300 else 5000 * n)
    assert round(points.rate()) == 5000


def test_one_peak_is_no_rate():
    assert filled(100, lambda n: 10**9 if n > 90 else 0).rate() == 0


def test_a_start_is_no_rate():
    points = Points(1)
    for n in range(20):
        points.add(n / 4, n * 2**20)
    for n in range(5, 60):
        points.add(float(n), 20 * 2**20)
        assert points.rate() == 0


def test_what_rose_once_or_comes_and_goes_is_no_rise():
    mib = 1 << 20
    assert filled(200, lambda n: (10 if n < 110 else 20) * mib).rise()[0] == 0  # a step
    comes = filled(200, lambda n: (30 if n % 11 < 4 + n // 50 else 20) * mib)
    assert comes.gain()[0] >= 0
    assert comes.rise()[0] == 0
    gain, seconds = filled(200, lambda n: n * mib).rise()
    assert gain / seconds == mib
    assert filled(200, lambda n: (10 if n < 170 else 20) * mib).rise()[0] == 10 * mib
    assert filled(5).rise() == (0.0, 0.0)


def test_few_points_have_no_rate():
    assert filled(0).rate() == 0
    assert filled(5).rate() == 0
    assert filled(0).last == 0


def test_the_forecast_says_when_the_line_is_crossed():
    assert crosses_in(1000.0, 2048.0, 1000.0 + 20480) == 10.0
    assert crosses_in(5.0, 2048.0, 5.0) == 0.0
    assert crosses_in(5.0, 10.0, 1e9) is None
    assert crosses_in(5.0, 1e6, None) is None
