from __future__ import annotations

import re
import threading
import types
from collections import deque
from functools import lru_cache, partial
from typing import TypeVar

import pytest

from floodline.leaks._live.walk.still_objects import MOST, is_still
from floodline.leaks._objects.outline import Outlines


class Point:
    def __init__(self, **names):
        for name, value in names.items():
            setattr(self, name, value)


def made():
    return type("Local", (), {"rows": []})


T = TypeVar("T", int, str)
KEPT = []


def caching(rows=KEPT):
    return rows


def with_namespace():
    point = Point(at=(1, 2), unit="m")
    assert vars(point)  # its `__dict__` exists from now on
    return point


@pytest.mark.parametrize(
    "value",
    [
        len, T, dict[str, int], re.compile("a"), threading.RLock(), (1, ("a", Point)),
        frozenset({"a"}), Point(at=(1, 2), unit="m"), with_namespace(), "short".upper, re,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_cannot_grow_is_still(value):
    assert is_still(value, Outlines(), frozenset())


@pytest.mark.parametrize(
    "value",
    [
        [], {}, set(), deque(), bytearray(), lru_cache(len), threading.local(), caching,
        Point(rows=[]), (1, (2, {})), KEPT.append, partial(caching), made(),
        Point(kind=made()), tuple((i,) for i in range(MOST + 1)), types.SimpleNamespace(a=[]),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_holds_something_that_can_grow_is_not(value):
    assert not is_still(value, Outlines(), frozenset())


def test_what_was_seen_is_not_looked_at_again():
    rows = [1]
    assert is_still(Point(rows=rows), Outlines(), frozenset({id(rows)}))
