"""BoundedMap against a model that does everything the slow and obvious way."""

from __future__ import annotations

from contextlib import ExitStack

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from floodline.bounded import BoundedMap
from floodline.telemetry import Reason

KEYS = st.sampled_from("abcdefghij")


class Item:
    def __init__(self, value, weight, now, count):
        self.value, self.weight = value, weight
        self.set_at = self.touched_at = now
        self.placed = self.renewed = self.used = count
        self.pins = 0


class Model:
    """A dict and three sorts."""

    def __init__(self, max_items, max_bytes, ttl, idle, order):
        self.max_items, self.max_bytes, self.ttl, self.idle = max_items, max_bytes, ttl, idle
        self.rank = {"lru": "used", "fifo": "placed", "oldest": "renewed"}[order]
        self.items, self.told, self.count, self.now = {}, [], 0, 0.0
        self.waiting = []  # values that left while pinned: [key, value, reason, pins]

    def tick(self):
        self.count += 1
        return self.count

    def expire(self):
        for key, item in list(self.items.items()):
            aged = self.ttl is not None and self.now >= item.set_at + self.ttl
            idled = self.idle is not None and self.now >= item.touched_at + self.idle
            if item.pins or not (aged or idled):
                continue
            first_idle = idled and (
                not aged or item.touched_at + self.idle < item.set_at + self.ttl
            )
            self.leave(key, Reason.idle if first_idle else Reason.age)

    def leave(self, key, reason):
        item = self.items.pop(key)
        self.tell(key, item, reason)

    def tell(self, key, item, reason):
        if item.pins:
            self.waiting.append([key, item.value, reason, item.pins])
        else:
            self.told.append((key, item.value, reason))

    def shrink(self, items=0, weight=0, keep=None):
        while True:
            if self.max_items is not None and len(self.items) + items > self.max_items:
                reason = Reason.count
            elif self.max_bytes is not None and self.bytes() + weight > self.max_bytes:
                reason = Reason.bytes
            else:
                return
            free = [k for k, i in self.items.items() if not i.pins and k != keep]
            if not free:
                return
            self.leave(min(free, key=lambda k: getattr(self.items[k], self.rank)), reason)

    def bytes(self):
        return sum(item.weight for item in self.items.values())

    def set(self, key, value):
        self.expire()
        old = self.items.get(key)
        if old is None:
            self.shrink(1, len(value))
            self.items[key] = Item(value, len(value), self.now, self.tick())
            return
        self.tell(key, old, Reason.replaced)
        new = Item(value, len(value), self.now, self.tick())
        new.placed = old.placed
        self.items[key] = new
        self.shrink(keep=key)

    def get(self, key):
        self.expire()
        item = self.items.get(key)
        if item is None:
            return None
        item.used, item.touched_at = self.tick(), self.now
        return item.value

    def unpin(self, key, value):
        for record in self.waiting:
            if record[0] == key and record[1] is value:
                record[3] -= 1
                if not record[3]:
                    self.told.append(tuple(record[:3]))
                    self.waiting.remove(record)
                return
        item = self.items[key]
        item.pins -= 1
        if not item.pins:
            item.used, item.touched_at = self.tick(), self.now
            self.shrink()


