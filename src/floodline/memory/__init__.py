"""Measuring memory, and acting when it gets short.

Names are imported when they are asked for: the probe inside a watched process measures, and needs
neither budgets nor trackers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from floodline.memory._budget import BudgetEvent, BudgetStats, Check, MemoryBudget
    from floodline.memory._cgroup import Cgroup
    from floodline.memory._cgroup import binding as cgroup
    from floodline.memory._collector import Collection, GCController, GCStats
    from floodline.memory._probes import PROBES, Probe, measure, rss
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

_HOMES = {
    "PROBES": "_probes",
    "AllocationLine": "_tracing",
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
    "StageStats": "_tally",
    "TrackerStats": "_tracker",
    "cgroup": "_cgroup",
    "default_tracker": "_track",
    "measure": "_probes",
    "rss": "_probes",
    "track_memory": "_track",
    "trim_malloc": "_trim",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"floodline.memory.{_HOMES[name]}")
    value = getattr(home, "binding" if name == "cgroup" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
