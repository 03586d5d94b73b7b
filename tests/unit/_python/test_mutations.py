from __future__ import annotations

from collections import Counter, OrderedDict, deque
from contextlib import AsyncExitStack, ExitStack
from queue import Queue

import pytest

from floodline._python.mutations import (
    GROWS_ANYTHING,
    GROWS_BY_ITEM,
    GROWS_BY_KEY,
    METHODS,
    NOT_OF_A_MAP,
    SHRINKS,
    SHRINKS_ANYTHING,
    TAKES_NAMED,
    TAKES_NAMED_OF_MAP,
    TAKES_UNNAMED,
    Effect,
    Kind,
    Takes,
)

CLASSES = {
    Kind.LIST: (list,),
    Kind.DEQUE: (deque,),
    Kind.SET: (set,),
    Kind.MAP: (dict, OrderedDict, Counter),
    Kind.STACK: (ExitStack, AsyncExitStack),
    Kind.QUEUE: (Queue,),
}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_kinds_of_a_method_are_those_that_have_it(method):
    for kind, classes in CLASSES.items():
        has = any(hasattr(each, method.name) for each in classes)
        if kind is Kind.LIST and method.name == "__setitem__":
            has = False  # it puts another item in the place of one
        if kind is Kind.DEQUE and method.name == "__setitem__":
            has = False
        assert has == bool(method.kinds & kind), kind


def test_a_name_is_in_the_table_once():
    names = [method.name for method in METHODS]
    assert sorted(set(names)) == sorted(names)


def test_only_removals_say_what_they_take():
    assert {m.takes is None for m in METHODS if m.effect is Effect.GROWS} == {True}
    assert {m.takes for m in METHODS if m.effect is Effect.SHRINKS} == set(Takes)


def test_growth_is_by_key_or_by_item():
    assert {"add", "setdefault", "update", "__setitem__"} < GROWS_BY_KEY
    assert {"append", "appendleft", "extend", "insert", "push", "enter_context"} < GROWS_BY_ITEM
    assert not GROWS_BY_KEY & GROWS_BY_ITEM


def test_queues_are_left_to_those_who_ask_for_them():
    assert {"put", "put_nowait"} == GROWS_ANYTHING - GROWS_BY_ITEM - GROWS_BY_KEY
    assert {"get_nowait"} == SHRINKS_ANYTHING - SHRINKS


def test_a_removal_takes_what_is_named_or_what_is_there():
    assert {"pop", "del", "__delitem__", "remove", "discard"} == TAKES_NAMED
    assert {"pop", "del", "__delitem__"} == TAKES_NAMED_OF_MAP
    assert {"popitem", "popleft", "clear"} == TAKES_UNNAMED


def test_a_map_has_no_removal_of_a_set_or_a_deque():
    assert {"remove", "discard", "popleft", "difference_update"} < NOT_OF_A_MAP
    assert not NOT_OF_A_MAP & {"pop", "popitem", "clear", "__delitem__"}
