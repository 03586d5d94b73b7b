"""Questions about the shape of Python statements that do not need resolved names."""

from __future__ import annotations

import ast

from floodline._python.names import last_name, written
from floodline.scan._facts.origins import UNKNOWN
from floodline.scan._facts.references import Reference
from floodline.scan._frontends.python.expressions import created
from floodline.scan._frontends.python.nodes import constants_read
from floodline.scan._frontends.python.scope import Scope

# what sockets, queues, selectors and clocks of the standard library wait with
RECEIVES = {"recv", "recvfrom", "recv_into", "accept", "select", "sleep", "wait"}
COUNTING = {ast.Compare, ast.BoolOp, ast.NamedExpr}
FUNCTIONS = {ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda}
RUNNING = {"map", "filter", "sorted", "reduce", "any", "all", "sum", "min", "max", "list", "tuple"}
# checks for every node compare the type itself: `isinstance` takes ten times as long
LEAVING = {ast.Return, ast.Raise, ast.Continue, ast.Break}
DEFINED = {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef}
BINDING = {ast.AnnAssign, ast.AugAssign, ast.For, ast.AsyncFor}
PLAIN = {ast.Expr, ast.Return, ast.Raise, ast.Pass, ast.Assert}
WITH = (ast.With, ast.AsyncWith)
TRIES = (ast.Try, ast.TryStar)
COPIES = {"list", "dict", "set", "sorted", "copy", "deepcopy"}
DECLARING = (ast.Global, ast.Nonlocal)
ABOUT_ONE = {"Optional", "Annotated", "Final", "ClassVar"}
HOLDING_NOTHING = {ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Await, ast.BinOp}


