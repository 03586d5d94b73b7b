from __future__ import annotations

import subprocess
import sys
import threading
import weakref

import pytest

from event_loops import events_of
from floodline.bounded import Batch, _batch
from floodline.errors import BatchClosed, BatchFull, ConfigError, TooLarge

WAIT = 100  # a safety net, not a measure


class Sink:
    def __init__(self):
        self.calls, self.broken = [], False

    def __call__(self, items):
        if self.broken:
            raise OSError("down")
        self.calls.append(items)

    @property
    def items(self):
        return [item for call in self.calls for item in call]


@pytest.fixture
def sink():
    return Sink()


def test_at_the_limit_it_really_flushes(sink):
    batch = Batch(sink, max_items=3)
    for n in range(7):
        batch.add(n)
    assert sink.calls == [[0, 1, 2], [3, 4, 5]]
    assert len(batch) == 1
    assert batch.flush() == 1
    assert batch.flush() == 0
    assert sink.calls[-1] == [6]
    stats = batch.stats()
    assert (stats.flushed, stats.flushes, stats.failed, stats.items) == (7, 3, 0, 0)


def test_fifty_items_are_the_default(sink):
    batch = Batch(sink)
    for n in range(50):
        batch.add(n)
    assert sink.calls == [list(range(50))]
    assert batch.stats().retain == 500


def test_bytes_flush_too_and_no_call_gets_more(sink):
    batch = Batch(sink, max_bytes=10)
    for item in ("aaaa", "bbbb", "cccc"):
        batch.add(item)
    assert sink.calls == [["aaaa", "bbbb"], ["cccc"]]
    with pytest.raises(TooLarge):
        batch.add("x" * 11)
    assert batch.stats().bytes == 0


def test_leaving_the_block_flushes_also_after_an_exception(sink):
    with Batch(sink) as batch:
        batch.add(1)
    assert sink.calls == [[1]]
    batch = Batch(sink)
    batch.add(2)
    with pytest.raises(ZeroDivisionError), batch:
        raise ZeroDivisionError
    assert sink.calls == [[1], [2]]
    assert batch
    with pytest.raises(BatchClosed, match="create a new Batch"):
        batch.add(3)
    batch.close()


def test_a_failing_sink_keeps_the_items_in_order_and_pushes_back(sink):
    sink.broken = True
    batch = Batch(sink, max_items=2, retain=5, name="outbox")
    for n in range(5):
        batch.add(n)
    with pytest.raises(BatchFull, match=r"holds 5 items.*retain=5.*sink is failing") as caught:
        batch.add(5)
    assert isinstance(caught.value.__cause__, OSError)
    assert isinstance(caught.value, BufferError)
    assert len(batch) == 5
    with pytest.raises(OSError, match="down"):
        batch.flush()
    assert events_of("flush_failed", "outbox")
    assert batch.stats().failed == 4
    sink.broken = False
    batch.add(5)
    assert batch.flush() == 1
    assert sink.calls == [[0, 1], [2, 3], [4], [5]]


def test_a_sink_that_fails_in_the_middle_keeps_only_what_it_did_not_take(sink):
    batch = Batch(sink, max_items=2, retain=10)
    sink.broken = True
    for n in range(5):
        batch.add(n)
    sink.broken = False
    original, calls = batch._sink, []

    def second_fails(items):
        calls.append(items)
        if len(calls) == 2:
            raise OSError
        original(items)

    batch._sink = second_fails
    with pytest.raises(OSError):  # noqa: PT011 - any
        batch.flush()
    assert len(batch) == 3
    assert batch.flush() == 3
    assert sink.items == [0, 1, 2, 3, 4]


def test_a_block_whose_flush_fails_raises_and_keeps_the_items(sink):
    sink.broken = True
    batch = Batch(sink)
    with pytest.raises(OSError, match="down"), batch:
        batch.add(1)
    assert len(batch) == 1
    with pytest.raises(ZeroDivisionError) as caught, batch:
        raise ZeroDivisionError
    assert "could not flush 1 items" in caught.value.__notes__[0]
    sink.broken = False
    batch.close()
    assert sink.items == [1]


def test_a_failing_sink_is_not_tried_at_every_add(sink):
    sink.broken = True
    batch = Batch(sink, max_items=10, max_bytes=20, weigh=lambda item: 1)
    for n in range(40):
        batch.add(n)
    assert batch.stats().failed == 4
    sink.broken = False
    batch.close()


def test_the_oldest_does_not_wait_longer_than_max_wait_at_the_next_add(sink):
    now = [0.0]
    batch = Batch(sink, max_wait="1 min", clock=lambda: now[0])
    batch.add(1)
    now[0] = 59.0
    batch.add(2)
    assert sink.calls == []
    now[0] = 60.0
    batch.add(3)
    assert sink.calls == [[1, 2, 3]]


