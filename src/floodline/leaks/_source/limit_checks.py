"""Where the source limits a container: a comparison whose branch removes, or a sweep over it."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Iterable, Iterator

from floodline.leaks._source.definitions import (
    Function,
    assigns,
    file_of_module,
    functions,
    tree_of,
)
from floodline.leaks._source.excerpt import tree_about
from floodline.leaks._source.feeding_statements import (
    FEEDS,
    REMOVES,
    feeding_lines,
    is_named,
    mentions,
)
from floodline.leaks._source.place import Place

Rule = Callable[[ast.AST, str, frozenset[str]], bool]
_ORDERS = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)
_ANY = frozenset(("popitem", "popleft", "clear"))
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def caps(module: str, name: str, *, of: str | None = None) -> list[ast.expr]:
    """Return what limits `name`: what its length is compared with, else the comparison itself.

    If it is an attribute of a class, `of` is that class: one that has another attribute of the same
    name says nothing of it.

    The branch removes, or calls a function of the same file that does. One that does not ask for
    the length has to remove whatever is there, or all that is too old: to remove one key that was
    asked for is no limit.
    """
    file, tree = file_of_module(module), tree_of(module, name)
    if file is None or tree is None:
        return []
    text = "".join(linecache.getlines(file))
    said = _without_namesakes(tree, name, of) if of else tree
    return [*_in_branches(said, name), *_in_sweeps(said, name, text)]


def _without_namesakes(tree: ast.Module, name: str, of: str) -> ast.Module:
    """Leave out other classes that assign the name themselves, but for those derived from `of`."""
    kept = [node for node in tree.body if not _is_namesake(node, name, of)]
    return ast.Module(kept, [])


def _is_namesake(node: ast.stmt, name: str, of: str) -> bool:
    if not isinstance(node, ast.ClassDef) or node.name == of:
        return False
    return not any(is_named(base, of) for base in node.bases) and assigns(node, name)


def caps_at(place: Place) -> list[ast.expr]:
    """Return what limits that which a line feeds by another name, as in `rows = table[key]`."""
    tree = tree_about(place.file, place.function)
    found = (f for f in functions(tree or ast.Module([], [])) if _around(f, place.line))
    function = max(found, key=lambda f: f.lineno, default=None)
    if function is None:
        return []
    fed = {name for node in ast.walk(function) if (name := _fed(node, place.line))}
    return [limit for name in sorted(fed) for limit in _in_branches(function, name)]


def _around(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", line + 1) <= line <= getattr(node, "end_lineno", 0)


def _fed(node: ast.AST, line: int) -> str | None:
    """Return the name of what a piece of source on this line adds to."""
    target: ast.AST | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        target = node.func.value if node.func.attr in FEEDS else None
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
    elif isinstance(node, ast.AugAssign):
        target = node.target
    if target is None or not _around(node, line):
        return None
    while isinstance(target, ast.Subscript):
        target = target.value
    return getattr(target, "attr", getattr(target, "id", None))


def _in_branches(tree: ast.AST, name: str) -> list[ast.expr]:
    removers = {f.name for f in functions(tree) if _any(f.body, _removes, name, frozenset())}
    evicters = {f.name for f in functions(tree) if _any(f.body, _evicts, name, frozenset())}
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        if not isinstance(node, (ast.If, ast.While)):
            continue
        limits = _compared(node.test, name)
        if limits and _any(node.body, _removes, name, frozenset(removers)):
            found += limits
        elif not limits and _bounds(node.test):
            evicts = _any(node.body, _evicts, name, frozenset(evicters))
            found += [node.test] if evicts else []
    return found


def _in_sweeps(tree: ast.AST, name: str, text: str) -> Iterator[ast.expr]:
    """Find functions that go over it and take out what a comparison chooses, if they are used."""
    for function in functions(tree):
        sweeps = _sweeps(function, name)
        fed = {line for strength, line in feeding_lines(function, name) if not strength}
        if sweeps and (fed - sweeps or len(re.findall(rf"\b{function.name}\b", text)) > 1):
            yield from filter(_bounds, _tests(function))


def _sweeps(function: Function, name: str) -> set[int]:
    """Return the lines that take out of it, if the function goes over it at all."""
    nodes = list(ast.walk(function))
    loops = [node for node in nodes if isinstance(node, (ast.For, ast.comprehension))]
    if not any(mentions(loop.iter, name) for loop in loops):
        return set()
    found = (node for node in nodes if _removes_all(node, name, frozenset()))
    return {getattr(node, "lineno", 0) for node in found}


def _tests(function: Function) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.If):
            yield node.test
        elif isinstance(node, ast.comprehension):
            yield from node.ifs


def _bounds(test: ast.expr) -> bool:
    """Tell whether a test is one of more or less, or of every so many; none is no limit."""
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return not isinstance(node.left, (ast.Constant, ast.JoinedStr))
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], _ORDERS):
            sides = (node.left, *node.comparators)
            return not any(isinstance(s, ast.Constant) and s.value in (0, 1) for s in sides)
    return False


def _compared(test: ast.expr, name: str) -> list[ast.expr]:
    found = []
    for node in ast.walk(test):
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            continue
        left, right = node.left, node.comparators[0]
        if _is_length(left, name) and isinstance(node.ops[0], (ast.Gt, ast.GtE, ast.Eq)):
            found.append(right)
        if _is_length(right, name) and isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Eq)):
            found.append(left)
    return found


def _is_length(node: ast.expr, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "len"
        and bool(node.args)
        and is_named(node.args[0], name)
    )


def _any(body: Iterable[ast.AST], rule: Rule, name: str, callees: frozenset[str]) -> bool:
    return any(rule(node, name, callees) for part in body for node in ast.walk(part))


def _removes(node: ast.AST, name: str, callees: frozenset[str]) -> bool:
    if isinstance(node, ast.Call):
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in REMOVES:
            return is_named(called.value, name)
        return _called(node) in callees
    if isinstance(node, ast.Delete):
        return any(is_named(target, name) for target in node.targets)
    if isinstance(node, ast.Assign):
        return any(is_named(t, name) and not _is_key(t) for t in node.targets)
    return False


def _evicts(node: ast.AST, name: str, callees: frozenset[str]) -> bool:
    """Tell whether a piece of source removes whatever is there, and not one key."""
    if isinstance(node, ast.Call):
        return _called(node) in callees or _takes_any(node, name)
    if isinstance(node, ast.Delete):
        keys = [t.slice for t in node.targets if isinstance(t, ast.Subscript)]
        named = any(is_named(target, name) for target in node.targets)
        return named and all(isinstance(key, (ast.Slice, ast.Constant)) for key in keys)
    return _removes_all(node, name, callees)


def _takes_any(call: ast.Call, name: str) -> bool:
    if isinstance(call.func, ast.Attribute) and is_named(call.func.value, name):
        fixed = all(isinstance(argument, ast.Constant) for argument in call.args)
        return call.func.attr in _ANY or (call.func.attr == "pop" and fixed)
    return _called(call) == "heappop" and is_named(call.args[0], name)


def _removes_all(node: ast.AST, name: str, _: frozenset[str]) -> bool:
    """Tell whether a loop removes one after the other, or less of it takes its place."""
    if isinstance(node, ast.For):
        return _any(node.body, _removes, name, frozenset())
    if not isinstance(node, ast.Assign):
        return False
    if not any(is_named(t, name) and not _is_key(t) for t in node.targets):
        return False
    return _is_less(node.value, name)


def _is_less(value: ast.expr, name: str) -> bool:
    if isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.Set)):
        return not getattr(value, "elts", getattr(value, "keys", ()))
    if isinstance(value, _COMPREHENSIONS):
        return mentions(value, name) and any(part.ifs for part in value.generators)
    if isinstance(value, ast.Call):
        return not value.args
    return isinstance(value, ast.Subscript) and mentions(value, name)


def _called(call: ast.Call) -> str | None:
    return getattr(call.func, "attr", getattr(call.func, "id", None))


def _is_key(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice)
