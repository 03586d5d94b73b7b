from __future__ import annotations

import tracemalloc

from floodline.memory import MemoryTracker


def test_tracing_names_the_lines_that_allocated_and_is_off_afterwards():
    tracker = MemoryTracker(trace=True, top=3)
    assert not tracemalloc.is_tracing()
    with tracker.stage("load"):
        assert tracemalloc.is_tracing()
        kept = [bytes(1000) for _ in range(1000)]
    assert not tracemalloc.is_tracing()
    top = tracker.stages["load"].lines[0]
    assert top.file == __file__
    assert top.bytes > 1_000_000
    assert len(tracker.stages["load"].lines) <= 3
    assert f"{__file__}:{top.line}" in tracker.report()
    del kept


def test_tracing_stays_on_inside_the_tracker():
    with MemoryTracker(trace=True) as tracker:
        with tracker.stage("a"):
            pass
        assert tracemalloc.is_tracing()
    assert not tracemalloc.is_tracing()


def test_tracing_that_was_on_stays_on():
    tracemalloc.start(5)
    try:
        with MemoryTracker(trace=True) as tracker, tracker.stage("a"):
            pass
        assert tracemalloc.is_tracing()
        assert tracemalloc.get_traceback_limit() == 5
    finally:
        tracemalloc.stop()


def test_trackers_that_trace_at_the_same_time_share_it():
    first, second = MemoryTracker(trace=True), MemoryTracker(trace=True)
    with first:
        with second:
            pass
        assert tracemalloc.is_tracing()
    assert not tracemalloc.is_tracing()


def test_tracing_that_somebody_stopped_gives_no_lines():
    tracker = MemoryTracker(trace=True)
    with tracker.stage("a"):
        tracemalloc.stop()
    assert tracker.stages["a"].lines == ()


def test_lines_of_many_runs_are_added_up_and_bounded():
    tracker = MemoryTracker(trace=True, top=2)
    kept = []
    source = "\n" * 40
    for n in range(40):
        source += f"def line{n}(): kept.append(bytes({1000 + n}))\n"
    names = {"kept": kept}
    exec(compile(source, "made-up.py", "exec"), names)
    for n in range(40):
        with tracker.stage("load"):
            names[f"line{n}"]()
            names["line7"]()
    lines = tracker.stages["load"].lines
    assert len(lines) == 2
    assert (lines[0].file, lines[0].line) == ("made-up.py", 48)
    assert lines[0].bytes > 40_000


def test_only_some_spans_at_a_time_are_traced():
    tracker = MemoryTracker(trace=True)
    spans = [tracker.stage("a") for _ in range(20)]
    for span in spans:
        span.__enter__()
    assert sum(span.before is not None for span in spans) == 16
    for span in reversed(spans):
        span.__exit__(None, None, None)
    assert tracker.stages["a"].count == 20
    assert not tracemalloc.is_tracing()


def test_a_span_that_strikes_inside_another_has_no_lines():
    tracker = MemoryTracker(trace=True)
    guard, span = tracker._guard, tracker.stage("guest")
    with tracker:
        kept = [bytes(1000) for _ in range(100)]
        with guard.lock:
            guard.busy = True
            span.__enter__()
            guard.busy = False
        guard.run_late()
        span.__exit__(None, None, None)
    assert tracker.stages["guest"].count == 1
    assert tracker.stages["guest"].lines == ()
    del kept
