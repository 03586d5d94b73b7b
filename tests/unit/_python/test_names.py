from __future__ import annotations

import ast

import pytest

from floodline._python.names import dotted, functions, is_named, last_name, mentions, written


def expression(text):
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    "text",
    [
        "name", "a.b.c", "f().b", "(1).real", "1", "-1", "1.5", "1e400", "2j", "True", "None",
        "...", "'text'", "u'text'", "b'bytes'", '"it\'s"', "'a\\nb'", "a[0]", "a[b, c]", "a[1:2]",
        "f'{x!r:>{width}} {y}'", "(a, b)", "lambda x: x", "not a", "a if b else c", "'\\ud800'",
    ],
)  # fmt: skip
def test_an_expression_is_written_as_python_itself_writes_it(text):
    node = ast.parse(text, mode="eval").body
    assert written(node) == ast.unparse(node)


@pytest.mark.parametrize(
    ("text", "last", "whole"),
    [
        ("a", "a", "a"),
        ("a.b.c", "c", "a.b.c"),
        ("a.b[0]", "b", ""),
        ("a[0].b", "b", ""),
        ("a().b", "b", ""),
        ("a()", "", ""),
        ("1", "", ""),
    ],
)
def test_the_name_of_an_expression(text, last, whole):
    assert (last_name(expression(text)), dotted(expression(text))) == (last, whole)


def test_nothing_has_no_name():
    assert last_name(None) == ""


@pytest.mark.parametrize(
    ("text", "named", "mentioned"),
    [
        ("rows", True, True),
        ("self.rows", True, True),
        ("self.rows[key][0]", True, True),
        ("rows.inner", True, True),
        ("len(rows)", False, True),
        ("old[rows]", False, True),
        ("rows_of", False, False),
        ("'rows'", False, False),
    ],
)
def test_what_an_expression_means(text, named, mentioned):
    node = expression(text)
    assert (is_named(node, "rows"), mentions(node, "rows")) == (named, mentioned)


def test_inner_functions_are_functions_too():
    tree = ast.parse("def a():\n  def b(): pass\nclass C:\n  async def d(self): pass")
    assert {function.name for function in functions(tree)} == {"a", "b", "d"}
