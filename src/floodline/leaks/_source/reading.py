"""What the source says of a container: who assigns it, and who feeds it.

Files are read and parsed, never imported or run.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from floodline.leaks._objects.anatomy import names_of_module
from floodline.leaks._source.excerpt import tree_about

FEEDS = frozenset(
    (
        *("append", "appendleft", "extend", "extendleft", "insert"),
        *("add", "update", "setdefault", "put", "put_nowait", "push"),
    )
)
REMOVES = frozenset(("pop", "popitem", "popleft", "clear", "remove", "discard", "get_nowait"))
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True, frozen=True)
class Place:
    """A line of a file, and the function that it is in."""

    file: str
    line: int
    function: str


def file_of_module(name: str) -> str | None:
    """Return the source file of an imported module, None if it has none."""
    module = sys.modules.get(name)
    if type(module) is not type(sys):
        return None
    file = dict.get(names_of_module(module), "__file__")
    return file if type(file) is str and file.endswith(".py") else None


def tree_of(module: str, word: str) -> ast.Module | None:
    """Return what the source of an imported module says of a word, parsed."""
    file = file_of_module(module)
    return tree_about(file, word) if file else None


def find(tree: ast.AST, qualname: str) -> ast.AST | None:
    """Return the class or function of that qualified name."""
    at: ast.AST | None = tree
    for name in qualname.replace("<locals>.", "").split("."):
        inner = ast.walk(at) if at is not None else iter(())
        defined = (n for n in inner if isinstance(n, (ast.ClassDef, Function)))
        at = next((node for node in defined if node.name == name), None)
    return at


def class_assigns(module: str, qualname: str, attr: str) -> bool:
    """Tell whether the source of a class assigns an attribute, in its body or to `self`."""
    tree = tree_of(module, attr)
    node = find(tree, qualname) if tree else None
    return isinstance(node, ast.ClassDef) and assigns(node, attr)


def assigns(node: ast.ClassDef, attr: str) -> bool:
    """Tell whether a class assigns an attribute, in its body or to `self`."""
    if any(attr in _targets(statement) for statement in node.body):
        return True
    names = {f"self.{attr}", f"cls.{attr}", f"{node.name}.{attr}"}
    return any(names & _targets(inner) for inner in ast.walk(node) if isinstance(inner, ast.stmt))


def module_assigns(module: str, name: str) -> bool:
    """Tell whether a module's own source makes a global, and does not only import it."""
    tree = tree_of(module, name)
    if tree is None:
        return False
    return any(
        name in _targets(node) or getattr(node, "name", None) == name
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
    )


def _targets(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        targets = [node.target]
    else:
        return set()
    flat = [part for target in targets for part in getattr(target, "elts", [target])]
    return {ast.unparse(part) for part in flat if isinstance(part, (ast.Name, ast.Attribute))}


def feeding_place(module: str, name: str, *, home: str = "") -> Place | None:
    """Return the first line of a module that most clearly adds to what is called `name`.

    Lines of the function `home` come first, whose variable it may be, and those of `__init__` last:
    they make what others fill.
    """
    file, tree = file_of_module(module), tree_of(module, name)
    if file is None or tree is None:
        return None
    found = [
        (function.name == "__init__", function.name != home, strength, function, line)
        for function in functions(tree)
        for strength, line in feeding_lines(function, name)
    ]
    if not found:
        return None
    *_, function, line = min(found, key=lambda one: one[:3])
    return Place(file, line, function.name)


def functions(tree: ast.AST) -> Iterator[Function]:
    """Return all functions of a piece of source, inner ones too."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def is_named(node: ast.AST | None, name: str) -> bool:
    """Tell whether an expression ends in `name`, perhaps behind `[...]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr == name or is_named(node.value, name)
    return isinstance(node, ast.Name) and node.id == name


def feeding_lines(function: Function, name: str) -> list[tuple[int, int]]:
    """Return lines that may feed, each after a number: the less, the clearer it is that they do."""
    found = [
        (strength, getattr(node, "lineno", 0))
        for node in ast.walk(function)
        if (strength := _feeds(node, name)) is not None
    ]
    return sorted(found)


def _feeds(node: ast.AST, name: str) -> int | None:
    """Tell how clearly a piece of source adds: 0 it says so, 1 it may, 2 it reads, 3 it replaces.

    A call for its effect alone may add to what it is called on, or to what is handed to it.
    """
    if isinstance(node, ast.Call):
        return _called_on(node, name)
    if isinstance(node, ast.AugAssign):
        return 0 if is_named(node.target, name) else None
    if isinstance(node, ast.Assign):
        named = [target for target in node.targets if is_named(target, name)]
        into = any(isinstance(target, ast.Subscript) for target in named)
        if named and (into or mentions(node.value, name)):
            return 0
        return 3 if named and isinstance(node.value, ast.Name) else None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return 1 if _may_feed(node.value, name) else None
    return 2 if isinstance(node, ast.Subscript) and is_named(node, name) else None


def _called_on(call: ast.Call, name: str) -> int | None:
    if isinstance(call.func, ast.Attribute):
        return 0 if call.func.attr in FEEDS and is_named(call.func.value, name) else None
    # what others have not read yet of the same source is kept for them
    steps = isinstance(call.func, ast.Name) and call.func.id in ("next", "anext")
    return 1 if steps and call.args and is_named(call.args[0], name) else None


def _may_feed(call: ast.Call, name: str) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if isinstance(call.func, ast.Attribute) and call.func.attr not in REMOVES:
        given.append(call.func.value)
    return any(is_named(one, name) for one in given)


def mentions(node: ast.AST, name: str) -> bool:
    """Tell whether a piece of source has the container in it, anywhere."""
    return any(is_named(inner, name) for inner in ast.walk(node))
