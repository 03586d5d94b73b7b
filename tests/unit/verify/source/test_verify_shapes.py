"""Fixes in many shapes, judged by their source and by running them."""
# ruff: noqa: E501 -- one shape a line reads as a table

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from floodline.verify import Claim, verify

HEAD = """\
import heapq, logging, queue
from collections import OrderedDict, deque
from functools import cache, lru_cache
LIMIT = 10
log = logging.getLogger(__name__)
"""


def klass(add: str, made: str = "{}", more: str = "", init: str = "self") -> str:
    body = "\n".join(f"        {line}" for line in add.splitlines())
    extra = "\n".join(f"    {line}" for line in more.splitlines())
    return f"""\
class Cache:
    top = 10
    def __init__({init}):
        self.x = {made}
    def add(self, key):
{body}
{extra}
"""


PUT = "self.x[key] = 1\n"
PUSH = "self.x.append(key)\n"
GET = "def get(self, key):\n    self.x.move_to_end(key)\n    return self.x[key]"
DICT_FIRST = PUT + "if len(self.x) > 10: "
# what it is, code, policy, verdict by the source, verdict with --execute
SHAPES = [
    ("deque", klass(PUSH, "deque(maxlen=10)"), "window", "proved", "proved"),
    ("deque by place", klass(PUSH, "deque([], 10)"), "fifo", "proved", "proved"),
    ("deque of a constant", klass(PUSH, "deque(maxlen=LIMIT)"), "oldest", "proved", "proved"),
    ("a calculated maxlen", klass(PUSH, "deque(maxlen=(1 << 3) + 2)"), "fifo", "proved", "proved"),
    ("maxlen None by place", klass(PUSH, "deque([], None)"), "fifo", "refuted", "refuted"),
    ("a queue of no size", klass("self.x.put_nowait(key)", "queue.Queue(0)"), "reject", "refuted", "refuted"),
    ("deque is no lru", klass(PUSH, "deque(maxlen=10)"), "lru", "refuted", "refuted"),
    ("deque is no batch", klass(PUSH, "deque(maxlen=10)"), "batch", "refuted", "refuted"),
    ("another maxlen", klass(PUSH, "deque(maxlen=LIMIT * 2)"), "fifo", "refuted", "refuted"),
    ("a smaller maxlen", klass(PUSH, "deque(maxlen=LIMIT - 5)"), "fifo", "refuted", "refuted"),
    ("maxlen None", klass(PUSH, "deque(maxlen=None)"), "fifo", "refuted", "refuted"),
    ("a queue refuses", klass("self.x.put_nowait(key)", "queue.Queue(10)"), "reject", "proved", "proved"),
    ("a queue is no fifo", klass("self.x.put_nowait(key)", "queue.Queue(maxsize=10)"), "fifo", "refuted", "refuted"),
    ("cut to the newest", klass(PUSH + "self.x = self.x[-10:]", "[]"), "window", "proved", "proved"),
    ("cut in place", klass(PUSH + "del self.x[:-10]", "[]"), "window", "proved", "proved"),
    ("cut to the oldest", klass(PUSH + "self.x = self.x[:10]", "[]"), "window", "refuted", "refuted"),
    ("cut the tail off", klass(PUSH + "del self.x[10:]", "[]"), "window", "refuted", "refuted"),
    ("cut to another number", klass(PUSH + "self.x = self.x[-9 + 4:]", "[]"), "window", "refuted", "refuted"),
    ("pop first", klass(PUSH + "if len(self.x) > 10:\n    self.x.pop(0)", "[]"), "fifo", "proved", "proved"),
    ("del first", klass(PUSH + "if 10 < len(self.x):\n    del self.x[0]", "[]"), "fifo", "proved", "proved"),
    ("pop last", klass(PUSH + "if len(self.x) > 10:\n    self.x.pop()", "[]"), "fifo", "refuted", "refuted"),
    ("popleft", klass(PUSH + "while len(self.x) > LIMIT:\n    self.x.popleft()", "deque()"), "oldest", "proved", "proved"),
    ("iter", klass(DICT_FIRST + "self.x.pop(next(iter(self.x)))"), "fifo", "proved", "proved"),
    ("a named key", klass(PUT + "if len(self.x) > self.top:\n    old = next(iter(self.x))\n    del self.x[old]"), "fifo", "proved", "proved"),
    ("min", klass(PUT + "if len(self.x) > 10:\n    old = min(self.x, key=self.x.get)\n    del self.x[old]"), "oldest", "proved", "proved"),
    ("least used is not seen", klass(DICT_FIRST + "del self.x[min(self.x, key=self.x.get)]"), "lru", "cannot tell", "proved"),
    ("a loop over the first", klass(PUT + "if len(self.x) > 10:\n    for k in list(self.x)[:1]:\n        del self.x[k]"), "fifo", "proved", "proved"),
    ("the largest", klass(PUT + "if len(self.x) > 10:\n    k = max(self.x)\n    del self.x[k]"), "fifo", "cannot tell", "refuted"),
    ("a heap", klass("heapq.heappush(self.x, key)\nif len(self.x) > 10:\n    heapq.heappop(self.x)", "[]"), "oldest", "proved", "proved"),
    ("lru", klass(PUT + "if len(self.x) > 10:\n    self.x.popitem(last=False)", "OrderedDict()", GET), "lru", "proved", "proved"),
    ("lru is not fifo", klass(PUT + "if len(self.x) > 10:\n    self.x.popitem(False)", "OrderedDict()", GET), "fifo", "refuted", "refuted"),
    ("fifo is not lru", klass(PUT + "if len(self.x) > 10:\n    self.x.popitem(last=False)", "OrderedDict()"), "lru", "refuted", "refuted"),
    ("renewed on writing", klass(PUT + "self.x.move_to_end(key)\nif len(self.x) > 10:\n    self.x.popitem(last=False)", "OrderedDict()"), "lru", "cannot tell", "proved"),
    ("taken out and put in", klass("self.x.pop(key, None)\n" + PUT + "if len(self.x) > 10:\n    del self.x[next(iter(self.x))]"), "lru", "cannot tell", "proved"),
    ("popitem takes the newest", klass(DICT_FIRST + "self.x.popitem()"), "oldest", "refuted", "refuted"),
    ("batch", klass(PUSH + "if len(self.x) >= 10:\n    print(self.x)\n    self.x.clear()", "[]"), "batch", "proved", "proved"),
    ("batch by a method", klass(PUSH + "if len(self.x) >= 10:\n    self.flush()", "[]", "def flush(self):\n    self.x = []"), "batch", "proved", "proved"),
    ("batch of other size", klass(PUSH + "if len(self.x) >= 4:\n    self.x = list()", "[]"), "batch", "refuted", "refuted"),
    ("emptied is no fifo", klass(PUSH + "if len(self.x) > 10:\n    del self.x[:]", "[]"), "fifo", "refuted", "refuted"),
    ("evicting is no batch", klass(PUSH + "if len(self.x) > 10:\n    self.x.pop(0)", "[]"), "batch", "refuted", "refuted"),
    ("returns", klass("if len(self.x) >= 10:\n    return\n" + PUT), "reject", "proved", "proved"),
    ("raises", klass("if len(self.x) >= 10:\n    raise ValueError\n" + PUT), "reject", "proved", "proved"),
    ("returning is no fifo", klass("if len(self.x) >= 10:\n    return\n" + PUT), "fifo", "refuted", "refuted"),
    ("adds below the limit", klass("if len(self.x) < 10:\n    " + PUT), "reject", "proved", "proved"),
    ("else removes", klass("if len(self.x) < 10:\n    pass\nelse:\n    self.x.pop(0)\n" + PUSH, "[]"), "fifo", "proved", "proved"),
    ("fifo is no reject", klass(DICT_FIRST + "del self.x[next(iter(self.x))]"), "reject", "refuted", "refuted"),
    ("only logs", klass(PUT + "if len(self.x) > 10:\n    log.warning('full')"), "fifo", "refuted", "refuted"),
    ("nothing", klass(PUT), "fifo", "refuted", "refuted"),
    ("a helper of another shape", klass(PUT + "self.trim()", more="def trim(self):\n    if len(self.x) > 10:\n        self.x.pop(list(self.x)[0])"), "fifo", "proved", "proved"),
    ("a check before a private add", klass("if len(self.x) >= 10:\n    self.x.pop(0)\nself._add(key)", "[]", "def _add(self, key):\n    self.x.append(key)"), "fifo", "proved", "proved"),
    ("nobody calls the check", klass(PUT, more="def trim(self):\n    if len(self.x) > 10:\n        self.x.popitem()\n        del self.x[next(iter(self.x))]"), "reject", "refuted", "refuted"),
    ("a check on another path", klass(PUT, more="def tick(self):\n    self.trim()\ndef trim(self):\n    while len(self.x) > 10:\n        del self.x[next(iter(self.x))]"), "fifo", "cannot tell", "refuted"),
    ("a size with a name", klass("size = len(self.x)\nif size >= 10:\n    del self.x[next(iter(self.x))]\n" + PUT), "fifo", "proved", "proved"),
    ("a size with a name that is out of date", klass("size = len(self.x)\n" + PUT + "if size >= 10:\n    del self.x[next(iter(self.x))]"), "fifo", "cannot tell", "proved"),
    ("a size with a name that changes", klass(PUT + "size = len(self.x)\nwhile size > 10:\n    del self.x[next(iter(self.x))]\n    size -= 1"), "fifo", "cannot tell", "proved"),
    ("an excess", klass(PUT + "excess = len(self.x) - LIMIT\nif excess > 0:\n    for k in list(self.x)[:excess]:\n        del self.x[k]"), "fifo", "proved", "proved"),
    ("an early return", klass(PUT + "n = len(self.x)\nif n <= self.top:\n    return\nfor k in sorted(self.x, key=self.x.get)[: n - self.top]:\n    self.x.pop(k)"), "oldest", "proved", "proved"),
    ("an early return with an else", klass(PUT + "if len(self.x) <= 10:\n    return\nelse:\n    del self.x[next(iter(self.x))]"), "fifo", "proved", "proved"),
    ("sorted backwards", klass(PUT + "if len(self.x) > 10:\n    for k in sorted(self.x, reverse=True)[:1]:\n        del self.x[k]"), "fifo", "cannot tell", "refuted"),
    ("the end of sorted backwards", klass(PUT + "if len(self.x) > 10:\n    for k in sorted(self.x, reverse=True)[-1:]:\n        del self.x[k]"), "oldest", "proved", "proved"),
    ("the end of sorted", klass(PUT + "if len(self.x) > 10:\n    del self.x[sorted(self.x)[-1]]"), "fifo", "cannot tell", "refuted"),
    ("sorted items", klass(PUT + "if len(self.x) > 10:\n    pairs = sorted(self.x.items(), key=lambda kv: kv[1])\n    for k, _ in pairs[:1]:\n        del self.x[k]"), "oldest", "proved", "proved"),
    ("sorted in place", klass(PUT + "if len(self.x) > 10:\n    keys = list(self.x)\n    keys.sort(key=self.x.get)\n    del self.x[keys[0]]"), "oldest", "proved", "proved"),
    ("the oldest of a comprehension", klass(PUT + "if len(self.x) > 10:\n    for k in [key for key in self.x][:1]:\n        del self.x[k]"), "fifo", "proved", "proved"),
    ("those of a condition", klass(PUT + "if len(self.x) > 10:\n    for k in [key for key in self.x if key == 'never'][:1]:\n        del self.x[k]"), "fifo", "cannot tell", "refuted"),
    ("a loop that stops", klass(PUT + "if len(self.x) > 10:\n    for k in list(self.x):\n        if len(self.x) <= 10:\n            break\n        del self.x[k]"), "fifo", "proved", "proved"),
    ("a loop over all", klass(PUT + "if len(self.x) > 10:\n    for k in list(self.x):\n        del self.x[k]"), "fifo", "cannot tell", "refuted"),
    ("a walrus", klass(PUT + "if len(self.x) > 10 and (old := next(iter(self.x))):\n    del self.x[old]"), "fifo", "cannot tell", "proved"),
    ("the oldest by islice", klass(PUT + "if len(self.x) > 10:\n    from itertools import islice\n    for k in list(islice(self.x, 1)):\n        del self.x[k]"), "fifo", "proved", "proved"),
    ("by a negative key", klass(PUT + "if len(self.x) > 10:\n    del self.x[min(self.x, key=lambda k: -self.x[k])]"), "oldest", "cannot tell", "proved"),
    ("the largest of negative keys", klass(PUT + "if len(self.x) > 10:\n    del self.x[max(self.x, key=lambda k: -self.x[k])]"), "oldest", "proved", "proved"),
    ("reversed", klass(PUT + "if len(self.x) > 10:\n    del self.x[list(reversed(self.x))[-1]]"), "fifo", "proved", "proved"),
    ("the least used", klass(PUT + "if len(self.x) > 10:\n    old = min(self.x, key=lambda k: self.hits.get(k, 0))\n    del self.x[old]", more="def get(self, key):\n    self.hits[key] += 1", made="{}; self.hits = {}"), "oldest", "cannot tell", "proved"),
    ("the least used of records", klass("self.x[key] = {'hits': 0}\nif len(self.x) > 10:\n    del self.x[min(self.x, key=lambda k: self.x[k]['hits'])]", more="def get(self, key):\n    self.x[key]['hits'] += 1"), "oldest", "cannot tell", "proved"),
    ("one more below the limit", klass("if len(self.x) <= 10:\n    " + PUT), "reject", "refuted", "refuted"),
    ("trimmed before it is added", klass("self.trim()\n" + PUSH, "[]", "def trim(self):\n    if len(self.x) > 10:\n        self.x.pop(0)"), "fifo", "refuted", "refuted"),
    ("logs by a method", klass("if len(self.x) >= UNKNOWN():\n    self.warn('full')\n" + PUT, more="def warn(self, text):\n    log.warning(text)").replace("class", "UNKNOWN = lambda: 10\nclass"), "fifo", "refuted", "refuted"),
    ("logs elsewhere", klass("if len(self.x) >= 10 and key:\n    self.full = True\n    told = f'{self.x}'\n    print(told, len(self.x))\n    logging.addLevelName(len(self.x), 'x')\n" + PUT), "fifo", "refuted", "refuted"),
    ("handed on", klass("if len(self.x) >= 10:\n    shrink(self)\n" + PUT).replace("class", "def shrink(it): it.x.clear()\nclass"), "batch", "cannot tell", "proved"),
    ("waits", klass("if len(self.x) >= 10:\n    room.wait(0)\n" + PUT).replace("class", "import threading\nroom = threading.Event()\nclass"), "fifo", "cannot tell", "refuted"),
    ("a hook", klass("if len(self.x) >= 10:\n    self.on_full()\n" + PUT, "{}; self.on_full = self.x.clear"), "batch", "cannot tell", "proved"),
    ("an attribute of the constructor", klass(PUT + "if len(self.x) > self.most:\n    del self.x[next(iter(self.x))]", "{}; self.most = 10"), "fifo", "proved", "proved"),
    ("an inherited constant", "class Base:\n    MOST = 10\n" + klass(PUT + "if len(self.x) > self.MOST:\n    del self.x[next(iter(self.x))]").replace("Cache", "Cache(Base)"), "fifo", "proved", "proved"),
    ("settings", klass(PUT + "if len(self.x) > settings.most:\n    del self.x[next(iter(self.x))]").replace("class", "class Settings:\n    most: int = 10\nsettings = Settings()\nclass", 1), "fifo", "proved", "proved"),
    ("a dotted base", "import collections\nclass Cache(collections.OrderedDict):\n    def add(self, key):\n        self[key] = 1\n        if len(self) > 10:\n            self.popitem(last=False)\n", "fifo", "proved", "proved"),
    ("some are removed", klass(PUT + "if len(self.x) > 10:\n    self.x = {k: v for k, v in self.x.items() if k == key}"), "fifo", "cannot tell", "refuted"),
    ("an unknown number", klass(PUT + "if len(self.x) > self.limit():\n    self.x.popitem()", more="def limit(self):\n    return 10"), "fifo", "cannot tell", "refuted"),
    ("a default", klass(PUSH, "deque(maxlen=n)", init="self, n=10"), "fifo", "proved", "proved"),
    ("another default", klass(PUSH, "deque(maxlen=n)", init="self, *, n=11"), "fifo", "refuted", "refuted"),
    ("no default", klass(PUSH, "deque(maxlen=n)", init="self, n"), "fifo", "cannot tell", "cannot tell"),
    ("a class attribute", klass(PUSH + "if len(self.x) > Cache.top:\n    self.x.pop(0)", "[]"), "fifo", "proved", "proved"),
    ("a base of its own", "class Base:\n    def trim(self):\n        if len(self.x) > 10:\n            self.x.pop(0)\n" + klass(PUSH + "self.trim()", "[]").replace("Cache", "Cache(Base)"), "fifo", "proved", "proved"),
    ("a base from elsewhere", klass(PUT).replace("Cache", "Cache(logging.Filter)"), "fifo", "cannot tell", "refuted"),
    ("a map itself", "class Cache(dict):\n    def add(self, key):\n        self[key] = 1\n        if len(self) > 10:\n            del self[next(iter(self))]\n", "fifo", "proved", "proved"),
    ("ours", klass(PUT, "BoundedMap(10)").replace("class", "from floodline import BoundedMap\nclass"), "lru", "proved", "proved"),
    ("ours by age", klass(PUT, "BoundedMap(10, order='fifo')").replace("class", "from floodline import BoundedMap\nclass"), "lru", "refuted", "refuted"),
    ("heappop by name", klass("heapq.heappush(self.x, key)\nif len(self.x) > 10:\n    heappop(self.x)", "[]").replace("class", "from heapq import heappop\nclass", 1), "oldest", "cannot tell", "proved"),
    ("an order list", klass("self.x[key] = 1\nself.o.append(key)\nif len(self.x) > 10:\n    old = self.o.pop(0)\n    del self.x[old]", "{}; self.o = []"), "fifo", "proved", "proved"),
    ("the last of an order list", klass("self.o.append(key)\nself.x[key] = 1\nif len(self.x) > 10:\n    old = self.o.pop()\n    del self.x[old]", "{}; self.o = []"), "fifo", "cannot tell", "refuted"),
    ("a key of its own", klass(DICT_FIRST + "del self.x[key]"), "fifo", "cannot tell", "refuted"),
    ("pop the last by index", klass(PUSH + "if len(self.x) > 10:\n    self.x.pop(-1)", "[]"), "window", "refuted", "refuted"),
    ("remove one", klass(PUSH + "if len(self.x) > 10:\n    self.x.remove(self.x[0])", "[]"), "fifo", "cannot tell", "proved"),
    ("cut the middle", klass(PUSH + "if len(self.x) > 10:\n    del self.x[0:1]", "[]"), "fifo", "cannot tell", "proved"),
    ("a negative name", klass(PUSH + "if len(self.x) > 10:\n    del self.x[-LIMIT]", "[]"), "fifo", "cannot tell", "refuted"),
    ("one too many", klass("if len(self.x) > 10:\n    self.x.pop(0)\n" + PUSH, "[]"), "fifo", "refuted", "refuted"),
    ("only on a condition", klass(PUSH + "if len(self.x) > 10 and key == 'never':\n    self.x.pop(0)", "[]"), "fifo", "cannot tell", "refuted"),
    ("a range", klass(PUSH + "if 5 < len(self.x) < 10:\n    self.x.pop(0)", "[]"), "fifo", "cannot tell", "refuted"),
    ("a range that logs", klass(PUSH + "if 5 < LIMIT < len(self.x):\n    log.info('full')", "[]"), "fifo", "refuted", "refuted"),
    ("one of two conditions", klass(PUSH + "if key is None or len(self.x) > 10:\n    self.x.pop(0)", "[]"), "fifo", "proved", "proved"),
    ("no container", "class Cache:\n    def add(self, key):\n        pass\n", "fifo", "cannot tell", "cannot tell"),
]  # fmt: skip


