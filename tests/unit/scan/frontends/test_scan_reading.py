"""Ways to write the same thing: growth, holders, keys and removals that the scan must see."""

from __future__ import annotations

from textwrap import dedent

import pytest

from floodline.scan import Scan


def reported(folder, code: str, *, library: bool = False) -> list[str]:
    (folder / "app.py").write_text(dedent(code), encoding="utf-8")
    findings = Scan([folder], library=library).report().findings
    return [f"{f.rule} {f.symbol} {f.confidence}" for f in findings if f.confidence != "low"]


GROWS = {
    "a list that is added to": "items = []\ndef f(x):\n    global items\n    items = items + [x]",
    "a list that is unpacked into itself": (
        "items = []\ndef f(x):\n    global items\n    items = [*items, x]"
    ),
    "a map that is unpacked into itself": (
        "items = {}\ndef f(x):\n    global items\n    items = {**items, x: 1}"
    ),
    "a copy with one more": (
        "items = []\ndef f(x):\n    global items\n    items = list(items) + [x]"
    ),
    "augmented lists": "items = []\ndef f(x):\n    global items\n    items += [x]",
    "augmented sets": "items = set()\ndef f(x):\n    global items\n    items |= x",
    "augmented counters": (
        "from collections import Counter\nitems = Counter()\n"
        "def f(user_id):\n    items[user_id] += 1"
    ),
    "a heap": "import heapq\nitems = []\ndef f(x):\n    heapq.heappush(items, x)",
    "a heap by its bare name": (
        "from heapq import heappush\nitems = []\ndef f(x):\n    heappush(items, x)"
    ),
    "an update with a literal": "items = {}\ndef f(user_id):\n    items.update({user_id: 1})",
    "an update with a mapping": "items = {}\ndef f(new_ids):\n    items.update(new_ids)",
    "two names at once": "items, other = {}, 1\ndef f(user_id):\n    items[user_id] = 1",
    "a map made on first use": (
        "items = None\ndef f(user_id):\n    global items\n    if items is None:\n"
        "        items = {}\n    items[user_id] = 1"
    ),
    "a choice of containers": (
        "import os\nitems = {} if os.name else []\ndef f(user_id):\n    items[user_id] = 1"
    ),
    "a default container": "import os\nitems = os or {}\ndef f(user_id):\n    items[user_id] = 1",
    "a match statement": (
        "items = []\ndef f(x):\n    match x:\n        case 1:\n            items.append(x)"
    ),
    "an async for": "items = []\nasync def f(xs):\n    async for x in xs:\n        items.append(x)",
    "an async with": "items = []\nasync def f(a):\n    async with a as b:\n        items.append(b)",
    "a walrus": "items = []\ndef f(x):\n    if y := x.value:\n        items.append(y)",
    "a nested value": (
        "items = {'a': []}\ndef f(x):\n    for values in items.values():\n        values.append(x)"
    ),
    "keys from a counter": (
        "items = {}\nnumber = 0\ndef f(x):\n    global number\n    number += 1\n"
        "    items[number] = x"
    ),
    "keys from the clock": "import time\nitems = {}\ndef f(x):\n    items[str(time.time())] = x",
    "keys in an f-string": "items = {}\ndef f(user_id):\n    items[f'user {user_id}'] = 1",
    "keys that are sums": "items = {}\ndef f(user_id):\n    items['user ' + user_id] = 1",
    "keys that are tuples": "items = {}\ndef f(user_id):\n    items[1, user_id] = 1",
    "keys with a default": "items = {}\ndef f(user_id):\n    items[user_id or 'nobody'] = 1",
    "keys of a choice": "items = {}\ndef f(user_id):\n    items[user_id if user_id else 0] = 1",
    "keys of attributes": "items = {}\ndef f(request):\n    items[request.user_id] = 1",
    "keys of items": "items = {}\ndef f(request):\n    items[request['user']] = 1",
    "keys that a caller makes": (
        "import uuid\nitems = {}\ndef f():\n    g(uuid.uuid4())\ndef g(name):\n    items[name] = 1"
    ),
    "keys given by name": (
        "items = {}\ndef f(user_id):\n    g(name=user_id)\ndef g(name):\n    items[name] = 1"
    ),
    "keyword arguments": "items = {}\ndef f(**values):\n    items[values['x']] = 1",
    "an inner function": (
        "items = []\ndef f(xs):\n    def g(x):\n        items.append(x)\n    for x in xs:\n"
        "        g(x)\n    xs.each(g)"
    ),
    "a lambda": "items = []\ndef f(bus):\n    bus.each(lambda x: items.append(x))",
    "a module behind a name": (
        "import app as me\nitems = {}\ndef f(user_id):\n    me.items[user_id] = 1"
    ),
}


