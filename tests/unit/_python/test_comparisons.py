from __future__ import annotations

import ast

import pytest

from floodline._python.comparisons import (
    FULL,
    ROOM,
    Relation,
    asks_whether_any,
    is_threshold,
    measured,
    outer_size_comparison,
    size_comparisons,
)

WAYS = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "==", "!=": "!="}
DENIED = {">": "<=", ">=": "<", "<": ">=", "<=": ">", "==": "!=", "!=": "!="}


def expression(text):
    return ast.parse(text, mode="eval").body


def found(text):
    return [
        (ast.unparse(each.container), each.relation.value, ast.unparse(each.limit))
        for each in size_comparisons(expression(text))
    ]


@pytest.mark.parametrize("sign", WAYS)
@pytest.mark.parametrize("size", ["len(self.x)", "self.x.qsize()", "(n := len(self.x))"])
def test_a_size_is_compared_whichever_way_round(size, sign):
    assert found(f"{size} {sign} LIMIT") == [("self.x", sign, "LIMIT")]
    assert found(f"LIMIT {WAYS[sign]} {size}") == [("self.x", sign, "LIMIT")]


@pytest.mark.parametrize("sign", WAYS)
def test_not_turns_a_comparison_around(sign):
    assert found(f"not len(x) {sign} 5") == [("x", DENIED[sign], "5")]
    assert found(f"not (a and not len(x) {sign} 5)") == [("x", sign, "5")]


@pytest.mark.parametrize(
    ("text", "comparisons"),
    [
        ("a and len(x) > 5", [("x", ">", "5")]),
        ("a or (b and len(x) > 5)", [("x", ">", "5")]),
        ("len(x) > 5 or len(y) > 6", [("x", ">", "5"), ("y", ">", "6")]),
        ("5 < len(x) <= 9", [("x", ">", "5"), ("x", "<=", "9")]),
        ("len(x) > len(y)", [("x", ">", "len(y)")]),
        ("(full := len(x) > 5)", [("x", ">", "5")]),
        ("len(x)", []),
        ("x > 5", []),
        ("len() > 5", []),
        ("qsize() > 5", []),
        ("size(x) > 5", []),
        ("any(len(x) > 5 for x in y)", []),
    ],
)
def test_comparisons_are_found_through_logic(text, comparisons):
    assert found(text) == comparisons


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("len(x) > 5", "5"),
        ("a and len(x) > 5", "5"),
        ("a or len(x) > 5 or len(x) > 6", "5"),
        ("a or (b and len(x) > 5)", None),
        ("not len(x) > 5", None),
        ("x > 5", None),
        ("x", None),
    ],
)
def test_the_outer_comparison_is_that_of_the_test_itself(text, limit):
    found = outer_size_comparison(expression(text))
    assert (found and ast.unparse(found.limit)) == limit


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("len(x) > 5", False),
        ("a or len(x) > 5", False),
        ("a and len(x) > 5", True),
        ("a or (b and len(x) > 5)", True),
        ("a and (b or len(x) > 5)", True),
        ("not (a or len(x) <= 5)", True),
        ("not (a and len(x) <= 5)", False),
        ("not not (a and len(x) > 5)", True),
    ],
)
def test_and_makes_a_comparison_depend_on_something_else(text, told):
    (found,) = size_comparisons(expression(text))
    assert found.depends is told


def test_a_range_is_known_as_one():
    alone = next(size_comparisons(expression("len(x) > 5")))
    of_two = next(size_comparisons(expression("1 < len(x) < 5")))
    assert (alone.is_range, of_two.is_range) == (False, True)


def test_a_relation_says_full_or_room_or_neither():
    assert set(Relation) - {Relation.OTHER} == FULL | ROOM
    assert not FULL & ROOM


def test_a_size_that_is_only_named_is_none():
    assert measured(expression("size")) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [("len(x) > 0", True), ("1 <= len(x)", True), ("len(x) > 2", False), ("len(x) > N", False)],
)
def test_zero_and_one_ask_whether_there_is_something(text, told):
    assert asks_whether_any(expression(text)) is told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("used > budget", True),
        ("ready and used >= budget", True),
        ("turn % 400 == 0", True),
        ("not turn % 400", True),
        ("'%s' % name", False),
        ("f'{x}' % name", False),
        ("used > 0", False),
        ("used == budget", False),
        ("ready", False),
    ],
)
def test_a_threshold_is_of_more_or_less_or_of_every_so_many(text, told):
    assert is_threshold(expression(text)) is told