def claim(tmp_path: Path, code: str, policy: str = "fifo", **more: object) -> Claim:
    (tmp_path / "app.py").write_text(HEAD + code)
    given = {"name": "n", "file": tmp_path / "app.py", "symbol": "Cache", "limit": 10, **more}
    return Claim(policy=policy, **given)


@pytest.mark.parametrize(
    ("code", "policy", "verdict"), [s[1:4] for s in SHAPES], ids=[s[0] for s in SHAPES]
)
def test_the_source_of_a_class_is_judged(tmp_path, code, policy, verdict):
    answer = verify(claim(tmp_path, code, policy))
    assert (answer.verdict, answer.executed) == (verdict, None), answer.evidence
    assert all("app.py" in evidence.at for evidence in answer.evidence)


@pytest.mark.parametrize(
    ("code", "policy", "verdict"),
    [(*s[1:3], s[4]) for s in SHAPES],
    ids=[s[0] for s in SHAPES],
)
def test_a_class_that_is_fed_is_judged(tmp_path, code, policy, verdict, in_process):
    assert verify(claim(tmp_path, code, policy), run=True).verdict == verdict


def test_a_batch_of_ours_is_a_batch(tmp_path):
    code = klass("self.x.add(key)", "Batch(len, max_items=10)")
    assert verify(claim(tmp_path, code, "batch")).verdict == "proved"


