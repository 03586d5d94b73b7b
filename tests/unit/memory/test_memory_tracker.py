from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import os
import subprocess
import sys
import threading
import tracemalloc
import weakref

import pytest

from event_loops import events_of
from floodline import telemetry
from floodline.errors import ConfigError
from floodline.memory import MemoryTracker, StageRun, _report
from floodline.memory._span import _current
from memory_fakes import MIB, FakeClock, FakeMemory

PATIENCE = 100.0  # a safety net, not a measure


def make(**options):
    memory, clock = FakeMemory(), FakeClock()
    return MemoryTracker(probe=memory, clock=clock, **options), memory, clock


def test_a_stage_tells_growth_peak_and_time():
    tracker, memory, clock = make()
    with tracker.stage("load") as span:
        memory.grow(50)
        tracker.sample()
        memory.grow(-20)
        clock.now += 2
    assert (span.growth, span.own, span.peak, span.seconds) == (30, 30, 150, 2.0)
    stage = tracker.stages["load"]
    assert (stage.count, stage.growth, stage.own, stage.largest) == (1, 30, 30, 30)
    assert (stage.peak, stage.seconds, stage.failed, stage.overlapped) == (150, 2.0, 0, 0)


def test_runs_of_one_stage_add_up():
    tracker, memory, clock = make()
    for grown in (10, 30, -5):
        with tracker.stage("load"):
            memory.grow(grown)
            clock.now += 1
    stage = tracker.stages["load"]
    assert (stage.count, stage.growth, stage.largest, stage.seconds) == (3, 35, 30, 3.0)
    assert stage.mean_growth == pytest.approx(35 / 3)
    assert stage.mean_seconds == 1.0


def test_peak_and_growth_are_those_of_the_whole_tracker():
    tracker, memory, _ = make()
    assert (tracker.peak_mb, tracker.growth_mb) == (0, 0)
    memory.size = 10 * MIB
    with tracker:
        memory.size = 30 * MIB
        tracker.sample()
        memory.size = 15 * MIB
    assert (tracker.peak_mb, tracker.growth_mb) == (30, 5)
    with tracker.stage("more"):
        memory.size = 40 * MIB
    assert (tracker.peak_mb, tracker.growth_mb) == (40, 30)
    stage = tracker.stages["more"]
    assert (stage.growth_mb, stage.peak_mb) == (25, 40)


def test_the_default_probe_is_the_resident_size():
    tracker = MemoryTracker()
    with tracker.stage("load"):
        block = bytearray(64 * MIB)
    assert 60 < tracker.stages["load"].growth_mb < 100
    assert tracker.peak_mb > 60
    del block


def test_a_stage_that_raises_is_counted_and_its_error_goes_on():
    tracker, _, _ = make()
    with pytest.raises(ZeroDivisionError), tracker.stage("load") as span:
        1 / 0  # noqa: B018  # raises
    assert span.failed
    assert tracker.stages["load"].failed == 1


def test_a_nested_stage_is_part_of_the_outer_but_not_of_its_own():
    tracker, memory, _ = make()
    with tracker.stage("all") as outer:
        memory.grow(1)
        with tracker.stage("inner"):
            memory.grow(50)
            tracker.sample()
            memory.grow(-40)
        with tracker.stage("inner"):
            memory.grow(5)
        memory.grow(2)
    assert (outer.growth, outer.own, outer.peak) == (18, 3, 151)
    assert tracker.stages["inner"].growth == 15
    assert not outer.overlapped
    assert tracker.stages["inner"].overlapped == 0


def test_spans_of_two_trackers_nest_without_seeing_each_other():
    first, memory, _ = make()
    second = MemoryTracker(probe=memory)
    with first.stage("a") as a, second.stage("b") as b, first.stage("c"):
        memory.grow(10)
    assert (a.own, b.own) == (0, 10)
    assert not b.overlapped


def test_threads_do_not_nest_in_each_other_and_are_told_to_overlap():
    tracker, memory, _ = make()
    inside, done = threading.Event(), threading.Event()

    def other():
        with tracker.stage("other") as span:
            inside.set()
            assert done.wait(PATIENCE)
        assert span.overlapped

    thread = threading.Thread(target=other)
    with tracker.stage("main") as span:
        thread.start()
        assert inside.wait(PATIENCE)
        memory.grow(10)
    done.set()
    thread.join()
    assert span.own == 10
    assert span.overlapped
    assert tracker.stages["other"].overlapped == 1


