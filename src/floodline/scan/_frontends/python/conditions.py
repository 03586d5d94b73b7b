"""Questions about the tests of branches: which keys are known, what is empty, which event came."""

from __future__ import annotations

import ast
from functools import lru_cache

from floodline._python.assignments import statements_in
from floodline._python.comparisons import measured
from floodline._python.names import written
from floodline._python.numbers import number
from floodline.scan._facts.circumstances import Circumstance, Marks
from floodline.scan._facts.records import replace
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._frontends.python.scope import NAMING, Scope
from floodline.scan._frontends.python.statements import leaves

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
MEMBERS = {ast.In, ast.NotIn}
CONSTANTS = {ast.Constant, ast.Attribute}
FEW = 64  # tests whose text is kept


def tests_membership(test: ast.expr) -> bool:
    """Return True if a test is a membership test."""
    for part in test.values if type(test) is ast.BoolOp else (test,):
        if type(part) is ast.Compare and type(part.ops[0]) in MEMBERS:
            return True
    return False


def outsiders(scope: Scope, test: ast.expr) -> list[tuple[ast.expr, ast.expr | None]]:
    """Return the keys that a test does not find, each with where it looks, if that is a map."""
    found: list[tuple[ast.expr, ast.expr | None]] = []
    for part in test.values if type(test) is ast.BoolOp and type(test.op) is ast.Or else [test]:
        if type(part) is ast.Compare and type(part.ops[0]) is ast.NotIn:
            found.append((part.left, _whole(part.comparators[0])))
        elif (asked := _missing(scope, part)) is None:
            continue
        elif type(asked.func) is ast.Attribute and asked.func.attr == "get":
            found += [(key, asked.func.value) for key in asked.args if len(asked.args) == 1]
        else:
            found += [(key, None) for key in asked.args if type(key) in NAMING]
    return found


def insiders(test: ast.expr) -> list[tuple[ast.expr, ast.expr | None]]:
    """Return the keys that a test finds, each with the table that it is in."""
    every = test.values if type(test) is ast.BoolOp and type(test.op) is ast.And else [test]
    return [
        (part.left, _whole(part.comparators[0]))
        for part in every
        if type(part) is ast.Compare and type(part.ops[0]) is ast.In
    ]


def _whole(table: ast.expr) -> ast.expr:
    """Return the map that all keys are asked of: `known` for `known.keys()`."""
    if type(table) is ast.Call and type(table.func) is ast.Attribute and table.func.attr == "keys":
        return table.func.value
    return table


def rebinds(body: list[ast.stmt], value: ast.expr) -> bool:
    """Return True if a name that a value is made of gets another value in a branch."""
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    return any(
        isinstance(node, ast.Name) and type(node.ctx) is ast.Store and node.id in names
        for statement in body
        for node in ast.walk(statement)
    )


def _missing(scope: Scope, test: ast.expr) -> ast.Call | None:
    """Return the call whose answer a test finds to be `None` or empty."""
    if type(test) is ast.Compare and type(test.ops[0]) is ast.Is:
        test = test.left
    elif type(test) is ast.UnaryOp and type(test.op) is ast.Not:
        test = test.operand
    else:
        return None
    if type(test) is ast.NamedExpr:
        test = test.value
    if type(test) is ast.Name:
        return scope.asked.get(test.id)
    is_get = type(test) is ast.Call and type(test.func) is ast.Attribute and test.func.attr == "get"
    return test if is_get else None  # type: ignore[return-value]  # just asked


def absent(test: ast.expr) -> Marks:
    """Return a mark if the test asks whether something was already created.

    `x is None` and `not hasattr(...)` count for any `x`, `not x` only for that `x`. What another
    part of an `or` lets through says nothing of whether `x` is empty.
    """
    found = _absent(test)
    other = type(test) is ast.BoolOp and type(test.op) is ast.Or
    return frozenset(mark for mark in found if mark == "none") if other else found


def _absent(test: ast.expr) -> Marks:
    for part in test.values if type(test) is ast.BoolOp else (test,):
        if type(part) is ast.Compare:
            operator = type(part.ops[0])
            if operator is ast.Is:
                return frozenset({"none"})
            if operator is ast.Eq and number(part.comparators[0]) == 0:
                held = measured(part.left)
                if held is not None:
                    return frozenset({Circumstance("empty", written(held))})
        elif type(part) is ast.UnaryOp and type(part.op) is ast.Not:
            if type(part.operand) in NAMING:
                return frozenset({Circumstance("empty", written(part.operand))})
            if type(part.operand) is ast.Subscript:
                return frozenset({"none", Circumstance("empty", written(part.operand))})
            return frozenset({"none"})
    return frozenset()


