from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref

import pytest

from event_loops import events_of
from floodline import AsyncSessions, BoundedLog, BoundedMap, Sessions, telemetry
from floodline.errors import ConfigError, WouldBlockLoop
from floodline.memory import GCController, MemoryBudget, MemoryTracker
from floodline.stores import MemoryStore
from memory_fakes import MIB, FakeClock, FakeMemory

PATIENCE = 100.0  # a safety net, not a measure


class Holder:
    """Sheds up to `len`; each item frees some of the made-up memory."""

    def __init__(self, memory, items, size=10, name="holder"):
        self.memory, self.items, self.size, self.name = memory, items, size, name
        self.asked = []

    def __len__(self):
        return self.items

    def shed(self, limit):
        self.asked.append(limit)
        went = min(limit, self.items)
        self.items -= went
        self.memory.grow(-went * self.size)
        return went


def make(limit=1000, target=900, size=500, **options):
    memory, clock = FakeMemory(size), FakeClock()
    events = []
    options = {"every": None, "step": 4, "cooldown": 0, "on_event": events.append} | options
    budget = MemoryBudget(limit, target=target, probe=memory, clock=clock, **options)
    return budget, memory, clock, events


def kinds(events):
    return [event.kind for event in events]


# ---- lines


def test_the_default_target_lies_a_sixteenth_below():
    total = {"probe": lambda: 1, "total": lambda: 1600}
    check = MemoryBudget(every=None, **total).check()
    assert (check.limit, check.target) == (1280, 1200)
    check = MemoryBudget("16 MiB", every=None, **total).check()
    assert (check.limit, check.target) == (16 * MIB, 15 * MIB)


def test_a_limit_that_changes_is_followed():
    total = [1000]
    budget = MemoryBudget("50%", every=None, probe=lambda: 1, total=lambda: total[0])
    assert budget.check().limit == 500
    total[0] = 2000
    assert budget.check().limit == 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": "0%"}, "limit='0%' must be above 0% and at most 100%"),
        ({"limit": "120%"}, "at most 100%"),
        ({"limit": "much"}, "limit='much' cannot be read"),
        ({"limit": 0}, "below 1 byte"),
        ({"limit": 100, "target": 100}, "must be below limit=100 B; give a lower target"),
        ({"limit": "80%", "target": "85%"}, "must be below"),
        ({"limit": 100, "action": "kill"}, "action='kill' is unknown"),
        ({"limit": 100, "step": 0}, "step=0"),
        ({"limit": 100, "every": 0}, "every=0"),
        ({"limit": 100, "on_event": 5}, "on_event=5 cannot be called"),
    ],
)
def test_what_cannot_work_is_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        MemoryBudget(**options)


# ---- shedding


def test_below_the_line_nothing_happens():
    budget, memory, _, events = make(size=1000)
    holder = Holder(memory, 50)
    budget.attach(holder)
    check = budget.check()
    assert (check.level, check.shed, check.rounds, check.exhausted) == ("ok", 0, 0, False)
    assert holder.asked == events == []
    assert budget.stats().collections == 0


def test_above_the_line_it_sheds_in_slices_down_to_the_target():
    budget, memory, _, events = make(size=1001)
    holder = Holder(memory, 50)
    budget.attach(holder)
    check = budget.check()
    assert holder.asked == [4, 7]
    assert (check.used, check.shed, check.rounds, check.exhausted) == (891, 11, 2, False)
    assert kinds(events) == ["pressure", "relieved"]
    assert (events[1].used, events[1].shed, events[0].used) == (891, 11, 1001)
    stats = budget.stats()
    assert (stats.shed, stats.rounds, stats.episodes, stats.exhausted) == (11, 2, 1, 0)
    assert stats.collections == 2  # once a round
    assert (stats.bytes, stats.max_bytes, stats.target) == (891, 1000, 900)


def test_a_few_large_items_do_not_all_go_when_some_are_enough():
    budget, memory, _, _ = make(size=1100, step=64)
    holder = Holder(memory, 20, size=25)  # the other 600 are nobody's
    budget.attach(holder)
    check = budget.check()
    assert (check.used, check.shed, holder.items) == (900, 8, 12)


