from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import pytest

from floodline import (
    Batch,
    BoundedLog,
    BoundedMap,
    Conversation,
    Sessions,
    telemetry,
)
from floodline._clock import Ticker
from floodline.errors import ConfigError
from floodline.stores import MemoryStore, SQLiteStore

PATIENCE = 100.0  # a safety net; nothing here waits for time to pass


class Fake:
    """A clock that stands still until it is told."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Ticking:
    """Counts its ticks; `answers` are the delays that it asks for."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.count = 0
        self.called = threading.Event()
        self.thread = None

    def tick(self):
        self.count += 1
        self.thread = threading.current_thread()
        answer = self.answers.pop(0) if self.answers else None
        if not self.answers:
            self.called.set()
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def tick_errors():
    found = []

    def sink(event):
        if event.kind == "tick_error":
            found.append(event.fields["error"].partition(":")[0])

    end = telemetry.subscribe(sink)
    yield found
    end()


def ended(thread):
    thread.join(PATIENCE)
    return not thread.is_alive()


def test_a_tick_runs_on_a_daemon_thread_that_ends_when_nothing_is_wanted():
    ticker, ticking = Ticker("test"), Ticking(0, 0, None)
    assert not ticker.running()
    ticker.want(ticking.tick, 0)
    assert ticking.called.wait(PATIENCE)
    assert ticking.thread.daemon
    assert ticking.thread.name == "test"
    assert ended(ticking.thread)
    assert ticking.count == 3
    assert not ticker.running()


def test_it_starts_again_by_itself():
    ticker = Ticker("test")
    for _ in range(2):
        ticking = Ticking(None)
        ticker.want(ticking.tick, 0)
        assert ticking.called.wait(PATIENCE)
        assert ended(ticking.thread)


def test_a_finalizer_may_wish_without_starting_a_thread():
    ticker, quiet, loud = Ticker("test"), Ticking(None), Ticking(None)
    ticker.want(quiet.tick, 0, start=False)
    assert not ticker.running()
    ticker.want(loud.tick, 0)
    assert quiet.called.wait(PATIENCE)
    assert loud.called.wait(PATIENCE)


def test_the_earliest_wish_counts_and_the_later_one_is_not_a_second_call():
    clock = Fake()
    ticker, ticking, poke = Ticker("test", clock=clock), Ticking(None), Ticking()
    for delay in (60, 30, 90):
        ticker.want(ticking.tick, delay)
    for seconds in (0, 30, 30, 30):
        clock.now += seconds
        poke.called.clear()
        ticker.want(poke.tick, 0)
        assert poke.called.wait(PATIENCE)
    assert ended(poke.thread)
    assert ticking.count == 1
    assert not ticker._next


def test_a_wish_that_was_renewed_is_forgotten_with_its_owner():
    clock = Fake()
    ticker, gone, poke = Ticker("test", clock=clock), Ticking(None), Ticking()
    for delay in (60, 30):
        ticker.want(gone.tick, delay)
    ticker.want(poke.tick, 0)
    assert poke.called.wait(PATIENCE)
    del gone
    gc.collect()
    clock.now += 60
    ticker.want(poke.tick, 0)
    assert ended(poke.thread)
    assert not ticker._next


def test_nothing_is_called_before_it_is_due():
    clock = Fake()
    ticker, later, now = Ticker("test", clock=clock), Ticking(None), Ticking(None)
    ticker.want(later.tick, 3600)
    ticker.want(now.tick, 0)
    assert now.called.wait(PATIENCE)
    assert later.count == 0
    assert ticker.running()
    clock.now += 3600
    ticker.want(now.tick, 0)
    assert later.called.wait(PATIENCE)
    assert ended(later.thread)


def test_what_was_collected_is_not_called_and_does_not_keep_the_thread():
    clock = Fake()
    ticker, other = Ticker("test", clock=clock), Ticking(None)
    gone = Ticking(None)
    ticker.want(gone.tick, 10, start=False)
    del gone
    gc.collect()
    clock.now += 10
    ticker.want(other.tick, 0)
    assert other.called.wait(PATIENCE)
    assert ended(other.thread)


def test_a_tick_that_raises_is_reported_and_tried_again_in_a_minute():
    clock, events = Fake(), []
    ticker, ticking, poke = Ticker("test", clock=clock), Ticking(OSError("no"), None), Ticking()
    told = threading.Event()

    def listen(event):
        if event.kind == "tick_error" and event.source == "test":
            events.append(event.fields["error"])
            told.set()

    end = telemetry.subscribe(listen)
    try:
        ticker.want(ticking.tick, 0)
        assert told.wait(PATIENCE)
    finally:
        end()
    ticker.want(poke.tick, 0)
    assert poke.called.wait(PATIENCE)
    assert (events, ticking.count) == (["OSError: no"], 1)
    clock.now += 60
    ticker.want(poke.tick, 0)
    assert ticking.called.wait(PATIENCE)
    assert ended(ticking.thread)
    assert ticking.count == 2


