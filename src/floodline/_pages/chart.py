"""Lines over time or rounds as one self-contained SVG picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from floodline._pages.markup import Markup, tag
from floodline._units import format_duration, format_size

WIDTH, HEIGHT = 920, 300
LEFT, RIGHT, TOP, BOTTOM = 72, 8, 12, 26
MOST_ACROSS, MOST_UP = 8, 6  # steps of an axis
ROOM = 1.08  # above the highest value
SPANS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


@dataclass(slots=True, frozen=True)
class Line:
    """A line of a chart: its name, its points `(x, y)`, and the class that colours it."""

    name: str
    points: Sequence[Sequence[float]]
    style: str = "curve"


@dataclass(slots=True, frozen=True)
class Mark:
    """A horizontal line across the chart, with its name."""

    value: float
    text: str
    style: str


@dataclass(slots=True, frozen=True)
class Scale:
    """How the values of an axis are written, and which steps between them look round."""

    show: Callable[[float], str]
    step: Callable[[float], float]  # rounds the smallest step up to a round one


def _power_of_two(least: float) -> float:
    step = 1
    while step < least:
        step *= 2
    return step


def _one_two_five(least: float) -> float:
    power = 10.0 ** floor(log10(max(least, 1.0)))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least)


def _span(least: float) -> float:
    return next((float(span) for span in SPANS if span >= least), 2 * least)


def signed_size(size: float) -> str:
    """Write a number of bytes that may be negative."""
    return "0" if not size else f"{'-' if size < 0 else ''}{format_size(abs(size))}"


BYTES = Scale(signed_size, _power_of_two)
COUNT = Scale(lambda value: f"{value:,.0f}", _one_two_five)
ROUNDS = Scale(lambda value: f"round {value:,.0f}", _one_two_five)
SECONDS = Scale(format_duration, _span)


def chart(
    lines: Sequence[Line],
    across: Scale,
    up: Scale,
    *,
    label: str,
    marks: Sequence[Mark] = (),
    highest: float = 1.0,
) -> Markup:
    """Return the picture; `label` says the same in words. Each line has at least two points.

    It always reaches up to `highest`. The area below a line of style `curve` is filled.
    """
    frame = _Frame(lines, marks, highest)
    return tag(
        "svg",
        [frame.grid(at, up.show(at)) for at in frame.heights(up)],
        [frame.below(at, across.show(at)) for at in frame.places(across)],
        [
            tag("polygon", points=frame.area(line.points), class_="area")
            for line in lines
            if line.style == "curve"
        ],
        [tag("polyline", points=frame.curve(line.points), class_=line.style) for line in lines],
        [frame.mark(mark) for mark in marks],
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=label,
        class_="drawn",
    )


def legend(lines: Sequence[Line], up: Scale) -> Markup:
    """Return the names of the lines in their colours, each with its last value."""
    return tag(
        "ul",
        [
            tag("li", line.name, " ", tag("b", up.show(line.points[-1][1])), class_=line.style)
            for line in lines
        ],
        class_="keys",
    )


class _Frame:
    """Maps values to positions in the picture."""

    def __init__(self, lines: Sequence[Line], marks: Sequence[Mark], highest: float) -> None:
        across = [point[0] for line in lines for point in line.points]
        heights = [point[1] for line in lines for point in line.points]
        heights += [mark.value for mark in marks]
        self.first, self.last = min(across), max(across)
        self.low = min(0.0, *heights)
        self.top = self.low + (max(highest, *heights) - self.low) * ROOM

    def x(self, at: float) -> float:
        share = (at - self.first) / ((self.last - self.first) or 1)
        return float(round(LEFT + share * (WIDTH - LEFT - RIGHT), 1))

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.top - self.low)
        return float(round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1))

    def curve(self, points: Sequence[Sequence[float]]) -> str:
        return " ".join(f"{self.x(at)},{self.y(value)}" for at, value in points)

    def area(self, points: Sequence[Sequence[float]]) -> str:
        floor = self.y(0)
        first, last = self.x(points[0][0]), self.x(points[-1][0])
        return f"{first},{floor} {self.curve(points)} {last},{floor}"

    def heights(self, scale: Scale) -> list[float]:
        step = scale.step((self.top - self.low) / MOST_UP)
        return [n * step for n in range(ceil(self.low / step), floor(self.top / step) + 1)]

    def places(self, scale: Scale) -> list[float]:
        step = scale.step((self.last - self.first) / MOST_ACROSS)
        return [n * step for n in range(floor(self.first / step) + 1, floor(self.last / step) + 1)]

    def grid(self, value: float, text: str) -> Markup:
        y = self.y(value)
        label = tag("text", text, x=LEFT - 8, y=y + 4, class_="end")
        return Markup(self._across(y, "grid" if value else "grid zero") + label)

    def mark(self, mark: Mark) -> Markup:
        y = self.y(mark.value)
        label = tag("text", mark.text, x=WIDTH - RIGHT - 4, y=y - 6, class_=f"{mark.style} end")
        return Markup(self._across(y, mark.style) + label)

    def _across(self, y: float, style: str) -> Markup:
        return tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_=style)

    def below(self, at: float, text: str) -> Markup:
        side = "end" if self.x(at) > WIDTH - 40 else "middle"
        return tag("text", text, x=self.x(at), y=HEIGHT - 6, class_=side)
