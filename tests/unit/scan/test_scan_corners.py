"""Rarer ways to write things, and what the scan makes of them."""

from __future__ import annotations

from textwrap import dedent

import pytest

from floodline.scan import Scan


def reported(folder, code: str, *, library: bool = False) -> list[str]:
    (folder / "app.py").write_text(dedent(code), encoding="utf-8")
    findings = Scan([folder], library=library).report().findings
    return [f"{f.rule} {f.symbol} {f.confidence}" for f in findings if f.confidence != "low"]


FOUND = {
    "annotations without a value": (
        "items: dict\nitems = {}\ndef f(user_id):\n    name: str\n    items[user_id] = 1",
        "FLD101 app.items medium",
    ),
    "values that are unpacked": (
        "pairs = {'a': ([], [])}\ndef f(x):\n    first, second = pairs['a']\n    first.append(x)",
        "FLD101 app.pairs medium",
    ),
    "starred names": (
        "items = []\ndef f(x):\n    head, *rest = x\n    items.append(rest)",
        "FLD101 app.items medium",
    ),
    "results of calls that are changed": (
        "items = []\ndef f(x):\n    x()[0] = 1\n    (x or x)[1] += 1\n    x().total += 1\n"
        "    x().list.append(1)\n    (x + x).append(2)\n    items.append(x)",
        "FLD101 app.items medium",
    ),
    "a counter of the instance as key": (
        "class A:\n    def __init__(self):\n        self.items = {}\n        self.n = 0\n"
        "    def f(self, x):\n        self.n += 1\n        self.items[self.n] = x\na = A()",
        "FLD101 app.A.items medium",
    ),
    "an attribute of the instance as key": (
        "class A:\n    def __init__(self):\n        self.items = {}\n        self.other = 0\n"
        "    def f(self, x):\n        self.items[self.other] = x\na = A()",
        "FLD101 app.A.items medium",
    ),
    "a key that nobody knows": (
        "items = {}\ndef f(x):\n    for number in range(x):\n        items[number] = 1",
        "FLD101 app.items medium",
    ),
    "a key of a proxy object": (
        "from flask import request\nitems = {}\ndef f():\n    items[request.user_id] = 1",
        "FLD101 app.items medium",
    ),
    "a key that is a function": (
        "items = {}\ndef g(callback):\n    items[callback] = 1\ndef f():\n    g(lambda: 1)",
        "FLD101 app.items medium",
    ),
    "a key through a long chain of callers": (
        "items = {}\ndef a(x):\n    b(x)\ndef b(x):\n    c(x)\ndef c(x):\n    d(x)\n"
        "def d(x):\n    e(x)\ndef e(x):\n    f(x)\ndef f(x):\n    items[x] = 1",
        "FLD101 app.items medium",
    ),
    "a key of an outer function": (
        "items = {}\ndef f(user_id, run):\n    def g():\n        items[user_id] = 1\n    run(g)",
        "FLD101 app.items medium",
    ),
    "a key made by a method of a value": (
        "items = {}\ndef f(user_id):\n    items[user_id.lower()] = 1",
        "FLD101 app.items medium",
    ),
    "a set written out": (
        "items = {0}\ndef f(user_id):\n    items.add(user_id)",
        "FLD101 app.items medium",
    ),
    "the class of an instance": (
        "class A:\n    items = []\n    def f(self, x):\n        self.__class__.items.append(x)\n"
        "    def g(self, x):\n        type(self).items.append(x)",
        "FLD101 app.A.items medium",
    ),
    "a class by its name": (
        "class A:\n    items = []\ndef f(x):\n    A.items.append(x)",
        "FLD101 app.A.items medium",
    ),
    "an object of a module by its dotted name": (
        "import app\nclass A:\n    def __init__(self):\n        self.items = []\na = A()\n"
        "def f(x):\n    app.a.items.append(x)",
        "FLD101 app.A.items medium",
    ),
    "an instance that its class makes": (
        "class A:\n    one = None\n    def __init__(self):\n        self.items = []\n"
        "    def f(self, x):\n        self.items.append(x)\n    @classmethod\n"
        "    def get(cls):\n        global it\n        it = cls()\n        return it",
        "FLD101 app.A.items medium",
    ),
    "a method of the parent class": (
        "class A:\n    def __init__(self):\n        self.items = {}\n    def f(self, x):\n"
        "        self.items[x] = object()\nclass B(A):\n    def __init__(self):\n"
        "        super().__init__()\n    def _g(self, x):\n        super().f(x)\n"
        "        super().nothing()\nb = B()",
        "FLD101 app.A.items medium",
    ),
    "a local that becomes an attribute": (
        "class A:\n    def __init__(self):\n        items = []\n        self.items = items\n"
        "    def f(self, x):\n        self.items.append(x)\na = A()",
        "FLD101 app.A.items medium",
    ),
    "an object typed by an optional annotation": (
        "from typing import Optional\nclass A:\n    def __init__(self):\n"
        "        self.items = []\na = A()\ndef f(a: Optional[A], b: 'A', c: A | None, x):\n"
        "    a.items.append(x)\n    b.items.append(x)\n    c.items.append(x)",
        "FLD101 app.A.items medium",
    ),
    "an object typed by a dotted annotation": (
        "import app\nclass A:\n    def __init__(self):\n        self.items = []\na = A()\n"
        "def f(a: app.A, y: list[int], x):\n    a.items.append(x)",
        "FLD101 app.A.items medium",
    ),
    "a limit that does nothing": (
        "items = []\ndef f(x):\n    if len(items) > 9:\n        pass\n    items.append(x)",
        "FLD201 app.items medium",
    ),
    "a limit that sets a flag": (
        "items = []\ndef f(x):\n    if len(items) > 9:\n        full = True\n    items.append(x)",
        "FLD201 app.items medium",
    ),
    "an exception as value": (
        "items = []\ndef f(x):\n    try:\n        x()\n    except ValueError as error:\n"
        "        items.append(error)\n        note = 1",
        "FLD101 app.items medium",
    ),
    "a decorator of the module that keeps results": (
        "def memo(function):\n    results = {}\n    def inner(user_id):\n"
        "        results[user_id] = 1\n    return inner\n@memo\ndef f(): ...",
        "FLD108 app.memo.<locals>.inner{results} medium",
    ),
    "a returned lambda": (
        "def make():\n    results = []\n    return lambda x: results.append(x)",
        "FLD108 app.make.<locals>.<lambda:3:11>{results} medium",
    ),
    "a lambda of the module": (
        "import bus\nitems = []\nbus.each(lambda x: items.append(x))",
        "FLD101 app.items medium",
    ),
    "a lambda of a class": (
        "import bus\nitems = []\nclass A:\n    bus.each(lambda x: items.append(x))",
        "FLD101 app.items medium",
    ),
    "a map that the subscript of a generic makes": (
        "from collections import OrderedDict\nitems = OrderedDict[str, int]()\n"
        "def f(user_id):\n    items[user_id] = 1",
        "FLD101 app.items medium",
    ),
}


