from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import weakref

import pytest

from floodline.errors import ConfigError
from floodline.memory import MemoryTracker
from floodline.memory._tracking.span import _current
from memory_fakes import fake_tracker

PATIENCE = 100.0  # a safety net, not a measure


def test_a_nested_stage_is_part_of_the_outer_but_not_of_its_own():
    tracker, memory, _ = fake_tracker()
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
    first, memory, _ = fake_tracker()
    second = MemoryTracker(probe=memory)
    with first.stage("a") as a, second.stage("b") as b, first.stage("c"):
        memory.grow(10)
    assert (a.own, b.own) == (0, 10)
    assert not b.overlapped


def test_threads_do_not_nest_in_each_other_and_are_told_to_overlap():
    tracker, memory, _ = fake_tracker()
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
    tracker, _, _ = fake_tracker()
    with tracker.stage("main") as span:
        thread = threading.Thread(
            target=lambda: tracker.stage("other").__enter__().end(failed=False)
        )
        thread.start()
        thread.join()
    assert span.overlapped


def test_tasks_nest_where_they_were_started():
    tracker, memory, _ = fake_tracker()

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
    tracker, memory, _ = fake_tracker()

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
    tracker, _, _ = fake_tracker()
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
    tracker, _, _ = fake_tracker()
    span = tracker.stage("load")
    contextvars.copy_context().run(span.__enter__)
    with tracker.stage("here"):
        span.__exit__(None, None, None)
        assert _current.get().name == "here"
    assert _current.get() is None


def test_a_span_is_entered_once():
    tracker, _, _ = fake_tracker()
    span = tracker.stage("load")
    with span, pytest.raises(ConfigError, match="'load' has already begun; call stage"):
        span.__enter__()
    span.end(failed=False)
    assert tracker.stages["load"].count == 1


def test_a_span_that_never_began_ends_without_a_trace():
    tracker, _, _ = fake_tracker()
    tracker.stage("load").end(failed=False)
    assert tracker.stages == {}
