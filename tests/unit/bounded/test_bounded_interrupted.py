"""Finalizers and signals in the middle of critical sections [E2]."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from contextlib import suppress

import pytest

import floodline.bounded as package
from floodline.bounded import Batch, BoundedLog, BoundedMap

FOLDER = package.__file__.rsplit("/", 1)[0]


class Finalizer:
    """Cyclic garbage that does `use` when it is collected."""

    def __init__(self, use):
        self.use, self.me = use, self

    def __del__(self):
        self.use()


def strike_at_every_line(strike, work):
    """Run `work`, and `strike` at each line inside the package; by itself nothing is collected."""
    state = {"inside": False, "lines": 0}

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        if event == "line" and not state["inside"]:
            state["inside"] = True
            state["lines"] += 1
            strike()
            state["inside"] = False
        return trace

    old = sys.gettrace()
    gc.disable()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(old)
        gc.enable()
    assert state["lines"]


def collect_at_every_line(use, work):
    """Run `work`; at each line inside the package, collect garbage whose finalizer calls `use`."""

    def strike():
        Finalizer(use)
        gc.collect(0)

    strike_at_every_line(strike, work)


@pytest.fixture(autouse=True, scope="module")
def no_garbage_of_others():
    gc.collect()


@pytest.fixture(autouse=True)
def no_hidden_errors(monkeypatch):
    errors = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    yield
    assert errors == []


class Value:
    pass


def guests(m):
    """What a finalizer may want of the map."""

    def pin():
        try:
            with m.pin("a") as value:
                assert value is not None
        except KeyError:
            pass

    def leave_open():
        held = m.pin("a")
        try:
            held.__enter__()
        except KeyError:
            return
        stack.append(held)

    def pop_any():
        with suppress(KeyError):
            m.popitem()

    stack = []
    return {
        "get": lambda: m.get("a"),
        "set": lambda: m.__setitem__("guest", Value()),
        "set the same": lambda: m.__setitem__("a", Value()),
        "pop": lambda: m.pop("a", None),
        "popitem": pop_any,
        "setdefault": lambda: m.setdefault("a", Value()),
        "clear": m.clear,
        "len": lambda: len(m),
        "iterate": lambda: list(m.items()),
        "sweep": lambda: (m.sweep(), m.sweep(1), m.shed(1)),
        "stats": m.stats,
        "pin": pin,
        "leave a pin open": leave_open,
        "create": lambda: m.get_or_create("guest", Value),
    }, stack


def operations(m, clock):
    def pin():
        m["a"] = Value()
        try:
            with m.pin("a"):
                m["p"] = Value()
                m["q"] = Value()
        except KeyError:
            pass

    def expire():
        clock[0] += 100
        m.sweep()

    return {
        "set": lambda: [m.__setitem__(n, Value()) for n in range(3)],
        "replace": lambda: m.__setitem__("a", Value()),
        "get": lambda: (m.get("a"), m.get("missing")),
        "delete": lambda: m.pop("a", None),
        "pin": pin,
        "expire": expire,
        "create": lambda: m.get_or_create("made", Value),
        "clear": m.clear,
    }


GUESTS = list(guests(BoundedMap(1))[0])


@pytest.mark.parametrize("weak", [False, True], ids=["strong", "weak"])
@pytest.mark.parametrize("guest", GUESTS)
def test_a_collection_at_any_line_neither_deadlocks_nor_breaks_the_map(guest, weak):
    clock, told = [0.0], []
    hook = None if weak else lambda *exit: told.append(exit)
    m = BoundedMap(3, ttl=50, idle=30, on_evict=hook, weak=weak, clock=lambda: clock[0])
    uses, stack = guests(m)
    for name, work in operations(m, clock).items():
        m["a"] = Value()
        calls = []

        def use(calls=calls):
            if len(calls) < 300:
                calls.append(1)
                uses[guest]()

        if name == "create" and guest == "create":
            m.pop("made", None)
        collect_at_every_line(use, work)
        assert calls
        assert not m._guard.busy
        assert not m._guard.late
    for pin in stack:
        pin.__exit__(None, None, None)
    assert m.stats().pinned == 0
    assert len(m) <= 3
    for n in range(10):
        m[n] = Value()
    assert len(m) == 3
    if not weak:
        assert sum(m.stats().left.values()) == len(told)


@pytest.mark.parametrize("use", ["append", "clear", "read", "len"])
def test_a_collection_at_any_line_leaves_a_log_whole(use):
    told = []
    log = BoundedLog(3, on_evict=lambda *exit: told.append(exit), max_age=1000)
    uses = {
        "append": lambda: log.append("guest"),
        "clear": log.clear,
        "read": lambda: (list(log), log[:1], log.sweep(), log.shed(0), "x" in log),
        "len": lambda: len(log),
    }
    calls = []

    def guest():
        if len(calls) < 200:
            calls.append(1)
            uses[use]()

    collect_at_every_line(guest, lambda: [log.append(n) for n in range(6)])
    collect_at_every_line(guest, lambda: (list(log), log[0:2], len(log)))
    assert len(log) <= 3
    stats = log.stats()
    assert stats.added == len(log) + len(told)


@pytest.mark.parametrize("use", ["add", "flush", "len"])
def test_a_collection_at_any_line_leaves_a_batch_whole(use):
    taken, added = [], []
    batch = Batch(taken.extend, max_items=3, weigh=lambda item: 1)

    def add():
        added.append(1)
        batch.add("guest")

    uses = {"add": add, "flush": batch.flush, "len": batch.stats}
    calls = []

    def guest():
        if len(calls) < 200:
            calls.append(1)
            uses[use]()

    collect_at_every_line(guest, lambda: [batch.add(n) for n in range(7)])
    collect_at_every_line(guest, batch.flush)
    batch.close()
    assert [item for item in taken if item != "guest"] == list(range(7))
    assert taken.count("guest") == len(added)
    assert batch.stats().bytes == 0


def test_the_map_works_while_every_allocation_collects():
    m = BoundedMap(20, ttl=1000)

    class Loud:
        def __init__(self):
            self.me = self

        def __del__(self):
            m.pop("x", None)
            m["y"] = 1
            m.get("z")

    old = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for n in range(300):
            m[n] = Loud()
            m.get(n - 5)
            m.pop(n - 10, None)
            with m.pin(n):
                m["x"] = Loud()
            m.get_or_create("made", Loud)
    finally:
        gc.set_threshold(*old)
    assert len(m) <= 20
    m.clear()
    gc.collect()


class Interrupting:
    """A key that calls `use` once, when it is hashed inside the section."""

    def __init__(self, container, use):
        self.container, self.use, self.result = container, use, None

    def __hash__(self):
        if self.container._guard.busy and self.use is not None:
            use, self.use = self.use, None
            self.result = use()
        return 1


@pytest.mark.parametrize("guest", GUESTS)
@pytest.mark.parametrize("weak", [False, True], ids=["strong", "weak"])
def test_a_guest_is_served_when_the_section_has_ended(guest, weak):
    m = BoundedMap(5, weak=weak, idle=100)
    m["a"] = Value()
    uses, stack = guests(m)
    key = Interrupting(m, uses[guest])
    m[key] = Value()
    assert key.use is None
    assert not m._guard.late
    assert ("a" in m) == (guest not in ("pop", "popitem", "clear"))
    assert ("guest" in m) == (guest in ("set", "create"))
    assert (key in m) == (guest != "clear")
    assert m.stats().pinned == len(stack)
    for pin in stack:
        pin.__exit__(None, None, None)
    assert m.stats().pinned == 0


def test_a_guest_finds_what_was_evicted_but_is_held():
    m = BoundedMap(1, weak=True)
    m["a"] = held = Value()
    m["b"] = Value()
    key = Interrupting(m, lambda: m["a"])
    m[key] = Value()
    assert key.result is held
    assert "a" in m
    gone = Interrupting(m, lambda: m.get("nothing"))
    m[gone] = Value()
    assert gone.result is None


def test_a_guest_on_an_empty_map_finds_nothing():
    m = BoundedMap(5)

    def ask():
        with pytest.raises(KeyError):
            m.popitem()
        with pytest.raises(KeyError), m.pin("a"):
            pass
        return m.pop("a", "nothing")

    key = Interrupting(m, ask)
    m[key] = 1
    assert key.result == "nothing"


def test_a_pin_of_a_guest_whose_value_left_in_the_section_is_let_go():
    m = BoundedMap(1)
    m["a"] = 1
    pin = m.pin("a")
    m[Interrupting(m, pin.__enter__)] = 2
    assert m.stats().pinned == 0
    pin.__exit__(None, None, None)


def test_a_guest_of_a_log_is_served_when_the_section_has_ended():
    log = BoundedLog(5, max_age=100)
    log.append("a")
    results = []

    def inside():
        log.append("late")
        results.extend([list(log), log[0], log[:1], log.sweep(), log.shed(1), len(log)])

    log._section.run(log._tape, inside, inside)
    assert results == [["a"], "a", ["a"], 0, 0, 1]
    assert list(log) == ["a", "late"]


def test_a_thousand_guests_in_one_section_do_not_nest():
    m = BoundedMap(2000)

    class Key:
        def __hash__(self):
            if m._guard.busy and not done:
                done.append(1)
                for n in range(1500):
                    m[n] = n
            return 1

    done = []
    m[Key()] = 1
    assert len(m) == 1501


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="there are no such signals here")
def test_a_signal_handler_may_use_the_map():
    m, struck = BoundedMap(50, idle=100), []

    def handler(*_):
        struck.append(m._guard.busy)
        m["signal"] = len(m)
        m.pop(3, None)

    def work():
        for n in range(200):
            m[n % 100] = n
            m.get(n % 7)

    old = signal.signal(signal.SIGUSR1, handler)
    try:
        strike_at_every_line(lambda: signal.raise_signal(signal.SIGUSR1), work)
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert set(struck) == {False, True}
    assert not m._guard.late
    assert len(m) in (49, 50)


def test_threads_hammer_one_map_with_everything_it_can_do():
    told = []
    m = BoundedMap(
        40, max_bytes=300, weigh=lambda v: v[1], idle=0.01, ttl=0.05,
        on_evict=lambda k, v, r: told.append(v[0]),
    )  # fmt: skip
    errors, stop, made = [], time.monotonic() + 1.0, iter(range(10**9))

    def value():
        n = next(made)
        return (n, n % 9 + 1)

    def work(seed):
        step = seed
        try:
            while time.monotonic() < stop:
                step = (step * 1103515245 + 12345) % 2**31
                key = step % 60
                kind = step // 64 % 10
                if kind < 3:
                    m[key] = value()
                elif kind < 6:
                    m.get(key)
                elif kind == 6:
                    m.pop(key, None)
                elif kind == 7:
                    m.get_or_create(key, value)
                elif kind == 8:
                    try:
                        with m.pin(key):
                            m[key + 1] = value()
                    except KeyError:
                        pass
                else:
                    m.sweep(5)
                    assert len(m) <= 40 + 6
                    list(m.items())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
        assert not thread.is_alive()
    assert errors == []
    stats = m.stats()
    assert stats.pinned == 0
    assert stats.items <= 40
    assert stats.bytes <= 300
    inside = [v[0] for v in m.values()]
    m.clear()
    assert len(told) == len(set(told)) == sum(m.stats().left.values())
    assert set(inside) <= set(told)