@pytest.mark.parametrize(
    ("made", "policy", "feed", "verdict"),
    [
        ("Sessions(dict, max_sessions=10)", "lru", "with x.use(k): pass", "proved"),
        ("Sessions(dict, max_sessions=9)", "lru", "with x.use(k): pass", "refuted"),
        ("Sessions(dict)", "lru", "with x.use(k): pass", "refuted"),
        ("BoundedMap(10)", "lru", "x[k] = 1", "proved"),
        ("BoundedLog(10)", "window", "x.append(k)", "proved"),
    ],
)
def test_what_floodline_bounds_is_counted_as_a_whole(
    tmp_path, made, policy, feed, verdict, in_process
):
    code = f"from floodline import BoundedLog, BoundedMap, Sessions\nx = {made}\n"
    answer = verify(claim(tmp_path, code, policy, symbol="x", feed=feed), run=True)
    assert answer.verdict == verdict, answer.evidence
    assert "x._" not in str(answer.executed)


CACHED = [
    ("@lru_cache(maxsize=10)", "lru", "proved"),
    ("@lru_cache(10)", "lru", "proved"),
    ("@lru_cache(maxsize=10)", "fifo", "refuted"),
    ("@lru_cache(maxsize=None)", "lru", "refuted"),
    ("@lru_cache", "lru", "refuted"),
    ("@lru_cache()", "lru", "refuted"),
    ("@cache", "lru", "refuted"),
    ("@lru_cache(typed=True)", "lru", "refuted"),
    ("@lru_cache(5 * 2, typed=True)", "lru", "proved"),
]


