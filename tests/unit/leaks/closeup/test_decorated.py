from __future__ import annotations

import functools

from floodline.leaks._closeup.decorated import decorated_function
from floodline.leaks._heap.walk import Held


def memo(function):
    cache = {}

    @functools.wraps(function)
    def inner(key):
        cache.setdefault(key, function(key))
        return cache[key]

    return inner


def plain_memo(function):
    cache, ask = {}, lambda: None

    def inner(key):
        ask()
        cache.setdefault(key, function(key))
        return cache[key]

    return inner


def counter():
    rows = []

    def count(key):
        rows.append(key)

    return count


def held(function) -> Held:
    value = next(
        c.cell_contents for c in function.__closure__ if type(c.cell_contents) is not type(held)
    )
    return Held(function, value)


@memo
def parse(key):
    return [key]


@memo
def other(key):
    return [key]


@plain_memo
def plain(key):
    return [key]


def test_the_decorated_function_of_the_fullest_cache_is_named():
    parse(1)
    assert decorated_function([held(other), held(parse)]) == f"{__name__}.parse"
    for key in range(3):
        other(key)
    assert decorated_function([held(other), held(parse)]) == f"{__name__}.other"


def test_what_a_decorator_below_has_wrapped_is_named():
    def parse_it(key):
        return parse(key)

    assert decorated_function([held(plain_memo(parse))]) == f"{__name__}.parse"
    assert decorated_function([held(memo(functools.wraps(parse)(parse_it)))]).endswith(".parse")


def test_functools_need_not_have_noted_it():
    plain(1)
    assert decorated_function([held(plain)]) == f"{__name__}.plain"


def test_a_closure_that_decorates_nothing_has_no_such_name():
    assert decorated_function([held(counter())]) is None
    assert decorated_function([]) is None
    assert decorated_function([Held(object(), [])]) is None
