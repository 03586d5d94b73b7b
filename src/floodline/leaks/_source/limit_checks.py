"""Finds where source limits a container: a branch that removes, a sweep, or a flush."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from itertools import islice
from typing import TypeGuard

from floodline._python.comparisons import (
    FULL,
    ORDERS,
    ROOM,
    Relation,
    SizeComparison,
    is_threshold,
    size_comparisons,
)
from floodline._python.mutations import GROWS_ANYTHING
from floodline._python.names import Function, functions, is_named, last_name, mentions
from floodline._python.removals import evicts, holds, removes, removes_each
from floodline.leaks._objects.territory import users_of
from floodline.leaks._source.definitions import assigns, file_of_module, tree_of
from floodline.leaks._source.excerpt import tree_about
from floodline.leaks._source.feeding_statements import MAY, feeding_lines
from floodline.leaks._source.helper_tests import answers_in, counts_up, inlined
from floodline.leaks._source.periodic_emptying import emptied_regularly, emptiers_in
from floodline.leaks._source.place import Place
from floodline.leaks._source.trimming import expires, overwritten, taken_along, trimmed

MOST_FUNCTIONS = 4  # that empty a container, whose callers are read
MOST_USERS = 8  # modules that use the one of a container, which are read for that


def caps(module: str, name: str, *, of: str | None = None) -> list[ast.expr]:
    """Return what limits `name`: what its length is compared with, else the comparison itself.

    If it is an attribute of a class, `of` is that class: another class with an attribute of the
    same name says nothing about it.

    The branch removes, or calls a function of the same file that does. If the test does not check
    the length, the branch has to remove whatever is there, or everything that is too old: removing
    one requested key is not a limit. What a loop or a timer empties regularly is limited too.
    """
    file, tree = file_of_module(module), tree_of(module, name)
    if file is None or tree is None:
        return []
    text = _text(file)
    said = _without_namesakes(tree, name, of) if of else tree
    found = [*_in_branches(said, name, file), *_in_sweeps(said, name, text)]
    if found:
        return found
    callers = list(_callers(module, said, name))
    rules = removers_in(said, name), evicters_in(said, name)
    answers = answers_in(said)
    found = [limit for one, _ in callers for limit in _in_tests(one, name, *rules, answers)]
    emptiers, callers = emptiers_in(said, name), [(said, text), *callers]
    found += [at for one, whole in callers for at in emptied_regularly(one, name, emptiers, whole)]
    return found


def _text(file: str | None) -> str:
    return "".join(linecache.getlines(file)) if file else ""


def _callers(module: str, tree: ast.Module, name: str) -> Iterator[tuple[ast.AST, str]]:
    """Yield what mentions a function by which it is emptied, each with the text of its file."""
    found = (evicters_in(tree, name) | emptiers_in(tree, name)) - {"__init__"}
    users = [module, *islice(users_of(module), MOST_USERS)] if found else []
    for function in sorted(found)[:MOST_FUNCTIONS]:
        # another class with a method of that name calls its own
        its = {node.name for node in tree.body if _defines(node, function)}
        for user in users:
            about = tree_of(user, function)
            body = about.body if about is not None else []
            others = [n for n in body if not _defines(n, function) or n.name in its]
            yield ast.Module(others, []), _text(file_of_module(user))


def _defines(node: ast.stmt, function: str) -> TypeGuard[ast.ClassDef]:
    """Return True for a class with a method of that name."""
    return isinstance(node, ast.ClassDef) and any(f.name == function for f in functions(node))


def removers_in(tree: ast.AST, name: str) -> frozenset[str]:
    """Return the functions that remove from `name`, or replace it."""
    return frozenset(f.name for f in functions(tree) if holds(f.body, removes, name))


def evicters_in(tree: ast.AST, name: str) -> frozenset[str]:
    """Return the functions that remove whatever is there."""
    return frozenset(f.name for f in functions(tree) if holds(f.body, evicts, name))


def _without_namesakes(tree: ast.Module, name: str, of: str) -> ast.Module:
    """Leave out other classes that assign the name themselves, except subclasses of `of`."""
    kept = [node for node in tree.body if not _is_namesake(node, name, of)]
    return ast.Module(kept, [])


def _is_namesake(node: ast.stmt, name: str, of: str) -> bool:
    if not isinstance(node, ast.ClassDef) or node.name == of:
        return False
    return not any(is_named(base, of) for base in node.bases) and assigns(node, name)


def caps_at(place: Place) -> list[ast.expr]:
    """Return what limits what a line feeds under another name, as in `rows = table[key]`."""
    tree = tree_about(place.file, place.function)
    found = (f for f in functions(tree or ast.Module([], [])) if _around(f, place.line))
    function = max(found, key=lambda f: f.lineno, default=None)
    if function is None:
        return []
    fed = {name for node in ast.walk(function) if (name := _fed(node, place.line))}
    return [limit for name in sorted(fed) for limit in _in_branches(function, name, place.file)]


def _around(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", line + 1) <= line <= getattr(node, "end_lineno", 0)


def _fed(node: ast.AST, line: int) -> str | None:
    """Return the name of what a piece of source on this line adds to."""
    target: ast.AST | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        target = node.func.value if node.func.attr in GROWS_ANYTHING else None
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
    elif isinstance(node, ast.AugAssign):
        target = node.target
    if target is None or not _around(node, line):
        return None
    return last_name(target) or None


def _in_branches(tree: ast.AST, name: str, file: str) -> list[ast.expr]:
    found = _in_tests(tree, name, removers_in(tree, name), evicters_in(tree, name))
    return found or _in_feeders(tree, name) or _in_guards(tree, name, file)


def _in_feeders(tree: ast.AST, name: str) -> list[ast.expr]:
    """Find what each function that adds does itself: it trims, or sets a timer that removes."""
    found: list[ast.expr] = []
    for function in functions(tree):
        if function.name == "__init__" or not _fed_lines(function, name):
            continue
        limits = list(trimmed(function.body, name))
        if not limits and not expires(function, name):
            return []
        found += limits or [ast.Constant(None)]
    return found


def _in_tests(
    tree: ast.AST,
    name: str,
    removers: frozenset[str],
    evicters: frozenset[str],
    known: dict[str, ast.expr] | None = None,
) -> list[ast.expr]:
    """Find tests whose branch removes; `known` is what helpers defined elsewhere answer."""
    found: list[ast.expr] = []
    answers = {**(known or {}), **answers_in(tree)}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.If, ast.While)):
            continue
        test = inlined(node.test, answers)
        limits = _compared(test, name, FULL)
        if limits and holds(node.body, removes, name, removers):
            found += limits
        elif not _sizes(test, name) and is_threshold(test):
            if holds(node.body, evicts, name, evicters):
                found.append(test)
            elif taken_along(node.body, name):
                found += [c.limit for c in size_comparisons(test)] or [test]
    return found


def _in_guards(tree: ast.AST, name: str, file: str) -> list[ast.expr]:
    """Find `if len(x) < limit: x[key] = value`, if everything that adds is guarded like this."""
    found: list[ast.expr] = []
    answers = answers_in(tree)
    for function in functions(tree):
        fed, turns = _fed_lines(function, name), overwritten(function, name)
        if not fed or function.name == "__init__":
            continue
        found += [turns[line] for line in sorted(fed & turns.keys())]
        fed -= turns.keys()
        guards = [
            (guard.limit, range(start, end + 1))
            for node in ast.walk(function)
            if isinstance(node, ast.If)
            for guard, start, end in _guarded(node, function, answers, name, file)
        ]
        if any(not any(line in lines for _, lines in guards) for line in fed):
            return []
        found += [limit for limit, lines in guards if any(line in lines for line in fed)]
    return found


def _fed_lines(function: Function, name: str) -> set[int]:
    """Return the lines of a function that clearly add."""
    return {line for strength, line in feeding_lines(function, name) if strength < MAY}


def _guards(
    node: ast.If, function: Function, answers: dict[str, ast.expr], name: str, file: str
) -> list[SizeComparison]:
    """Return what a test says about the size, or about a count that is only ever raised."""
    given = function.args
    own = {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}

    def counter(one: ast.expr) -> ast.expr | None:
        word = last_name(one) if isinstance(one, (ast.Name, ast.Attribute)) else ""
        known = word and not (isinstance(one, ast.Name) and word in own)
        return one if known and counts_up(tree_about(file, word), word) else None

    test = inlined(node.test, answers)
    counted = size_comparisons(test, measure=counter)
    return _sizes(test, name) or [c for c in counted if type(c.test.ops[0]) in ORDERS]


def _guarded(
    node: ast.If, function: Function, answers: dict[str, ast.expr], name: str, file: str
) -> Iterator[tuple[SizeComparison, int, int]]:
    """Yield the lines that are only reached while there is room: a branch, or what follows."""
    for compared in _guards(node, function, answers, name, file):
        if compared.is_range:
            continue
        if compared.relation in ROOM:
            yield compared, node.body[0].lineno, node.body[-1].end_lineno or 0
        leaves = isinstance(node.body[-1], (ast.Return, ast.Raise))
        if leaves and compared.relation in FULL and not compared.depends:
            yield compared, (node.end_lineno or 0) + 1, function.end_lineno or 0


def _compared(test: ast.expr, name: str, relations: frozenset[Relation]) -> list[ast.expr]:
    """Return what the size of `name` is compared with by these relations."""
    found = _sizes(test, name)
    return [c.limit for c in found if c.relation in relations and not c.is_range]


def _sizes(test: ast.expr, name: str) -> list[SizeComparison]:
    return [c for c in size_comparisons(test) if is_named(c.container, name)]


def _in_sweeps(tree: ast.AST, name: str, text: str) -> Iterator[ast.expr]:
    """Find functions that iterate over it and remove what a comparison selects, if used."""
    for function in functions(tree):
        sweeps = _sweeps(function, name)
        fed = _fed_lines(function, name)
        if sweeps and (fed - sweeps or len(re.findall(rf"\b{function.name}\b", text)) > 1):
            yield from filter(is_threshold, _tests(function))


def _sweeps(function: Function, name: str) -> set[int]:
    """Return the lines that remove from it, if the function iterates over it at all."""
    nodes = list(ast.walk(function))
    loops = [node for node in nodes if isinstance(node, (ast.For, ast.comprehension))]
    if not any(mentions(loop.iter, name) for loop in loops):
        return set()
    found = (node for node in nodes if removes_each(node, name))
    return {getattr(node, "lineno", 0) for node in found}


def _tests(function: Function) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        if isinstance(node, ast.If):
            yield node.test
        elif isinstance(node, ast.comprehension):
            yield from node.ifs
