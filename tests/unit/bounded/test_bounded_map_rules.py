from __future__ import annotations

import gc
import threading
import weakref

import pytest

from floodline.bounded import BoundedMap
from floodline.errors import ConfigError, TooLarge
from floodline.telemetry import Reason


class Clock:
    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now


class Thing:
    def __init__(self, name="thing"):
        self.name = name


def recorder():
    told = []
    return told, lambda *exit: told.append(exit)


def test_max_items_may_be_given_by_position_and_the_rest_by_name_only():
    assert BoundedMap(3).stats().max_items == 3
    with pytest.raises(TypeError):
        BoundedMap(3, "1 MiB")


def test_an_unknown_order_is_refused():
    with pytest.raises(ConfigError, match="order='mru'"):
        BoundedMap(3, order="mru")


def test_lru_evicts_who_was_not_read_for_longest():
    m = BoundedMap(3)
    m.update(a=1, b=2, c=3)
    assert m["a"] == 1
    assert m.get("b") == 2
    m["d"] = 4
    assert sorted(m) == ["a", "b", "d"]


def test_fifo_keeps_the_place_of_an_updated_key():
    m = BoundedMap(2, order="fifo")
    m["a"], m["b"] = 1, 2
    m["a"] = 3
    m.get("a")
    m["c"] = 4
    assert sorted(m) == ["b", "c"]


def test_oldest_renews_the_place_of_an_updated_key():
    m = BoundedMap(2, order="oldest")
    m["a"], m["b"] = 1, 2
    m["a"] = 3
    m.get("b")
    m["c"] = 4
    assert sorted(m) == ["a", "c"]


@pytest.mark.parametrize("order", ["lru", "fifo", "oldest"])
def test_a_clock_that_stands_still_or_jumps_changes_no_order(order):
    clock = Clock(1000.0)
    m = BoundedMap(3, idle=1e9, order=order, clock=clock)
    for now, key in ((1000, "a"), (5, "b"), (5, "c"), (1e6, "d"), (3, "e")):
        clock.now = now
        m[key] = key
    assert list(m) == ["c", "d", "e"]


def test_a_clock_that_was_set_back_goes_on_from_where_it_was():
    clock = Clock(1000.0)
    m = BoundedMap(ttl=10, clock=clock)
    m["a"] = 1
    clock.now = 3.0
    m["b"] = 2
    clock.now = 12.0
    assert list(m) == ["a", "b"]
    clock.now = 13.0
    assert list(m) == []
    assert len(m) == 0


def test_more_than_64_touched_heads_still_evict_the_oldest_of_those_seen():
    """[M1]"""
    told, hook = recorder()
    m = BoundedMap(1000, on_evict=hook)
    for n in range(1000):
        m[n] = n
    for n in reversed(range(1000)):
        m.get(n)
    m["new"] = 0
    assert told == [(63, 63, Reason.count)]


def test_more_than_64_touched_heads_give_room_for_a_heavy_item():
    m = BoundedMap(max_bytes=1000, weigh=lambda v: v)
    for n in range(1000):
        m[n] = 1
    for n in range(1000):
        m.get(n)
    m["heavy"] = 100
    assert m.stats().bytes == 1000
    assert len(m) == 901
    assert m["heavy"] == 100


def test_an_order_stays_exact_over_many_runs_of_touches():
    m = BoundedMap(2000)
    for n in range(2000):
        m[n] = n
    for n in range(0, 2000, 40):
        m.get(n)
    for n in range(2000, 2000 + 1950):
        m[n] = n
    assert [n for n in m if n < 2000] == list(range(0, 2000, 40))
    m["x"] = 1
    assert 0 not in m
    assert 40 in m


def test_ttl_counts_from_the_set_and_idle_from_the_last_touch():
    clock = Clock()
    told, hook = recorder()
    m = BoundedMap(ttl=10, idle=4, clock=clock, on_evict=hook)
    m["a"] = m["b"] = 1
    for now in (3, 6, 9):
        clock.now = now
        assert m.get("a") == 1
    assert len(m) == 1
    clock.now = 10
    assert m.get("a") is None
    assert sorted(told) == [("a", 1, Reason.age), ("b", 1, Reason.idle)]


def test_looking_does_not_touch():
    clock = Clock()
    m = BoundedMap(2, idle=10, clock=clock)
    m["a"], m["b"] = 1, 2
    clock.now = 9
    assert "a" in m
    assert list(m.items()) == [("a", 1), ("b", 2)]
    assert list(m.values()) == [1, 2]
    assert list(m.keys()) == ["a", "b"]
    assert ("a", 1) in m.items()
    assert ("a", 2) not in m.items()
    assert ("z", 2) not in m.items()
    assert "a" not in m.items()
    assert 2 in m.values()
    assert 3 not in m.values()
    m["c"] = 3
    assert "a" not in m
    clock.now = 10
    assert list(m) == ["c"]


