from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import subprocess
import sys
import textwrap
import weakref

import pytest

from floodline import telemetry
from floodline.errors import ConfigError
from floodline.memory import MemoryTracker, default_tracker, track_memory
from memory_fakes import FakeClock, FakeMemory


@pytest.fixture
def memory():
    return FakeMemory()


@pytest.fixture
def tracker(memory):
    return MemoryTracker(probe=memory, clock=FakeClock(), name="t")


def figures(tracker, name):
    stage = tracker.stages[name]
    return stage.count, stage.growth, stage.own, stage.failed


# ---- plain functions


def test_a_function_is_measured_and_keeps_its_name_signature_and_result(tracker, memory):
    @track_memory(tracker=tracker, name="load")
    def load(size: int, *, factor: int = 1) -> int:
        """Grow."""
        memory.grow(size * factor)
        return size

    assert load(5, factor=2) == 5
    assert figures(tracker, "load") == (1, 10, 10, 0)
    assert (load.__name__, load.__doc__) == ("load", "Grow.")
    assert str(inspect.signature(load)) == "(size: 'int', *, factor: 'int' = 1) -> 'int'"


def test_without_arguments_all_share_the_default_tracker():
    @track_memory
    def work():
        return 5

    assert work() == 5
    assert default_tracker() is default_tracker()
    assert default_tracker().stages[work.__qualname__].count == 1