@pytest.mark.parametrize("case", FOUND)
def test_growth_is_found_through(case, tmp_path):
    code, wanted = FOUND[case]
    assert reported(tmp_path, code) == [wanted]


SILENT = {
    "growth at import": "items = []\nitems.append(1)\nfor x in range(9):\n    items.append(x)",
    "a set inside a set": (
        "items = {frozenset()}\ndef f(x):\n    for inner in items:\n        inner.add(x)"
    ),
    "a look-up that was tested": (
        "from collections import defaultdict\nclass A:\n    def __init__(self):\n"
        "        self.items = defaultdict(list)\n    def put(self, key, x):\n"
        "        self.items[key].append(x)\n    def drop(self, key):\n"
        "        del self.items[key]\n    def get(self, key):\n        if key in self.items:\n"
        "            return self.items[key]\na = A()"
    ),
    "a look-up beside a sweeper": (
        "import threading\nfrom collections import defaultdict\nclass A:\n"
        "    def __init__(self):\n        self.items = defaultdict(list)\n"
        "        threading.Thread(target=self.sweep).start()\n    def get(self, key):\n"
        "        return list(self.items[key])\n    def sweep(self):\n        self.items.clear()\n"
        "a = A()"
    ),
    "a limit whose branch awaits": (
        "items = []\nasync def f(x, flush):\n    if len(items) > 9:\n        await flush\n"
        "    items.append(x)"
    ),
    "a limit whose branch replaces": (
        "items = []\ndef f(x):\n    global items\n    if len(items) > 9:\n"
        "        items = items[-5:]\n    items.append(x)"
    ),
    "a removal that several public functions reach": (
        "items = {}\ndef put(user_id):\n    _put(user_id)\ndef _put(user_id):\n"
        "    items[user_id] = 1\ndef drop(user_id):\n    _drop(user_id)\ndef _drop(user_id):\n"
        "    del items[user_id]"
    ),
    "a handler that an init function adds": (
        "import logging\ndef f():\n    _init_log()\ndef _init_log():\n"
        "    logging.getLogger().addHandler(1)"
    ),
    "a sibling that is cleaned with it": (
        "a = {}\nb = {}\ndef put(key):\n    a[key] = 1\n    b[key] = 1\ndef drop(key):\n"
        "    a.pop(key)\n    _rest(key)\ndef _rest(key):\n    _more(key)\n"
        "def _more(key):\n    b.pop(key)"
    ),
    "a sibling whose key is replaced": (
        "a = {}\nb = {}\ndef put(key):\n    a[key] = 1\n    b[key] = 1\ndef drop(key):\n"
        "    a.pop(key)\n    b.pop(key)\ndef again(key):\n    a.pop(key)\n    a[key] = 2"
    ),
    "a sibling that has a limit": (
        "a = {}\nb = {}\ndef put(key):\n    a[key] = 1\n    if len(b) > 9:\n"
        "        b.clear()\n    b[key] = 1\ndef drop(key):\n    a.pop(key)"
    ),
    "work that a flag lets run once": (
        "items = []\ndone = False\ndef f(x):\n    global done\n    if done:\n        return\n"
        "    _add(x)\n    done = True\ndef _add(x):\n    _really(x)\ndef _really(x):\n"
        "    items.append(x)\ndef setup(x):\n    _add(x)"
    ),
    "an attribute of another object that is a container": (
        "def f(thing, x):\n    thing.rows = []\n    thing.rows.append(x)"
    ),
}


