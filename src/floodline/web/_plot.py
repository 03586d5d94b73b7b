"""Memory over time as one SVG picture, which needs nothing else."""

from __future__ import annotations

from floodline._units import format_duration, format_size
from floodline.web._html import Markup, tag
from floodline.web._phrases import State, rise

WIDTH, HEIGHT = 920, 300
LEFT, RIGHT, TOP, BOTTOM = 72, 8, 12, 26
MIB = 1024 * 1024
SPANS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
FAR, NEAR = 4, 1.5  # a line further away would flatten the curve


def plot(state: State) -> Markup:
    """Return the curve with the line; a text in its place while there are fewer than two points."""
    points = state["memory"]["points"]
    if len(points) < 2:
        return tag("p", "There are too few figures for a curve.", class_="none")
    frame = _Frame(state)
    return tag(
        "svg",
        [frame.across(at, format_size(at) if at else "0", "grid") for at in frame.ticks()],
        [frame.below(at) for at in frame.times()],
        tag("polygon", points=frame.area(points), class_="area"),
        tag("polyline", points=frame.curve(points), class_="curve"),
        frame.across(frame.limit, f"limit {format_size(frame.limit)}", "limit", mark=True)
        if frame.limit
        else None,
        frame.across(frame.line, f"line {format_size(frame.line)}", "line", mark=True)
        if frame.line
        else None,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=in_words(state),
        class_="drawn",
    )


def in_words(state: State) -> str:
    """Say what the curve shows."""
    memory, points = state["memory"], state["memory"]["points"]
    if not points:
        return "No memory figures."
    line = f" The line is at {format_size(state['line'])}." if state["line"] else ""
    return (
        f"Resident memory over {format_duration(points[-1][0] - points[0][0])}: from "
        f"{format_size(points[0][1])} to {format_size(memory['now'])}, at most "
        f"{format_size(memory['peak'])}; growth {rise(state)}.{line}"
    )


class _Frame:
    """From seconds and bytes to the places in the picture."""

    def __init__(self, state: State) -> None:
        memory = state["memory"]
        self.first, self.last = memory["points"][0][0], memory["points"][-1][0]
        most = max(memory["peak"], *(size for _, size in memory["points"]), MIB)
        self.line = _within(state["line"], FAR * most)
        most = max(most, self.line or 0)
        self.limit = _within(memory["limit"], NEAR * most)
        self.top = max(most, self.limit or 0) * 1.08

    def x(self, at: float) -> float:
        share = (at - self.first) / ((self.last - self.first) or 1)
        return float(round(LEFT + share * (WIDTH - LEFT - RIGHT), 1))

    def y(self, size: float) -> float:
        return float(round(HEIGHT - BOTTOM - size / self.top * (HEIGHT - TOP - BOTTOM), 1))

    def curve(self, points: list[list[float]]) -> str:
        return " ".join(f"{self.x(at)},{self.y(size)}" for at, size in points)

    def area(self, points: list[list[float]]) -> str:
        floor = self.y(0)
        return f"{self.x(self.first)},{floor} {self.curve(points)} {self.x(self.last)},{floor}"

    def ticks(self) -> list[int]:
        step = MIB // 4
        while self.top / step > 6:
            step *= 2
        return list(range(0, int(self.top) + 1, step))

    def times(self) -> list[float]:
        span = self.last - self.first
        step = next((each for each in SPANS if span / each <= 8), span / 4)
        return [self.first + n * step for n in range(1, int(span / step) + 1)]

    def across(self, size: float, text: str, kind: str, *, mark: bool = False) -> Markup:
        y = self.y(size)
        line = tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_=kind)
        if mark:
            label = tag("text", text, x=WIDTH - RIGHT - 4, y=y - 6, class_=f"{kind} end")
        else:
            label = tag("text", text, x=LEFT - 8, y=y + 4, class_="end")
        return Markup(line + label)

    def below(self, at: float) -> Markup:
        text = format_duration(at - self.first)
        side = "end" if self.x(at) > WIDTH - 40 else "middle"
        return tag("text", text, x=self.x(at), y=HEIGHT - 6, class_=side)


def _within(size: int | None, reach: float) -> int | None:
    return size if size and size <= reach else None
