"""Finds the statements of a source file that feed a container."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from floodline._python.mutations import GROWS_ANYTHING, SHRINKS_ANYTHING
from floodline._python.names import Function, functions, is_named, mentions
from floodline.leaks._source.definitions import file_of_module, tree_of
from floodline.leaks._source.place import Place

MODULE = "<module>"
LAST = 2  # the order of what creates a container
ADDS, ADDS_INSIDE, MAY, READS, REPLACES = range(5)  # how clearly a line feeds
_LOOPS = (ast.While, ast.For, ast.AsyncFor)
_REFERENCES = (ast.Name, ast.Attribute, ast.Subscript)
_ASKS = frozenset(("get", "setdefault", "pop"))  # they return what a container holds


def feeding_place(module: str, name: str, *, home: str = "", nested: bool = False) -> Place | None:
    """Return the first line of a module that most clearly adds to what is called `name`.

    With `nested`, to something that it holds. Lines of the function `home`, whose variable it may
    be, come first; then loops outside functions; those of `__init__` and plain statements come
    last, because they create what others fill.
    """
    file, tree = file_of_module(module), tree_of(module, name)
    if file is None or tree is None:
        return None
    found = [
        (not inside, order >= LAST, place != home, strength > MAY, order, strength, place, line)
        for order, place, node in _scopes(tree)
        for inside, strength, line in _lines(node, name, nested=nested)
    ]
    if not found:
        return None
    *_, function, line = min(found, key=lambda one: one[:6])
    return Place(file, line, function)


def _scopes(tree: ast.AST) -> Iterator[tuple[int, str, ast.AST]]:
    """Yield each piece of source that runs together: its order, its name and the source."""
    for function in functions(tree):
        yield LAST if function.name == "__init__" else 0, function.name, function
    for statement in getattr(tree, "body", ()):
        if not isinstance(statement, (Function, ast.ClassDef)):
            loops = any(isinstance(one, _LOOPS) for one in ast.walk(statement))
            yield 1 if loops else LAST, MODULE, statement


def _lines(node: ast.AST, name: str, *, nested: bool) -> list[tuple[bool, int, int]]:
    """Return whether each line feeds the container that is meant, how clearly, and its number."""
    direct = [(not nested, *one) for one in feeding_lines(node, name)]
    if not nested:
        return direct
    inner = [
        (strength, getattr(one, "lineno", 0))
        for called in (name, *_aliases(node, name))
        for one in ast.walk(node)
        if (strength := _feeds_inside(one, called, held=called != name)) is not None
    ]
    return [(True, *one) for one in sorted(inner)] + direct


def _aliases(node: ast.AST, name: str) -> list[str]:
    """Return the variables that stand for something that a container holds."""
    known = [name]
    for one in ast.walk(node):
        value = getattr(one, "value", None) or getattr(one, "iter", None)
        targets = getattr(one, "targets", None) or [getattr(one, "target", None)]
        if not isinstance(one, (ast.Assign, ast.NamedExpr, ast.For, ast.AsyncFor)):
            continue
        if value is None or not any(mentions(value, each) for each in known):
            continue
        flat = [part for each in targets for part in getattr(each, "elts", [each])]
        known += [part.id for part in flat if isinstance(part, ast.Name)]
    return known[1:]


def _feeds_inside(node: ast.AST, name: str, *, held: bool) -> int | None:
    """Rate how clearly a piece of source adds to what is held; `held` if the name means that."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        grows = node.func.attr in GROWS_ANYTHING and _is_inside(node.func.value, name, held=held)
        return 0 if grows else None
    targets = [node.target] if isinstance(node, ast.AugAssign) else getattr(node, "targets", [])
    into = [each for each in targets if isinstance(each, ast.Subscript)]
    whole = isinstance(node, ast.AugAssign) and _is_inside(node.target, name, held=held)
    if not whole and not any(_is_inside(each.value, name, held=held) for each in into):
        return None
    # the same key again and again adds nothing, unless it is a text
    return int(any(isinstance(each.slice, ast.Constant) for each in into))


