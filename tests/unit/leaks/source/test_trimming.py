from __future__ import annotations

import ast

import pytest

from floodline.leaks._objects import territory
from floodline.leaks._source.limit_checks import caps
from soak_programs import module

SOURCE = """
import threading
KEEP = 50

class Kept:
    def __init__(self):
        self.last, self.first, self.cut, self.pages, self.told = [], [], [], [], []
        self.once, self.both, self.turns, self.days, self.texts = [], [], {}, {}, {}
        self.rooms, self.tokens, self.held, self.seen = {}, {}, {}, {}

    def add(self, x):
        with self.lock:
            self.last.append(x)
            self.last = self.last[-KEEP:]
        self.first.append(x)
        self.first = self.first[:20]
        self.cut.append(x)
        del self.cut[:-30]
        self.pages.append(x)
        del self.pages[40:]
        self.told.append(x)
        self.told[:] = self.told[begin(x):]
        self.once.append(x)
        if x == "reset":
            self.once = self.once[-10:]
        self.both.append(x)
        self.both = self.both[1:-1]

    def turn(self, x):
        self.turns[x % 60] = x
        day = hash(x) % 7
        self.days[day] += x
        self.texts["%s" % x] = x
        self.rooms[x][x % 5] = x

    def issue(self, x):
        self.tokens[x] = x
        threading.Timer(60, lambda: self.tokens.pop(x, None)).start()
        self.held[x] = x
        self.on_close(self.held.pop, x)
        self.seen[x] = x
        threading.Timer(60, self.seen.get, x).start()

    def forget(self, x):
        self.table[x] = self.timed[x] = self.asked[x] = self.given[x] = x
        if len(self.order) > 70:
            oldest = self.order.popleft()
            del self.table[oldest]
        while self.heap and self.heap[0][0] < now():
            _, key = heapq.heappop(self.heap)
            self.timed.pop(key, None)
        if x > 5:
            found = self.requests.pop(x)
            del self.asked[found]
        if len(self.order) > 80:
            self.order.popleft()
            del self.given[x]
"""


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("last", ["KEEP"]),
        ("first", ["20"]),
        ("cut", ["30"]),
        ("pages", ["40"]),
        ("told", ["None"]),
        ("once", []),
        ("both", []),
        ("turns", ["60"]),
        ("days", ["7"]),
        ("texts", []),
        ("rooms", []),
        ("tokens", ["None"]),
        ("held", []),
        ("seen", []),
        ("table", ["70"]),
        ("timed", ["self.heap and self.heap[0][0] < now()"]),
        ("asked", []),
        ("given", []),
    ],
)
def test_what_each_addition_trims_turns_or_times_is_limited(name, limits, tmp_path, monkeypatch):
    module("trims", SOURCE, tmp_path, monkeypatch)
    assert [ast.unparse(limit) for limit in caps("trims", name, of="Kept")] == limits


GUARDS = """
import threading
seen, told, counted, n, ran = set(), [], [], 0, 0
local = threading.local()
store = None

def check(n):
    if n in seen:
        return True
    seen.add(n)

def tell(n):
    if n > 5:
        return
    told.append(n)

def count(x):
    global ran
    if ran >= 5:
        return
    ran += 1
    counted.append(x)

def keep(x):
    global store
    if not hasattr(local, "rows"):
        local.rows = []
    local.rows.append(x)
    if store is None:
        store = []
    store.append(x)
    try:
        local.lines.append(x)
    except AttributeError:
        local.lines = []
    try:
        local.sent.append(x)
    finally:
        local.sent.clear()

def work():
    global n
    while True:
        n += 1
        check(n)
        tell(n)
        count(n)
        keep(n)

worker = threading.Thread(target=work)
"""


@pytest.mark.parametrize("name", ["seen", "told", "rows", "store", "lines"])
def test_a_known_key_an_argument_and_a_first_use_are_no_limit(name, tmp_path, monkeypatch):
    module("guards", GUARDS, tmp_path, monkeypatch)
    assert caps("guards", name) == []


@pytest.mark.parametrize(("name", "shown"), [("counted", "5"), ("sent", "keep(n)")])
def test_a_count_that_is_only_raised_and_a_last_step_are(name, shown, tmp_path, monkeypatch):
    module("guards", GUARDS, tmp_path, monkeypatch)
    assert [ast.unparse(one) for one in caps("guards", name)] == [shown]


BATCHES = """
class Batches:
    def __init__(self, most):
        self.most, self.rows, self.sent, self.kept = most, [], [], []
    def add(self, row):
        self.rows.append(row)
        self.sent.append(row)
        self.kept.append(row)
    def full(self):
        return len(self.rows) >= self.most
    def take(self):
        rows, self.rows = self.rows, []
        return rows
    def flush(self):
        self.sent.clear()
    def reset(self):
        self.kept.clear()
"""
USES = """
import time
from batches import Batches
made = Batches(5)
def serve(row):
    made.add(row)
    if made.full():
        return made.take()
def loop():
    while True:
        time.sleep(60)
        made.flush()
loop
"""


def test_a_limit_may_be_kept_by_a_module_that_uses_the_container(tmp_path, monkeypatch):
    module("batches", BATCHES, tmp_path, monkeypatch)
    assert caps("batches", "rows", of="Batches") == []
    module("uses_batches", USES, tmp_path, monkeypatch)
    other = USES.replace("from batches import", "from unittest.mock import Mock as")
    module("has_none_of_it", other.replace("flush", "reset"), tmp_path, monkeypatch)
    those = ["batches", "has_none_of_it", "uses_batches"]
    monkeypatch.setattr(territory, "program_modules", lambda: those)
    limits = {name: caps("batches", name, of="Batches") for name in ("rows", "sent", "kept")}
    shown = {name: [ast.unparse(one) for one in found] for name, found in limits.items()}
    assert shown == {"rows": ["self.most"], "sent": ["made.flush()"], "kept": []}
