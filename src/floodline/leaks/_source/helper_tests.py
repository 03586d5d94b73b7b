"""Limits that are not compared with a length in place: a helper's answer, a count beside it."""

from __future__ import annotations

import ast

from floodline._python.assignments import targets
from floodline._python.names import Function, functions, last_name


def answers_in(tree: ast.AST) -> dict[str, ast.expr]:
    """Return what each function that does nothing but answer returns, by its name."""
    return {
        function.name: last.value
        for function in functions(tree)
        if isinstance(last := function.body[-1], ast.Return)
        and last.value is not None
        and all(_is_text(statement) for statement in function.body[:-1])
    }


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def inlined(test: ast.expr, answers: dict[str, ast.expr]) -> ast.expr:
    """Return a test with what its helpers answer in their place: `self._full()`, `self.full`."""
    if isinstance(test, ast.BoolOp):
        return ast.BoolOp(test.op, [inlined(part, answers) for part in test.values])
    if isinstance(test, ast.UnaryOp):
        return ast.UnaryOp(test.op, inlined(test.operand, answers))
    asked = test.func if isinstance(test, ast.Call) else test
    name = last_name(asked) if isinstance(asked, (ast.Name, ast.Attribute)) else ""
    return answers.get(name, test)


def counts_up(tree: ast.Module | None, name: str) -> bool:
    """Return True if a count is raised, and set or lowered nowhere but where it is created."""
    if tree is None:
        return False
    steps = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.AugAssign) and last_name(node.target) == name
    ]
    if not steps or not all(isinstance(node.op, ast.Add) for node in steps):
        return False
    return not any(f.name != "__init__" and _sets(f, name) for f in functions(tree))


def _sets(function: Function, name: str) -> bool:
    plain = (node for node in ast.walk(function) if isinstance(node, (ast.Assign, ast.AnnAssign)))
    return any(last_name(target) == name for node in plain for target in targets(node))