def test_a_span_that_ran_entirely_inside_another_thread_is_noticed():
    tracker, _, _ = make()
    with tracker.stage("main") as span:
        thread = threading.Thread(
            target=lambda: tracker.stage("other").__enter__().end(failed=False)
        )
        thread.start()
        thread.join()
    assert span.overlapped


def test_tasks_nest_where_they_were_started():
    tracker, memory, _ = make()

    async def child(size):
        with tracker.stage("child"):
            memory.grow(size)
            await asyncio.sleep(0)

    async def main():
        with tracker.stage("main") as span:
            await asyncio.gather(*(child(size) for size in (1, 2, 3)))
        return span

    span = asyncio.run(main())
    assert not span.overlapped  # those were its own
    assert tracker.stages["child"].overlapped == 3
    assert span.growth == 6


def test_a_task_that_outlives_its_stage_is_inside_nothing():
    tracker, memory, _ = make()

    async def late(go):
        await go.wait()
        with tracker.stage("late"):
            memory.grow(5)

    async def main():
        go = asyncio.Event()
        with tracker.stage("outer"), tracker.stage("main"):
            task = asyncio.create_task(late(go))
        go.set()
        await task

    asyncio.run(main())
    assert tracker.stages["late"].own == 5
    assert tracker.stages["main"].own == tracker.stages["outer"].own == 0


def test_a_chain_of_tasks_does_not_keep_its_past():
    tracker, _, _ = make()
    kept = []

    async def link(n):
        with tracker.stage("link") as span:
            kept.append(weakref.ref(span))
            following = asyncio.create_task(link(n - 1)) if n else None
            await asyncio.sleep(0)
        return following

    async def main():
        task = asyncio.create_task(link(50))
        while task is not None:
            task = await task
        gc.collect()
        return sum(ref() is not None for ref in kept)

    assert asyncio.run(main()) <= 3


def test_a_stage_may_end_in_another_context():
    tracker, _, _ = make()
    span = tracker.stage("load")
    contextvars.copy_context().run(span.__enter__)
    with tracker.stage("here"):
        span.__exit__(None, None, None)
        assert _current.get().name == "here"
    assert _current.get() is None


def test_a_span_is_entered_once():
    tracker, _, _ = make()
    span = tracker.stage("load")
    with span, pytest.raises(ConfigError, match="'load' has begun already; call stage"):
        span.__enter__()
    span.end(failed=False)
    assert tracker.stages["load"].count == 1


def test_a_span_that_never_began_ends_without_a_trace():
    tracker, _, _ = make()
    tracker.stage("load").end(failed=False)
    assert tracker.stages == {}


@pytest.mark.parametrize("name", ["", None, 5])
def test_a_stage_needs_a_name(name):
    with pytest.raises(ConfigError, match="needs a name"):
        MemoryTracker().stage(name)


@pytest.mark.parametrize(
    "options", [{"max_samples": 0}, {"max_stages": 0}, {"top": 0}, {"interval": 0}]
)
def test_what_cannot_work_is_refused(options):
    with pytest.raises(ConfigError):
        MemoryTracker(**options)


def test_samples_are_bounded_and_tell_their_stage():
    tracker, memory, clock = make(max_samples=3)
    tracker.sample()
    for name in ("a", "b"):
        memory.grow(1)
        clock.now += 1
        with tracker.stage(name):
            pass
    assert [(s.at, s.bytes, s.stage) for s in tracker.samples] == [
        (1001.0, 101, "a"),
        (1002.0, 102, "b"),
        (1002.0, 102, "b"),
    ]
    assert tracker.stats().samples == 5


def test_names_are_bounded_and_the_rest_is_counted_together():
    tracker, memory, _ = make(max_stages=2)
    for n in range(10):
        with tracker.stage(f"stage {n}"):
            memory.grow(1)
    with tracker.stage("stage 0"):
        memory.grow(1)
    assert {name: stage.count for name, stage in tracker.stages.items()} == {
        "stage 0": 2,
        "stage 1": 1,
        "(other)": 8,
    }


def test_a_tracker_that_ran_for_a_million_samples_has_not_grown():
    tracker, memory, _ = make(max_samples=100, max_stages=10)
    names = [f"stage {n}" for n in range(20)]

    def run(rounds):
        for n in range(rounds):
            with tracker.stage(names[n % 20]):
                memory.size += 1
            for _ in range(8):
                tracker.sample()

    run(100)
    tracer = sys.gettrace()
    sys.settrace(None)  # a million lines of coverage tell no more than the hundred above
    gc.collect()
    tracemalloc.start()
    try:
        run(100)  # what tracemalloc has not seen being made is replaced
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()  # the many go without its weight
        run(100_000)
        tracemalloc.start()
        run(100)
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        sys.settrace(tracer)
    assert tracker.stats().samples > 1_000_000
    assert len(tracker.samples) == 100
    assert len(tracker.stages) == 11
    assert after < before + 20_000


