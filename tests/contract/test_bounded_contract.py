"""What every bounded container promises, whatever its shape."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import threading
import weakref
from contextlib import suppress

import pytest

from event_loops import events_of
from floodline import telemetry
from floodline.bounded import Batch, BoundedLog, BoundedMap, _registry
from floodline.errors import ConfigError, TooLarge, Unweighable


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class MapCase:
    """Puts items in under new keys and sees the values that leave."""

    def __init__(self, order):
        self.order, self.count = order, 0
        self.kind = "map"

    def make(self, hook=None, **options):
        if "max_age" in options:
            options["ttl"] = options.pop("max_age")
        on_evict = None if hook is None else lambda _, value, reason: hook(value, reason)
        return BoundedMap(order=self.order, on_evict=on_evict, **options)

    def put(self, container, item):
        self.count += 1
        container[self.count] = item

    def inside(self, container):
        return list(container.values())


class LogCase:
    kind = "log"

    def make(self, hook=None, **options):
        return BoundedLog(on_evict=hook, **options)

    def put(self, container, item):
        container.append(item)

    def inside(self, container):
        return list(container)


class BatchCase:
    """A batch lets its items go to the sink, so it takes part only where that does not matter."""

    kind = "batch"

    def make(self, hook=None, **options):
        options.pop("max_age", None)
        options.setdefault("max_items", 50)
        return Batch(lambda items: None, **options)

    def put(self, container, item):
        container.add(item)


MAPS = [MapCase("lru"), MapCase("fifo"), MapCase("oldest")]
FORGETTING = [*MAPS, LogCase()]
ALL = [*FORGETTING, BatchCase()]


def names(case):
    return f"{case.kind}-{case.order}" if case.kind == "map" else case.kind


forgetting = pytest.mark.parametrize("case", FORGETTING, ids=names)
every = pytest.mark.parametrize("case", ALL, ids=names)


@forgetting
def test_no_bound_at_all_is_refused(case):
    with pytest.raises(ConfigError, match=r"at least one of .*max_items.*max_bytes"):
        case.make()


@every
@pytest.mark.parametrize(
    "options",
    [
        {"max_items": 0},
        {"max_items": -1},
        {"max_items": 2.5},
        {"max_items": True},
        {"max_items": 5, "max_bytes": "many"},
        {"max_items": 5, "max_bytes": 0},
        {"max_items": 5, "weigh": 3},
        {"max_items": 5, "name": ""},
        {"max_items": 5, "name": 3},
        {"max_items": 5, "clock": 3},
    ],
)
def test_bad_values_fail_at_construction_and_are_named(case, options):
    with pytest.raises(ConfigError, match="|".join(options)):
        case.make(**options)


@forgetting
@pytest.mark.parametrize("options", [{"max_age": 0}, {"max_age": "soon"}])
def test_bad_times_fail_at_construction(case, options):
    with pytest.raises(ConfigError):
        case.make(**options)


@pytest.mark.parametrize("kind", [BoundedMap, BoundedLog])
def test_a_hook_that_cannot_be_called_fails_at_construction(kind):
    with pytest.raises(ConfigError, match="on_evict=3"):
        kind(5, on_evict=3)


@forgetting
def test_the_number_of_items_never_exceeds_the_limit(case):
    told = []
    container = case.make(lambda item, reason: told.append((item, reason)), max_items=3)
    for item in range(10):
        case.put(container, item)
        assert len(container) <= 3
    assert case.inside(container) == [7, 8, 9]
    assert told == [(item, "count") for item in range(7)]


@forgetting
def test_the_bytes_never_exceed_the_limit(case):
    told = []
    container = case.make(lambda item, reason: told.append((item, reason)), max_bytes="10 B")
    for item in ("aaaa", b"bbbb", "ééé", "c"):
        case.put(container, item)
        assert container.stats().bytes <= 10
    assert case.inside(container) == ["ééé", "c"]
    assert told == [("aaaa", "bytes"), (b"bbbb", "bytes")]


@forgetting
def test_age_is_enforced_without_a_timer(case):
    told, clock = [], Clock()
    container = case.make(
        lambda item, reason: told.append((item, reason)), max_age="10 s", clock=clock
    )
    case.put(container, "old")
    clock.now += 6
    case.put(container, "new")
    clock.now += 4
    assert case.inside(container) == ["new"]
    assert len(container) == 1
    assert told == [("old", "age")]


@forgetting
def test_an_item_above_the_whole_limit_is_refused_and_evicts_nothing(case):
    told = []
    container = case.make(lambda *exit: told.append(exit), max_bytes=5)
    case.put(container, "abc")
    with pytest.raises(TooLarge, match=r"6 B.*max_bytes=5 B"):
        case.put(container, "abcdef")
    assert case.inside(container) == ["abc"]
    assert told == []


@every
def test_without_weigh_only_str_and_bytes_can_be_weighed(case):
    container = case.make(max_bytes=100)
    with pytest.raises(Unweighable, match="weigh=") as caught:
        case.put(container, [1])
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ConfigError)
    assert len(container) == 0


@every
@pytest.mark.parametrize("weight", [-1, 2.5, None, True])
def test_a_weigh_that_returns_no_weight_is_an_error(case, weight):
    container = case.make(max_bytes=100, weigh=lambda item: weight)
    with pytest.raises(ConfigError, match="whole number of bytes"):
        case.put(container, "x")
    assert len(container) == 0


@forgetting
def test_a_hook_that_raises_is_counted_and_stops_nothing(case):
    told = []

    def hook(item, reason):
        told.append(item)
        raise ValueError("no")

    container = case.make(hook, max_items=1, name="fussy")
    for item in range(4):
        case.put(container, item)
    assert told == [0, 1, 2]
    assert container.stats().hook_errors == 3
    event = events_of("hook_error", "fussy")[-1]
    assert event.fields["error"] == "ValueError: no"


@forgetting
def test_a_hook_that_is_interrupted_loses_no_later_one(case):
    told = []

    def hook(item, reason):
        told.append(item)
        if item == 0:
            raise KeyboardInterrupt

    container = case.make(hook, max_items=3)
    for item in range(3):
        case.put(container, item)
    with pytest.raises(KeyboardInterrupt):
        container.clear()
    case.put(container, 3)
    container.clear()
    assert told == [0, 1, 2, 3]


@forgetting
def test_hooks_run_outside_the_lock(case):
    def hook(item, reason):
        thread = threading.Thread(target=lambda: seen.append(len(container)))
        thread.start()
        thread.join(100)
        assert not thread.is_alive()

    seen = []
    container = case.make(hook, max_items=1)
    case.put(container, 1)
    case.put(container, 2)
    assert seen == [1]


@forgetting
def test_a_hook_that_puts_back_what_left_neither_recurses_nor_hangs(case):
    calls = []

    def hook(item, reason):
        calls.append(item)
        case.put(container, item)

    container = case.make(hook, max_items=2, name="boomerang")
    for item in range(4):
        case.put(container, item)
    assert len(container) == 2
    assert 2 <= len(calls) < 1000
    assert any(e.kind == "hook_loop" and e.source == "boomerang" for e in telemetry.recent())


@forgetting
def test_a_hook_that_clears_sees_every_item_once(case):
    told = []

    def hook(item, reason):
        told.append(item)
        container.clear()

    container = case.make(hook, max_items=100)
    for item in range(100):
        case.put(container, item)
    container.clear()
    assert sorted(told) == list(range(100))
    assert container.stats().left == {"closed": 100}


@forgetting
def test_values_are_freed_at_once_when_they_leave_and_when_the_container_goes(case):
    class Thing:
        pass

    container = case.make(max_items=1)
    gc.disable()
    try:
        things = [Thing(), Thing()]
        refs = [weakref.ref(thing) for thing in things]
        for thing in things:
            case.put(container, thing)
        del thing
        things.clear()
        assert [ref() is None for ref in refs] == [True, False]
        del container
        assert refs[1]() is None
    finally:
        gc.enable()


@forgetting
def test_a_value_whose_finalizer_uses_the_container_finds_the_lock_free(case):
    class Loud:
        def __del__(self):
            thread = threading.Thread(target=lambda: lengths.append(len(container)))
            thread.start()
            thread.join(100)
            case.put(container, "from the finalizer")

    lengths = []
    container = case.make(max_items=2)
    for _ in range(3):
        case.put(container, Loud())
    assert lengths
    assert len(container) == 2
    container.clear()


@every
def test_it_has_a_name_and_shows_itself_while_it_lives(case):
    container = case.make(max_items=5)
    assert container.name.startswith(f"{case.kind}-")
    assert container in [h for h in telemetry.holders() if h is container]
    assert case.make(max_items=5, name="mine").stats().name == "mine"
    assert container.name in repr(container)
    key = id(container)
    del container
    assert key not in telemetry._holders


@every
def test_stats_are_ready_for_json(case):
    container = case.make(max_items=5, max_bytes=10)
    case.put(container, "abc")
    stats = json.loads(json.dumps(container.stats().as_dict()))
    assert stats["kind"] == case.kind
    assert (stats["items"], stats["max_items"]) == (1, 5)
    assert (stats["bytes"], stats["max_bytes"]) == (3, 10)
    if case.kind == "batch":
        container.close()


@every
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_empty_and_finalizes_nothing(case):
    told = []
    container = case.make(lambda *exit: told.append(exit), max_items=5)
    case.put(container, "inherited")
    with suppress(AttributeError):
        container._guard.lock.acquire()  # whoever holds it does not exist in the child
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        try:
            empty = len(container) == 0 and not told
            case.put(container, "own")
            shown = any(holder is container for holder in telemetry.holders())
            os.write(writer, b"ok" if empty and len(container) == 1 and shown else b"no")
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    assert os.read(reader, 2) == b"ok"
    os.close(reader)
    with suppress(AttributeError):
        container._guard.lock.release()
    assert len(container) == 1
    if case.kind == "batch":
        container.close()


@every
def test_what_a_child_inherits_is_kept_from_being_finalized(case, monkeypatch):
    told = []
    container = case.make(lambda *exit: told.append(exit), max_items=5)
    case.put(container, "inherited")
    monkeypatch.setattr(_registry, "_enrolled", {1: weakref.ref(container), 2: lambda: None})
    monkeypatch.setattr(_registry, "_inherited", [])
    _registry._after_fork()
    assert len(container) == 0
    assert len(_registry._inherited) == 1
    assert told == []
    case.put(container, "own")
    assert len(container) == 1
    if case.kind == "batch":
        container.close()


@forgetting
def test_pressure_sheds_the_next_in_order(case):
    class Budget:
        def attach(self, holder):
            self.holder = holder

    told, budget = [], Budget()
    container = case.make(lambda *exit: told.append(exit), max_items=200, pressure=budget)
    assert budget.holder is container
    for item in range(150):
        case.put(container, item)
    assert budget.holder.shed(100) == 100
    assert told == [(item, "pressure") for item in range(100)]
    assert budget.holder.shed(100) == 50
    assert container.stats().left == {"pressure": 150}


@every
def test_threads_may_hammer_it(case):
    container = case.make(max_items=8)
    errors = []

    def work(seed):
        try:
            for step in range(300):
                case.put(container, (seed, step))
                len(container)
                if case.kind != "batch":
                    case.inside(container)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert errors == []
    if case.kind == "batch":
        container.close()
        assert container.stats().flushed == 1200
    else:
        assert len(container) == 8
        left = sum(container.stats().left.values())
        assert left == 1200 - 8 or case.kind == "map"


@every
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_copy_is_refused_since_items_leave_only_once(case, duplicate):
    container = case.make(max_items=3)
    case.put(container, "a")
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        duplicate(container)
    assert len(container) == 1
    if case.kind == "batch":
        container.close()
