from __future__ import annotations

import asyncio
import functools
import threading
import traceback

import pytest

from floodline._callables import takes_key
from floodline.bounded import BoundedMap
from floodline.errors import CreationCycle, TooLarge

WAIT = 100  # a safety net, not a measure


def in_threads(number, work):
    threads = [threading.Thread(target=work, args=(n,)) for n in range(number)]
    for thread in threads:
        thread.start()
    return threads


def join(threads):
    for thread in threads:
        thread.join(WAIT)
        assert not thread.is_alive()


def wait_until(true):
    done = threading.Event()
    for _ in range(2000):
        if true():
            return
        done.wait(0.005)
    raise AssertionError("it never became true")


def waiting(m, key):
    flight = m._flights._flying.get(key)
    return 0 if flight is None else flight.waiters


def test_the_factory_runs_once_for_all_threads():
    m, calls, results = BoundedMap(5), [], []
    go = threading.Event()

    def factory(key):
        calls.append(key)
        assert go.wait(WAIT)
        return object()

    threads = in_threads(8, lambda _: results.append(m.get_or_create("k", factory)))
    wait_until(lambda: waiting(m, "k") == 7)
    assert m.stats().creating == 1
    go.set()
    join(threads)
    assert calls == ["k"]
    assert len(set(map(id, results))) == 1
    assert m["k"] is results[0]
    assert m.stats().creating == 0


def test_a_failure_goes_to_all_and_is_not_kept():
    m, errors = BoundedMap(5), []
    go = threading.Event()

    def factory():
        assert go.wait(WAIT)
        raise ValueError("no luck")

    def work(_):
        try:
            m.get_or_create("k", factory)
        except ValueError as error:
            errors.append(error)

    threads = in_threads(4, work)
    wait_until(lambda: waiting(m, "k") == 3)
    go.set()
    join(threads)
    assert len(errors) == 4
    assert m.get_or_create("k", lambda: 5) == 5


def test_an_interrupted_creation_is_taken_over_by_a_waiter():
    m, results = BoundedMap(5), []
    inside, go = threading.Event(), threading.Event()

    def interrupted():
        inside.set()
        assert go.wait(WAIT)
        raise KeyboardInterrupt

    def leader(_):
        with pytest.raises(KeyboardInterrupt):
            m.get_or_create("k", interrupted)

    threads = in_threads(1, leader)
    assert inside.wait(WAIT)
    threads += in_threads(3, lambda _: results.append(m.get_or_create("k", lambda: "made")))
    wait_until(lambda: waiting(m, "k") == 3)
    go.set()
    join(threads)
    assert results == ["made"] * 3


def test_a_factory_that_asks_for_its_own_key_gets_an_error():
    m = BoundedMap(5)
    with pytest.raises(CreationCycle, match="same key"):
        m.get_or_create("k", lambda: m.get_or_create("k", lambda: 1))
    with pytest.raises(CreationCycle):
        m.get_or_create("a", lambda: m.get_or_create("b", lambda: m.get_or_create("a", int)))
    assert m.get_or_create("k", lambda: m.get_or_create("other", lambda: 1) + 1) == 2


def test_factories_of_two_threads_that_wait_for_each_other_get_an_error():
    m, errors, both = BoundedMap(5), [], threading.Barrier(2)

    def make(other):
        both.wait(WAIT)
        return m.get_or_create(other, lambda: 0)

    def work(n):
        key, other = ("x", "y") if n else ("y", "x")
        try:
            m.get_or_create(key, lambda: make(other))
        except CreationCycle as error:
            errors.append(error)

    join(in_threads(2, work))
    assert errors


def test_a_value_that_is_too_large_is_an_error_for_all():
    m = BoundedMap(max_bytes=3)
    with pytest.raises(TooLarge):
        m.get_or_create("k", lambda: "four")
    assert m.get_or_create("k", lambda: "ok") == "ok"


def test_what_was_set_between_the_miss_and_the_creation_is_used():
    m = BoundedMap(5)
    m["k"] = 1
    assert m._flights.fetch(m, "k", lambda: 2) == 1
    assert asyncio.run(m._flights.afetch(m, "k", lambda: 2)) == 1


def test_an_error_leaves_no_cycle_behind():
    import gc
    import weakref

    class Big:
        pass

    def factory():
        big = Big()
        refs.append(weakref.ref(big))
        raise ValueError

    refs, m = [], BoundedMap(5)
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(ValueError):  # noqa: PT011 - any
            m.get_or_create("k", factory)
        assert refs[0]() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("factory", "takes"),
    [
        (lambda: 1, False),
        (lambda key: 1, True),
        (lambda key=1: 1, False),
        (lambda *keys: 1, False),
        (list, False),
        (dict, False),
        (functools.partial(lambda a, b: a, 1), True),
        (functools.partial(lambda a: a, 1), False),
        (int, False),
        ("no function", False),
    ],
)
def test_a_factory_gets_the_key_only_if_it_needs_it(factory, takes):
    assert takes_key(factory) is takes


# coroutines


def test_one_task_creates_for_all_coroutines():
    m, calls = BoundedMap(5), []

    async def factory(key):
        calls.append(key)
        await asyncio.sleep(0)
        return object()

    async def main():
        return await asyncio.gather(*(m.aget_or_create("k", factory) for _ in range(5)))

    results = asyncio.run(main())
    assert calls == ["k"]
    assert len(set(map(id, results))) == 1
    assert asyncio.run(m.aget_or_create("k", factory)) is results[0]


def test_a_plain_factory_will_do_for_coroutines():
    m = BoundedMap(5)
    assert asyncio.run(m.aget_or_create("k", lambda: 7)) == 7


