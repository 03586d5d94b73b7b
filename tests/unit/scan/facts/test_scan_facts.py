"""What is read of one file: the text of expressions, and facts that repeat each other."""

from __future__ import annotations

import pytest

from floodline.scan._facts.calls import (
    FIXED,
    Argument,
    by_name,
    inherited,
    method_of,
    named_by,
    own_method,
)
from floodline.scan._facts.circumstances import Circumstance, standing
from floodline.scan._facts.origins import (
    CONSTANT,
    TYPE,
    UNKNOWN,
    Origin,
    asked,
    attribute_step,
    before_call,
    call_of,
    call_step,
    dotted_name,
    fresh,
    given_step,
    global_name,
    most_open,
    parameter,
    within,
)
from floodline.scan._facts.records import replace
from floodline.scan._facts.references import (
    UNKNOWN_BASE,
    base_in_module,
    base_of_answer,
    base_of_class,
    base_of_instance,
    in_module,
    of_function,
    of_instance,
    of_object,
)
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


NEW, ONE, OTHER = fresh("time"), parameter(1), parameter(2)
BOTH = Origin("all", parts=(ONE, OTHER))


@pytest.mark.parametrize(
    ("origins", "widest"),
    [
        ([], CONSTANT),
        ([CONSTANT, CONSTANT], CONSTANT),
        ([TYPE, dotted_name("A", "B")], dotted_name("A", "B")),
        ([call_of("f"), ONE, OTHER], Origin("all", parts=(call_of("f"), ONE, OTHER))),
        ([BOTH, ONE, CONSTANT], BOTH),
        ([ONE, NEW], NEW),
        ([UNKNOWN, NEW], NEW),
    ],
)
def test_the_widest_origin_decides_and_several_that_callers_decide_are_kept(origins, widest):
    assert most_open(origins) == widest


def keys(text):
    return [c.key for c in read(f"def f(a, b):\n    x[{text}] = 1\n", "a.py", "a").changes]


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("1", CONSTANT),
        ("a", parameter(0)),
        ("a.name", asked(parameter(0), attribute_step("name"))),
        ("b.get()", asked(parameter(1), call_step("get"))),
        ("x.name", dotted_name("x", "name")),
        ("time()", fresh("time")),
        ("f(1)", call_of("f")),
        ("len(a)", TYPE),
        ("x", global_name("x")),
    ],
)
def test_a_key_has_the_origin_of_its_value(text, origin):
    assert keys(text) == [origin]


def test_what_is_asked_of_an_origin_is_shown_as_it_is_written():
    origin = dotted_name("x", "users")
    for step in (call_step("get"), given_step("normal")):
        origin = asked(origin, step)
    assert origin.text == "x.users.get().normal(*)"
    assert before_call(origin).text == "x.users.get()"
    assert before_call(dotted_name("x", "users")) is None


def test_nothing_is_known_of_what_is_asked_of_an_unknown_value():
    assert asked(UNKNOWN, call_step("get")) is None
    assert asked(Origin("all", parts=(ONE, UNKNOWN)), call_step("get")).steps == (call_step("get"),)


def test_a_parameter_of_an_outer_function_is_known_as_such():
    assert within(ONE, "f") == replace(ONE, function="f")
    assert within(within(ONE, "f"), "g") == replace(ONE, function="f")
    assert within(BOTH, "f").parts == (within(ONE, "f"), within(OTHER, "f"))
    assert within(NEW, "f") is NEW


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("x", in_module("x")),
        ("x.y", of_object(base_in_module("x"), "y")),
        ("x.y.z", of_object(base_in_module("x.y"), "z")),
        ("self.x", of_instance("x")),
        ("self.x.y", of_object(base_of_instance("x"), "y")),
        ("user.names", of_object(base_of_class("User"), "names")),
        ("make().names", of_object(base_of_answer("make"), "names")),
        ("own", of_function("C.f", "own")),
        ("(1).names", of_object(UNKNOWN_BASE, "names")),
    ],
)
def test_a_change_says_which_container_it_means(text, ref):
    source = f"class C:\n    def f(self, user: User, own):\n        {text}.add(own)\n"
    assert [change.ref for change in read(source, "a.py", "a").changes] == [ref]


