"""Measurements over time, and what they mean: series, trends, candidates, the verdict."""

from __future__ import annotations

from floodline.leaks._figures.candidates import find_candidates
from floodline.leaks._figures.rss_split import Split, judged_split
from floodline.leaks._figures.series import Series
from floodline.leaks._figures.trend import typical_slope
from floodline.leaks._figures.verdict import decide

__all__ = [
    "Series",
    "Split",
    "decide",
    "find_candidates",
    "judged_split",
    "typical_slope",
]
