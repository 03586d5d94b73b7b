from __future__ import annotations

import ast

import pytest

from floodline._python.at_limit import AtLimit
from floodline._python.bounds import at_bound, bound_argument, cache_size, is_endless_queue

FIRST, RENEWED, ALL, SOME, BLOCK = (
    AtLimit.FIRST,
    AtLimit.RENEWED,
    AtLimit.ALL,
    AtLimit.SOME,
    AtLimit.BLOCK,
)


def expression(text):
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("deque(maxlen=9)", "9"),
        ("collections.deque([], 9)", "9"),
        ("deque([], maxlen=N)", "N"),
        ("deque()", None),
        ("deque([1])", None),
        ("deque(maxlen=None)", None),
        ("deque([], None)", None),
        ("deque(maxlen=0)", "0"),
        ("Queue(9)", "9"),
        ("asyncio.Queue(maxsize=n)", "n"),
        ("Queue()", None),
        ("Queue(0)", "0"),
        ("Queue(maxsize=0)", "0"),
        ("BoundedMap(9)", "9"),
        ("BoundedMap(max_items=9)", "9"),
        ("LRUCache(maxsize=9)", "9"),
        ("dict(a=1)", None),
        ("Other(9)", None),
        ("Other(maxsize=9)", "9"),
    ],
)
def test_the_bound_that_a_container_is_made_with(text, bound):
    found = bound_argument(expression(text))
    assert (found and ast.unparse(found)) == bound


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Queue()", True),
        ("asyncio.Queue(0)", True),
        ("Queue(maxsize=0)", True),
        ("SimpleQueue()", True),
        ("Queue(9)", False),
        ("Queue(size)", False),
        ("Queue(maxsize=size)", False),
        ("Queue(**options)", False),
        ("deque()", False),
    ],
)
def test_a_queue_without_a_size_has_no_end(text, told):
    assert is_endless_queue(expression(text)) is told


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("deque(maxlen=9)", {FIRST}),
        ("BoundedLog(9)", {FIRST}),
        ("LRUCache(9)", {FIRST, RENEWED}),
        ("BoundedMap(9)", {FIRST, RENEWED}),
        ("BoundedMap(9, order='lru')", {FIRST, RENEWED}),
        ("BoundedMap(9, order='insertion')", {FIRST}),
        ("BoundedMap(9, order=order)", {SOME}),
        ("Batch(9)", {ALL}),
        ("PriorityQueue(9)", {BLOCK}),
        ("Other(maxsize=9)", {SOME}),
    ],
)
def test_what_a_container_does_at_its_bound(text, kinds):
    assert at_bound(expression(text)) == kinds


@pytest.mark.parametrize(
    ("text", "bounded", "given"),
    [
        ("lru_cache", True, None),
        ("functools.lru_cache()", True, None),
        ("lru_cache(typed=True)", True, None),
        ("lru_cache(9)", True, "9"),
        ("lru_cache(maxsize=N)", True, "N"),
        ("lru_cache(None)", False, "None"),
        ("lru_cache(maxsize=None)", False, "None"),
        ("cache", False, None),
        ("functools.cache", False, None),
        ("alru_cache(maxsize=9)", True, "9"),
    ],
)
def test_the_size_of_a_cache_is_told_by_its_decorator(text, bounded, given):
    size = cache_size(expression(text))
    assert (size.is_bounded, size.given and ast.unparse(size.given)) == (bounded, given)


def test_other_decorators_are_no_caches():
    assert cache_size(expression("wraps(f)")) is None
    assert cache_size(expression("cached_property")) is None