def test_slices_double_while_shedding_frees_nothing():
    budget, memory, _, _ = make(size=1100)
    holder = Holder(memory, 1000, size=0)
    budget.attach(holder)
    assert budget.check().exhausted
    assert holder.asked[:4] == [4, 8, 16, 32]


def test_between_target_and_line_nothing_more_goes():
    budget, memory, _, _ = make(size=1001)
    holder = Holder(memory, 50)
    budget.attach(holder)
    budget.check()
    asked = len(holder.asked)
    memory.size = 990
    assert budget.check().shed == 0
    assert len(holder.asked) == asked


def test_when_nothing_more_can_go_it_says_so_and_stops():
    budget, memory, _, events = make(size=2000)
    holder = Holder(memory, 5)
    budget.attach(holder)
    check = budget.check()
    assert (check.shed, check.exhausted, check.used) == (5, True, 1950)
    assert kinds(events) == ["pressure", "exhausted"]
    assert budget.stats().exhausted == 1
    budget.check()
    assert budget.stats().exhausted == 1  # the same state
    memory.size = 500
    assert not budget.check().exhausted
    memory.size = 2000
    budget.check()
    assert budget.stats().exhausted == 2


def test_exhausted_below_the_line_does_not_go_on_shedding():
    budget, memory, _, _ = make(size=1001)
    holder = Holder(memory, 5)
    budget.attach(holder)
    assert budget.check().exhausted  # 951: below the line, above the target
    holder.items = 5
    assert budget.check().shed == 0


def test_what_the_collector_frees_counts_even_if_nothing_can_go():
    budget, memory, _, events = make(size=1001)

    class Ring:
        def __del__(self):
            memory.grow(-500)

    ring = Ring()
    ring.me = ring
    del ring
    check = budget.check()
    assert (check.used, check.exhausted) == (501, False)
    assert kinds(events) == ["pressure", "relieved"]


def test_it_does_not_collect_at_every_look_while_nothing_can_go():
    budget, _, clock, _ = make(size=2000, cooldown=60)
    for _ in range(5):
        budget.check()
    assert budget.stats().collections == 1
    clock.now += 60
    budget.check()
    assert budget.stats().collections == 2


def test_holders_shed_in_proportion_to_what_they_hold():
    budget, memory, _, _ = make(limit=10_000, target=9_000, size=10_001, step=100)
    large, small, empty = Holder(memory, 900), Holder(memory, 100), Holder(memory, 0)
    for holder in (large, small, empty):
        budget.attach(holder)
    budget.check()
    assert (large.asked[0], small.asked[0], empty.asked) == (90, 10, [])


def test_a_budget_sheds_its_own_holders_only():
    budget, memory, _, _ = make(size=1001)
    other, _, _, _ = make(size=1)
    mine, theirs = Holder(memory, 50), Holder(memory, 50)
    budget.attach(mine)
    other.attach(theirs)
    budget.check()
    assert mine.asked
    assert not theirs.asked


def test_one_check_does_so_much_and_the_next_goes_on():
    budget, memory, _, events = make(size=10_000_000, every=30)
    holder = Holder(memory, 1_000_000, size=1)
    budget.attach(holder)
    first = budget.check()
    assert first.rounds == 12
    assert not first.exhausted
    assert kinds(events) == ["pressure"]
    assert budget._tick() == 0.05
    assert holder.asked[-1] == 4096
    memory.size = 950  # below the line: it goes on to the target nevertheless
    budget.check()
    assert kinds(events) == ["pressure", "relieved"]
    assert budget.stats().episodes == 1


def test_a_holder_without_a_length_is_asked_too():
    class Plain:
        def shed(self, limit):
            memory.size = 0
            return 1

    budget, memory, _, _ = make(size=1001)
    plain = Plain()
    budget.attach(plain)
    assert budget.check().shed == 1


def test_a_holder_that_raises_is_counted_and_the_others_go_on():
    class Broken(Holder):
        def shed(self, limit):
            raise OSError("disk full")

    budget, memory, _, _ = make(size=1001)
    broken, good = Broken(memory, 50, name="broken"), Holder(memory, 50)
    budget.attach(broken)
    budget.attach(good)
    assert budget.check().used <= 900
    assert budget.stats().errors >= 1
    event = [e for e in telemetry.recent() if e.kind == "shed_error"][-1]
    assert event.fields == {"holder": "broken", "error": "OSError: disk full"}


