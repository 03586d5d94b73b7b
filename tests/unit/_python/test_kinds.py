from __future__ import annotations

import ast
import builtins
import collections

import pytest

from floodline._python.kinds import BASES, ONLY_TYPES, kind_of_class, kind_of_display


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("dict", "map"),
        ("Counter", "map"),
        ("deque", "list"),
        ("MutableSet", "set"),
        ("defaultdict", "lookup"),
        ("WeakSet", "weak"),
        ("ExitStack", "stack"),
        ("Queue", None),
        ("Cache", None),
    ],
)
def test_a_class_is_known_by_its_name(name, kind):
    assert kind_of_class(name) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{}", "map"),
        ("{a: b for a, b in c}", "map"),
        ("[]", "list"),
        ("[a for a in b]", "list"),
        ("{1}", "set"),
        ("{a for a in b}", "set"),
        ("()", None),
        ("dict()", None),
    ],
)
def test_a_display_is_known_by_its_brackets(text, kind):
    assert kind_of_display(ast.parse(text, mode="eval").body) == kind


def test_nothing_is_no_display():
    assert kind_of_display(None) is None


def test_the_bases_are_classes_that_hold_items_themselves():
    assert not BASES & ONLY_TYPES
    for name in BASES:
        found = getattr(builtins, name, None) or getattr(collections, name)
        assert found().__len__() == 0
