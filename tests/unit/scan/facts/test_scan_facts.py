"""What is read of one file: the text of expressions, and facts that repeat each other."""

from __future__ import annotations

import pytest

from floodline.scan._facts.origins import most_open
from floodline.scan._frontends.python.reader import read


def test_equal_facts_of_a_file_are_one_object():
    text = "def f(a, b):\n    if a:\n        x.send(a, b, key=1)\n        x.send(a, b, key=1)\n"
    facts = read(text + text.replace("f(", "g("), "app.py", "app")
    first, second = facts.calls[0], facts.calls[1]
    assert first.callee is second.callee
    assert first.arguments is second.arguments
    assert first.keywords is second.keywords
    assert facts.functions[0].parameters is facts.functions[1].parameters


def test_marks_of_changes_that_stand_alike_are_one_object():
    facts = read(
        "def f(x):\n    if x:\n        a.add(x)\n    if x:\n        b.add(x)\n", "a.py", "a"
    )
    assert facts.changes[0].marks == {"branch"}
    assert facts.changes[0].marks is facts.changes[1].marks


@pytest.mark.parametrize(
    ("origins", "widest"),
    [
        ([], "const"),
        (["const", "const"], "const"),
        (["type", "enum:A.B"], "enum:A.B"),
        (["call:f", "param:1", "param:2"], "all:call:f&param:1&param:2"),
        (["all:param:1&param:2", "param:1", "const"], "all:param:1&param:2"),
        (["param:1", "fresh:time()"], "fresh:time()"),
        (["unknown", "fresh:uuid4()"], "fresh:uuid4()"),
    ],
)
def test_the_widest_origin_decides_and_several_that_callers_decide_are_kept(origins, widest):
    assert most_open(origins) == widest