def test_a_holder_that_does_not_answer_in_time_does_not_mean_exhausted():
    class Slow(Holder):
        def shed(self, limit):
            raise TimeoutError

    budget, memory, _, events = make(size=1001)
    slow = Slow(memory, 50)
    budget.attach(slow)
    check = budget.check()
    assert (check.exhausted, check.rounds) == (False, 0)
    assert kinds(events) == ["pressure"]
    assert budget._pressed


def test_with_alert_it_only_tells():
    budget, memory, _, events = make(size=1001, action="alert")
    holder = Holder(memory, 50)
    budget.attach(holder)
    assert budget.check().level == "pressure"
    assert kinds(events) == ["pressure"]
    assert not holder.asked
    assert budget.stats().episodes == budget.stats().collections == 0


# ---- thresholds


def test_warn_and_critical_are_told():
    budget, memory, _, events = make(warn=800, critical=1100)
    memory.size = 801
    assert budget.check().level == "warn"
    memory.size = 1101
    assert budget.check().level == "critical"
    assert kinds(events) == ["warn", "critical", "pressure", "exhausted"]
    assert events_of("memory_exhausted", budget.name)


def test_an_event_of_a_kind_comes_once_in_a_cooldown():
    budget, memory, clock, events = make(warn=800, cooldown="1 min")
    memory.size = 850
    for _ in range(3):
        budget.check()
    assert kinds(events) == ["warn"]
    clock.now += 60
    budget.check()
    assert kinds(events) == ["warn", "warn"]


def test_a_clock_that_was_set_back_prolongs_no_cooldown():
    budget, memory, clock, events = make(warn=800, cooldown="1 min")
    memory.size = 850
    budget.check()
    clock.now -= 900
    budget.check()
    assert kinds(events) == ["warn"]
    clock.now += 60
    budget.check()
    assert kinds(events) == ["warn", "warn"]


def test_thresholds_may_be_shares():
    budget = MemoryBudget(
        "80%", warn="50%", every=None, probe=lambda: 600, total=lambda: 1000, action="alert"
    )
    assert budget.check().level == "warn"


def test_a_callback_that_raises_is_counted_and_stops_nothing():
    def broken(event):
        raise ValueError("no")

    budget, memory, _, _ = make(size=1001, on_event=broken)
    holder = Holder(memory, 50)
    budget.attach(holder)
    assert budget.check().used <= 900
    assert budget.stats().hook_errors == 2


def test_a_callback_may_check_and_gets_the_last_result():
    results = []
    budget, memory, _, _ = make(size=1001, on_event=lambda _: results.append(budget.check()))
    holder = Holder(memory, 50)
    budget.attach(holder)
    budget.check()
    assert [result.used for result in results] == [1001, 1001]  # what was seen at construction
    assert budget.check().used <= 900


# ---- holders and their lives


def test_a_holder_needs_shed():
    budget, _, _, _ = make()
    with pytest.raises(ConfigError, match=r"5 cannot be attached; it has no shed\(limit\) method"):
        budget.attach(5)


def test_holders_are_not_kept_and_are_attached_once():
    budget, memory, _, _ = make()
    holder = Holder(memory, 5)
    budget.attach(holder)
    budget.attach(holder)
    assert budget.stats().items == 1
    ref = weakref.ref(holder)
    del holder
    gc.collect()
    assert ref() is None
    assert budget.stats().items == 0


def test_a_budget_lives_as_long_as_what_it_bounds():
    cache = BoundedMap(10, pressure=MemoryBudget("1 GiB", every=None, name="short-lived"))
    gc.collect()
    assert "short-lived" in [holder.stats().name for holder in telemetry.holders()]
    del cache
    gc.collect()
    assert "short-lived" not in [holder.stats().name for holder in telemetry.holders()]


def test_a_budget_that_nobody_keeps_is_freed_without_the_collector():
    gc.disable()
    try:
        budget = MemoryBudget("1 GiB", on_event=print, every=3600)
        ref = weakref.ref(budget)
        del budget
        assert ref() is None
    finally:
        gc.enable()