class MapMachine(RuleBasedStateMachine):
    @initialize(
        max_items=st.none() | st.integers(1, 6),
        max_bytes=st.none() | st.integers(5, 20),
        ttl=st.none() | st.integers(1, 10),
        idle=st.none() | st.integers(1, 10),
        order=st.sampled_from(["lru", "fifo", "oldest"]),
    )
    def start(self, max_items, max_bytes, ttl, idle, order):
        if max_items is max_bytes is ttl is idle is None:
            max_items = 3
        self.raw, self.told, self.pins, self.made = 100.0, [], [], 0
        self.model = Model(max_items, max_bytes, ttl, idle, order)
        self.map = BoundedMap(
            max_items,
            max_bytes=max_bytes,
            ttl=ttl,
            idle=idle,
            order=order,
            weigh=len,
            on_evict=lambda *exit: self.told.append(exit),
            clock=lambda: self.raw,
        )

    def teardown(self):
        with ExitStack() as stack:
            for _, _, pin in getattr(self, "pins", ()):
                stack.push(pin)

    def value(self, size):
        self.made += 1
        return [self.made] + [0] * (size - 1)

    @rule(key=KEYS, size=st.integers(1, 5))
    def set(self, key, size):
        value = self.value(size)
        self.map[key] = value
        self.model.set(key, value)

    @rule(key=KEYS)
    def get(self, key):
        assert self.map.get(key) is self.model.get(key)

    @rule(key=KEYS)
    def look(self, key):
        self.model.expire()
        assert (key in self.map) == (key in self.model.items)

    @rule(key=KEYS, size=st.integers(1, 5))
    def set_default(self, key, size):
        value = self.value(size)
        found = self.model.get(key)
        if found is None:
            self.model.set(key, value)
        assert self.map.setdefault(key, value) is (value if found is None else found)

    @rule(key=KEYS)
    def pop(self, key):
        self.model.expire()
        item = self.model.items.get(key)
        if item is not None:
            self.model.leave(key, Reason.closed)
        assert self.map.pop(key, None) is (None if item is None else item.value)

    @rule()
    def clear(self):
        self.model.expire()
        for key in list(self.model.items):
            self.model.leave(key, Reason.closed)
        self.map.clear()

    @rule(key=KEYS)
    def pin(self, key):
        self.model.expire()
        item = self.model.items.get(key)
        pin = self.map.pin(key)
        if item is None:
            try:
                pin.__enter__()
            except KeyError:
                return
            raise AssertionError("a pin on what is not there")
        assert pin.__enter__() is item.value
        item.pins += 1
        item.used, item.touched_at = self.model.tick(), self.model.now
        self.pins.append((key, item.value, pin))

    @precondition(lambda self: getattr(self, "pins", None))
    @rule(data=st.data())
    def unpin(self, data):
        at = data.draw(st.integers(0, len(self.pins) - 1))
        key, value, pin = self.pins.pop(at)
        pin.__exit__(None, None, None)
        self.model.unpin(key, value)

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0, 20.0]))
    def time_passes(self, seconds):
        self.raw += seconds
        self.model.now += seconds

    @rule(seconds=st.sampled_from([0.5, 50.0]))
    def the_clock_is_set_back(self, seconds):
        self.raw -= seconds
        len(self.map)  # somebody must look, to see it

    @rule()
    def sweep(self):
        before = len(self.model.items)
        self.model.expire()
        assert self.map.sweep() == before - len(self.model.items)

    @rule(limit=st.integers(0, 3))
    def sweep_some(self, limit):
        before = set(self.model.items)
        self.model.expire()
        expired = len(before) - len(self.model.items)
        assert self.map.sweep(limit) == min(limit, expired)

    @rule(limit=st.integers(0, 3))
    def shed(self, limit):
        self.model.expire()
        self.map.sweep()
        free = [k for k, i in self.model.items.items() if not i.pins]
        free.sort(key=lambda k: getattr(self.model.items[k], self.model.rank))
        for key in free[:limit]:
            self.model.leave(key, Reason.pressure)
        assert self.map.shed(limit) == len(free[:limit])

    @invariant()
    def both_agree(self):
        if not hasattr(self, "map"):
            return
        self.model.expire()
        assert len(self.map) == len(self.model.items)
        assert dict(self.map.items()) == {k: i.value for k, i in self.model.items.items()}
        assert set(self.map) == set(self.model.items)
        stats = self.map.stats()
        assert stats.bytes == self.model.bytes()
        assert stats.items == len(self.model.items)
        told, expected = self.told.copy(), self.model.told.copy()
        self.told.clear()
        self.model.told.clear()
        assert sorted(told, key=repr) == sorted(expected, key=repr)


class LookingLess(MapMachine):
    """As above, but nobody asks for `len` after each step, so expired entries pile up."""

    @invariant()
    def both_agree(self):
        if hasattr(self, "map"):
            self.model.expire()
            assert dict(self.map.items()) == {k: i.value for k, i in self.model.items.items()}

    @rule()
    def sweep(self):
        self.model.expire()
        self.map.sweep()

    @rule(limit=st.integers(0, 3))
    def sweep_some(self, limit):
        assert self.map.sweep(limit) <= limit


TestMapModel = MapMachine.TestCase
TestMapModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLookingLess = LookingLess.TestCase
TestLookingLess.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