def test_the_timer_flushes_what_has_waited_long_enough(sink):
    now = [0.0]
    batch = Batch(sink, max_wait=600, clock=lambda: now[0])
    assert batch._tick() is None
    batch.add(1)
    now[0] = 100.0
    assert batch._tick() == 500
    now[0] = 600.0
    sink.broken = True
    assert batch._tick() == 600
    sink.broken = False
    assert batch._tick() is None
    assert sink.calls == [[1]]


def test_the_ticker_calls_without_anybody_asking():
    called = threading.Event()
    batch = Batch(lambda items: called.set(), max_wait=0.01)
    batch.add(1)
    assert called.wait(WAIT)
    batch.close()


def test_a_sink_may_add_to_its_own_batch():
    calls = []

    def sink(items):
        calls.append(items)
        if len(calls) < 3:
            batch.add(f"from {items[0]}")
        assert batch.flush() == 0

    batch = Batch(sink, max_items=2)
    batch.add("a")
    batch.add("b")
    assert calls == [["a", "b"]]
    batch.close()
    assert calls == [["a", "b"], ["from a"], ["from from a"]]


def test_a_sink_that_fills_its_own_batch_gets_the_push_back():
    errors = []

    def sink(items):
        try:
            for n in range(10):
                batch.add(n)
        except BatchFull as error:
            errors.append(str(error))

    batch = Batch(sink, max_items=2, retain=4)
    batch.add(1)
    batch._next_try = 99
    batch.flush()
    assert "its sink is adding to it" in errors[0]
    batch._sink = lambda items: None
    batch.close()


def test_flushes_come_one_at_a_time_and_in_order_from_many_threads():
    active, taken, overlaps = [], [], []

    def sink(items):
        if active:
            overlaps.append(1)
        active.append(1)
        taken.extend(items)
        active.pop()

    batch = Batch(sink, max_items=5, retain=10)

    def work(seed):
        for n in range(200):
            batch.add((seed, n))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    batch.close()
    assert overlaps == []
    assert len(taken) == 1000
    for seed in range(5):
        assert [n for s, n in taken if s == seed] == list(range(200))


def test_whoever_finds_it_full_waits_for_the_flush_under_way():
    inside, go = threading.Event(), threading.Event()

    def sink(items):
        inside.set()
        assert go.wait(WAIT)

    batch = Batch(sink, max_items=1, retain=2)
    first = threading.Thread(target=batch.add, args=(1,))
    first.start()
    assert inside.wait(WAIT)
    batch.add(2)
    second = threading.Thread(target=batch.add, args=(3,))
    second.start()
    go.set()
    first.join(WAIT)
    second.join(WAIT)
    batch.close()
    assert batch.stats().flushed == 3


@pytest.mark.parametrize(
    "options", [{"retain": 3, "max_items": 5}, {"retain": 0}, {"max_wait": 0}, {"max_items": 0}]
)
def test_limits_that_cannot_work_are_refused(sink, options):
    with pytest.raises(ConfigError):
        Batch(sink, **options)


def test_a_sink_must_be_a_plain_function():
    async def coroutine(items):
        pass

    with pytest.raises(ConfigError, match="coroutine function"):
        Batch(coroutine)
    with pytest.raises(ConfigError, match="cannot be called"):
        Batch(None)


def test_a_batch_that_is_dropped_with_items_says_so(sink):
    batch = Batch(sink, name="forgotten")
    batch.add(1)
    with pytest.warns(ResourceWarning, match="forgotten was dropped with 1 unflushed items"):
        del batch
    assert events_of("batch_lost", "forgotten")[-1].fields["items"] == 1


def test_at_exit_a_sink_that_fails_stops_no_other(sink, monkeypatch):
    broken = Batch(lambda items: 1 / 0, name="broken")
    broken.add(1)
    batch = Batch(sink)
    batch.add(2)
    refs = {1: weakref.ref(broken), 2: lambda: None, 3: weakref.ref(batch)}
    monkeypatch.setattr(_batch, "_open", refs)
    _batch._flush_all()
    assert sink.calls == [[2]]
    assert len(broken) == 1
    broken._sink = sink
    broken.close()


def test_what_waits_at_exit_is_flushed():
    program = (
        "from floodline.bounded import Batch\n"
        "batch = Batch(print)\n"
        "batch.add('last words')\n"
        "other = Batch(print)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100
    )
    assert run.stdout == "['last words']\n"
    assert run.stderr == ""