@pytest.mark.parametrize(("decorator", "policy", "verdict"), CACHED)
def test_the_cache_of_a_function_is_judged_by_its_decorator(
    tmp_path, decorator, policy, verdict, in_process
):
    code = f"@staticmethod\ndef other(): pass\n{decorator}\ndef f(key):\n    return key\n"
    made = claim(tmp_path, code, policy, symbol="f")
    assert verify(made).verdict == verdict
    assert verify(made, run=True).verdict == verdict


FUNCTION = """\
seen = {}
plain = 5
def add(key):
    seen[key] = 1
    if len(seen) > 10:
        del seen[next(iter(seen))]
def nothing(): pass
class Outer:
    class Inner:
        shared = []
        def __init__(self): self.log = deque(maxlen=10)
        def add(self, key): self.log.append(key)
        def put(self, key):
            self.shared.append(key)
            if len(self.shared) > 10:
                self.shared.pop(0)
"""


@pytest.mark.parametrize(
    ("symbol", "verdict"),
    [
        ("seen", "proved"), ("app.seen", "proved"), ("add", "proved"), ("Outer.Inner.log", "proved"),
        ("Outer.Inner.shared", "proved"), ("Outer.Inner.put", "proved"), ("plain", "cannot tell"),
        ("nothing", "cannot tell"), ("gone", "refuted"), ("Outer.gone", "refuted"),
        ("Gone.x", "refuted"),
    ],
)  # fmt: skip
def test_a_symbol_is_a_class_an_attribute_a_method_a_function_or_a_name(tmp_path, symbol, verdict):
    assert verify(claim(tmp_path, FUNCTION, symbol=symbol)).verdict == verdict


