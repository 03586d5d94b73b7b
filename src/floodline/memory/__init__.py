"""Measures memory, and acts when it runs short.

Names load lazily: the probe inside a watched process only measures, and needs neither budgets nor
trackers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodline._lazy import lazy_names

if TYPE_CHECKING:
    from floodline.memory._budget.budget import BudgetEvent, BudgetStats, Check, MemoryBudget
    from floodline.memory._collector import Collection, GCController, GCStats
    from floodline.memory._malloc_trim import trim_malloc
    from floodline.memory._measuring.cgroup import Cgroup
    from floodline.memory._measuring.cgroup import binding as cgroup
    from floodline.memory._measuring.probes import PROBES, Probe, measure, rss
    from floodline.memory._tracking.allocation_lines import AllocationLine
    from floodline.memory._tracking.decorator import default_tracker, track_memory
    from floodline.memory._tracking.span import Span, StageRun
    from floodline.memory._tracking.stage_stats import StageStats, TrackerStats
    from floodline.memory._tracking.tracker import MemoryTracker, Sample

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
    "PROBES": "_measuring.probes",
    "AllocationLine": "_tracking.allocation_lines",
    "BudgetEvent": "_budget.budget",
    "BudgetStats": "_budget.budget",
    "Cgroup": "_measuring.cgroup",
    "Check": "_budget.budget",
    "Collection": "_collector",
    "GCController": "_collector",
    "GCStats": "_collector",
    "MemoryBudget": "_budget.budget",
    "MemoryTracker": "_tracking.tracker",
    "Probe": "_measuring.probes",
    "Sample": "_tracking.tracker",
    "Span": "_tracking.span",
    "StageRun": "_tracking.span",
    "StageStats": "_tracking.stage_stats",
    "TrackerStats": "_tracking.stage_stats",
    "cgroup": "_measuring.cgroup:binding",
    "default_tracker": "_tracking.decorator",
    "measure": "_measuring.probes",
    "rss": "_measuring.probes",
    "track_memory": "_tracking.decorator",
    "trim_malloc": "_malloc_trim",
}

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