def is_endless(node: ast.While) -> bool:
    """Return True if `while True` has no way out but an error; a `yield` counts as one."""
    if not (isinstance(node.test, ast.Constant) and node.test.value):
        return False
    stack: list[ast.AST] = list(node.body)
    while stack:
        here = stack.pop()
        if isinstance(here, ast.Return | ast.Break | ast.Yield | ast.YieldFrom):
            return False
        if not isinstance(here, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            loop = isinstance(here, ast.For | ast.AsyncFor | ast.While)
            stack.extend(_without_break(here) if loop else ast.iter_child_nodes(here))
    return True


def serves(node: ast.While) -> bool:
    """Return True if a loop waits on each iteration for what comes next, until it is stopped.

    One that counts, or returns what it waited for, retries or searches instead.
    """
    waiting = False
    stack: list[ast.AST] = [node.test, *node.body]
    if type(node.test) in COUNTING or _ends_itself(node.body[-1]):
        return False
    while stack:
        here = stack.pop()
        kind = type(here)
        if kind is ast.Return and here.value is not None:  # type: ignore[attr-defined]  # kind says so
            return False
        if kind is ast.Await or (kind is ast.Call and _receives(here)):  # type: ignore[arg-type]  # same
            waiting = True
        if kind not in FUNCTIONS:
            stack.extend(ast.iter_child_nodes(here))
    return waiting


def _ends_itself(last: ast.stmt) -> bool:
    return type(last) in LEAVING or (type(last) is ast.Try and type(last.body[-1]) is ast.Break)


def _receives(node: ast.Call) -> bool:
    name = node.func.attr if type(node.func) is ast.Attribute else ""
    return name in RECEIVES or (name == "get" and not node.args)


def _without_break(loop: ast.AST) -> list[ast.AST]:
    """Return what can leave the outer loop of a loop: its own `break` cannot."""
    leaving = ast.Return | ast.Yield | ast.YieldFrom
    return [node for node in ast.walk(loop) if isinstance(node, leaving)]


def leaves(body: list[ast.stmt]) -> bool:
    """Return True if a branch ends the function, the loop or the iteration."""
    return type(body[-1]) in LEAVING


def called(decorator: ast.expr) -> ast.expr:
    """Return the decorator without its arguments."""
    return decorator.func if isinstance(decorator, ast.Call) else decorator


def annotation(node: ast.expr) -> str:
    """Return the class that an annotation names; unions and `Optional` give the first class."""
    if type(node) is ast.Name:
        return node.id if node.id not in ABOUT_ONE else ""
    if type(node) is ast.Subscript:
        outer = last_name(node.value)
        if outer in ABOUT_ONE and type(node.slice) is not ast.Tuple:
            return annotation(node.slice)
        return outer
    if type(node) is ast.BinOp:
        left = node.left
        return left.id if type(left) is ast.Name else annotation(left)
    if type(node) is ast.Constant and type(node.value) is str:
        said = node.value.partition("|")[0].strip("'\" ").removeprefix("Optional[")
        return said.partition("[")[0].strip("]'\" ")
    return written(node) if type(node) is ast.Attribute else ""


def returns_inner(body: list[ast.stmt]) -> bool:
    """Return True if a function returns one that is defined inside it."""
    given = [s.value for s in body if type(s) is ast.Return and s.value is not None]
    if not given:
        return False
    if any(type(value) is ast.Lambda for value in given):
        return True
    inner = {s.name for s in body if type(s) in DEFINED}  # type: ignore[attr-defined]  # same
    return bool(inner) and any(_handed_back(value) & inner for value in given)


def _handed_back(value: ast.expr) -> set[str]:
    """Return the names that a returned expression exposes, even wrapped: `wraps(f)(inner)`."""
    used_here = set()
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            used_here |= {id(node.func), *map(id, node.args[1:])}
            used_here |= {id(keyword.value) for keyword in node.keywords}
            if last_name(node.func) in RUNNING:
                used_here |= set(map(id, node.args))
    return {n.id for n in ast.walk(value) if isinstance(n, ast.Name) and id(n) not in used_here}


def collect_packed(
    node: ast.FunctionDef | ast.AsyncFunctionDef, options: str, scope: Scope
) -> list[str]:
    """Return what a function reads of its `**options`: these are parameters too."""
    read = constants_read(node, options)
    if read:
        first = len(scope.parameters)
        scope.packed[options] = {key: first + place for place, key in enumerate(read)}
    return read


def collect_locals(body: list[ast.stmt], scope: Scope) -> None:
    """Note the names that a function binds, and those of them that may be containers or functions.

    All other names belong to the module.
    """
    stack = list(body)
    declared: set[str] = set()
    while stack:
        statement = stack.pop()
        kind = type(statement)
        if type(statement) is ast.Assign:
            value = statement.value
            holds = type(value) not in HOLDING_NOTHING
            for target in statement.targets:
                _bound(target, scope)
                if holds:
                    _holds(target, value, scope)
            continue
        if kind in PLAIN:
            continue
        if type(statement) is ast.If:  # it binds nothing itself
            stack += statement.body
            stack += statement.orelse
            continue
        for field in _BLOCKS.get(kind, ()):
            stack += getattr(statement, field)
        if kind in BINDING:
            _bound(statement.target, scope)  # type: ignore[attr-defined]  # kind says so
            if type(statement) is ast.AnnAssign and statement.value is not None:
                _holds(statement.target, statement.value, scope)
        elif kind in FUNCTIONS:
            scope.holding.add(statement.name)  # type: ignore[attr-defined]  # same
        elif isinstance(statement, WITH):
            for item in statement.items:
                if item.optional_vars is not None:
                    _bound(item.optional_vars, scope)
        elif isinstance(statement, TRIES):
            for handler in statement.handlers:
                stack += handler.body
        elif isinstance(statement, DECLARING):
            declared.update(statement.names)
    for name in declared:
        scope.origins.pop(name, None)


_BLOCKS: dict[type[ast.stmt], tuple[str, ...]] = {
    ast.If: ("body", "orelse"),
    ast.For: ("body", "orelse"),
    ast.AsyncFor: ("body", "orelse"),
    ast.While: ("body", "orelse"),
    ast.With: ("body",),
    ast.AsyncWith: ("body",),
    ast.Try: ("body", "orelse", "finalbody"),
    ast.TryStar: ("body", "orelse", "finalbody"),
}


def _bound(target: ast.expr, scope: Scope) -> None:
    if type(target) is ast.Name:
        name = target.id
        if name in scope.origins:
            scope.again.add(name)
        elif name not in scope.parameters:
            scope.origins[name] = UNKNOWN
    elif type(target) is ast.Attribute:
        value = target.value
        if type(value) is ast.Name and value.id == "self":
            scope.states.add(f"self.{target.attr}")
    elif type(target) is ast.Tuple or type(target) is ast.List:
        for part in target.elts:
            _bound(part, scope)
    elif type(target) is ast.Starred:
        _bound(target.value, scope)


def _holds(target: ast.expr, value: ast.expr, scope: Scope) -> None:
    if type(target) is ast.Name:
        if created(value)[0]:
            scope.holding.add(target.id)
    elif (type(target) is ast.Tuple or type(target) is ast.List) and (
        type(value) is ast.Tuple or type(value) is ast.List
    ):
        for part, given in zip(target.elts, value.elts, strict=False):
            _holds(part, given, scope)


def adds_to_itself(scope: Scope, ref: Reference, value: ast.expr) -> bool:
    """Return True for `x = x + [...]`, `x = [*x, y]` or `x = {**x, k: v}`."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.BitOr):
        return _is(scope, ref, value.left) or _is(scope, ref, value.right)
    if isinstance(value, ast.List | ast.Set | ast.Tuple):
        return any(isinstance(e, ast.Starred) and _is(scope, ref, e.value) for e in value.elts)
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        return any(key is None and _is(scope, ref, held) for key, held in pairs)
    return False


def keeps_a_part(scope: Scope, ref: Reference, value: ast.expr) -> bool:
    """Return True for `[x for x in m[k] if ...]` or `m[k][-9:]`: what is left of a value inside."""
    if isinstance(value, ast.ListComp | ast.SetComp | ast.DictComp):
        first = value.generators[0]
        found = scope.reference(first.iter) if first.ifs else None
    elif isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        found = scope.reference(value.value)
    else:
        return False
    return found is not None and found[0] == ref and found[1] > 0


def reloads(scope: Scope, ref: Reference, value: ast.expr) -> bool:
    """Return True if what a container is replaced with may be as large: a copy, or what was saved.

    A new one is not, nor a slice, nor the result of a function that was given the container.
    """
    if isinstance(value, ast.Await):
        value = value.value
    if isinstance(value, ast.Constant) or (
        isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice)
    ):
        return False
    if isinstance(value, ast.Name):
        return value.id not in scope.kinds and scope.stored.get(value.id) != "made"
    if not isinstance(value, ast.Call):
        return created(value)[0] is None
    itself = any(scope.reference(item) == (ref, 0) for item in value.args)
    if last_name(value.func) in COPIES:
        given = value.args[0] if len(value.args) == 1 else None
        copied = isinstance(given, ast.Name) and reloads(scope, ref, given)
        return itself or copied or isinstance(value.func, ast.Attribute)
    return not itself and created(value)[0] is None


def _is(scope: Scope, ref: Reference, node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and node.args and last_name(node.func) in ("list", "dict", "set"):
        node = node.args[0]
    return scope.reference(node) == (ref, 0)
