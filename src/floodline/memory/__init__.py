"""Measures memory, and acts when it runs short.

Names load lazily: the probe inside a watched process only measures, and needs neither budgets nor
trackers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodline._lazy import lazy_names

if TYPE_CHECKING:
    from floodline.memory._budget import BudgetEvent, BudgetStats, Check, MemoryBudget
    from floodline.memory._cgroup import Cgroup
    from floodline.memory._cgroup import binding as cgroup
    from floodline.memory._collector import Collection, GCController, GCStats
    from floodline.memory._decorator import default_tracker, track_memory
    from floodline.memory._malloc_trim import trim_malloc
    from floodline.memory._probes import PROBES, Probe, measure, rss
    from floodline.memory._span import Span, StageRun
    from floodline.memory._stage_stats import StageStats, TrackerStats
    from floodline.memory._tracemalloc import AllocationLine
    from floodline.memory._tracker import MemoryTracker, Sample

__all__ = [
    "PROBES",
    "AllocationLine",
    "BudgetEvent",
    "BudgetStats",
    "Cgroup",
    "Check",
    "Collection",
    "GCController",
    "GCStats",
    "MemoryBudget",
    "MemoryTracker",
    "Probe",
    "Sample",
    "Span",
    "StageRun",
    "StageStats",
    "TrackerStats",
    "cgroup",
    "default_tracker",
    "measure",
    "rss",
    "track_memory",
    "trim_malloc",
]

_HOMES = {
    "PROBES": "_probes",
    "AllocationLine": "_tracemalloc",
    "BudgetEvent": "_budget",
    "BudgetStats": "_budget",
    "Cgroup": "_cgroup",
    "Check": "_budget",
    "Collection": "_collector",
    "GCController": "_collector",
    "GCStats": "_collector",
    "MemoryBudget": "_budget",
    "MemoryTracker": "_tracker",
    "Probe": "_probes",
    "Sample": "_tracker",
    "Span": "_span",
    "StageRun": "_span",
    "StageStats": "_stage_stats",
    "TrackerStats": "_stage_stats",
    "cgroup": "_cgroup:binding",
    "default_tracker": "_decorator",
    "measure": "_probes",
    "rss": "_probes",
    "track_memory": "_decorator",
    "trim_malloc": "_malloc_trim",
}

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
