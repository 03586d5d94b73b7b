from __future__ import annotations

import ast
import sys
import types

import pytest

from floodline.leaks._source.definitions import class_assigns, file_of_module, find, module_assigns
from floodline.leaks._source.excerpt import tree_about
from floodline.leaks._source.feeding_statements import feeding_place, only_call
from soak_programs import module

SOURCE = """
from collections import deque as imported

ROWS = []
A, B = [], []

class Base:
    table: dict = {}
    def __init__(self):
        self.rows = []
        self.rows.append(0)
        self.untouched = []

    def late(self):
        self.made_late = {}
        Base.on_class = []

class Uses(Base):
    def add(self, x):
        self.rows.append(x)
    def index(self, x):
        self.found[x] = 1
    def plus(self, x):
        self.sum += [x]
    def again(self, x):
        self.turns = self.turns + [x]
    def look(self, x):
        return self.defaults[x]
    def nested(self, x):
        self.by_kind["a"].add(x)
    def start(self):
        self.fresh = [1]
    def hand(self, x):
        self.heap.sort()
        self.sink.clear()
        self.newest = None
    def push(self, x):
        heappush(self.queue, x)
        print(x, file=self.sink)
        self.exits.callback(x)
        self.newest = x
        return self.clear_first[0]
    def later(self, x):
        self.clear_first.append(x)
    def finish(self, x):
        self.jobs[x]["status"] = "done"
        self.parts[x].append(1)
        self.hits[x].last = 1
    def begin(self, x):
        self.jobs[x] = {"status": "new"}
        self.parts.update(x)
        self.hits[x] += 1
    async def wait(self):
        await self.ready.wait()
    def step(self):
        return next(self.stream), next(iter(self.sink))

def one():
    trail = []
    trail.append(1)

def two():
    trail = []
    trail = trail + [2]
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    return module("sourced", SOURCE, tmp_path, monkeypatch)


def line(part):
    return next(n for n, text in enumerate(SOURCE.splitlines(), 1) if part in text)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("rows", "self.rows.append(x)"),
        ("found", "self.found[x] = 1"),
        ("sum", "self.sum += [x]"),
        ("turns", "self.turns = "),
        ("defaults", "return self.defaults"),
        ("by_kind", 'self.by_kind["a"]'),
        ("queue", "heappush(self.queue, x)"),
        ("sink", "file=self.sink"),
        ("exits", "self.exits.callback(x)"),
        ("newest", "self.newest = x"),
        ("clear_first", "self.clear_first.append(x)"),
        ("stream", "next(self.stream)"),
        ("trail", "trail.append(1)"),
        ("jobs", "self.jobs[x] ="),
        ("parts", "self.parts.update(x)"),
        ("hits", "self.hits[x] += 1"),
        ("ready", "await self.ready.wait()"),
    ],
)
def test_the_line_that_adds_is_found_outside_the_constructor(made, name, part):
    assert feeding_place("sourced", name).line == line(part)


def test_the_line_of_a_variable_is_looked_for_in_its_own_function_first(made):
    assert feeding_place("sourced", "trail", home="two").line == line("trail = trail + [2]")


def test_what_nothing_feeds_has_no_line(made):
    assert feeding_place("sourced", "fresh") is None
    assert feeding_place("sourced", "untouched") is None
    assert feeding_place("no_such_module", "rows") is None


@pytest.mark.parametrize(
    ("attr", "yes"),
    [("rows", True), ("table", True), ("made_late", True), ("on_class", True), ("other", False)],
)
def test_a_class_is_known_by_what_its_source_assigns(made, attr, yes):
    assert class_assigns("sourced", "Base", attr) is yes
    assert class_assigns("sourced", "Missing.Inner", attr) is False


def test_a_module_makes_what_it_assigns_or_defines_and_not_what_it_imports(made):
    assert [module_assigns("sourced", n) for n in ("ROWS", "B", "Uses", "imported")] == [
        True,
        True,
        True,
        False,
    ]
    assert not module_assigns("no_such_module", "ROWS")


def test_what_has_no_source_answers_nothing(tmp_path, monkeypatch):
    assert tree_about(str(tmp_path / "missing.py"), "x") is None
    (tmp_path / "broken.py").write_text("def x(", encoding="utf-8")
    assert tree_about(str(tmp_path / "broken.py"), "x") is None
    assert file_of_module("sys") is None
    monkeypatch.setitem(sys.modules, "odd_module", types.SimpleNamespace())
    assert file_of_module("odd_module") is None
    assert find(ast.parse("x = 1"), "a.b") is None


CALLS = """
import logging
class Worker:
    def start(self, handler):
        self.log.addHandler(handler)
        box = self.state.box
        box.append(1)
def other():
    Worker().twice()
    Worker().twice()
"""


def test_the_only_call_of_a_library_function_is_found(tmp_path, monkeypatch):
    module("calling", CALLS, tmp_path, monkeypatch)
    at = next(n for n, text in enumerate(CALLS.splitlines(), 1) if "addHandler" in text)
    found = only_call(["calling", "no_such_module"], "addHandler")
    assert (found.line, found.function) == (at, "start")
    assert only_call(["calling"], "twice") is None
    assert only_call(["calling"], "removeHandler") is None


def test_another_name_for_the_same_feeds_nothing(tmp_path, monkeypatch):
    module("calling", CALLS, tmp_path, monkeypatch)
    at = next(n for n, text in enumerate(CALLS.splitlines(), 1) if "box.append" in text)
    assert feeding_place("calling", "box").line == at


def test_a_script_that_has_ended_is_found_by_its_code(tmp_path, monkeypatch):
    made = module("calling", CALLS, tmp_path, monkeypatch)
    file = made.__file__
    del made.__file__
    assert file_of_module("calling") == file
    del made.Worker, made.other
    assert file_of_module("calling") is None
