"""Measuring memory, and acting when it gets short."""

from __future__ import annotations

from floodline.memory._budget import BudgetEvent, BudgetStats, Check, MemoryBudget
from floodline.memory._cgroup import Cgroup
from floodline.memory._cgroup import binding as cgroup
from floodline.memory._collector import Collection, GCController, GCStats
from floodline.memory._probes import (
    PROBES,
    Probe,
    measure,
    rss,
)
from floodline.memory._span import Span, StageRun
from floodline.memory._tally import StageStats
from floodline.memory._tracing import AllocationLine
from floodline.memory._track import default_tracker, track_memory
from floodline.memory._tracker import MemoryTracker, Sample, TrackerStats
from floodline.memory._trim import trim_malloc

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
