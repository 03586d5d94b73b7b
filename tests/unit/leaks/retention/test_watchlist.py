"""Expected to be gone: when it is reported, how often, and what is kept meanwhile."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest

import floodline
from floodline.errors import ConfigError
from floodline.leaks import check_gone
from floodline.leaks._retention import watchlist as watchlist_module
from floodline.leaks._retention.watchlist import Expectations, Watchlist
from worker_threads import Worker, events_of

HERE = __name__
HELD: list[object] = []


class Thing:
    pass


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def wanted(monkeypatch):
    """What the timer was asked for; no thread checks behind a test's back."""
    asked = []
    monkeypatch.setattr(
        watchlist_module.sweeper, "want", lambda tick, delay: asked.append((tick, delay))
    )
    return asked


@pytest.fixture
def clock():
    """Time passes, and garbage is collected, when a test says so."""
    gc.disable()
    yield Clock()
    HELD.clear()
    gc.enable()


@pytest.fixture
def expecting(clock, request):
    return Expectations(request.node.name, clock=clock)


def told(expecting):
    return [dict(event.fields) for event in events_of("retained", expecting.watchlist._source)]


def pass_grace(clock, seconds=31.0):
    clock.now += seconds
    gc.collect()


def test_what_is_freed_is_not_reported(expecting, clock):
    assert expecting.expect_gone(Thing(), "a thing")
    pass_grace(clock)
    assert (expecting.check(), len(expecting.watchlist), told(expecting)) == (0, 0, [])


def test_what_stays_is_reported_once_with_its_path(expecting, clock):
    HELD.append(Thing())
    expecting.expect_gone(HELD[0], "session alice")
    pass_grace(clock)
    assert (expecting.check(), expecting.check()) == (1, 0)
    assert told(expecting) == [
        {"label": "session alice", "seconds": 31.0, "path": f"{HERE}.HELD[*]", "count": 1}
    ]


def test_the_grace_is_waited_for(expecting, clock):
    HELD.append(Thing())
    expecting.expect_gone(HELD[0], "x", grace="1 min")
    pass_grace(clock)
    assert (expecting.check(), len(expecting.watchlist)) == (0, 1)
    pass_grace(clock)
    assert expecting.check() == 1


def test_a_full_collection_is_waited_for_and_not_forced(expecting, clock, monkeypatch):
    HELD.append(Thing())
    monkeypatch.setattr(watchlist_module, "_full_collections", lambda: 7)
    expecting.expect_gone(HELD[0], "x")
    clock.now = 100.0
    assert (expecting.check(), len(expecting.watchlist)) == (0, 1)
    monkeypatch.setattr(watchlist_module, "_full_collections", lambda: 8)
    assert expecting.check() == 1


def test_garbage_waits_for_the_next_full_collection(expecting, clock):
    thing = Thing()
    thing.me = thing
    expecting.expect_gone(thing, "x")
    pass_grace(clock)
    del thing
    assert (expecting.check(), len(expecting.watchlist)) == (0, 1)
    gc.collect()
    assert (expecting.check(), len(expecting.watchlist)) == (0, 0)


def test_a_short_grace_does_not_wait_for_a_long_one(expecting, clock):
    HELD.extend([Thing(), Thing()])
    expecting.expect_gone(HELD[0], "long", grace="1 h")
    expecting.expect_gone(HELD[1], "short", grace="1 s")
    pass_grace(clock)
    assert expecting.check() == 1
    assert [one["label"] for one in told(expecting)] == ["short"]


def test_many_of_one_path_are_one_report_and_searches_are_bounded(expecting, clock):
    HELD.extend(Thing() for _ in range(5))
    for n, thing in enumerate(HELD):
        expecting.expect_gone(thing, f"session {n}")
    del thing
    pass_grace(clock)
    assert expecting.check() == 5
    assert [(one["path"], one["count"]) for one in told(expecting)] == [
        (f"{HERE}.HELD[*]", 3),
        (watchlist_module.NoPath.NOT_SEARCHED, 2),
    ]
    assert expecting.watchlist.retained == 5