def test_a_tick_that_hangs_is_left_behind():
    clock, let_go, inside = Fake(), threading.Event(), threading.Event()
    ticker, other, events = Ticker("test", patience=300, clock=clock), Ticking(None), []

    class Hanging:
        def tick(self):
            self.thread = threading.current_thread()
            inside.set()
            let_go.wait(PATIENCE)

    hanging = Hanging()
    ticker.want(hanging.tick, 0)
    assert inside.wait(PATIENCE)
    clock.now += 301
    end = telemetry.subscribe(events.append)
    ticker.want(other.tick, 0)
    end()
    assert other.called.wait(PATIENCE)
    assert other.thread is not hanging.thread
    assert [(e.kind, e.fields["seconds"]) for e in events if e.source == "test"] == [
        ("ticker_stuck", 301)
    ]
    let_go.set()
    assert ended(hanging.thread)
    assert ended(other.thread)
    assert not ticker.running()


def test_when_no_thread_can_be_started_any_more_the_wish_is_kept(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    ticker, ticking = Ticker("test"), Ticking(None)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    ticker.want(ticking.tick, 0)
    assert not ticker.running()
    monkeypatch.undo()
    ticker.want(ticking.tick, 0)
    assert ticking.called.wait(PATIENCE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_ticks_on_its_own():
    code = """
import os, threading, warnings
warnings.simplefilter("ignore")
from floodline._clock import sweeper
class Ticking:
    def __init__(self): self.called = threading.Event()
    def tick(self):
        self.called.set()
        return 3600.0
first = Ticking()
sweeper.want(first.tick, 0)
assert first.called.wait(100) and sweeper.running()
pid = os.fork()
if pid == 0:
    clean = not sweeper.running()
    second = Ticking()
    sweeper.want(second.tick, 0)
    os._exit(0 if clean and second.called.wait(100) else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, MemoryError, GeneratorExit])
def test_nothing_that_a_tick_raises_ends_the_ticks_of_others(kind, tick_errors):
    clock = Fake()
    ticker, good = Ticker("test", clock=clock), Ticking(None)

    class Bad:
        def tick(self):
            raise kind("no")

    bad = Bad()
    ticker.want(bad.tick, 0)
    ticker.want(good.tick, 0)
    assert good.called.wait(PATIENCE)
    assert ticker.running()  # it will try the bad one again
    assert ticker.errors == 1
    assert tick_errors == [kind.__name__]


@pytest.mark.parametrize("kind", [MemoryError, RuntimeError])
def test_a_thread_that_cannot_start_is_counted_and_started_by_the_next_wish(
    kind, monkeypatch, tick_errors
):
    ticker, ticking = Ticker("test"), Ticking(None)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda _: (_ for _ in ()).throw(kind("no")))
        assert not ticker.want(ticking.tick, 0)
    assert not ticker.running()
    assert (ticker.errors, tick_errors) == (1, [kind.__name__])
    ticker.want(ticking.tick, 0)
    assert ticking.called.wait(PATIENCE)


def test_an_interrupt_while_a_thread_starts_goes_on_and_the_next_wish_starts_one(monkeypatch):
    ticker, ticking = Ticker("test"), Ticking(None)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ticker.want(ticking.tick, 0)
    assert not ticker.running()
    ticker.want(ticking.tick, 0)
    assert ticking.called.wait(PATIENCE)


def test_a_wish_for_a_time_beyond_all_clocks_ends_nothing():
    ticker, late, soon = Ticker("test"), Ticking(None), Ticking(None)
    ticker.want(late.tick, 1e300)
    ticker.want(soon.tick, 0)
    assert soon.called.wait(PATIENCE)
    assert ticker.running()
    assert ticker.errors == 0


def test_a_failure_in_its_own_work_loses_no_wish(monkeypatch, tick_errors):
    ticker, ticking, fails = Ticker("test"), Ticking(None), [MemoryError("once")]
    schedule = Ticker._schedule

    def failing(self, *args):
        if fails:
            raise fails.pop()
        schedule(self, *args)

    monkeypatch.setattr(Ticker, "_schedule", failing)
    ticker.want(ticking.tick, 0)
    assert ticking.called.wait(PATIENCE)
    assert tick_errors == ["MemoryError"]


@pytest.mark.parametrize("clock", [lambda: "x", lambda: None, lambda: float("nan"), 5])
@pytest.mark.parametrize(
    "make",
    [
        lambda clock: BoundedMap(3, ttl=1, clock=clock),
        lambda clock: BoundedLog(3, clock=clock),
        lambda clock: Batch(print, clock=clock),
        lambda clock: Conversation(clock=clock),
        lambda clock: Sessions(dict, clock=clock),
        lambda clock: MemoryStore(clock=clock),
        lambda clock: MemoryStore(wall=clock),
        lambda clock: SQLiteStore("never-made.db", clock=clock),
        lambda clock: SQLiteStore("never-made.db", wall=clock),
    ],
)
def test_a_clock_that_does_not_return_seconds_is_refused_at_construction(make, clock):
    with pytest.raises(ConfigError, match=r"(clock|wall)=.* (says|cannot be|must be)"):
        make(clock)
