"""The table of a tracker, for a terminal, a program or a page."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any, Literal

from floodline._units import format_duration, format_size
from floodline.memory._tracking.stage_stats import StageStats, TrackerStats

Format = Literal["text", "json", "markdown"]
HEADINGS = ("stage", "runs", "growth", "mean", "own", "peak", "seconds")
NOTE = "* other stages ran at the same time, so some of the growth may be theirs; see own"

Row = tuple[str, ...]


def render(format: Format, tracker: TrackerStats, stages: Sequence[StageStats]) -> str:
    """Write the figures in one of the formats, the stage that grew most first."""
    ordered = sorted(stages, key=lambda stage: stage.growth, reverse=True)
    if format == "json":
        return json.dumps(_document(tracker, ordered), indent=2)
    table = _markdown if format == "markdown" else _text
    return _page(tracker, ordered, table)


def _page(
    tracker: TrackerStats, stages: Sequence[StageStats], table: Callable[[list[Row]], list[str]]
) -> str:
    lines = [
        f"{tracker.name}: peak {format_size(tracker.peak)}, growth {_signed(tracker.growth)}, "
        f"{tracker.samples} samples",
        "",
    ]
    if stages:
        lines += table([_row(stage) for stage in stages])
    if any(stage.overlapped for stage in stages):
        lines += ["", NOTE]
    for stage in stages:
        if stage.lines:
            lines += ["", f"{stage.name} allocated and kept:", ""]
            lines += [f"- {format_size(a.bytes)}  {a.file}:{a.line}" for a in stage.lines]
    return "\n".join(lines).rstrip() + "\n"


def _row(stage: StageStats) -> Row:
    return (
        " ".join(stage.name.split()) + (" *" if stage.overlapped else ""),
        str(stage.count),
        _signed(stage.growth),
        _signed(stage.mean_growth),
        _signed(stage.own),
        format_size(stage.peak),
        format_duration(stage.seconds),
    )


def _signed(size: float) -> str:
    return f"-{format_size(-size)}" if size < 0 else format_size(size)


def _markdown(rows: list[Row]) -> list[str]:
    head = [f"| {' | '.join(HEADINGS)} |", "|---|" + "---:|" * (len(HEADINGS) - 1)]
    safe = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return head + [f"| {' | '.join(row)} |" for row in safe]


def _text(rows: list[Row]) -> list[str]:
    try:
        return _rich(rows)
    except ImportError:
        return _aligned(rows)


def _rich(rows: list[Row]) -> list[str]:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for at, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if at else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))  # a name is not markup
    page = StringIO()
    width = sum(max(map(len, column)) + 3 for column in zip(HEADINGS, *rows, strict=True)) + 1
    Console(file=page, width=width).print(table)
    return page.getvalue().splitlines()


def _aligned(rows: list[Row]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(HEADINGS, *rows, strict=True)]
    lines = []
    for first, *rest in (HEADINGS, *rows):
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join(cells))
    return lines


def _document(tracker: TrackerStats, stages: Sequence[StageStats]) -> dict[str, Any]:
    return {
        "schema": 1,
        "tool": "floodline",
        "python": platform.python_version(),
        "errors": [],
        "tracker": tracker.as_dict(),
        "stages": [stage.as_dict() for stage in stages],
    }