def test_a_dict_is_kept_for_the_grace_and_judged_by_its_references(expecting, clock):
    held: dict[str, object] = {"k": 1}
    HELD.append(held)
    del held
    expecting.expect_gone(HELD[0], "held")
    expecting.expect_gone({"k": [1]}, "free")
    assert len(expecting.watchlist) == 2
    pass_grace(clock)
    assert expecting.check() == 1
    assert len(expecting.watchlist) == 0
    assert [(one["label"], one["path"]) for one in told(expecting)] == [("held", f"{HERE}.HELD[*]")]


def test_a_dict_that_only_holds_itself_is_let_go(expecting, clock):
    loop: dict[str, object] = {"thing": Thing()}
    loop["me"] = loop
    ref = weakref.ref(loop["thing"])
    expecting.expect_gone(loop, "x")
    del loop
    pass_grace(clock)
    assert (expecting.check(), len(expecting.watchlist)) == (0, 0)
    gc.collect()
    assert ref() is None


def test_what_no_name_leads_to_is_said(expecting, clock, monkeypatch):
    monkeypatch.setattr(watchlist_module, "_FRAMES", False)
    thing = Thing()
    expecting.expect_gone(thing, "x")
    pass_grace(clock)
    assert expecting.check() == 1
    assert told(expecting)[0]["path"] == watchlist_module.NoPath.NO_NAME


def test_what_dies_during_the_check_is_not_reported():
    one = watchlist_module._Departure(weakref.ref(Thing()), None, "x", 0.0, 0.0, 0)
    assert watchlist_module._path_to(one) is None


def test_what_cannot_be_checked_is_refused(expecting):
    assert [expecting.expect_gone(one, "x") for one in (None, 1, "text")] == [False] * 3
    assert (len(expecting.watchlist), expecting.watchlist.unchecked) == (0, 2)


def test_both_lists_are_bounded():
    watchlist = Watchlist("here", max_watched=2, keep=1)
    HELD.extend((Thing(), [n]) for n in range(3))
    for thing, plain in HELD:
        watchlist.watch(thing, "x", 0.0)
        watchlist.watch(plain, "y", 0.0)
    HELD.clear()
    assert (len(watchlist), watchlist.unchecked) == (3, 3)


def test_no_record_piles_up_of_what_is_gone_at_once():
    watchlist = Watchlist("here", keep=100)
    HELD.append(Thing())
    watchlist.watch(HELD[0], "held", 0.0)
    for _ in range(50):
        watchlist.watch(Thing(), "x", 0.0)
        watchlist.watch([], "y", 0.0)
    HELD.clear()
    assert len(watchlist) <= 4
    assert watchlist.unchecked == 0


def test_a_grace_that_cannot_be_is_an_error(expecting):
    with pytest.raises(ConfigError, match="grace"):
        expecting.expect_gone(Thing(), "x", grace=-1)


def test_the_timer_goes_on_while_something_is_watched(expecting, clock, wanted):
    HELD.append(Thing())
    expecting.expect_gone(HELD[0], "x", grace=2)
    ((tick, delay),) = wanted
    assert delay == 2
    assert tick() == watchlist_module.CHECK_EVERY
    pass_grace(clock)
    assert tick() is None
    assert len(told(expecting)) == 1


def test_threads_may_watch_and_check_at_once():
    watchlist = Watchlist("here", keep=10)

    def work() -> None:
        for n in range(200):
            watchlist.watch(Thing(), "x", float(n))
            watchlist.check(float(n))

    for worker in [Worker(work) for _ in range(4)]:
        worker.result()
    watchlist.check(1000.0)
    assert len(watchlist) == 0


def test_another_thread_may_be_faster():
    class Emptied(list):
        def __len__(self):
            return 1

        def popleft(self):
            raise IndexError

    watchlist = Watchlist("here")
    watchlist._watched = Emptied()
    assert watchlist.check(0.0) == 0


def test_the_public_function_watches_for_the_process(monkeypatch):
    monkeypatch.setattr(
        watchlist_module, "_expectations", Expectations("public", clock=lambda: 0.0)
    )
    HELD.append(Thing())
    assert floodline.expect_gone(HELD[0], "x", grace=0)
    gc.collect()
    assert check_gone() == 1
    HELD.clear()


def test_it_needs_the_standard_library_only():
    code = (
        "import sys; from floodline import expect_gone, why_alive; import json;"
        "roots = {n.partition('.')[0] for n in sys.modules} - set(sys.stdlib_module_names);"
        "print(sorted(roots & {'msgspec', 'click', 'rich', 'psutil'}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