TWINS = """\
import time
class Cache:
    def __init__(self):
        self.x, self.other = {}, {}
        self.times = {}
    def add(self, key):
        if len(self.x) >= 10:
            old = min(self.times, key=self.times.get)
            del self.x[old], self.times[old]
        self.x[key] = 1
        self.times[key] = time.monotonic_ns()
        self.other[key] = 2
"""


@pytest.mark.parametrize(
    ("symbol", "verdict"),
    [("Cache.x, Cache.times", "proved"), ("Cache.times", "proved"), ("Cache.other", "refuted"),
     ("Cache.times, Cache.gone", "refuted"), ("Cache.x,Cache.other", "refuted")],
)  # fmt: skip
def test_a_claim_may_name_several_containers(tmp_path, symbol, verdict, in_process):
    code = TWINS.replace("self.x, self.other = {}, {}", "self.x = {}\n        self.other = {}")
    made = claim(tmp_path, code, "oldest", symbol=symbol)
    answer = verify(made)
    assert answer.verdict == verdict, answer.evidence
    assert answer.static.evidence[0].cause is not None
    assert verify(made, run=True).verdict == verdict


def test_a_limit_may_be_in_another_module_of_the_project(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("from . import broken, config\n")
    (tmp_path / "pkg" / "config.py").write_text("import os\nMOST = int(os.getenv('MOST', '10'))\n")
    (tmp_path / "pkg" / "broken.py").write_text("def (")
    check = PUT + "if len(self.x) > {}:\n    del self.x[next(iter(self.x))]"
    for line, limit, verdict in [
        ("from pkg.config import MOST", "MOST", "proved"),
        ("from pkg import config", "config.MOST", "proved"),
        ("import pkg.config as c", "c.MOST + 1", "refuted"),
        ("from pkg import config as c", "c.LEAST", "cannot tell"),
        ("from pkg import broken", "broken.MOST", "cannot tell"),
        ("from elsewhere import MOST", "MOST", "cannot tell"),
        ("from .pkg.config import MOST", "MOST", "proved"),
    ]:
        code = f"{line}\n" + klass(check.format(limit))
        assert verify(claim(tmp_path, code)).verdict == verdict, line


FEEDS = [
    ("RATE['k{i}'] = {i}", "refuted"),  # the check is only in `hit`
    ("hit(k)", "proved"),
    ("hit(f'{i}')", "proved"),
    ("hit(i)", "proved"),
    ("self.hit(k)", "proved"),
    ("await late(k)", "proved"),
    ("for j in (1, 2):\n    hit(str(j) + k)", "proved"),
    (
        "RATE = {**RATE, k: 1} if len(RATE) < 10 else {**dict(list(RATE.items())[1:]), k: 1}",
        "proved",
    ),
]


@pytest.mark.parametrize(("feed", "verdict"), FEEDS, ids=[feed for feed, _ in FEEDS])
def test_a_feed_may_be_a_statement(tmp_path, feed, verdict, in_process):
    code = """\
RATE = {}
def hit(key):
    RATE[key] = 1
    if len(RATE) > 10:
        del RATE[next(iter(RATE))]
async def late(key):
    hit(key)
"""
    answer = verify(claim(tmp_path, code, symbol="RATE", feed=feed), run=True)
    assert answer.verdict == verdict, answer.evidence


@pytest.mark.parametrize("symbol", ["seen", "add"])
def test_a_container_of_the_module_is_fed_by_its_function(tmp_path, symbol, in_process):
    assert verify(claim(tmp_path, FUNCTION, symbol=symbol), run=True).verdict == "proved"


@pytest.mark.parametrize(
    ("make", "verdict"),
    [("Cache(10)", "proved"), ("Cache(n=10)", "proved"), ("Cache(m=1)", "cannot tell"),
     ("Cache(12)", "refuted"), ("build()", "cannot tell"), ("Cache", "cannot tell")],
)  # fmt: skip
def test_a_limit_that_is_an_argument_is_read_from_make(tmp_path, make, verdict):
    code = klass(PUSH, "deque(maxlen=n)", init="self, n, m=0")
    assert verify(claim(tmp_path, code, make=make)).verdict == verdict


@pytest.mark.parametrize(
    "number", ["'ten'", "LIMIT / 2", "UNKNOWN", "other.x", "-UNKNOWN", "LIMIT + UNKNOWN", "a.b.c"]
)
def test_a_number_that_is_not_known_is_not_guessed(tmp_path, number):
    answer = verify(claim(tmp_path, klass(PUSH, f"deque(maxlen={number})")))
    assert answer.verdict == "cannot tell"
    assert "unknown" in answer.evidence[0].says


def test_numbers_that_name_each_other_end(tmp_path):
    code = "A = B\nB = A\n" + klass(PUSH, "deque(maxlen=A)")
    assert verify(claim(tmp_path, code)).verdict == "cannot tell"


def test_a_file_that_is_missing_refutes_and_one_that_cannot_be_read_does_not(tmp_path):
    gone = claim(tmp_path, "")._replace(file=tmp_path / "gone.py")
    assert verify(gone, run=True).verdict == "refuted"
    broken = claim(tmp_path, "def broken(:\n")
    assert verify(broken).verdict == "cannot tell"
    (tmp_path / "app.py").write_bytes(b"# coding: klingon\n")
    assert verify(broken).verdict == "cannot tell"
    assert verify(broken._replace(file=tmp_path)).verdict == "cannot tell"


SUBCLASS = """
    class Base:
        limit = {base}

        def __init__(self, most=40):
            self.x = []
            self.most = most

        def add(self, item):
            self.x.append(item)
            if {test}:
                self.x.pop(0)

    class Cache(Base):
        limit = 10
"""


@pytest.mark.parametrize(
    ("base", "test", "verdict"),
    [
        (40, "len(self.x) > self.limit", "proved"),
        (None, "self.limit and len(self.x) > self.limit", "proved"),
        (None, "self.limit is not None and len(self.x) > self.limit", "proved"),
        (None, "item and len(self.x) > self.limit", "cannot tell"),
        (10, "len(self.x) > self.most", "refuted"),
    ],
)
def test_a_limit_is_that_of_the_class_that_is_claimed(tmp_path, base, test, verdict):
    code = dedent(SUBCLASS).format(base=base, test=test)
    answer = verify(claim(tmp_path, code, "oldest", symbol="Cache.x"))
    assert answer.verdict == verdict, answer.evidence
