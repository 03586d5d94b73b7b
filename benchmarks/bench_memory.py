"""Trackers against memory_profiler and bare tracemalloc: `python benchmarks/bench_memory.py`."""

from __future__ import annotations

import io
import sys
import tracemalloc
from collections.abc import Callable

import memory_profiler
import psutil

from floodline import MemoryTracker, track_memory
from floodline.memory import rss
from measure import Row, at_least_faster, at_most, below, best, loop, show

NUMBER = 100
FEWER = 10  # the slow peers run a tenth as often
OBJECTS = 10_000
MEASURE = "measure(-1, backend)"  # as memory_profiler does it, without the waits around it
PROFILER = {
    "measure": memory_profiler._get_memory,
    "backend": memory_profiler.choose_backend("psutil"),
}


def nothing() -> None:
    pass


def allocate() -> list[object]:
    return [object() for _ in range(OBJECTS)]


def one_sample() -> list[Row]:
    """Measure the resident size once, and keep it."""
    tracker = MemoryTracker()
    process = psutil.Process()
    works = [
        loop("sample()", NUMBER, sample=tracker.sample),
        loop("rss()", NUMBER, rss=rss),
        loop("info().rss", NUMBER, info=process.memory_info),
        loop(MEASURE, NUMBER // FEWER, **PROFILER),
    ]
    sample, bare, psutil_rss, profiler = best(works, number=NUMBER)
    return [
        at_least_faster("rss() / psutil memory_info().rss", bare, psutil_rss, 2),
        at_least_faster("sample() / memory_profiler, one measurement", sample, profiler * FEWER, 5),
    ]


def one_span() -> list[Row]:
    """Enter and leave a stage; the peers measure before and after."""
    tracker = MemoryTracker()
    profiler = f"{MEASURE}\n{MEASURE}"
    works = [
        loop("with stage('load'): pass", NUMBER, stage=tracker.stage),
        loop(profiler, NUMBER // FEWER, **PROFILER),
    ]
    span, peer = best(works, number=NUMBER)
    tracemalloc.start()
    kept = allocate()
    (snapshots,) = best([loop("take()\ntake()", 1, take=tracemalloc.take_snapshot)], repeats=5)
    tracemalloc.stop()
    del kept
    return [
        at_least_faster("stage() / memory_profiler, two measurements", span, peer * FEWER, 3),
        at_least_faster("stage() / two tracemalloc snapshots", span, snapshots, 50),
        below("stage()", span, 50e-6),
    ]


def one_call() -> list[Row]:
    """Call a decorated function that does nothing."""
    tracked = track_memory(tracker=MemoryTracker())(nothing)
    profiled: Callable[[], None] = memory_profiler.profile(nothing, stream=io.StringIO())
    works = [
        loop("call()", NUMBER, call=tracked),
        loop("call()", 2, call=profiled),
    ]
    ours, peer = best(works, number=NUMBER)
    return [
        at_least_faster("@track_memory / @memory_profiler.profile", ours, peer * NUMBER / 2, 8),
        below("@track_memory call", ours, 50e-6),
    ]


def one_busy_call() -> list[Row]:
    """Measure what tracking the creation of 10,000 objects costs."""
    tracked = track_memory(tracker=MemoryTracker())(allocate)
    plain, ours = best([allocate, tracked])
    tracemalloc.start()
    (traced,) = best([allocate])
    tracemalloc.stop()
    return [
        at_most(f"{OBJECTS:,} objects, @track_memory / not measured", ours, plain, 1.3),
        at_least_faster(f"{OBJECTS:,} objects, @track_memory / tracemalloc", ours, traced, 1.5),
    ]


def main() -> int:
    rows = [*one_sample(), *one_span(), *one_call(), *one_busy_call()]
    return 0 if show("memory", rows) else 1


if __name__ == "__main__":
    sys.exit(main())
