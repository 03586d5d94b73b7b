"""Per-session maps: cleared together, once, and bounded where no session ever comes."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from floodline import Reason, Sessions, SessionScope
from floodline.errors import ConfigError


def test_all_maps_of_a_session_are_cleared_together_and_once() -> None:
    scope, left = SessionScope(), list[Any]()
    locks = scope.map("locks", on_leave=lambda i, value, reason: left.append((i, value, reason)))
    notes = scope.map("notes")
    locks["a"], notes["a"], notes["b"] = 1, 2, 3
    assert (len(locks), len(notes), sorted(notes)) == (1, 2, ["a", "b"])
    scope.leave("a", Reason.idle)
    scope.leave("a", Reason.idle)
    assert left == [("a", 1, Reason.idle)]
    assert "a" not in notes
    assert notes["b"] == 3
    assert scope.stats().left == {"idle": 2}


def test_values_are_replaced_and_deleted_with_their_reasons() -> None:
    scope, left = SessionScope(), list[str]()
    notes = scope.map("notes", on_leave=lambda i, value, reason: left.append(str(reason)))
    notes["a"] = 1
    notes["a"] = 2
    del notes["a"]
    with pytest.raises(KeyError):
        del notes["a"]
    with pytest.raises(KeyError):
        notes["a"]
    assert left == ["replaced", "closed"]
    assert scope.stats().sessions == 0


def test_a_second_map_of_the_same_name_is_refused() -> None:
    scope = SessionScope()
    scope.map("notes")
    with pytest.raises(ConfigError, match="already has a map 'notes'"):
        scope.map("notes")


def test_values_of_ids_that_no_session_opens_are_bounded() -> None:
    scope, left = SessionScope(max_strays=2), list[str]()
    notes = scope.map("notes", on_leave=lambda i, value, reason: left.append(i))
    for one in "abc":
        notes[one] = one
    assert left == ["a"]
    assert scope.stats().strays == 2
    scope.opened("b")
    for one in "de":
        notes[one] = one
    assert "b" in notes
    assert left == ["a", "c"]


def test_a_hook_that_raises_is_counted() -> None:
    scope = SessionScope()

    def hook(*_: Any) -> None:
        raise OSError

    notes = scope.map("notes", on_leave=hook)
    notes["a"] = 1
    scope.leave("a")
    assert scope.stats().hook_errors == 1


def test_a_hook_and_a_finalizer_may_use_the_scope() -> None:
    """[E1], [E2]"""
    scope = SessionScope()

    class Value:
        def __del__(self) -> None:
            notes["later"] = 1

    notes: Any = scope.map("notes")
    locks = scope.map("locks", on_leave=lambda i, value, reason: notes.__setitem__("hook", 1))
    locks["a"], notes["a"] = 1, Value()
    scope.leave("a")
    gc.collect()
    assert sorted(notes) == ["hook", "later"]


def test_a_late_value_leaves_with_a_late_close() -> None:
    """Plugin hosts write to their maps after the session has gone."""
    scope = SessionScope()
    notes = scope.map("notes")
    with Sessions(dict, scope=scope) as sessions:
        with sessions.use("a"):
            notes["a"] = "x"
        sessions.close("a")
        notes["a"] = "late"
        sessions.close("a")
        assert len(notes) == 0