def found_full(test: ast.expr) -> str:
    """Return what a test finds not to be empty: `x` for `if x`, `if len(x)` and `if len(x) > 0`."""
    if type(test) is ast.Compare and type(test.ops[0]) in (ast.Gt, ast.NotEq):
        fixed = number(test.comparators[0]) == 0
        held = measured(test.left) if fixed else None
    else:
        held = test if type(test) in NAMING else measured(test)
    return written(held) if held is not None else ""


def runs_once(scope: Scope, node: ast.If, rest: list[ast.stmt]) -> bool:
    """Return True if `if done: return` or `if x is not None: return` precedes what sets it.

    A local counts only if it was read from what stays: `known.get(key)` is another one each time.
    """
    test = node.test
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot):
        test = test.left
    if type(test) not in NAMING or type(node.body[-1]) is not ast.Return:
        return False
    if type(test) is ast.Name and scope.name and test.id not in scope.globals:
        read = scope.refs.get(test.id)
        if read is None or read[1]:
            return False
    flag = written(test)
    return any(
        isinstance(statement, ast.Assign)
        and not (isinstance(statement.value, ast.Constant) and not statement.value.value)
        and any(written(target) == flag for target in statement.targets)
        for statement in rest
    )


def flag_set(node: ast.If) -> str:
    """Return `self.done` for `if not self.done: ...; self.done = True`, else `""`."""
    test = node.test
    if not isinstance(test, ast.UnaryOp) or type(test.op) is not ast.Not:
        return ""
    flag = written(test.operand) if type(test.operand) in NAMING else ""
    there = any(flag in _given(statement, value=True) for statement in node.body)
    return flag if flag and there else ""


def flags_reset(tree: ast.AST) -> set[str]:
    """Return what is set to `False` or `None` again: in functions other than constructors."""
    functions = (n for n in statements_in(tree) if isinstance(n, FUNCTIONS))
    return {
        target
        for function in functions
        if function.name not in MAKERS
        for statement in statements_in(function)
        for target in (*_given(statement, value=False), *_given(statement, value=None))
    }


def _given(statement: ast.AST, *, value: bool | None) -> list[str]:
    """Return the targets that a statement sets to a constant."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
        return []
    return [written(target) for target in statement.targets if statement.value.value is value]


def event_arm(scope: Scope, test: ast.expr) -> Circumstance | None:
    """Return a mark for `x == "constant"`: branches of the same x exclude each other.

    A state that the function sets itself is no event: it comes to each of them in turn.
    """
    for part in test.values if type(test) is ast.BoolOp else (test,):
        if arm := _arm(scope, part):
            return arm
    return None


def arms_left(scope: Scope, test: ast.expr) -> Marks:
    """Return marks for the arms that are taken if a test holds: what it leads past has none."""
    if type(test) is ast.BoolOp:
        arms = [_arm(scope, part) for part in test.values] if type(test.op) is ast.Or else []
    else:
        arms = [_arm(scope, test)]
    return frozenset([replace(arm, kind="past") for arm in arms if arm])


def behind_else(scope: Scope, test: ast.expr) -> Marks:
    """Return marks for where a test does not hold: the arms that it has, and what is empty."""
    full = found_full(test)
    past = arms_left(scope, test)
    return past | {Circumstance("empty", full)} if full else past


def arms_behind(scope: Scope, node: ast.If) -> Marks:
    """Return marks for the arms of a choice that end the function: what follows is past them."""
    found = arms_left(scope, node.test) if leaves(node.body) else frozenset()
    other = node.orelse
    if len(other) == 1 and type(other[0]) is ast.If:
        found |= arms_behind(scope, other[0])
    return found


def _arm(scope: Scope, test: ast.expr) -> Circumstance | None:
    if type(test) is ast.Call:
        return _arm_of_call(test)
    if type(test) is not ast.Compare:
        return None
    left, right = test.left, test.comparators[0]
    operator = type(test.ops[0])
    if operator is ast.Eq and type(right) in CONSTANTS:
        asked = _text(left)
        return None if asked in scope.states else Circumstance("arm", asked, written(right))
    if operator in MEMBERS:
        found = operator is ast.In
        return Circumstance("arm", f"{_text(left)} in {_text(right)}", str(found))
    return None


def _arm_of_call(test: ast.Call) -> Circumstance | None:
    """Return a mark for `isinstance(x, Kind)` and `x.startswith("constant")`."""
    if type(test.func) is ast.Name and test.func.id == "isinstance" and len(test.args) == 2:
        value, kind = test.args
        named = type(kind) in NAMING and type(value) in NAMING
        return Circumstance("arm", f"type({_text(value)})", written(kind)) if named else None
    prefix = type(test.func) is ast.Attribute and test.func.attr == "startswith"
    fixed = prefix and len(test.args) == 1 and type(test.args[0]) is ast.Constant
    return Circumstance("arm", _text(test), "True") if fixed else None


_text = lru_cache(FEW)(written)  # a test is asked for its arm before, in and behind its branches