def test_listeners_are_told_each_run_until_they_are_removed():
    tracker, memory, _ = make()
    told, other = [], []
    end = tracker.listen(told.append)
    tracker.listen(other.append)
    with tracker.stage("a"):
        memory.grow(7)
    end()
    end()
    with tracker.stage("b"):
        pass
    assert told == [StageRun("a", 7, 7, 107, 0.0, False, False)]
    assert [run.name for run in other] == ["a", "b"]


def test_a_listener_that_raises_is_counted_and_stops_nothing():
    tracker, _, _ = make(name="listened-to")
    told = []

    def broken(run):
        raise ValueError("no")

    tracker.listen(broken)
    tracker.listen(told.append)
    with tracker.stage("a"):
        pass
    assert len(told) == 1
    assert tracker.stats().hook_errors == 1
    assert events_of("hook_error", "listened-to")[-1].fields == {"error": "ValueError: no"}


def test_a_listener_may_use_the_tracker():
    tracker, _, _ = make()
    seen = []
    tracker.listen(lambda run: seen.append(tracker.stages[run.name].count))
    with tracker.stage("a"):
        pass
    assert seen == [1]


def test_reset_forgets():
    tracker, memory, _ = make()
    with tracker.stage("open"):
        tracker.reset()
        memory.grow(5)
    assert list(tracker.stages) == ["open"]
    tracker.reset()
    assert (tracker.stages, tracker.samples, tracker.peak_mb, tracker.growth_mb) == ({}, [], 0, 0)


def test_a_tracker_is_visible_in_telemetry():
    tracker, memory, _ = make(name="mine")
    memory.size = 2 * MIB
    with tracker.stage("a"):
        memory.size = 3 * MIB
        assert tracker.stats().open == 1
    stats = next(h for h in telemetry.holders() if h is tracker).stats()
    assert (stats.kind, stats.name, stats.items, stats.max_items) == ("tracker", "mine", 2, 1000)
    assert (stats.stages, stats.open, stats.peak, stats.growth) == (1, 0, 3 * MIB, MIB)
    assert repr(tracker) == "<MemoryTracker 'mine': 1 stages>"


# ---- finalizers


class Closing:
    """Runs spans when it is collected."""

    def __init__(self, tracker):
        self.tracker = tracker
        self.me = self

    def __del__(self):
        with self.tracker.stage("finalizer"):
            self.tracker.sample()


def test_spans_in_finalizers_at_every_allocation_neither_block_nor_get_lost():
    tracker, _, _ = make(max_samples=10)
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            Closing(tracker)
            with tracker.stage("main"):
                pass
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert tracker.stages["main"].count == 200
    assert tracker.stages["finalizer"].count == 200


def test_spans_that_strike_at_every_line_of_another_neither_block_nor_get_lost():
    tracker, _, _ = make(max_samples=10)
    guests = []

    def strike(frame, event, _arg):  # as a finalizer or a signal handler would
        if "floodline" not in frame.f_code.co_filename:
            return None
        if event == "line":
            with tracker.stage("guest"):
                tracker.sample()
            guests.append(True)
        return strike

    before = sys.gettrace()
    sys.settrace(strike)
    try:
        for _ in range(3):
            with tracker.stage("main"):
                tracker.sample()
    finally:
        sys.settrace(before)
    assert tracker.stages["main"].count == 3
    assert tracker.stages["guest"].count == len(guests) > 300


# ---- reports


def test_the_json_report_is_a_document():
    tracker, memory, _ = make(name="t")
    with tracker.stage("load"):
        memory.grow(MIB)
    document = json.loads(tracker.report("json"))
    assert {"schema", "tool", "python", "errors"} <= document.keys()
    assert document["tracker"]["growth"] == MIB
    assert document["stages"][0]["name"] == "load"
    assert document["stages"][0]["mean_growth"] == MIB


def filled():
    tracker, memory, _ = make(name="t")
    with tracker.stage("small"):
        memory.grow(MIB)
    with tracker.stage("a|b [red]"):
        memory.grow(2 * MIB)
    with tracker.stage("shrinks"):
        memory.grow(-MIB)
    return tracker