def test_reversed_views_come_backwards():
    m = BoundedMap(5)
    m.update(a=1, b=2)
    assert list(reversed(m)) == ["b", "a"]
    assert list(reversed(m.values())) == [2, 1]
    assert list(reversed(m.items())) == [("b", 2), ("a", 1)]
    assert m == {"a": 1, "b": 2}


def test_iteration_survives_change():
    m = BoundedMap(100)
    m.update((n, n) for n in range(10))
    seen = []
    for key in m:
        seen.append(key)
        m.pop(key + 1, None)
        m[key + 100] = key
    assert seen == [0, 2, 4, 6, 8]


def test_sweep_removes_at_most_its_limit():
    clock = Clock()
    m = BoundedMap(ttl=10, clock=clock)
    for n in range(5):
        m[n] = n
    clock.now = 10
    assert m.sweep(2) == 2
    assert m.stats().left["age"] == 5
    assert m.sweep() == 0


def test_sweep_finds_the_expired_behind_thousands_that_were_touched():
    clock = Clock()
    m = BoundedMap(idle=10, clock=clock)
    for n in range(5000):
        m[n] = n
    clock.now = 5
    for n in range(4000):
        m.get(n)
    clock.now = 10
    assert m.sweep(10) == 0  # it has looked at 1,024
    assert m.sweep() == 1000
    assert len(m) == 4000


def test_a_thread_that_was_late_between_clock_and_stamp_does_not_hang_the_sweep():
    clock = Clock()
    m = BoundedMap(idle=10, ttl=100, clock=clock)
    m["late"], m["other"] = 1, 2
    m.get("late")
    clock.now = 8.0
    m._table.entries["other"].touched = 8.0  # it was, but its stamp is the older one
    clock.now = 11.0
    assert len(m) == 2
    assert "late" not in m
    clock.now = 18.0
    assert len(m) == 0


def test_a_set_among_many_expired_removes_only_some_of_them():
    clock = Clock()
    m = BoundedMap(1000, ttl=10, clock=clock)
    for n in range(1000):
        m[n] = n
    clock.now = 10
    m["new"] = 1
    assert len(m._table.entries) == 1000 - 64 + 1
    assert list(m) == ["new"]
    assert len(m) == 1
    assert m.stats().left == {"age": 1000}


def test_a_set_of_an_expired_key_beyond_the_first_ones_is_not_a_replacement():
    clock = Clock()
    told, hook = recorder()
    m = BoundedMap(ttl=10, clock=clock, on_evict=hook)
    for n in range(100):
        m[n] = n
    clock.now = 10
    m[99] = "again"
    assert (99, 99, Reason.age) in told
    assert m[99] == "again"


def test_an_expired_one_that_is_evicted_is_told_with_the_true_reason():
    clock = Clock()
    told, hook = recorder()
    m = BoundedMap(100, idle=10, clock=clock, on_evict=hook)
    for n in range(100):
        m[n] = n
    clock.now = 5
    for n in range(70):
        m.get(n)
    clock.now = 10
    m["new"] = 1
    assert {reason for _, _, reason in told} <= {Reason.idle, Reason.count}
    assert len(m) == 71 or told[0][2] is Reason.count


def test_every_explicit_way_out_is_closed():
    told, hook = recorder()
    m = BoundedMap(10, on_evict=hook)
    m.update(a=1, b=2, c=3, d=4)
    del m["a"]
    assert m.pop("b") == 2
    assert m.popitem() == ("c", 3)
    m.clear()
    assert told == [(k, v, Reason.closed) for k, v in zip("abcd", (1, 2, 3, 4), strict=True)]
    assert m.pop("a", "none") == "none"
    for call in (lambda: m.pop("a"), lambda: m.__delitem__("a"), m.popitem, lambda: m["a"]):
        with pytest.raises(KeyError):
            call()


def test_replacing_tells_the_old_value_but_setting_the_same_object_does_not():
    told, hook = recorder()
    m = BoundedMap(10, on_evict=hook)
    value = Thing()
    m["a"] = 1
    m["a"] = value
    m["a"] = value
    assert told == [("a", 1, Reason.replaced)]


def test_setdefault_is_one_step():
    m = BoundedMap(10)
    assert m.setdefault("a", 1) == 1
    assert m.setdefault("a", 2) == 1
    assert m.setdefault("b") is None
    m["c"] = None
    assert m.setdefault("c", 5) is None


