"""Whether a piece of source removes something from a container of a given name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from floodline._python.at_limit import AtLimit, is_empty, taken_by_index
from floodline._python.mutations import HEAP_SHRINKS, SHRINKS_ANYTHING, TAKES_UNNAMED
from floodline._python.names import is_named, last_name, mentions
from floodline._python.numbers import number

_STEERS = (
    *(ast.Return, ast.Raise, ast.Continue, ast.Break, ast.Await, ast.Yield),
    *(ast.Global, ast.Delete),
)
_WAITS = {"wait", "acquire", "join", "sleep"}
Rule = Callable[[ast.AST, str, frozenset[str]], bool]
NOBODY: frozenset[str] = frozenset()
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# what a branch may do without keeping a container small
QUIET = {
    "debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print", "write",
    "inc", "len", "str", "repr", "format", "warn_explicit", "getLogger",
}  # fmt: skip


def holds(body: Iterable[ast.AST], rule: Rule, name: str, callees: frozenset[str] = NOBODY) -> bool:
    """Return True if a rule holds for anything in a body."""
    return any(rule(node, name, callees) for part in body for node in ast.walk(part))


def removes(node: ast.AST, name: str, callees: frozenset[str] = NOBODY) -> bool:
    """Return True if a piece of source removes from `name` or replaces it, or calls what does."""
    if isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in SHRINKS_ANYTHING:
            return is_named(called.value, name)
        return last_name(called) in callees or _pops_heap(node, name)
    if isinstance(node, ast.Delete):
        return any(is_named(target, name) for target in node.targets)
    return isinstance(node, ast.Assign) and _replaces(node, name)


def evicts(node: ast.AST, name: str, callees: frozenset[str] = NOBODY) -> bool:
    """Return True if a piece of source removes whatever is there, not one given key."""
    if isinstance(node, ast.Call):
        return last_name(node.func) in callees or _takes_any(node, name)
    if isinstance(node, ast.Delete):
        named = any(is_named(target, name) for target in node.targets)
        keys = [t.slice for t in node.targets if isinstance(t, ast.Subscript)]
        return named and all(_is_any(key) for key in keys)
    return removes_each(node, name)


def removes_each(node: ast.AST, name: str, _: frozenset[str] = NOBODY) -> bool:
    """Return True if a loop removes one item after another, or a smaller part replaces it."""
    if isinstance(node, ast.For):
        return holds(node.body, removes, name)
    if not isinstance(node, ast.Assign):
        return False
    return any(_is_less(value, name) for value in _replacements(node, name))


def emptied(node: ast.AST, name: str) -> ast.expr | None:
    """Return what a piece of source drops all items of at once: `x.clear()`, `x = []`, a swap."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        whole = node.func.value if node.func.attr == "clear" else None
        return whole if _is_itself(whole, name) else None
    if not isinstance(node, ast.Assign):
        return None
    pairs = [pair for target in node.targets for pair in _paired(target, node.value)]
    found = (target for target, value in pairs if is_empty(value) and _is_itself(target, name))
    return next(found, None)


def _is_itself(node: ast.expr | None, name: str) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        node = node.value  # `x[:] = []`
    return isinstance(node, ast.Name | ast.Attribute) and last_name(node) == name


def _replaces(node: ast.Assign, name: str) -> bool:
    return bool(_replacements(node, name))


def _replacements(node: ast.Assign, name: str) -> list[ast.expr]:
    """Return what an assignment replaces `name` with; `a, b = b, []` is read pair by pair."""
    pairs = [pair for target in node.targets for pair in _paired(target, node.value)]
    return [value for target, value in pairs if is_named(target, name) and not _is_key(target)]


def _paired(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return [(target, value)]
    return list(zip(target.elts, value.elts, strict=False))


def _is_key(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice)


def _takes_any(call: ast.Call, name: str) -> bool:
    if isinstance(call.func, ast.Attribute) and is_named(call.func.value, name):
        if call.func.attr == "pop":
            return all(_is_any(argument) for argument in call.args[:1])
        return call.func.attr in TAKES_UNNAMED
    return _pops_heap(call, name)


def _pops_heap(call: ast.Call, name: str) -> bool:
    if last_name(call.func) not in HEAP_SHRINKS:
        return False
    return bool(call.args) and is_named(call.args[0], name)


def _is_any(index: ast.expr) -> bool:
    """Return True if an index is a position, or the key of whatever comes first."""
    if isinstance(index, ast.Slice) or number(index) is not None:
        return True
    return taken_by_index(index, index) is not AtLimit.SOME


def _is_less(value: ast.expr, name: str) -> bool:
    if isinstance(value, _COMPREHENSIONS):
        return mentions(value, name) and any(part.ifs for part in value.generators)
    if isinstance(value, ast.Call):
        return not value.args
    if isinstance(value, ast.Subscript):
        return mentions(value, name)
    return is_empty(value)


def only_logs(body: list[ast.stmt]) -> bool:
    """Return True if nothing in a branch can keep a container small: it logs, counts or passes."""
    for statement in body:
        if isinstance(statement, ast.Pass):
            continue
        if not isinstance(statement, ast.Expr | ast.AugAssign | ast.Assign):
            return False
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and last_name(node.func) not in QUIET:
                return False
            if isinstance(node, ast.Await):
                return False
        if isinstance(statement, ast.Assign) and not isinstance(statement.value, ast.Constant):
            return False
    return True


def is_harmless(body: list[ast.stmt], known: frozenset[str] = NOBODY) -> bool:
    """Return True if a branch of a method can neither reach a container of `self` nor wait.

    Calls of the methods in `known` are left out: the caller looks at those itself. Any other call
    must be a quiet one, or be of something outside the object that is not given the object.
    """
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, _STEERS):
            return False
        if isinstance(node, ast.Assign) and not _is_local_or_constant(node):
            return False
        if isinstance(node, ast.AugAssign) and not isinstance(node.op, ast.Add):
            return False
        if isinstance(node, ast.Call) and not _is_harmless_call(node, known):
            return False
    return True


def _is_local_or_constant(node: ast.Assign) -> bool:
    constant = isinstance(node.value, ast.Constant)
    return constant or all(isinstance(target, ast.Name) for target in node.targets)


def _is_harmless_call(node: ast.Call, known: frozenset[str]) -> bool:
    name = last_name(node.func)
    if name in QUIET:
        return True
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    if any(_hands_on(each) for each in given):
        return False
    return name in known or (name not in _WAITS and not mentions(node.func, "self"))


def _hands_on(node: ast.expr) -> bool:
    """Return True if an argument hands on the object or a part of it, not just a text or a size."""
    if isinstance(node, ast.JoinedStr | ast.Compare):
        return False
    if isinstance(node, ast.Call) and last_name(node.func) in QUIET:
        return False
    return mentions(node, "self")
