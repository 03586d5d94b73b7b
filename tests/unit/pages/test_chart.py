"""One SVG chart: its scales, its lines and its marks."""

from __future__ import annotations

import re

import pytest

from floodline._pages.chart import (
    BYTES,
    COUNT,
    ROUNDS,
    SECONDS,
    Line,
    Mark,
    chart,
    legend,
    signed_size,
)

MIB = 1024 * 1024


def heights(drawn: str) -> list[list[float]]:
    """The heights of each line, as they are drawn."""
    found = re.findall(r'<polyline points="([^"]+)"', drawn)
    return [[float(point.split(",")[1]) for point in line.split()] for line in found]


def texts(drawn: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]+)</text>", drawn)


def test_lines_of_a_chart_share_one_scale():
    lines = [Line("up", [(5, 0), (7, 10)], "line-1"), Line("down", [(5, 0), (7, -10)], "line-2")]
    up, down = heights(chart(lines, ROUNDS, COUNT, label="Two"))
    assert up[0] == down[0]
    assert up[0] - up[1] == pytest.approx(down[1] - down[0], abs=0.2)


def test_zero_is_drawn_and_told_from_the_other_heights():
    drawn = chart([Line("x", [(0, -3.0), (9, 4.0)], "line-1")], ROUNDS, COUNT, label="x")
    assert drawn.count('class="grid zero"') == 1
    assert {"-2", "0", "2", "4"} <= set(texts(drawn))


@pytest.mark.parametrize(
    ("last", "says"),
    [(8, "round 8"), (100, "round 100"), (130, "round 120"), (300, "round 300")],
)
def test_rounds_are_told_at_round_numbers(last, says):
    drawn = chart([Line("x", [(3, 1.0), (last, 2.0)])], ROUNDS, COUNT, label="x")
    told = [text for text in texts(drawn) if text.startswith("round")]
    assert says in told
    assert 1 <= len(told) <= 9


def test_only_a_curve_has_its_area_filled():
    points = [(0, 1.0), (60, 2.0)]
    assert "<polygon" in chart([Line("x", points)], SECONDS, BYTES, label="x")
    assert "<polygon" not in chart([Line("x", points, "line-1")], SECONDS, BYTES, label="x")


def test_a_mark_is_in_the_picture_though_no_line_reaches_it():
    mark = Mark(64 * MIB, "line 64 MiB", "line")
    drawn = chart([Line("x", [(0, 1.0), (9, MIB)])], SECONDS, BYTES, label="x", marks=[mark])
    (y,) = re.findall(r'y1="([^"]+)" y2="[^"]+" class="line"', drawn)
    assert 12 <= float(y) < 50
    assert "line 64 MiB" in texts(drawn)


def test_the_picture_says_in_words_what_it_shows():
    drawn = chart([Line("x", [(0, 1.0), (9, 2.0)])], SECONDS, COUNT, label='from 1 to "2"')
    assert 'aria-label="from 1 to &quot;2&quot;"' in drawn


def test_the_legend_has_the_last_value_of_each_line():
    lines = [Line("resident", [(0, 0), (1, 2 * MIB)], "line-1"), Line("<b>", [(0, -1.0)], "line-2")]
    told = legend(lines, BYTES)
    assert '<li class="line-1">resident <b>2 MiB</b></li>' in told
    assert "&lt;b&gt;" in told


@pytest.mark.parametrize(("size", "text"), [(0, "0"), (-2048, "-2 KiB"), (512, "512 B")])
def test_sizes_have_their_sign(size, text):
    assert signed_size(size) == text
