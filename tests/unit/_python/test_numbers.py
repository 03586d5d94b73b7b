from __future__ import annotations

import ast

import pytest

from floodline._python.numbers import is_none, number


def expression(text):
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10_000", 10_000),
        ("-1", -1),
        ("-(2 + 3)", -5),
        ("50 * 2", 100),
        ("1 << 20", 1 << 20),
        ("2 ** 10", 1024),
        ("2 ** 10 - 1", 1023),
        ("1000 // 3", 333),
        ("1 + 1 + 1 + 1 + 1 + 1 + 1 + 1", 8),
        ("(1 + (1 + (1 + (1 + (1 + (1 + (1 + 1)))))))", 8),
    ],
)
def test_a_number_is_read_as_python_calculates_it(text, value):
    assert number(expression(text)) == value == eval(text)


@pytest.mark.parametrize(
    "text",
    [
        "1.5", "True", "'9'", "None", "name", "self.most", "f()", "not 1", "+'x'", "~1", "1 / 2",
        "10 % 3", "1 // 0", "name * 2", "2 * name", "-name",
    ],
)  # fmt: skip
def test_what_is_no_known_whole_number_is_none(text):
    assert number(expression(text)) is None


@pytest.mark.parametrize(
    "text", ["9 ** 9 ** 9", "1 << 10 ** 9", "2 ** -1", "1 << -1", "(9**64)**2"]
)
def test_what_would_take_forever_or_raise_is_not_calculated(text):
    assert number(expression(text)) is None


def test_names_are_asked_for_wherever_they_stand():
    asked = []

    def known(node):
        asked.append(ast.unparse(node))
        return 7

    assert number(expression("2 * self.most + -LIMIT"), known) == 7
    assert asked == ["self.most", "LIMIT"]


def test_a_name_that_nobody_knows_makes_the_whole_unknown():
    assert number(expression("2 * most"), lambda node: None) is None


def test_nothing_is_no_number_and_nobody_is_asked():
    assert number(None, lambda node: 1 / 0) is None


@pytest.mark.parametrize(("text", "told"), [("None", True), ("0", False), ("none", False)])
def test_none_is_a_constant(text, told):
    assert is_none(expression(text)) is told
    assert is_none(None) is False