def test_a_value_that_is_too_large_leaves_the_old_one_in_place():
    """[M2]"""
    told, hook = recorder()
    m = BoundedMap(max_bytes=10, on_evict=hook)
    m["a"], m["b"] = "aa", "bb"
    with pytest.raises(TooLarge):
        m["a"] = "x" * 11
    assert dict(m) == {"a": "aa", "b": "bb"}
    assert told == []


@pytest.mark.parametrize("order", ["lru", "fifo", "oldest"])
def test_an_update_that_grows_evicts_others_and_not_itself(order):
    m = BoundedMap(max_bytes=10, order=order)
    m["a"], m["b"], m["c"] = "aaa", "bbb", "ccc"
    m["a"] = "a" * 8
    assert dict(m) == {"a": "a" * 8}
    m["b"] = "b"
    assert dict(m) == {"a": "a" * 8, "b": "b"}


def test_a_weigh_without_max_bytes_only_counts():
    m = BoundedMap(10, weigh=len)
    m["a"] = [1, 2, 3]
    assert m.stats().bytes == 3
    assert m.stats().max_bytes is None
    assert BoundedMap(3).stats().bytes is None


def test_stats_count_hits_and_misses_and_name_the_limits():
    """[M5]"""
    clock = Clock()
    m = BoundedMap(5, ttl="1 min", idle=30, clock=clock)
    m["a"] = 1
    m.get("a")
    assert m["a"] == 1
    m.get("b")
    with m.pin("a"):
        assert m.stats().pinned == 1
    with pytest.raises(KeyError), m.pin("b"):
        pass
    clock.now = 31
    m.get("a")
    stats = m.stats()
    assert (stats.hits, stats.misses) == (3, 3)
    assert (stats.ttl, stats.idle, stats.order, stats.pinned) == (60, 30, "lru", 0)


# pins


def test_nothing_evicts_what_is_pinned():
    clock = Clock()
    told, hook = recorder()
    m = BoundedMap(2, ttl=10, idle=5, max_bytes=100, weigh=lambda v: 1, clock=clock, on_evict=hook)
    m["a"] = "A"
    with m.pin("a") as value:
        assert value == "A"
        for n in range(5):
            m[n] = n
        clock.now = 50
        assert m["a"] == "A"
        assert "a" in m
        assert len(m) == 1
        assert m.sweep() == 0
        assert m.shed(10) == 0
        assert list(m) == ["a"]
    assert ("a", "A", Reason.age) not in told
    assert len(m) == 0
    assert ("a", "A", Reason.age) in told


def test_idle_counts_from_the_unpin():
    clock = Clock()
    m = BoundedMap(idle=5, clock=clock)
    m["a"] = 1
    with m.pin("a"):
        clock.now = 100
    clock.now = 104
    assert "a" in m
    clock.now = 105
    assert "a" not in m


def test_pins_may_stand_above_the_limit_and_the_bound_binds_at_the_unpin():
    m = BoundedMap(2)
    m["a"], m["b"] = 1, 2
    with m.pin("a"), m.pin("b"):
        m["c"] = 3
        assert len(m) == 3
        m["d"] = 4
        assert sorted(m) == ["a", "b", "d"]
    assert len(m) == 2


def test_pins_are_counted():
    m = BoundedMap(1)
    m["a"] = 1
    with m.pin("a"):
        with m.pin("a"):
            pass
        m["b"] = 2
        assert "a" in m
    assert len(m) == 1


def test_replacing_what_is_pinned_acts_at_once_and_is_told_at_the_last_unpin():
    """[M3]"""
    told, hook = recorder()
    m = BoundedMap(2, on_evict=hook)
    m["a"] = "old"
    with m.pin("a"):
        m["a"] = "new"
        assert m["a"] == "new"
        assert told == []
        with m.pin("a") as value:
            assert value == "new"
    assert told == [("a", "old", Reason.replaced)]


@pytest.mark.parametrize(
    "remove", [lambda m: m.pop("a"), lambda m: m.clear(), lambda m: m.popitem()]
)
def test_deleting_what_is_pinned_acts_at_once_and_is_told_at_the_last_unpin(remove):
    """[M3]"""
    told, hook = recorder()
    m = BoundedMap(2, on_evict=hook)
    m["a"] = "old"
    with m.pin("a"):
        remove(m)
        assert "a" not in m
        m["a"] = "second"
        assert told == []
    assert told == [("a", "old", Reason.closed)]
    assert m["a"] == "second"


def test_popitem_prefers_what_nobody_holds():
    m = BoundedMap(5)
    m["a"], m["b"] = 1, 2
    with m.pin("a"):
        assert m.popitem() == ("b", 2)
        assert m.popitem() == ("a", 1)