def test_a_failing_coroutine_wakes_all_and_is_not_kept():
    m = BoundedMap(5)

    async def factory():
        await asyncio.sleep(0)
        raise ValueError("no luck")

    async def main():
        tasks = [asyncio.ensure_future(m.aget_or_create("k", factory)) for _ in range(3)]
        errors = await asyncio.gather(*tasks, return_exceptions=True)
        assert [str(error) for error in errors] == ["no luck"] * 3
        return await m.aget_or_create("k", lambda: 1)

    assert asyncio.run(main()) == 1


def test_cancelling_the_first_caller_neither_cancels_nor_hangs_the_others():
    m, calls = BoundedMap(5), []

    async def main():
        go = asyncio.Event()

        async def factory():
            calls.append(1)
            await go.wait()
            return "made"

        first = asyncio.ensure_future(m.aget_or_create("k", factory))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(m.aget_or_create("k", factory))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        go.set()
        assert await second == "made"
        assert first.cancelled()
        assert calls == [1]

    asyncio.run(main())


def test_cancelling_the_last_caller_cancels_the_creation():
    m, ends = BoundedMap(5), []

    async def main():
        async def factory():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ends.append("cancelled")
                raise

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await m.aget_or_create("k", factory)
        for _ in range(3):
            await asyncio.sleep(0)
        assert ends == ["cancelled"] or not m._flights
        return await m.aget_or_create("k", lambda: 3)

    assert asyncio.run(main()) == 3


def test_a_coroutine_that_asks_for_its_own_key_gets_an_error():
    m = BoundedMap(5)

    async def factory():
        return await asyncio.gather(m.aget_or_create("k", factory))

    with pytest.raises(CreationCycle):
        asyncio.run(m.aget_or_create("k", factory))


def test_a_blocking_call_on_the_loop_that_creates_gets_an_error():
    m = BoundedMap(5)

    async def main():
        async def factory():
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return 1

        task = asyncio.ensure_future(m.aget_or_create("k", factory))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(CreationCycle, match="event loop"):
            m.get_or_create("k", lambda: 2)
        assert await task == 1

    asyncio.run(main())


def test_a_loop_inside_a_factory_cannot_wait_for_it():
    m = BoundedMap(5)
    with pytest.raises(CreationCycle):
        m.get_or_create("k", lambda: asyncio.run(m.aget_or_create("k", lambda: 1)))


def test_threads_and_loops_share_one_creation():
    m, calls, results = BoundedMap(5), [], []
    inside, go = threading.Event(), threading.Event()

    def factory():
        calls.append(1)
        inside.set()
        assert go.wait(WAIT)
        return "made"

    async def slow():
        return factory()

    def work(n):
        if n % 2:
            results.append(asyncio.run(m.aget_or_create("k", slow)))
        else:
            results.append(m.get_or_create("k", factory))

    threads = in_threads(6, work)
    assert inside.wait(WAIT)
    wait_until(lambda: waiting(m, "k") >= 5)
    go.set()
    join(threads)
    assert calls == [1]
    assert results == ["made"] * 6


def test_a_loop_that_ends_in_the_middle_hands_over_to_another():
    m, results = BoundedMap(5), []
    inside, other = threading.Event(), threading.Event()

    async def never():
        inside.set()
        await asyncio.Event().wait()

    async def dying():
        task = asyncio.ensure_future(m.aget_or_create("k", never))
        await asyncio.to_thread(other.wait, WAIT)
        return task

    threads = in_threads(1, lambda _: asyncio.run(dying()))
    assert inside.wait(WAIT)
    threads += in_threads(1, lambda _: results.append(m.get_or_create("k", lambda: "sync")))
    wait_until(lambda: waiting(m, "k") == 2)
    other.set()
    join(threads)
    assert results == ["sync"]


def test_a_waiter_whose_loop_is_closed_is_passed_over():
    from floodline.bounded._single_flight import Flight, _resolve, _resolve_in

    loop = asyncio.new_event_loop()
    future = loop.create_future()
    future.cancel()
    _resolve(future)
    loop.close()
    flight = Flight()
    flight.wake(lambda: _resolve_in(loop, future))
    flight.land(1)
    flight.wake(lambda: None)
    assert flight.outcome() == 1


class Telling(Exception):
    """An error whose argument is not what it was made of."""

    def __init__(self, what):
        super().__init__(f"no {what} here")


def frames(error):
    return len(traceback.extract_tb(error.__traceback__))


def test_threads_that_wait_for_one_value_have_errors_of_their_own():
    cache: BoundedMap[str, int] = BoundedMap(9)
    go, errors = threading.Event(), []

    def factory():
        assert go.wait(WAIT)
        raise Telling("tea")

    def ask(_):
        try:
            cache.get_or_create("a", factory)
        except Telling as error:
            errors.append(error)

    threads = in_threads(8, ask)
    wait_until(lambda: "a" in cache._flights._flying)
    wait_until(lambda: cache._flights._flying["a"].waiters == 7)
    go.set()
    join(threads)
    assert len({id(error) for error in errors}) == 8
    assert all(frames(error) < 15 for error in errors)


def test_coroutines_that_wait_for_one_value_have_errors_of_their_own():
    async def fail():
        await asyncio.sleep(0)
        raise Telling("tea")

    async def play():
        cache: BoundedMap[str, int] = BoundedMap(9)
        asked = [cache.aget_or_create("a", fail) for _ in range(20)]
        return await asyncio.gather(*asked, return_exceptions=True)

    errors = asyncio.run(play())
    assert len({id(error) for error in errors}) == 20
    assert all(isinstance(error, Telling) and frames(error) < 15 for error in errors)
