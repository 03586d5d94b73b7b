"""Newer syntax is rewritten, and what is broken is left out; lines keep their numbers."""

from __future__ import annotations

import ast

import pytest

from floodline.scan._frontends.python import newer_syntax
from floodline.scan._frontends.python.newer_syntax import rewritten
from floodline.scan._frontends.python.recovery import recovered

NEWER = [
    ('x = f"{m["k"]}"', "x = (m['k'],)"),
    ('d[f"a{x["b"]!r:>{w}}c{y=}"] = 1', "d[x['b'], y] = 1"),
    ('x = t"{a} {b["c"]}"', "x = (a, b['c'])"),
    ('x = rf"\\d{a["b"]}"', "x = (a['b'],)"),
    ('x = f"\\N{DASH}\\t{{}}{a["b"]}"', "x = (a['b'],)"),
    ('x = f"""{\n  a["""k"""]  # note\n}\n"""', "x = (a['k'],)"),
    ('x = f"{"\\n".join(names)}"', "x = ('\\n'.join(names),)"),
    ('x = f"{a if b != "c" else d}"', "x = (a if b != 'c' else d,)"),
    ('x = f"{(lambda y: y["k"])(z)}"', "x = ((lambda y: y['k'])(z),)"),
    ('x = ("a" f"{b["c"]}" "d" f"{e}" "" "fg")', "x = 'a' + (b['c'],) + () + (e,) + ()"),
    ('x = (f"{b["c"]}"\n  """e\nf"""   f"{g["h"]}")', "x = (b['c'],) + () + (g['h'],)"),
    ("def f[T: (int, str) = int](x: T) -> T:\n    return x", "def f(x: T) -> T:\n    return x"),
    ("async def g[**P](): pass", "async def g():\n    pass"),
    ("class A[T](B):\n    type X[U] = dict[U, T]", "class A(B):\n    pass"),
    ("type P = int | str  # why", "pass"),
    ("if x: type Y = (\n    int)", "if x:\n    pass"),
    ("try:\n    a()\nexcept A, B.c:\n    b()", "try:\n    a()\nexcept (A, B.c):\n    b()"),
    ("try:\n    a()\nexcept* A, B:\n    b()", "try:\n    a()\nexcept* (A, B):\n    b()"),
]
OLDER = [
    "type = 3\ntype[0]\nx = type\ntype [0]\n",
    "match type:\n    case 1: pass\n",
    "x = y if'a'else z\n",
    "try:\n    a()\nexcept (A, B) as e:\n    b()\nexcept A:\n    c()\n",
    "x = f'{a}' \\\n  \"{'b'}\" # f'{'\n",
    "def f(x): return {1: [2]}[x]; y = 1\n",
]


@pytest.mark.parametrize(("text", "means"), NEWER)
def test_newer_syntax_becomes_what_older_pythons_read(monkeypatch, text, means):
    monkeypatch.setattr(
        newer_syntax,
        "_is_readable",
        lambda text: "[" not in text and "\\n" not in text and "!=" not in text,
    )
    now = rewritten(text)
    assert ast.unparse(ast.parse(now)) == means
    assert now.count("\n") == text.count("\n")


@pytest.mark.parametrize("text", OLDER)
def test_older_syntax_stays_as_it_is(text):
    assert rewritten(text) == text


@pytest.mark.parametrize(
    "text", ["x = f'{a'", "x = f'{", "type X[", "def f[T", "x = f'\\N{a", "f'{a!"]
)
def test_what_has_no_end_stays_as_it_is(text):
    assert rewritten(text) == text


def test_strings_that_this_python_reads_are_not_touched():
    assert rewritten("x = f'{a}'\nx = t'{b}'\n").startswith("x = f'{a}'\n")


REST = "x = 1\ny = 2\nz = 3\nw = 4\nv = 5\nu = 6\n"


@pytest.mark.parametrize(
    ("broken", "left", "lines"),
    [
        ("def f(x):\n    y = 1\n    x +* 3\n", "def f(x):\n    y = 1\n    pass\n", 1),
        ("try:\n    b\nexcept A as, c:\n    d\nelse:\n    e\n", "pass\n\n\n\n\n\n", 6),
        ("x = foo(\n   1,\n   2 3\n)\n", "pass\n\n\n\n", 4),
        ("class A:\n    def g(self)\n        k\n    k\n", "class A:\n    pass\n\n    k\n", 2),
        ("print 'a'\nk = 3\nprint 'b'\n", "pass\nk = 3\npass\n", 2),
        ("if x:\n    y\n  z\n", "pass\n\n\n", 3),
    ],
)  # fmt: skip
def test_broken_statements_are_left_out(broken, left, lines):
    found = recovered(broken + REST)
    assert found.text == left + REST
    assert found.lines == lines
    ast.parse(found.text)


@pytest.mark.parametrize(
    "text",
    [
        "print 'a'\n",
        f'{REST}a = """\n{REST}',
        "print 'a'\nx = 1\n" * 20,
    ],
)
def test_what_is_mostly_broken_is_an_error(text):
    with pytest.raises(SyntaxError):
        recovered(text)


def test_a_source_without_errors_needs_no_recovery():
    with pytest.raises(ValueError, match="nothing to recover"):
        recovered(REST)
