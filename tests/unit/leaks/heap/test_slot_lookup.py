from __future__ import annotations

import contextvars
import functools
import sys
import threading

from floodline.leaks._heap.slot_lookup import Places, cached, locals_of, suspended_label
from floodline.leaks._objects.outline import Outlines


def test_an_attribute_is_found_wherever_it_is(monkeypatch):
    places = Places(Outlines(), {})

    class Mixed(dict):
        __slots__ = ("__dict__", "slot")

    class Late:
        def __getattr__(self, name):
            raise AssertionError

    mixed, late, local = Mixed(), Late(), threading.local()
    mixed.slot, mixed.dynamic, late.rows, local.rows = [1], [2], [3], [4]
    assert places.take(mixed, ".slot") == [[1]]
    assert places.take(mixed, ".dynamic") == [[2]]
    assert places.take(mixed, ".__dict__") == places.take(mixed, ".missing") == []
    assert places.take(late, ".rows") == [[3]]
    assert places.take(late, ".missing") == places.take(late, ".__init__") == []
    assert places.take(local, ".rows") == [[4]]
    assert places.take(len, ".rows") == places.take(3, "[*]") == places.take({}, "→int") == []
    assert places.take({1: [1]}, "[keys]") == []
    variable = contextvars.ContextVar("variable")
    context = contextvars.copy_context()
    context.run(variable.set, [5])
    assert [5] in places.take(context, "→value")

    def function(a, b=[1], *, c=[2]):  # noqa: B006  # defaults are what is looked for
        return local

    function.rows = [6]
    assert places.take(function, "(b=)") == [[1]]
    assert places.take(function, "(c=)") == [[2]]
    assert places.take(function, ".rows") == [[6]]
    assert places.take(function, "{local}") == [local]
    assert dict(locals_of(sys._getframe()))["late"] is late


def test_a_large_cache_is_not_listed(monkeypatch):
    made = functools.cache(lambda n: [n])
    for n in range(20):
        made(n)
    assert [3] in cached(made)
    monkeypatch.setattr("floodline.leaks._heap.slot_lookup.MOST_REFERENTS", 10)
    assert cached(made) == []


def test_a_generator_without_a_function_is_named_by_its_code(monkeypatch):
    made = (n for n in [1])
    monkeypatch.setattr("floodline.leaks._heap.slot_lookup._HEADER", 0)
    assert suspended_label(made).endswith("<genexpr>")
