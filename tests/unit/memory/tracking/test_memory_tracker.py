from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import tracemalloc

import pytest

from event_loops import events_of
from floodline import telemetry
from floodline.errors import ConfigError
from floodline.memory import MemoryTracker, StageRun
from memory_fakes import MIB, fake_tracker

PATIENCE = 100.0  # a safety net, not a measure


def test_a_stage_tells_growth_peak_and_time():
    tracker, memory, clock = fake_tracker()
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
    tracker, memory, clock = fake_tracker()
    for grown in (10, 30, -5):
        with tracker.stage("load"):
            memory.grow(grown)
            clock.now += 1
    stage = tracker.stages["load"]
    assert (stage.count, stage.growth, stage.largest, stage.seconds) == (3, 35, 30, 3.0)
    assert stage.mean_growth == pytest.approx(35 / 3)
    assert stage.mean_seconds == 1.0


def test_peak_and_growth_are_those_of_the_whole_tracker():
    tracker, memory, _ = fake_tracker()
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
    tracker, _, _ = fake_tracker()
    with pytest.raises(ZeroDivisionError), tracker.stage("load") as span:
        1 / 0  # noqa: B018  # raises
    assert span.failed
    assert tracker.stages["load"].failed == 1


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
    tracker, memory, clock = fake_tracker(max_samples=3)
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
    tracker, memory, _ = fake_tracker(max_stages=2)
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
    tracker, memory, _ = fake_tracker(max_samples=100, max_stages=10)
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
    tracker, memory, _ = fake_tracker()
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
    tracker, _, _ = fake_tracker(name="listened-to")
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
    tracker, _, _ = fake_tracker()
    seen = []
    tracker.listen(lambda run: seen.append(tracker.stages[run.name].count))
    with tracker.stage("a"):
        pass
    assert seen == [1]


def test_reset_forgets():
    tracker, memory, _ = fake_tracker()
    with tracker.stage("open"):
        tracker.reset()
        memory.grow(5)
    assert list(tracker.stages) == ["open"]
    tracker.reset()
    assert (tracker.stages, tracker.samples, tracker.peak_mb, tracker.growth_mb) == ({}, [], 0, 0)


def test_a_tracker_is_visible_in_telemetry():
    tracker, memory, _ = fake_tracker(name="mine")
    memory.size = 2 * MIB
    with tracker.stage("a"):
        memory.size = 3 * MIB
        assert tracker.stats().open == 1
    stats = next(h for h in telemetry.holders() if h is tracker).stats()
    assert (stats.kind, stats.name, stats.items, stats.max_items) == ("tracker", "mine", 2, 1000)
    assert (stats.stages, stats.open, stats.peak, stats.growth) == (1, 0, 3 * MIB, MIB)
    assert repr(tracker) == "<MemoryTracker 'mine': 1 stages>"


class Closing:
    """Runs spans when it is collected."""

    def __init__(self, tracker):
        self.tracker = tracker
        self.me = self

    def __del__(self):
        with self.tracker.stage("finalizer"):
            self.tracker.sample()


# ---- finalizers


def test_spans_in_finalizers_at_every_allocation_neither_block_nor_get_lost():
    tracker, _, _ = fake_tracker(max_samples=10)
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
    tracker, _, _ = fake_tracker(max_samples=10)
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
    tracker, _, _ = fake_tracker(interval=60)
    with tracker:
        assert tracker._ticking
        assert tracker._tick() == 60
    assert tracker._tick() is None
    assert not tracker._ticking
    with tracker.stage("again"):
        assert tracker._ticking
        assert tracker._tick() == 60


def test_a_stage_that_begins_while_sampling_ends_is_sampled():
    tracker, _, _ = fake_tracker(interval=60)
    answers = [False, True]
    tracker._busy = lambda: answers.pop(0)
    assert tracker._tick() == 60
    assert tracker._ticking


def test_without_an_interval_nothing_ticks():
    tracker, _, _ = fake_tracker()
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
