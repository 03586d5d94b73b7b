from __future__ import annotations

import ast

import pytest

from floodline.leaks._heap.container_limit import read_numbers
from floodline.leaks._source.limit_checks import caps, caps_at
from floodline.leaks._source.place import Place
from soak_programs import line_of, module

SOURCE = """
import heapq
LIMIT = 9

def shrink(x):
    if len(ROWS) > LIMIT:
        ROWS.pop(0)
    while 5 < len(A):
        evict()
    if len(B) >= 3:
        print("too many")
    if 1 < len(B) < 3:
        B.pop()

def evict():
    A.clear()

class Cap:
    def over(self):
        if len(self.kept) > self.max_kept:
            self.kept = self.kept[-5:]
        if len(self.cut) > 4:
            del self.cut[0]
        if len(self.sliced) > 4:
            self.sliced[:] = []
        if len(self.keyed) > 4:
            self.keyed["x"] = 1
        if not len(self.denied) < 4:
            self.denied.popitem()
        if self.jobs.qsize() >= LIMIT * 2:
            self.jobs.get_nowait()
        while len(self.heap) > (1 << 4):
            heapq.heappop(self.heap)
        if len(self.chosen) > 4:
            self.chosen.difference_update(old)

class Budget:
    def add(self, key, value):
        self.aged.append(value)
        while self.used + value > self.budget:
            self.weighed.popitem()
        if self.count > self.most:
            del self.counted[:10]
        if self.turn % 400 == 399:
            self.batch = []
        if not self.turn % 400:
            self.bag = set()
        if clock() - self.since > 60:
            self.drop_all()
        while self.due[0] <= clock():
            heapq.heappop(self.due)
        if self.turn > 5:
            self.window = self.window[-5:]

    def drop_all(self):
        self.aged.clear()

class NoCap:
    def forget(self, key, tries, rows):
        if tries > 3:
            self.pending.pop(key)
        if self.refs <= 0:
            self.shared.clear()
        if key in self.known:
            del self.known[key]
        if "%s" % key == "x":
            self.printed.clear()
        if tries > 3:
            self.best = rows
        if tries > 3:
            del self.removed[key]
        if tries > 3:
            self.counted_again.pop(key, None)
        if tries > 3:
            self.full = [1]
        if tries > 3:
            self.by_name.pop("key", None)

class Sweeper:
    def put(self, key, value):
        self.seen[key] = value
        for old in [k for k, at in self.seen.items() if at < clock()]:
            del self.seen[old]

    def tick(self):
        self.sweep()

    def sweep(self):
        dead = []
        for key, value in self.table.items():
            if value.expires < clock():
                dead.append(key)
        for key in dead:
            self.table.pop(key, None)

    def nobody_calls_this(self):
        self.lost = {k: v for k, v in self.lost.items() if v > clock()}

    def invalidate(self, keys):
        for key in keys:
            if self.version > 5:
                self.cache.pop(key)
    on_change = invalidate

class Guarded:
    def __init__(self):
        self.guarded[0] = 1

    def put(self, key, value):
        if len(self.guarded) < LIMIT:
            self.guarded[key] = value
        if LIMIT > len(self.also) and key:
            self.also.append(value)
        if len(self.half) < 4:
            self.half.add(key)
        if 2 < len(self.ranged) < 4:
            self.ranged.add(key)
        if len(self.emptied) < 4:
            self.emptied.clear()
        self.emptied.append(key)

    def put_more(self, key):
        self.half.add(key)
        self.ranged.add(key)

    def refuse(self, key):
        if len(self.refused) >= self.most:
            raise KeyError(key)
        self.refused[key] = 1

    def perhaps(self, key):
        if len(self.perhaps_full) >= 3 and key:
            return
        self.perhaps_full[key] = 1

class Helped:
    # limits that are tested elsewhere, or by a count
    def __init__(self):
        self.size = self.tries = self.taken = 0
        self.helped, self.asked_first, self.ringed, self.tried = {}, {}, [], []

    def _full(self):
        "Return True if there is no room."
        return len(self.helped) >= self.most

    @property
    def has_room(self):
        return len(self.asked_first) < 12

    def put(self, key, value):
        if self._full():
            self.helped.popitem()
        self.helped[key] = value
        if not self.has_room:
            return
        self.asked_first[key] = value

    def write(self, value):
        if self.size < self.most:
            self.ringed.append(value)
            self.size += 1
        else:
            self.ringed[self.size % self.most] = value
        if self.tries < 3:
            self.tried.append(value)
            self.tries += 1
        if self.taken < 3:
            self.lent.append(value)
            self.taken += 1

    def give_back(self):
        self.taken -= 1

    def succeed(self):
        self.tries = 0

class Flushed:
    def __init__(self):
        self.never = []

    def loop(self):
        while not self.closing:
            wait()
            with self.lock:
                batch, self.swapped = self.swapped, []
            if self.asked:
                self.when_asked.clear()
            if self.pending_rows:
                self.flush()
            for one in self.parts:
                self.in_parts.clear()
            own = []
            shared = []
            self.items[one].clear()

    def flush(self):
        self.pending_rows = {}

    def drain(self):
        while self.drained:
            self.drained.pop()
        Timer(60, self.drain)

    def in_time(self):
        if clock() - self.last > 60:
            self.roll()

    def roll(self):
        self.rolled, self.last = [], clock()

    def unused(self):
        while True:
            self.not_run.clear()

    def again(self, depth):
        self.recursive.clear()
        self.again(depth - 1)

class Other:
    def tick(self):
        while True:
            self.reset()

    def reset(self):
        self.count = 0

class Reset:
    def reset(self):
        self.only_on_demand.clear()

def everything():
    global SHARED
    while True:
        SHARED = []
        own = self.own

STARTED = (Flushed.loop, Flushed.in_time, everything)

def feed(key, value):
    rows = TABLE.setdefault(key, [])
    rows.append(value)
    if len(rows) > 24:
        del rows[:12]
    others = TABLE[key]
    others[value] = (
        value)
    total = 0
    total += 1
    self.deep.sets["x"].add(value)
    if len(deep.sets) > 7:
        deep.sets.clear()
    print(value)
"""