def _is_inside(node: ast.AST, name: str, *, held: bool) -> bool:
    """Return True if an expression means something that `name` holds."""
    deep = held
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in _ASKS:
                return False
            node, deep = node.func.value, True
        elif isinstance(node, ast.Subscript):
            node, deep = node.value, True
        else:
            break
    if held:
        while isinstance(node, ast.Attribute):
            node = node.value
    return deep and is_named(node, name)


def feeding_lines(function: ast.AST, name: str) -> list[tuple[int, int]]:
    """Return lines that may feed, each after a number: the lower, the clearer."""
    found = [
        (strength, getattr(node, "lineno", 0))
        for node in ast.walk(function)
        if (strength := _feeds(node, name)) is not None
    ]
    return sorted(found)


def calling_place(module: str, name: str, function: str | None = None) -> Place | None:
    """Return the line of a module that calls `function` on what is called `name`.

    Without a function, the first that calls anything on it within one; a decorator does not count.
    """
    file, tree = file_of_module(module), tree_of(module, name)
    if file is None or tree is None:
        return None
    found = [
        (place == MODULE, node.lineno, place)
        for _, place, scope in _scopes(tree)
        for statement in (scope.body if isinstance(scope, Function) else [scope])
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and is_named(node.func.value, name)
        and (node.func.attr == function if function else place != MODULE)
    ]
    if not found:
        return None
    _, line, place = min(found)
    return Place(file, line, place)


def only_call(modules: list[str], called: str) -> Place | None:
    """Return the line that calls a function or class of this name, None if several do."""
    found: list[Place] = []
    for module in modules:
        file, tree = file_of_module(module), tree_of(module, called)
        if file is None or tree is None:
            continue
        found += [
            Place(file, node.lineno, place)
            for _, place, scope in _scopes(tree)
            for node in ast.walk(scope)
            if isinstance(node, ast.Call) and is_named(node.func, called)
        ]
    lines = {(one.file, one.line) for one in found}
    return found[0] if len(lines) == 1 else None


def _feeds(node: ast.AST, name: str) -> int | None:
    """Rate how clearly a piece of source adds to what is called `name`.

    A call made only for its effect may add to the object it is called on, or to an argument.
    """
    if isinstance(node, ast.Call):
        return _called_on(node, name)
    if isinstance(node, ast.AugAssign):
        target = node.target
        return _adds_to(target.value if isinstance(target, ast.Subscript) else target, name)
    if isinstance(node, ast.Assign):
        return _assigned(node, name)
    if isinstance(node, ast.Expr):
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        return MAY if isinstance(call, ast.Call) and _may_feed(call, name) else None
    return READS if isinstance(node, ast.Subscript) and is_named(node, name) else None


def _assigned(node: ast.Assign, name: str) -> int | None:
    """Rate an assignment: to an item, of something longer, or of another object."""
    named = [target for target in node.targets if is_named(target, name)]
    into = [_adds_to(one.value, name) for one in named if isinstance(one, ast.Subscript)]
    another_name = isinstance(node.value, _REFERENCES)
    if named and not into and mentions(node.value, name) and not another_name:
        return ADDS
    replaced = REPLACES if named and isinstance(node.value, ast.Name) else None
    return min((one for one in into if one is not None), default=replaced)


def _adds_to(node: ast.AST, name: str) -> int | None:
    """Rate what is added to: the container itself, or something that it holds."""
    if not is_named(node, name):
        return None
    return ADDS_INSIDE if isinstance(node, ast.Subscript) else ADDS


def _called_on(call: ast.Call, name: str) -> int | None:
    if isinstance(call.func, ast.Attribute):
        return _adds_to(call.func.value, name) if call.func.attr in GROWS_ANYTHING else None
    # keep what other readers of the same source have not read yet
    steps = isinstance(call.func, ast.Name) and call.func.id in ("next", "anext")
    return MAY if steps and call.args and is_named(call.args[0], name) else None


def _may_feed(call: ast.Call, name: str) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    if isinstance(call.func, ast.Attribute) and call.func.attr not in SHRINKS_ANYTHING:
        given.append(call.func.value)
    return any(is_named(one, name) for one in given)