@pytest.mark.parametrize("case", SILENT)
def test_nothing_is_reported_for(case, tmp_path):
    assert reported(tmp_path, SILENT[case]) == []


def test_the_instances_of_a_library_class_may_be_many(tmp_path):
    code = """
        class Reader:
            known = set()

            def __init__(self, name):
                self.known.add(self)
    """
    assert reported(tmp_path, code) == ["FLD110 app.Reader.known medium"]
    assert reported(tmp_path, code, library=True) == ["FLD110 app.Reader.known medium"]


def test_what_only_an_end_and_a_start_reach_is_no_way_out(tmp_path):
    code = """
        items = {}

        def put(user_id):
            items[user_id] = 1

        def _drop():
            items.clear()

        def shutdown():
            _drop()

        def close():
            _drop()
    """
    assert reported(tmp_path, code) == ["FLD102 app.items medium"]


def test_imports_in_a_circle_end(tmp_path):
    (tmp_path / "one.py").write_text("from two import name\n")
    (tmp_path / "two.py").write_text(
        "from one import name\n\ndef f(user_id):\n    name[user_id] = 1\n"
    )
    assert Scan([tmp_path]).report().findings == ()


def test_classes_that_derive_from_each_other_end(tmp_path):
    assert reported(tmp_path, "class A(B): ...\nclass B(A):\n    def f(self): self.g()") == []


def test_two_classes_that_keep_each_other_are_not_known(tmp_path):
    code = """
        class A:
            def __init__(self):
                self.b = B()

        class B:
            def __init__(self):
                self.a = A()
                self.items = []

            def f(self, x):
                self.items.append(x)
    """
    assert reported(tmp_path, code) == []  # low
    assert any("its owners form a cycle" in line for line in Scan([tmp_path]).silence("items"))
