"""Line charts as inline SVG: the lines stretch with the page, the words beside them do not."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 600, 200


@dataclass(slots=True, frozen=True)
class Line:
    """One line of a chart: its name, its values, and the class that colours it."""

    name: str
    values: Sequence[float]
    style: str


def chart(
    title: str, at: Sequence[float], lines: Sequence[Line], show: Callable[[float], str]
) -> str:
    """Return a figure with a legend; nothing if there are less than two samples."""
    if len(at) < 2 or not lines:
        return ""
    low = min(0.0, *(min(line.values) for line in lines))
    high = max(low + 1.0, *(max(line.values) for line in lines))
    drawn = "".join(
        f'<polyline class="{line.style}" points="{_points(at, line.values, low, high)}"/>'
        for line in lines
    )
    ends = ", ".join(f"{line.name} {show(line.values[-1])}" for line in lines)
    zero = HEIGHT * high / (high - low)
    return (
        f"<figure><figcaption>{html.escape(title)}</figcaption>"
        f'<div class="plot"><span class="top">{html.escape(show(high))}</span>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{html.escape(f"{title}: {ends}")}">'
        f'<line class="zero" x1="0" x2="{WIDTH}" y1="{zero:.1f}" y2="{zero:.1f}"/>{drawn}</svg>'
        f'<span class="low">{html.escape(show(low))}</span></div>'
        f'<div class="rounds"><span>round {at[0]:g}</span><span>round {at[-1]:g}</span></div>'
        f"{_legend(lines, show)}</figure>"
    )


def _points(at: Sequence[float], values: Sequence[float], low: float, high: float) -> str:
    span = max(at[-1] - at[0], 1e-9)
    return " ".join(
        f"{WIDTH * (x - at[0]) / span:.1f},{HEIGHT * (high - y) / (high - low):.1f}"
        for x, y in zip(at, values, strict=True)
    )


def _legend(lines: Sequence[Line], show: Callable[[float], str]) -> str:
    if len(lines) < 2:
        return ""
    rows = "".join(
        f'<li><i class="{line.style}"></i>{html.escape(line.name)} '
        f"<b>{html.escape(show(line.values[-1]))}</b></li>"
        for line in lines
    )
    return f"<ul>{rows}</ul>"