@pytest.fixture(autouse=True)
def made(tmp_path, monkeypatch):
    return module("capped", SOURCE, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("ROWS", ["LIMIT"]),
        ("A", ["5"]),
        ("B", []),
        ("kept", ["self.max_kept"]),
        ("cut", ["4"]),
        ("sliced", ["4"]),
        ("keyed", []),
        ("denied", ["4"]),
        ("jobs", ["LIMIT * 2"]),
        ("heap", ["1 << 4"]),
        ("chosen", ["4"]),
    ],
)
def test_a_cap_is_a_comparison_whose_branch_removes(name, limits):
    assert [ast.unparse(limit) for limit in caps("capped", name)] == limits


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("guarded", ["LIMIT"]),
        ("also", ["LIMIT"]),
        ("refused", ["self.most"]),
        ("half", []),
        ("ranged", []),
        ("emptied", []),
        ("perhaps_full", []),
        ("helped", ["self.most"]),
        ("asked_first", ["12"]),
        ("ringed", ["self.most", "self.most"]),
        ("tried", []),
        ("lent", []),
    ],
)
def test_a_cap_is_a_guard_before_everything_that_adds(name, limits):
    assert [ast.unparse(limit) for limit in caps("capped", name)] == limits


def test_a_number_in_a_limit_is_calculated_as_the_program_has_it():
    class Holder:
        most = 3

    assert read_numbers(caps("capped", "jobs"), None, "capped") == [18]
    assert read_numbers(caps("capped", "heap"), None, "capped") == [16]
    limit = ast.parse("self.most * 2 - LIMIT", mode="eval").body
    assert read_numbers([limit], Holder(), "capped") == [-3]
    assert read_numbers([limit], None, "capped") == []


@pytest.mark.parametrize(
    "name", ["weighed", "counted", "batch", "bag", "aged", "due", "window", "seen", "table"]
)
def test_a_cap_need_not_ask_for_the_length(name):
    limits = caps("capped", name)
    assert limits
    assert read_numbers(limits, None, "capped") == []


@pytest.mark.parametrize("name", ["swapped", "pending_rows", "drained", "rolled", "SHARED"])
def test_what_a_loop_or_a_timer_empties_has_a_cap(name):
    limits = caps("capped", name)
    assert limits
    assert read_numbers(limits, None, "capped") == []


@pytest.mark.parametrize(
    "name",
    [
        *("never", "when_asked", "in_parts", "own", "items", "not_run", "recursive"),
        "only_on_demand",
    ],
)
def test_what_is_emptied_on_demand_or_under_another_name_has_no_cap(name):
    assert caps("capped", name) == []


@pytest.mark.parametrize(
    "name",
    [
        *("pending", "shared", "known", "printed", "best", "removed", "counted_again", "full"),
        *("lost", "cache", "by_name"),
    ],
)
def test_one_key_that_is_removed_is_no_cap(name):
    assert caps("capped", name) == []


@pytest.mark.parametrize(
    ("part", "limits"),
    [
        ("rows.append(value)", ["24"]),
        ("        value)", []),
        ("total += 1", []),
        ('self.deep.sets["x"]', ["7"]),
        ("print(value)", []),
    ],
)
def test_what_a_line_feeds_by_another_name_has_its_cap_there(made, part, limits):
    place = Place(made.__file__, line_of(SOURCE, part), "feed")
    assert [ast.unparse(limit) for limit in caps_at(place)] == limits


def test_no_source_shows_no_cap(made):
    assert caps("no_such_module", "x") == []
    assert caps_at(Place("missing.py", 3, "f")) == []
    assert caps_at(Place(made.__file__, 1, "<module>")) == []