def test_a_pinned_entry_that_an_eviction_met_can_be_replaced_and_removed():
    for order in ("lru", "fifo", "oldest"):
        m = BoundedMap(2, ttl=100, idle=100, order=order)
        m["a"] = value = Thing()
        pin = m.pin("a")
        pin.__enter__()
        for n in range(4):
            m[n] = n  # parks it
        m["a"] = value
        m["a"] = Thing()
        for n in range(4):
            m[n] = n
        assert len(m) == 2
        pin.__exit__(None, None, None)
        assert len(m) == 2


def test_a_pin_is_not_entered_twice_at_a_time():
    m = BoundedMap(2)
    m["a"] = 1
    pin = m.pin("a")
    with pin, pytest.raises(RuntimeError, match="in use"):
        pin.__enter__()
    with pin as value:
        assert value == 1
    assert m.stats().pinned == 0


def test_a_pin_released_by_a_collected_generator_does_not_wait_for_the_lock():
    m = BoundedMap(2)
    m["a"] = 1

    def holding():
        with m.pin("a"):
            yield

    generator = holding()
    next(generator)
    inside, leave = threading.Event(), threading.Event()

    class Key:
        def __hash__(self):
            inside.set()
            leave.wait(100)
            return 1

    thread = threading.Thread(target=m.__setitem__, args=(Key(), 1))
    # the hash is first asked for inside the lock, where the other thread then stays
    thread.start()
    assert inside.wait(100)
    del generator
    leave.set()
    thread.join(100)
    m["b"] = 1
    assert m.stats().pinned == 0


# weak


def test_weak_with_a_hook_is_refused():
    """[M4]"""
    with pytest.raises(ConfigError, match="on_evict"):
        BoundedMap(3, weak=True, on_evict=print)


def test_weak_refuses_what_cannot_be_weakly_referenced_and_changes_nothing():
    """[M4]"""
    m = BoundedMap(3, weak=True)
    m["a"] = thing = Thing()
    with pytest.raises(TypeError):
        m["a"] = 3
    with pytest.raises(TypeError):
        m.setdefault("b", "text")
    assert dict(m) == {"a": thing}


@pytest.mark.parametrize(
    "find",
    [
        lambda m: m["a"],
        lambda m: m.get("a"),
        lambda m: m.get_or_create("a", Thing),
        lambda m: m.setdefault("a", Thing()),
        lambda m: m.pin("a").__enter__(),
    ],
)
def test_an_evicted_value_that_somebody_holds_is_found_again(find):
    m = BoundedMap(1, weak=True)
    m["a"] = held = Thing()
    m["b"] = other = Thing()
    assert "a" not in m
    assert m.stats().leftovers == 1
    assert find(m) is held
    assert list(m) == ["a"]
    assert m.stats().leftovers == 1
    del other
    gc.collect()
    assert m.stats().leftovers == 0
    assert m.stats().hits == 1


def test_an_expired_value_that_somebody_holds_is_found_again_with_a_new_life():
    clock = Clock()
    m = BoundedMap(ttl=10, weak=True, clock=clock)
    m["a"] = held = Thing()
    clock.now = 10
    assert len(m) == 0
    assert m["a"] is held
    clock.now = 19
    assert "a" in m


def test_an_evicted_value_that_nobody_holds_is_gone():
    m = BoundedMap(1, weak=True)
    m["a"] = Thing()
    m["b"] = Thing()
    assert m.get("a") is None
    assert m.stats().leftovers == 0


def test_what_the_user_removed_is_not_found_again():
    m = BoundedMap(1, weak=True)
    held = [Thing(), Thing()]
    m["a"], m["b"] = held
    assert m.pop("a") is held[0]
    assert m.get("a") is None
    m["a"] = held[0]
    del m["b"]
    assert m.get("b") is None
    m["b"] = held[1]
    m.clear()
    assert m.get("a") is m.get("b") is None
    m["c"] = Thing()
    m["c"] = held[0]
    assert m["c"] is held[0]


def test_setting_a_key_forgets_its_leftover():
    m = BoundedMap(1, weak=True)
    m["a"] = first = Thing()
    m["b"] = Thing()
    m["a"] = second = Thing()
    m["b"] = Thing()
    assert m["a"] is second
    assert first is not second


def test_a_map_that_is_dropped_frees_everything_at_once():
    gc.disable()
    try:
        m = BoundedMap(5, ttl=10)
        thing = Thing()
        ref = weakref.ref(thing)
        m["a"] = thing
        m.get_or_create("b", Thing)
        with m.pin("a"):
            pass
        del m, thing
        assert ref() is None
    finally:
        gc.enable()


def test_one_set_after_all_have_idled_away_idles_away_too():
    now = [0.0]
    held = BoundedMap(ttl=3, idle=1, clock=lambda: now[0])
    for time in (0.0, 1.0, 2.0):
        now[0] = time
        assert len(held) == 0
        held["a"] = time
        assert len(held) == 1