@pytest.mark.parametrize("way", GROWS)
def test_growth_is_seen_in(way, tmp_path):
    reported(tmp_path, GROWS[way])
    [found] = Scan([tmp_path]).report().findings
    assert found.symbol == "app.items"


HOLDER = """
    from dataclasses import dataclass, field
    from functools import cache

    class Store:
        def __init__(self):
            self.items = {}

        def put(self, user_id):
            self.items[user_id] = 1
"""
KEPT = {
    "the module": "store = Store()",
    "a function that sets a global": "def f():\n    global store\n    store = Store()",
    "an attribute of a class": "class App:\n    store = Store()",
    "an object of the module": ("class App: ...\napp = App()\ndef f():\n    app.store = Store()"),
    "a call at import": "import registry\nregistry.add(Store())",
    "another long-lived object": (
        "class App:\n    def __init__(self):\n        self.store = Store()\napp = App()"
    ),
    "another one, by a local name": (
        "class App:\n    def __init__(self):\n        store = Store()\n        self.store = store\n"
        "app = App()"
    ),
    "a cached function": "@cache\ndef store():\n    return Store()",
    "a loop of the start function": (
        "def main():\n    store = Store()\n    while True:\n        serve(store)\n"
        "def serve(store):\n    store.put(input())\nmain()"
    ),
    "a subclass of it": "class Special(Store): ...\nspecial = Special()",
    "a class method": (
        "class App:\n    @classmethod\n    def get(cls):\n        cls.store = Store()\n"
        "        return cls.store"
    ),
}


@pytest.mark.parametrize("holder", KEPT)
def test_an_instance_lives_long_in(holder, tmp_path):
    code = dedent(HOLDER) + KEPT[holder]
    (tmp_path / "app.py").write_text(code, encoding="utf-8")
    [finding] = Scan([tmp_path]).report().findings
    state = "unknown" if holder == "a class method" else "proved"
    assert (finding.symbol, finding.proofs[0].state) == ("app.Store.items", state)


PASSING = {
    "made for each call": "def f(user_id):\n    Store().put(user_id)",
    "returned to a caller that drops it": "def f():\n    return Store()\ndef g(x):\n    f().put(x)",
}


@pytest.mark.parametrize("case", PASSING)
def test_an_instance_does_not_live_long_when_it_is(case, tmp_path):
    assert reported(tmp_path, dedent(HOLDER) + PASSING[case]) == []


UNSURE = {
    "kept as an item": "stores = {}\ndef f():\n    stores['a'] = Store()",
    "kept by an object that nobody makes": (
        "class App:\n    def __init__(self):\n        self.store = Store()"
    ),
    "a local of a start function": ("def main():\n    store = Store()\n    run(store.put)\nmain()"),
    "kept by a method that runs again": (
        "class App:\n    def renew(self):\n        self.store = Store()"
    ),
}


@pytest.mark.parametrize("case", UNSURE)
def test_nobody_can_say_how_long_an_instance_lives_that_is(case, tmp_path):
    reported(tmp_path, dedent(HOLDER) + UNSURE[case])
    [found] = Scan([tmp_path]).report().findings
    assert (found.symbol, found.proofs[0].state) == ("app.Store.items", "unknown")


