"""The edits that change behaviour: a container is created with a bound, under its own name.

What leaves at the bound is lost to the program, so these are only made when asked for. They are
refused where the program uses something that the bounded container does not have.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from floodline._python.assignments import (
    Assignment,
    assigned,
    assigned_on_self,
    statements_in,
    value_of,
)
from floodline._python.comparisons import size_comparisons
from floodline._python.names import last_name
from floodline.scan._findings.finding import Finding
from floodline.scan._fix.edits import Edit, Refused, Source

MOST = "1000"
IDLE = '"30 min"'
_MAP_METHODS = frozenset(
    ("get", "pop", "popitem", "setdefault", "update", "keys", "values", "items", "clear")
)
_LOG_METHODS = frozenset(("append", "extend", "clear", "index", "count"))
_DEQUE_METHODS = frozenset(
    (*_LOG_METHODS, "appendleft", "popleft", "pop", "extendleft", "rotate", "reverse", "remove")
)
# what builtins may do with any mapping or sequence
_READERS = frozenset(
    (
        *("len", "list", "tuple", "set", "frozenset", "dict", "sorted", "iter", "reversed"),
        *("bool", "any", "all", "sum", "min", "max", "enumerate", "print", "str", "repr"),
    )
)
_ANNOTATED = {"BoundedMap": ("dict", "Dict", "OrderedDict"), "BoundedLog": ("list", "List")}
RULES = ("FLD101", "FLD102", "FLD103", "FLD201", "FLD202", "FLD203", "FLD204")


def bound_it(source: Source, finding: Finding) -> list[Edit]:
    """Create the container of a finding with a bound: `self._x = BoundedMap(max_items=...)`."""
    *_, owner_name, name = ["", *finding.symbol.split(".")]
    owner = source.classes.get(owner_name)
    makings = assigned(source.tree.body, name)
    if owner is not None:
        makings = assigned_on_self(owner, name) or assigned(owner.body, name)
    if not makings:
        raise Refused("where it is created was not found in this file")
    kinds = {_kind(value_of(making)) for making in makings}
    if len(kinds) > 1:
        raise Refused("it is created in different ways")
    kind = kinds.pop()
    _only_supported(source, name, makings, kind)
    most = _limit(source, name, owner)
    return [_created(source, making, kind, most) for making in makings]


def names_used(edits: list[Edit]) -> set[str]:
    """Return what the new lines need from floodline."""
    text = "\n".join(line for edit in edits for line in edit.lines)
    return {name for name in _ANNOTATED if f"{name}(" in text}


def _kind(value: ast.expr) -> str:
    """Return the replacement for what a container is created as."""
    called = last_name(value.func) if isinstance(value, ast.Call) else ""
    plain = isinstance(value, ast.Call) and not value.args and not value.keywords
    if (isinstance(value, ast.Dict) and not value.keys) or (plain and called == "dict"):
        return "BoundedMap"
    if (isinstance(value, ast.List) and not value.elts) or (plain and called == "list"):
        return "BoundedLog"
    if plain and called == "deque":
        return "deque"
    if called == "defaultdict":
        raise Refused("a defaultdict has no bounded twin; BoundedMap.get_or_create() would do")
    if called == "OrderedDict":
        raise Refused("an OrderedDict has more methods; BoundedMap(order=...) may do")
    if called == "set":
        raise Refused("there is no bounded set; the keys of a BoundedMap would do")
    raise Refused("it is not created empty")


_METHODS: dict[str, frozenset[str]] = {
    "BoundedMap": _MAP_METHODS,
    "BoundedLog": _LOG_METHODS,
    "deque": _DEQUE_METHODS,
}


def _only_supported(source: Source, name: str, makings: list[Assignment], kind: str) -> None:
    """Refuse if a use needs more than the bounded container has."""
    for node, above in _uses(source.tree, name):
        if isinstance(node.ctx, ast.Store):
            if not any(above is making for making in makings):
                raise Refused(f"line {node.lineno} assigns something else to {name}")
        elif not _is_supported(node, above, kind):
            raise Refused(f"line {node.lineno} uses {name} in a way that {kind} may not support")


def _is_supported(node: ast.expr, above: ast.AST, kind: str) -> bool:
    if isinstance(above, ast.Attribute):
        return above.attr in _METHODS[kind]
    if isinstance(above, ast.Subscript) and above.value is node:
        sliced = isinstance(above.slice, ast.Slice)
        return kind == "BoundedMap" or (isinstance(above.ctx, ast.Load) and not sliced)
    if isinstance(above, ast.Call):
        return (
            any(argument is node for argument in above.args) and last_name(above.func) in _READERS
        )
    if isinstance(above, ast.Compare):
        return (
            all(isinstance(op, ast.In | ast.NotIn) for op in above.ops) and above.left is not node
        )
    return isinstance(above, ast.For | ast.comprehension | ast.If | ast.While | ast.UnaryOp)


def _uses(tree: ast.AST, name: str) -> Iterator[tuple[ast.Name | ast.Attribute, ast.AST]]:
    for above in ast.walk(tree):
        for node in ast.iter_child_nodes(above):
            if isinstance(node, ast.Name | ast.Attribute) and last_name(node) == name:
                yield node, above


def _limit(source: Source, name: str, owner: ast.ClassDef | None) -> str:
    """Return the limit that the program itself has in mind, else a round number."""
    for node in statements_in(source.tree):
        if not isinstance(node, ast.If | ast.While):
            continue
        for compared in size_comparisons(node.test):
            if last_name(compared.container) == name and _is_known(source, compared.limit, owner):
                return source.segment(compared.limit)
    return MOST


def _is_known(source: Source, limit: ast.expr, owner: ast.ClassDef | None) -> bool:
    """Return True for a number or constant that also has its value where the container is made."""
    if isinstance(limit, ast.Constant):
        return type(limit.value) is int and limit.value > 1
    if isinstance(limit, ast.Name):
        return len(assigned(source.tree.body, limit.id)) == 1 and limit.id.isupper()
    return (
        isinstance(limit, ast.Attribute)
        and owner is not None
        and last_name(limit.value) in ("self", owner.name)
        and bool(assigned(owner.body, limit.attr))
        and not assigned_on_self(owner, limit.attr)
    )


def _created(source: Source, making: Assignment, kind: str, most: str) -> Edit:
    value = value_of(making)
    if making.lineno != making.end_lineno:
        raise Refused("the statement that creates it spans several lines")
    in_class = not isinstance(_target(making), ast.Attribute)
    most = MOST if in_class and most.startswith("self.") else most
    new = f"deque(maxlen={most})" if kind == "deque" else f"{kind}(max_items={most})"
    if kind == "BoundedMap":
        new = f"{kind}(max_items={most}, idle={IDLE})"
    line = source.lines[making.lineno - 1].rstrip("\r\n").encode()
    line = line[: value.col_offset] + new.encode() + line[value.end_col_offset or 0 :]
    note = making.annotation if isinstance(making, ast.AnnAssign) else None
    base = note.value if isinstance(note, ast.Subscript) else note
    if isinstance(base, ast.Name) and base.id in _ANNOTATED.get(kind, ()):
        line = line[: base.col_offset] + kind.encode() + line[base.end_col_offset or 0 :]
    elif base is not None and kind in _ANNOTATED:
        raise Refused("its annotation would no longer be true")
    return Edit(making.lineno, making.lineno, (line.decode(),))


def _target(making: Assignment) -> ast.expr:
    return making.targets[0] if isinstance(making, ast.Assign) else making.target


def import_edit(source: Source, names: set[str]) -> Edit | None:
    """Return the edit that imports names from floodline, None if they are there already."""
    imports = [n for n in source.tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    known = {
        alias.asname or alias.name
        for node in imports
        if isinstance(node, ast.ImportFrom) and node.module == "floodline"
        for alias in node.names
    }
    missing = sorted(names - known)
    if not missing:
        return None
    text = f"from floodline import {', '.join(missing)}"
    body = source.tree.body
    after: ast.stmt | None = imports[-1] if imports else None
    first = body[0]
    docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    if after is None and docstring:
        after = first
    if after is None:
        return Edit(first.lineno, first.lineno - 1, (text, ""))
    last = after.end_lineno or after.lineno
    return Edit(last + 1, last, (*([""] if not imports else []), text))


UNSAFE: dict[str, Callable[[Source, Finding], list[Edit]]] = dict.fromkeys(RULES, bound_it)