def test_a_number_that_belongs_to_another_holder_by_now_is_left_alone():
    budget, memory, _, _ = make()
    holder = Holder(memory, 5)
    budget.attach(holder)
    budget._holder_gone(id(holder))
    budget._holder_gone(1)
    assert budget.stats().items == 1


def test_bounded_containers_shed_under_pressure():
    budget, memory, _, _ = make(step=100)
    cache = BoundedMap(1000, pressure=budget, on_evict=lambda *_: memory.grow(-10))
    log = BoundedLog(1000, pressure=budget, on_evict=lambda *_: memory.grow(-10))
    for n in range(100):
        cache[n] = n
        log.append(n)
    memory.size = 1500
    with cache.pin(0):
        check = budget.check()
    assert check.used <= 900
    assert cache.stats().left["pressure"] + log.stats().left["pressure"] == check.shed
    assert 0 in cache
    assert 1 not in cache


def test_sessions_are_parked_in_idle_order_and_come_back():
    budget, memory, _, _ = make(step=1)
    store = MemoryStore()
    left = []

    def on_leave(id, _state, reason):
        left.append((id, str(reason)))
        memory.grow(-60)

    sessions = Sessions(dict, store=store, pressure=budget, on_leave=on_leave)
    for n in range(10):
        with sessions.use(f"s{n}") as state:
            state["n"] = n
    memory.size = 1001
    with sessions.use("s0"):
        check = budget.check()
    assert check.shed == 2
    assert left == [("s1", "pressure"), ("s2", "pressure")]
    with sessions.use("s1") as state:
        assert state == {"n": 1}
    sessions.shutdown()


def test_async_sessions_shed_on_their_own_loop():
    budget, memory, _, _ = make(step=2)
    threads = []

    async def on_leave(_id, _state, _reason):
        threads.append(threading.current_thread())
        memory.grow(-60)

    async def main():
        async with AsyncSessions(dict, pressure=budget, on_leave=on_leave) as sessions:
            for n in range(10):
                async with sessions.use(f"s{n}"):
                    pass
            memory.size = 1001
            check = await budget.acheck()
            assert check.shed == 2
            assert len(sessions) == 8
            memory.size = 1001
            with pytest.raises(WouldBlockLoop, match="acheck"):
                budget.check()
        return sessions

    sessions = asyncio.run(main())
    assert set(threads) == {threading.main_thread()}
    assert sessions.shed_threadsafe(5) == 0  # its loop is over


def test_a_loop_that_is_busy_is_asked_once_and_its_answer_is_fetched_later():
    def ask(sessions):
        blocked, go_on = threading.Event(), threading.Event()

        def block():
            blocked.set()
            go_on.wait(PATIENCE)

        sessions._driver.loop.call_soon_threadsafe(block)
        assert blocked.wait(PATIENCE)
        for _ in range(3):
            with pytest.raises(TimeoutError):
                sessions.shed_threadsafe(2, timeout=0.001)
        _, asked = sessions._shedding
        wait = asked.result

        def unblock_and_wait(timeout):
            # only now: an answer that is there before the call is not this call's to fetch
            go_on.set()
            return wait(timeout)

        asked.result = unblock_and_wait
        return sessions.shed_threadsafe(5, timeout=PATIENCE)

    async def main():
        async with AsyncSessions(dict) as sessions:
            for n in range(10):
                async with sessions.use(f"s{n}"):
                    pass
            went = await asyncio.to_thread(ask, sessions)
            return went, len(sessions)

    assert asyncio.run(main()) == (2, 8)


def test_async_sessions_without_a_loop_shed_nothing():
    assert AsyncSessions(dict).shed_threadsafe(5) == 0


def test_a_loop_that_is_closed_at_the_same_moment_is_no_error(monkeypatch):
    async def main():
        sessions = AsyncSessions(dict)
        async with sessions.use("a"):
            pass
        return sessions

    def closed(*_):
        raise RuntimeError("Event loop is closed")

    async def ask():
        sessions = await main()
        monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", closed)
        return await asyncio.to_thread(sessions.shed_threadsafe, 5)

    assert asyncio.run(ask()) == 0