SILENT = {
    "an exception with notes": (
        "class Bad(Exception):\n    def __init__(self):\n        self.notes = []\n"
        "    def note(self, x):\n        self.notes.append(x)\nbad = Bad()"
    ),
    "growth behind a flag": (
        "items = []\ndone = False\ndef f(x):\n    global done\n    if done:\n        return\n"
        "    items.append(x)\n    done = True"
    ),
    "growth in a hook of definitions": (
        "items = []\nclass Base:\n    def __init_subclass__(cls):\n        items.append(cls)"
    ),
    "growth in a metaclass": (
        "items = []\nclass Meta(type):\n    def __new__(m, name):\n        items.append(name)\n"
        "        return m"
    ),
    "growth where a fork is prepared": (
        "import os\nitems = []\ndef before():\n    items.append(1)\n"
        "os.register_at_fork(before=before)"
    ),
    "constants of a class as keys": (
        "class Names:\n    first = 1\nitems = {}\ndef f(x):\n    items[Names.first] = x"
    ),
    "upper-case constants as keys": "KEY = 'k'\nitems = {}\ndef f(x):\n    items[KEY] = x",
    "functions as keys": "items = {}\ndef g(): ...\ndef f(x):\n    items[g] = x",
    "names of types as keys": "items = {}\ndef f(x):\n    items[x.__class__.__name__] = 1",
    "flags as keys": "items = {}\ndef f(x: bool):\n    items[x] = 1",
    "an update with constants": "items = {}\ndef f(x):\n    items.update({'a': x})",
    "an update without a mapping": "items = {}\ndef f(x):\n    items.update(a=x)",
    "the default of a parameter": (
        "items = {}\ndef g(name='all'):\n    items[name] = 1\ndef f():\n    g()"
    ),
    "a difference": "items = set()\ndef f(x):\n    global items\n    items |= x\n    items -= x",
    "a slice that is replaced": "items = []\ndef f(x):\n    items.append(x)\n    items[:] = []",
    "a filter": (
        "items = []\ndef f(x):\n    global items\n    items.append(x)\n"
        "    items = [i for i in items if i]"
    ),
    "a heap that is popped": (
        "import heapq\nitems = []\ndef f(x):\n    heapq.heappush(items, x)\n"
        "    heapq.heappop(items)"
    ),
    "an attribute that is deleted": (
        "class A:\n    def __init__(self):\n        self.items = []\n    def f(self, x):\n"
        "        self.items.append(x)\n        self.drop()\n    def drop(self):\n"
        "        del self.items\na = A()"
    ),
    "a removal from outside": (
        "class A:\n    def __init__(self):\n        self.pending = []\n    def f(self, x):\n"
        "        self.pending.append(x)\na = A()\ndef g(thing, x):\n    a.f(x)\n"
        "    thing.pending.clear()"
    ),
    "a removal by a scheduled call": (
        "items = {}\ndef f(loop, key):\n    items[key] = 1\n    loop.call_later(5, drop, key)\n"
        "def drop(key):\n    del items[key]"
    ),
    "a removal by a partial": (
        "from functools import partial\nitems = {}\ndef f(task, key):\n    items[key] = task\n"
        "    task.add_done_callback(partial(drop, key))\ndef drop(key, task):\n    del items[key]"
    ),
    "a comparison with a maximum by a helper": (
        "items = []\ndef f(x):\n    items.append(x)\n    if len(items) > 9:\n        shrink()\n"
        "def shrink():\n    ..."
    ),
    "a weak map": (
        "import weakref\nitems = weakref.WeakValueDictionary()\ndef f(key, x):\n    items[key] = x"
    ),
    "a handler added once": (
        "import logging\ndef f():\n    log = logging.getLogger()\n    if not log.handlers:\n"
        "        log.addHandler(logging.StreamHandler())"
    ),
    "a handler added by the set-up": (
        "import logging\ndef setup_logging():\n"
        "    logging.getLogger().addHandler(logging.StreamHandler())"
    ),
    "a class that is raised": "def f():\n    raise KeyError",
    "an error that is handed on": "def f(error):\n    raise error",
    "a cache of plain values": (
        "from functools import cache\n@cache\ndef f(a: int, b: str):\n    return a"
    ),
    "a cached static method": (
        "from functools import cache\nclass A:\n    @staticmethod\n    @cache\n    def f(a):\n"
        "        return a"
    ),
    "a cache on the one instance with a size": (
        "from functools import lru_cache\nclass A:\n    @lru_cache(8)\n    def f(self):\n"
        "        return 1\na = A()"
    ),
    "a local that is only returned": (
        "def f(xs):\n    items = []\n    def add(x):\n        items.append(x)\n    for x in xs:\n"
        "        add(x)\n    return items"
    ),
}


@pytest.mark.parametrize("case", SILENT)
def test_nothing_is_reported_for(case, tmp_path):
    assert reported(tmp_path, SILENT[case]) == []


LATE = {
    "only at the end": (
        "class A:\n    def __init__(self):\n        self.items = {}\n"
        "    def f(self, user_id):\n        self.items[user_id] = 1\n"
        "    def close(self):\n        self._drop()\n    def _drop(self):\n"
        "        self.items.clear()\na = A()",
        "FLD102",
    ),
    "only at the end of the process": (
        "import signal\nitems = {}\ndef f(user_id):\n    items[user_id] = 1\n"
        "def drop():\n    items.clear()\nsignal.signal(1, drop)",
        "FLD102",
    ),
    "only when the context is left": (
        "class A:\n    def __init__(self):\n        self.items = {}\n"
        "    def f(self, user_id):\n        self.items[user_id] = 1\n"
        "    def __exit__(self, *error):\n        self.items.clear()\na = A()",
        "FLD102",
    ),
    "only while an instance is made": (
        "class A:\n    def __init__(self):\n        self.items = {}\n        self._reset_items()\n"
        "    def f(self, user_id):\n        self.items[user_id] = 1\n"
        "    def _reset_items(self):\n        self.items = {}\na = A()",
        "FLD103",
    ),
    "only at start-up": (
        "items = {}\ndef f(user_id):\n    g(user_id)\ndef g(user_id):\n    items[user_id] = 1\n"
        "def drop():\n    items.clear()\ndrop()",
        "FLD103",
    ),
}


