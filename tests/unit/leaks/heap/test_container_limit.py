from __future__ import annotations

import ast
import functools
from collections import OrderedDict, deque

import pytest

from floodline.leaks._figures.suspect import below
from floodline.leaks._heap.container_limit import read_numbers, room, shown_limit
from floodline.leaks._heap.walk import Held
from soak_programs import module


@pytest.fixture(autouse=True)
def made(tmp_path, monkeypatch):
    return module("capped", "LIMIT = 9\n", tmp_path, monkeypatch)


class Cache:
    most = 14

    def __init__(self, limit=0):
        self.rows = {}
        self.least = limit


class Sized(Cache):
    def __init__(self, limit):
        super().__init__()
        self.maxsize = limit


class Hidden(Cache):
    def __init__(self, limit):
        super().__init__()
        self.__maxsize = limit


class Slotted:
    __slots__ = ("_max_len", "rows")

    def __init__(self, limit):
        self._max_len, self.rows = limit, {}


@pytest.mark.parametrize(
    ("kind", "limit", "found"),
    [
        *((Sized, 10, 10), (Hidden, 11, 11), (Slotted, 12, 12)),
        *((Sized, 0, None), (Sized, "big", None), (Cache, 3, None)),
    ],
)
def test_an_attribute_beside_a_container_may_be_its_limit(kind, limit, found):
    cache = kind(limit)
    assert shown_limit([Held(cache, cache.rows)], []) == found


def test_what_many_hold_or_a_module_holds_shows_no_limit(made):
    made.maxsize = 10
    assert shown_limit([Held(made, {})], []) is None
    assert shown_limit([Held(Sized(1), {}), Held(Sized(1), {})], []) is None
    assert shown_limit([], []) is None


def test_a_deque_and_a_cached_function_show_their_limits():
    cached = functools.lru_cache(maxsize=7)(abs)
    assert shown_limit([Held(None, deque(maxlen=5)), Held(None, deque(maxlen=5))], []) == 10
    assert shown_limit([Held(None, cached)], []) == 7
    assert shown_limit([Held(None, functools.cache(abs))], []) is None


def test_items_have_the_room_that_their_one_container_has():
    ring = [[0], [1], None, None]
    assert room([Held(ring, ring[0]), Held(ring, ring[1])]) == 4
    assert room([Held(ring, ring[0]), Held([1], ring[1])]) is None
    assert room([Held(None, ring)]) is None
    assert room([Held(OrderedDict(a=1), ring)]) == 1


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("5", [5]),
        ("LIMIT", [9]),
        ("self.least", [13]),
        ("self.most", [14]),
        ("x.no", []),
        ("'a'", []),
    ],
)
def test_a_limit_is_read_where_code_names_it(written, found):
    limit = ast.parse(written, mode="eval").body
    assert read_numbers([limit], Cache(13), "capped") == found


def test_a_limit_is_read_from_a_module(made):
    limit = ast.parse("capped.LIMIT", mode="eval").body
    assert read_numbers([limit], made, None) == [9]


@pytest.mark.parametrize(
    ("cap", "capped", "yes"), [(None, False, False), (None, True, True), (10, True, True)]
)
def test_what_has_not_reached_its_limit_fills(cap, capped, yes):
    assert below(10, cap, capped=capped) is yes


def test_what_is_above_its_limit_does_not_fill():
    assert not below(11, 10, capped=True)