@pytest.mark.parametrize(
    ("text", "callee"),
    [
        ("run()", by_name("run")),
        ("self.run()", own_method("run")),
        ("super().run()", inherited("run")),
        ("x.y.run()", method_of(base_in_module("x.y"), "run")),
    ],
)
def test_a_call_names_its_callee(text, callee):
    calls = read(f"class C:\n    def f(self):\n        {text}\n", "a.py", "a").calls
    assert callee in [call.callee for call in calls]


@pytest.mark.parametrize(
    ("text", "noted"),
    [
        ("tuple(a)", []),
        ("raise ValueError(a)", []),
        ("a.get('key', 1)", []),
        ("sorted(rows)", ["sorted"]),
        ("max(a, key=lambda x: x)", ["max"]),
        ("a.update(rows)", ["update"]),
        ("b.get('key')", ["get"]),
    ],
)
def test_a_call_of_what_is_built_in_counts_if_a_container_or_function_goes_there(text, noted):
    calls = read(f"def f(a: dict, b):\n    {text}\n", "a.py", "a").calls
    assert [call.callee.name for call in calls] == noted


def test_what_is_only_called_final_is_the_answer_of_its_function():
    text = "def f():\n    c: Final = load()\n    c.run()\n"
    callees = [call.callee for call in read(text, "a.py", "a").calls]
    assert method_of(base_of_answer("load"), "run") in callees


@pytest.mark.parametrize(
    ("ref", "callee"),
    [
        (in_module("run"), by_name("run")),
        (of_instance("run"), own_method("run")),
        (of_object(base_in_module("x"), "run"), method_of(base_in_module("x"), "run")),
        (of_function("f", "run"), None),
    ],
)
def test_a_reference_may_mean_a_function(ref, callee):
    assert named_by(ref) == callee


def test_an_argument_is_a_container_a_function_or_a_value():
    text = "def f(a):\n    b = []\n    run(1, a, b, lambda: 1, key=x.y)\n"
    call = read(text, "a.py", "a").calls[0]
    fixed, given, held, function = call.arguments
    assert fixed == FIXED
    assert given == Argument(parameter(0))
    assert held.ref == of_function("f", "b")
    assert function.origin.kind == "function"
    expected = Argument(dotted_name("x", "y"), of_object(base_in_module("x"), "y"))
    assert call.keywords == (("key", expected),)


@pytest.mark.parametrize(
    "body",
    [
        "run(a)\n    a = []",
        "run(a)\n    if a:\n        a: list = x or []",
        "run(a)\n    (a, b) = ({}, 1)",
        "a = 1\n    def a(): pass\n    run(a)",
        "a = 'one'\n    run(a)",
    ],
)
def test_an_argument_names_a_local_that_is_ever_a_container_a_function_or_fixed(body):
    calls = read(f"def f():\n    {body}\n", "a.py", "a").calls
    assert calls[0].arguments[0].ref == of_function("f", "a")


ARM, OTHER_ARM = Circumstance("arm", "kind", "'a'"), Circumstance("arm", "state", "1")
PASSED = replace(ARM, kind="past")


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        (set(), ("", "", (), "")),
        ({"for", "while", "once"}, ("once", "", (), "")),
        ({"while"}, ("while", "", (), "")),
        ({"while", "serves"}, ("serves", "", (), "")),
        ({"while", "serves", Circumstance("endless", "", "", 3)}, ("forever", "", (), "")),
        ({"for", Circumstance("over", "Jobs")}, ("for", "Jobs", (), "")),
        ({"branch", OTHER_ARM, ARM}, ("", "", (ARM, OTHER_ARM), "branch")),
        ({"except", PASSED}, ("", "", (PASSED,), "except")),
        ({"branch", "except", "finally"}, ("", "", (), "finally")),
    ],
)
def test_a_call_stands_in_loops_arms_and_behind_guards(marks, expected):
    assert standing(frozenset(marks)) == expected


def test_what_was_found_empty_is_told_from_a_loop_over_it():
    text = "def f(x):\n    if not Jobs:\n        for j in x:\n            a.add(j)\n"
    assert Circumstance("empty", "Jobs") in read(text, "a.py", "a").changes[0].marks
    assert Circumstance("empty", "Jobs") != Circumstance("over", "Jobs")