@pytest.mark.parametrize("case", LATE)
def test_a_removal_does_not_count_that_runs(case, tmp_path):
    code, rule = LATE[case]
    assert [found.split()[0] for found in reported(tmp_path, code)] == [rule]


def test_a_map_class_of_ones_own_is_named_by_the_module_that_keeps_it(tmp_path):
    code = """
        class Cache(dict):
            def __missing__(self, key):
                self[key] = value = object()
                return value

        cache = Cache()
    """
    assert reported(tmp_path, code) == ["FLD101 app.cache medium"]


def test_a_map_class_that_nobody_keeps_is_named_by_itself(tmp_path):
    code = """
        class Cache(dict):
            def fill(self, key):
                self[key] = object()
    """
    assert reported(tmp_path, code) == ["FLD101 app.Cache medium"]


def test_a_container_that_is_handed_to_strangers_is_less_certain(tmp_path):
    code = """
        import elsewhere

        items = {}

        def f(user_id):
            items[user_id] = 1
            elsewhere.take(items)
    """
    assert reported(tmp_path, code) == ["FLD101 app.items medium"]


def test_a_function_that_only_others_call_is_less_certain(tmp_path):
    code = """
        items = {}

        def _f(user_id):
            items[user_id] = 1
    """
    assert reported(tmp_path, code) == ["FLD101 app.items medium"]


def test_a_dataclass_field_belongs_to_the_instance(tmp_path):
    code = """
        from dataclasses import dataclass, field

        @dataclass
        class Log:
            lines: list = field(default_factory=list)
            names: dict = field(default_factory=lambda: {})
            size: int = field(default=0)

            def write(self, line, user_id):
                self.lines.append(line)
                self.names[user_id] = line

        log = Log()
    """
    assert sorted(reported(tmp_path, code)) == [
        "FLD101 app.Log.lines medium",
        "FLD101 app.Log.names medium",
    ]


def test_a_method_cache_with_a_size_still_keeps_instances_for_a_while(tmp_path):
    code = """
        from functools import lru_cache

        class A:
            @lru_cache(maxsize=8)
            def f(self):
                return 1
    """
    assert reported(tmp_path, code) == ["FLD301 app.A.f medium"]


def test_objects_that_compare_by_value_may_be_keys_of_a_cache(tmp_path):
    code = """
        import enum
        from dataclasses import dataclass
        from functools import cache

        @dataclass(frozen=True)
        class Point: ...

        class Colour(enum.Enum): ...

        @cache
        def f(point: Point, colour: Colour, name: "str | None"):
            return 1
    """
    assert reported(tmp_path, code) == []


def test_a_shared_error_of_a_class_of_the_program_is_an_error_too(tmp_path):
    code = """
        class Missing(LookupError): ...

        class Gone(Missing): ...

        class Quiet: ...

        GONE = Gone()
        QUIET = Quiet()

        def find(x):
            raise GONE

        def _other(x):
            raise GONE

        def odd():
            raise QUIET
    """
    assert reported(tmp_path, code) == ["FLD407 app.GONE medium"]


def test_parts_of_a_package_are_found_by_their_full_names(tmp_path):
    package = tmp_path / "pkg"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "__init__.py").write_text("from ..state import Store\n")
    (package / "state.py").write_text(
        "class Store:\n    def __init__(self):\n        self.items = {}\n\nbox = Store()\n"
    )
    (package / "use.py").write_text(
        "import pkg.state\nfrom pkg import state as s\nfrom pkg.inner import Store\n\n"
        "def f(user_id):\n    s.box.items[user_id] = 1\n\n"
        "def g(store: Store, user_id):\n    store.items[user_id] = 1\n"
    )
    findings = Scan([tmp_path]).report().findings
    assert [f.symbol for f in findings] == ["pkg.state.Store.items"]
    assert {place.rpartition(":")[0].rpartition("/")[2] for place in findings[0].grows} == {
        "use.py"
    }


def test_a_generator_that_yields_between_adding_and_removing(tmp_path):
    code = """
        from contextlib import contextmanager

        active = set()

        @contextmanager
        def running(job_id):
            active.add(job_id)
            yield
            active.discard(job_id)
    """
    assert reported(tmp_path, code) == ["FLD109 app.active medium"]


def test_a_pair_beside_a_sweeper_is_no_finding(tmp_path):
    code = """
        active = {}

        async def run(job_id, job):
            active[job_id] = job
            await job()
            del active[job_id]

        def sweep():
            active.clear()
    """
    assert reported(tmp_path, code) == []
