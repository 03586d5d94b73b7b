"""Context variables that a program makes while it runs, counted and named by who makes them."""

from __future__ import annotations

import contextvars

from floodline.leaks._closeup.closeup import look_closer
from floodline.leaks._figures.candidates import Candidate
from floodline.leaks._figures.trend import Trend
from floodline.leaks._heap import context_variables as names
from floodline.leaks._heap.roots import survey
from floodline.leaks._heap.slots import Slots
from floodline.leaks._source.feeding_statements import feeding_place
from soak_programs import line_of, module, narrow

SOURCE = """
import contextvars
from contextvars import ContextVar

NAMED = ContextVar("t9_named")
NAMED.set(1)

class Resolver:
    def __init__(self):
        self.vars = {}
    def resolve(self, node):
        self.vars["t9_parent"] = contextvars.ContextVar("t9_parent")   # makes parent
        self.vars["t9_parent"].set(node)

def handle():
    depth: ContextVar = ContextVar("t9_depth")
    depth.set(None)

def other():
    one, two = ContextVar("t9_pair"), 2
    kept = ContextVar(chosen())
    bare: int
    (left, right) = ContextVar("t9_spread")
"""


def test_variables_that_are_made_anew_are_counted_by_their_name(tmp_path, monkeypatch):
    made = module("variables", SOURCE, tmp_path, monkeypatch)
    narrow(monkeypatch, made)

    def work():
        for _ in range(5):
            made.Resolver().resolve(None)
        made.handle()
        slots = Slots()
        walk = survey(slots)
        found = {key: walk.length[slots.get(key).index] for key in ("contextvars.t9_parent",)}
        assert found == {"contextvars.t9_parent": 5}
        assert slots.get("contextvars.t9_named") is None
        one = Candidate(
            slots.get("contextvars.t9_parent"), "length", Trend("growing", 1.0, 9.0, 1.0), 0.0, 5
        )
        return look_closer(slots, [one])[0]

    close = contextvars.copy_context().run(work)
    assert close.owner == "variables.Resolver.vars"
    assert close.defined_in == "variables.Resolver"
    assert close.suspect(1).type == "ContextVar"
    place = feeding_place("variables", "vars")
    assert place.line == line_of(SOURCE, "# makes parent")


def test_the_maker_is_the_function_that_assigns_a_variable_of_that_name(tmp_path, monkeypatch):
    module("variables", SOURCE, tmp_path, monkeypatch)
    assert names.maker_of("t9_depth") == ("variables.handle()depth", "variables.handle")
    assert names.maker_of("t9_spread") == ("variables.other()", "variables.other")
    assert names.maker_of("t9_named") is None  # made once, and the module has it
    assert names.maker_of("t9_pair") is None
    assert names.maker_of("t9_nobody") is None