def test_the_text_report_begins_with_who_grew_most():
    text = filled().report()
    assert text.startswith("t: peak 3 MiB, growth 2 MiB, 6 samples\n")
    assert text.index("a|b [red]") < text.index("small") < text.index("shrinks")
    assert "-1 MiB" in text
    assert text.endswith("\n")


def test_the_text_report_is_plain_without_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    lines = filled().report().splitlines()
    assert lines[2].split() == ["stage", "runs", "growth", "mean", "own", "peak", "seconds"]
    assert len({len(line) for line in lines[2:]}) == 1


def test_the_text_report_is_a_table_with_rich():
    pytest.importorskip("rich")
    assert "┃ stage" in filled().report()


def test_the_markdown_report_is_a_table():
    lines = filled().report("markdown").splitlines()
    assert lines[2] == "| stage | runs | growth | mean | own | peak | seconds |"
    assert lines[4].startswith("| a\\|b [red] | 1 | 2 MiB |")


def test_a_name_of_several_lines_is_one_row():
    tracker = MemoryTracker(probe=lambda: 1)
    with tracker.stage("load\nall"):
        pass
    assert "| load all | 1 |" in tracker.report("markdown")


def test_a_report_without_stages_is_one_line():
    tracker, _, _ = make(name="t")
    assert tracker.report() == "t: peak 0 B, growth 0 B, 0 samples\n"


def test_a_report_says_when_stages_overlapped():
    tracker, _, _ = make()
    first, second = tracker.stage("a"), tracker.stage("b")
    contextvars.copy_context().run(first.__enter__)
    with second:
        first.end(failed=False)
    assert "b *" in tracker.report("markdown")
    assert _report.NOTE in tracker.report("markdown")


def test_an_unknown_format_is_refused():
    with pytest.raises(ConfigError, match="format='xml' is unknown; choose one of 'text'"):
        MemoryTracker().report("xml")


# ---- tracing


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


# ---- sampling in the background


def test_a_peak_between_two_edges_is_seen_with_an_interval():
    seen = threading.Event()
    sizes = [100]

    def probe():
        if threading.current_thread() is not threading.main_thread():
            seen.set()
            return 500
        return sizes[0]

    tracker = MemoryTracker(probe=probe, interval=0.001)
    with tracker.stage("load"):
        assert seen.wait(PATIENCE)
        while tracker.stats().peak < 500:
            assert seen.wait(PATIENCE)
    assert tracker.stages["load"].peak == 500
    assert tracker.peak_mb == 500 / MIB


def test_sampling_ends_with_the_last_stage():
    tracker, _, _ = make(interval=60)
    with tracker:
        assert tracker._ticking
        assert tracker._tick() == 60
    assert tracker._tick() is None
    assert not tracker._ticking
    with tracker.stage("again"):
        assert tracker._ticking
        assert tracker._tick() == 60


def test_a_stage_that_begins_while_sampling_ends_is_sampled():
    tracker, _, _ = make(interval=60)
    answers = [False, True]
    tracker._busy = lambda: answers.pop(0)
    assert tracker._tick() == 60
    assert tracker._ticking


def test_without_an_interval_nothing_ticks():
    tracker, _, _ = make()
    with tracker:
        assert not tracker._ticking


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_empty():
    code = """
import os
from floodline.memory import MemoryTracker
tracker = MemoryTracker(trace=True)
with tracker.stage("parent"):
    pass
with tracker.stage("open"):
    if os.fork() == 0:
        assert not tracker.stages and not tracker.samples and tracker.stats().open == 0
        with tracker.stage("child"):
            pass
        assert list(tracker.stages) == ["child"]
        os._exit(0)
    _, status = os.wait()
assert list(tracker.stages) == ["parent", "open"]
raise SystemExit(os.waitstatus_to_exitcode(status))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("good", [0, 1])
@pytest.mark.parametrize("what", ["tracker", "span"])
def test_a_probe_that_raises_leaves_nothing_open_and_tracemalloc_off(what, good):
    answers = [1] * good

    def probe():
        if answers:
            return answers.pop()
        raise OSError("no answer")

    tracker = MemoryTracker(trace=True, probe=probe)
    with (
        pytest.raises(OSError, match="no answer"),
        tracker if what == "tracker" else tracker.stage("a"),
    ):
        assert tracemalloc.is_tracing()
    assert not tracemalloc.is_tracing()
    assert tracker.stats().open == 0
    assert not tracker.stages