# ---- ticking


def test_it_looks_by_itself_once_something_is_attached():
    memory, looked = FakeMemory(2000), threading.Event()
    budget = MemoryBudget(
        1000, every=0.001, probe=memory, on_event=lambda event: looked.set(), cooldown=0
    )
    holder = Holder(memory, 1000)
    budget.attach(holder)
    assert looked.wait(PATIENCE)


def test_nothing_attached_and_nobody_told_means_no_ticks():
    budget = MemoryBudget("1 GiB", every=30)
    assert not budget._ticking
    holder = Holder(FakeMemory(), 5)
    budget.attach(holder)
    assert budget._ticking
    assert budget._tick() == 30
    del holder
    gc.collect()
    assert budget._tick() is None
    assert not budget._ticking


def test_only_one_thread_at_a_time_sheds():
    budget, memory, _, _ = make(size=1001)
    inside, go_on = threading.Event(), threading.Event()

    class Slow(Holder):
        def shed(self, limit):
            inside.set()
            assert go_on.wait(PATIENCE)
            return super().shed(limit)

    holder = Slow(memory, 50)
    budget.attach(holder)
    thread = threading.Thread(target=budget.check)
    thread.start()
    assert inside.wait(PATIENCE)
    assert budget.check().shed == 0  # the last result, at once
    go_on.set()
    thread.join()
    assert budget.stats().shed == 11


def test_a_check_that_strikes_inside_another_is_left_to_that():
    budget, memory, _, _ = make()
    guard = budget._guard
    with guard.lock:
        guard.busy = True
        assert budget.check().used == 500
        guard.busy = False
    guard.run_late()
    memory.size = 600
    assert budget.check().used == 600


def test_repr_names_the_line():
    assert repr(MemoryBudget("1 GiB", name="b")) == "<MemoryBudget 'b': 1 GiB>"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_worker_has_its_budget_too():
    code = """
    import os, threading
    from floodline import BoundedMap, MemoryBudget
    memory = [1]
    shed = threading.Event()
    budget = MemoryBudget(1000, every=0.005, probe=lambda: memory[0], name="b")
    cache = BoundedMap(1000, pressure=budget, on_evict=lambda *_: shed.set())
    cache["parent"] = 1
    if os.fork() == 0:
        assert budget.stats().checks == 0 or budget.stats().shed == 0
        cache["child"] = 1
        memory[0] = 2000
        os._exit(0 if shed.wait(100) else 1)
    _, status = os.wait()
    assert "parent" in cache
    raise SystemExit(os.waitstatus_to_exitcode(status))
    """
    source = "import warnings; warnings.simplefilter('ignore')\n" + textwrap.dedent(code)
    assert subprocess.run([sys.executable, "-c", source], check=False).returncode == 0


# ---- parts of another type


@pytest.mark.parametrize("make_one", [MemoryBudget, MemoryTracker, GCController])
@pytest.mark.parametrize("wrong", [{"probe": 3}, {"clock": 3}, {"name": 3}, {"name": ""}])
def test_a_part_of_another_type_is_refused_at_construction(make_one, wrong):
    (what,) = wrong
    with pytest.raises(ConfigError, match=f"{what}="):
        make_one(**wrong)


def test_a_total_that_cannot_be_called_is_refused():
    with pytest.raises(ConfigError, match="total=5"):
        MemoryBudget(total=5)


@pytest.mark.parametrize("make_one", [BoundedMap, BoundedLog])
def test_a_container_refuses_what_is_no_budget(make_one):
    with pytest.raises(ConfigError, match=r"pressure='80%' .* give a MemoryBudget"):
        make_one(10, pressure="80%")


def test_a_look_that_fails_is_counted_and_the_next_is_due_as_ever():
    failing = []

    def probe():
        if failing:
            raise OSError("not now")
        return 1

    budget = MemoryBudget(10, probe=probe, every=30, on_event=lambda _: None)
    failing.append(True)
    assert budget._tick() == 30
    assert budget.stats().hook_errors == 1
    failing.clear()
    assert budget._tick() == 30
    assert budget.stats().checks == 1
