"""Memory over time: the curve, the line and the limit, and the same in words."""

from __future__ import annotations

from floodline._pages.chart import BYTES, SECONDS, Line, Mark, chart
from floodline._pages.markup import Markup, tag
from floodline._units import format_duration, format_size
from floodline.recorder._snapshot import Snapshot
from floodline.web._words.phrases import rise

MIB = 1024 * 1024
FAR, NEAR = 4, 1.5  # a line further away would flatten the curve


def curve(state: Snapshot) -> Markup:
    """Return the curve with the line, or a text if there are fewer than two points."""
    memory = state["memory"]
    points = memory["points"]
    if len(points) < 2:
        return tag("p", "Too little data for a curve.", class_="none")
    since = [(at - points[0][0], size) for at, size in points]
    most = max(memory["peak"], *(size for _, size in points), MIB)
    line = _within(state["line"], FAR * most)
    limit = _within(memory["limit"], NEAR * max(most, line or 0))
    marks = [
        Mark(value, f"{name} {format_size(value)}", name)
        for name, value in (("limit", limit), ("line", line))
        if value
    ]
    drawn = [Line("memory", since)]
    return chart(drawn, SECONDS, BYTES, label=in_words(state), marks=marks, highest=most)


def _within(size: float | None, reach: float) -> float | None:
    return size if size and size <= reach else None


def in_words(state: Snapshot) -> str:
    """Say what the curve shows."""
    memory, points = state["memory"], state["memory"]["points"]
    if not points:
        return "No memory data."
    line = f" The line is at {format_size(state['line'])}." if state["line"] else ""
    return (
        f"Resident memory over {format_duration(points[-1][0] - points[0][0])}: from "
        f"{format_size(points[0][1])} to {format_size(memory['now'])}, peak "
        f"{format_size(memory['peak'])}; growth {rise(state)}.{line}"
    )