def test_the_default_tracker_is_made_when_something_is_tracked():
    code = """
    from floodline import telemetry, track_memory
    @track_memory
    def work(): ...
    assert not telemetry.holders()
    work()
    assert "track_memory" in [holder.name for holder in telemetry.holders()]
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert run.returncode == 0


def test_a_function_that_raises_is_counted(tracker):
    @track_memory(tracker=tracker, name="load")
    def load():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        load()
    assert figures(tracker, "load") == (1, 0, 0, 1)


def test_methods_of_all_kinds_are_measured(tracker):
    class Loader:
        @track_memory(tracker=tracker)
        def method(self):
            return self

        @track_memory(tracker=tracker)
        @classmethod
        def of_class(cls):
            return cls

        @track_memory(tracker=tracker)
        @staticmethod
        def static(value):
            return value

        @classmethod
        @track_memory(tracker=tracker)
        def inside(cls):
            return cls

    loader = Loader()
    assert loader.method() is loader
    assert loader.of_class() is Loader.inside() is Loader
    assert Loader.static(5) == 5
    names = [name.rpartition(".<locals>.")[2] for name in tracker.stages]
    assert names == ["Loader.method", "Loader.of_class", "Loader.inside", "Loader.static"]


def test_a_callable_object_is_called_after_its_class(tracker):
    class Stage:
        def __call__(self, value):
            return value

    assert track_memory(tracker=tracker)(Stage())(5) == 5
    assert next(iter(tracker.stages)).endswith("Stage")


def test_a_partial_of_a_coroutine_function_is_a_coroutine_function(tracker):
    async def work(value):
        return value

    tracked = track_memory(tracker=tracker, name="p")(functools.partial(work, 5))
    assert asyncio.run(tracked()) == 5
    assert tracker.stages["p"].count == 1


def test_recursion_nests(tracker, memory):
    @track_memory(tracker=tracker, name="r")
    def down(n):
        memory.grow(1)
        if n:
            down(n - 1)

    down(4)
    assert figures(tracker, "r") == (5, 15, 5, 0)


@pytest.mark.parametrize("wrong", [5, "load"])
def test_what_is_no_function_is_refused(wrong):
    with pytest.raises(ConfigError, match="takes a function"):
        track_memory(wrong)


def test_a_bad_warn_over_is_refused_at_once():
    with pytest.raises(ConfigError, match="warn_over"):
        track_memory(warn_over="much")


def test_growth_over_the_line_is_told(tracker, memory):
    @track_memory(tracker=tracker, name="load", warn_over="1 KiB")
    def load(size):
        memory.grow(size)

    def told():
        return [event.fields for event in heard if event.kind == "memory_growth"]

    heard = []
    end = telemetry.subscribe(heard.append)
    try:
        load(1024)
        assert told() == []
        load(2048)
    finally:
        end()
    assert told() == [{"stage": "load", "grew": "2 KiB", "warn_over": "1 KiB"}]


# ---- coroutines


def test_a_coroutine_is_measured_while_it_runs(tracker, memory):
    @track_memory(tracker=tracker, name="c")
    async def work():
        memory.grow(1)
        await asyncio.sleep(0)
        memory.grow(2)
        return "done"

    async def other():
        memory.grow(100)

    async def main():
        return await asyncio.gather(work(), other())

    assert inspect.iscoroutinefunction(work)
    assert asyncio.run(main()) == ["done", None]
    assert figures(tracker, "c") == (1, 103, 3, 0)


def test_a_coroutine_that_is_cancelled_runs_its_clean_up_and_counts_as_failed(tracker, memory):
    @track_memory(tracker=tracker, name="c")
    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            memory.grow(5)

    async def main():
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert figures(tracker, "c") == (1, 5, 5, 1)


def test_a_coroutine_may_swallow_what_is_thrown_into_it(tracker):
    @track_memory(tracker=tracker, name="c")
    async def work():
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            await asyncio.sleep(0)
            return "late"

    assert asyncio.run(work()) == "late"
    assert figures(tracker, "c") == (1, 0, 0, 0)


def test_a_coroutine_inside_another_is_not_the_own_growth_of_that(tracker, memory):
    @track_memory(tracker=tracker, name="inner")
    async def inner():
        memory.grow(10)
        await asyncio.sleep(0)
        memory.grow(10)

    @track_memory(tracker=tracker, name="outer")
    async def outer():
        memory.grow(1)
        await inner()
        with tracker.stage("part"):
            memory.grow(100)
            await asyncio.sleep(0)

    async def noise():
        for _ in range(3):
            memory.grow(1000)
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(outer(), noise())

    asyncio.run(main())
    assert tracker.stages["inner"].own == 20
    assert tracker.stages["outer"].own == 1
    assert tracker.stages["part"].own == 100


def test_what_a_task_grows_while_its_parent_waits_is_not_taken_from_the_parent(tracker, memory):
    @track_memory(tracker=tracker, name="child")
    async def child():
        memory.grow(50)

    @track_memory(tracker=tracker, name="parent")
    async def parent():
        memory.grow(1)
        await asyncio.create_task(child())
        memory.grow(2)

    asyncio.run(parent())
    assert figures(tracker, "child") == (1, 50, 50, 0)
    assert figures(tracker, "parent") == (1, 53, 3, 0)


def test_a_coroutine_that_is_dropped_ends_its_stage(tracker):
    @track_memory(tracker=tracker, name="c")
    async def work():
        await asyncio.sleep(0)

    coroutine = work()
    coroutine.send(None)
    coroutine.close()
    assert figures(tracker, "c") == (1, 0, 0, 1)
    assert tracker.stats().open == 0


def test_ten_thousand_concurrent_coroutines_give_correct_figures(memory):
    clock = FakeClock()
    tracker = MemoryTracker(probe=memory, clock=clock)
    number, start = 10_000, memory.size

    @track_memory(tracker=tracker, name="outer")
    async def outer(n, gate):
        memory.grow(3)
        await inner(n)
        await gate.wait()
        memory.grow(4)

    @track_memory(tracker=tracker, name="inner")
    async def inner(n):
        memory.grow(n % 7)
        await asyncio.sleep(0)
        with tracker.stage("deep"):
            memory.grow(2)
            await asyncio.sleep(0)
            memory.grow(-1)

    async def main():
        gate = asyncio.Event()
        tasks = [asyncio.create_task(outer(n, gate)) for n in range(number)]
        for _ in range(10):  # all come to the gate
            await asyncio.sleep(0)
        assert tracker.stages["inner"].count == number
        assert tracker.stats().open == number
        clock.now += 2
        gate.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())
    stages = tracker.stages
    assert {name: stage.count for name, stage in stages.items()} == {
        "deep": number,
        "inner": number,
        "outer": number,
    }
    assert stages["outer"].own == 7 * number
    assert stages["inner"].own == sum(n % 7 for n in range(number))
    assert stages["deep"].own == number
    assert stages["outer"].seconds == 2.0 * number
    assert sum(stage.own for stage in stages.values()) == memory.size - start
    assert stages["outer"].peak == max(sample.bytes for sample in tracker.samples)
    assert stages["outer"].overlapped == number
    assert tracker.stats().open == 0


# ---- generators


def test_a_generator_is_measured_while_it_runs_and_not_its_user(tracker, memory):
    @track_memory(tracker=tracker, name="g")
    def numbers():
        for n in range(3):
            memory.grow(1)
            yield n
        return "end"

    def user():
        return (yield from numbers())

    assert inspect.isgeneratorfunction(numbers)
    steps = user()
    for n in range(3):
        assert next(steps) == n
        memory.grow(100)
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value == "end"
    assert figures(tracker, "g") == (1, 303, 3, 0)


def test_a_generator_gets_what_is_sent_and_thrown(tracker):
    @track_memory(tracker=tracker, name="g")
    def echo():
        got = None
        while True:
            try:
                got = yield got
            except KeyError as error:
                got = repr(error)

    steps = echo()
    next(steps)
    assert steps.send(5) == 5
    assert steps.throw(KeyError("k")) == "KeyError('k')"
    assert steps.send(6) == 6
    with pytest.raises(ValueError, match="out"):
        steps.throw(ValueError("out"))
    assert figures(tracker, "g") == (1, 0, 0, 1)


def test_a_generator_whose_user_had_enough_is_closed_and_has_not_failed(tracker, memory):
    @track_memory(tracker=tracker, name="g")
    def numbers():
        try:
            while True:
                yield 1
        finally:
            memory.grow(9)

    for _ in numbers():
        break
    gc.collect()
    assert figures(tracker, "g") == (1, 9, 9, 0)


def test_a_stage_inside_a_generator_does_not_reach_its_user(tracker, memory):
    @track_memory(tracker=tracker, name="g")
    def numbers():
        with tracker.stage("inside"):
            memory.grow(1)
            yield 1
            memory.grow(2)
        yield 2

    steps = numbers()
    next(steps)
    with tracker.stage("user"):
        memory.grow(1000)
    next(steps)
    assert list(steps) == []
    assert tracker.stages["inside"].own == 3
    assert tracker.stages["g"].own == 0
    assert tracker.stages["user"].own == 1000


def test_a_stage_that_a_generator_leaves_open_at_its_end_does_no_harm(tracker, memory):
    outer = tracker.stage("outer")

    @track_memory(tracker=tracker, name="g")
    def numbers():
        outer.__exit__(None, None, None)
        yield 1

    with tracker.stage("all"):
        outer.__enter__()
        assert list(numbers()) == [1]
        memory.grow(5)
    assert tracker.stages["g"].own == 0
    assert tracker.stages["all"].own == 5


def test_an_error_that_was_thrown_in_is_not_kept(tracker):
    class Big(Exception):
        pass

    @track_memory(tracker=tracker, name="g")
    def swallow():
        while True:
            with contextlib.suppress(Big):
                yield

    steps = swallow()
    next(steps)
    error = Big()
    ref = weakref.ref(error)
    steps.throw(error)
    gc.disable()
    try:
        del error
        assert ref() is None
    finally:
        gc.enable()


# ---- async generators


def test_an_async_generator_is_measured_while_it_runs(tracker, memory):
    @track_memory(tracker=tracker, name="a")
    async def numbers():
        for n in range(3):
            memory.grow(1)
            await asyncio.sleep(0)
            yield n

    async def main():
        got = []
        async for n in numbers():
            got.append(n)
            memory.grow(100)
        return got

    assert inspect.isasyncgenfunction(numbers)
    assert asyncio.run(main()) == [0, 1, 2]
    assert figures(tracker, "a") == (1, 303, 3, 0)


def test_an_async_generator_gets_what_is_sent_and_thrown(tracker):
    @track_memory(tracker=tracker, name="a")
    async def echo():
        got = None
        while True:
            try:
                got = yield got
            except KeyError as error:
                got = repr(error)

    async def main():
        steps = echo()
        await anext(steps)
        assert await steps.asend(5) == 5
        assert await steps.athrow(KeyError("k")) == "KeyError('k')"
        with pytest.raises(ValueError, match="out"):
            await steps.athrow(ValueError("out"))

    asyncio.run(main())
    assert figures(tracker, "a") == (1, 0, 0, 1)


def test_an_async_generator_whose_user_had_enough_is_closed(tracker, memory):
    @track_memory(tracker=tracker, name="a")
    async def numbers():
        try:
            while True:
                yield 1
        finally:
            await asyncio.sleep(0)
            memory.grow(9)

    async def main():
        steps = numbers()
        await anext(steps)
        await steps.aclose()

    asyncio.run(main())
    assert figures(tracker, "a") == (1, 9, 9, 0)


def test_the_types_of_a_tracked_function_are_kept(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        from typing import assert_type
        from floodline import MemoryTracker, track_memory

        @track_memory
        def load(size: int) -> str:
            return "x" * size

        @track_memory(tracker=MemoryTracker(), warn_over="1 MiB")
        async def fetch(url: str, *, times: int = 1) -> bytes:
            return url.encode()

        class Stage:
            @track_memory
            def run(self, n: int) -> int:
                return n

        async def main() -> None:
            assert_type(load(5), str)
            assert_type(await fetch("u", times=2), bytes)
            assert_type(Stage().run(1), int)
            load("5")
        """)
    )
    pytest.importorskip("mypy")
    # in a process of its own, or its syntax trees would slow down each later collection here
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    ran = subprocess.run([*command, str(program)], capture_output=True, text=True, check=False)
    assert ran.stdout.count("error:") == 1, ran
    assert 'Argument 1 to "load" has incompatible type "str"' in ran.stdout


def test_an_object_whose_call_is_async_is_measured_to_its_end():
    memory = FakeMemory(0)
    tracker = MemoryTracker(probe=memory)

    class Fetch:
        async def __call__(self, size):
            memory.grow(size)
            return size

    fetch = track_memory(tracker=tracker, name="fetch")(Fetch())
    assert inspect.iscoroutinefunction(fetch)
    assert asyncio.run(fetch(10)) == 10
    assert tracker.stages["fetch"].growth == 10
