"""What single Python expressions mean: kinds of containers, and where a key comes from."""

from __future__ import annotations

import ast

from floodline._python.bounds import bound_argument
from floodline._python.kinds import KINDS, ONLY_TYPES, Kind, kind_of_class, kind_of_display
from floodline._python.names import dotted, last_name
from floodline.scan._facts.model import FILLED, At, Stored
from floodline.scan._facts.vocabulary import LOCKS

FRESH = {
    "uuid1", "uuid4", "uuid7", "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter",
    "now", "utcnow", "token_hex", "token_urlsafe", "urandom", "getrandbits", "randint", "id",
    "next", "get_ident", "current_task", "random", "hash", "create_task", "ensure_future",
    "submit", "run_coroutine_threadsafe",
}  # fmt: skip
THROUGH = {
    "str", "repr", "int", "tuple", "frozenset", "format", "lower", "upper", "strip", "encode",
    "decode", "hexdigest", "ascii", "abs", "join", "casefold", "rstrip", "lstrip", "ref",
    "hex", "as_posix", "resolve", "md5", "sha1", "sha256", "normpath", "abspath", "sorted",
    "loads",
}  # fmt: skip
DRAWS = {"choice", "choices", "sample"}  # at random; several make something new
ANSWERS = {"create_future", "Future", "Queue", "SimpleQueue"}
CREATING = {*KINDS, "field"}
EITHER = {ast.BoolOp, ast.IfExp}
MADE = {ast.Dict, ast.ListComp, ast.DictComp, ast.SetComp}
TASKS = {"create_task", "ensure_future", "run_coroutine_threadsafe", "start_soon"}


def at(node: ast.expr | ast.stmt) -> At:
    """Return the place of a node, columns from 1."""
    line, column = node.lineno, node.col_offset
    end_line, end_column = node.end_lineno or line, node.end_col_offset or column
    return At(line, column + 1, end_line, end_column + 1)


def created(node: ast.expr | None) -> tuple[Kind | None, str]:
    """Return the kind of a container expression and what it fills in; `None` for any other."""
    if type(node) is ast.Call:
        function = node.func
        name = function.id if type(function) is ast.Name else last_name(function)
        return _created_by_call(node, name) if name in CREATING else (None, "")
    kind = kind_of_display(node)
    if kind:
        return kind, FILLED if _has_items(node) else ""
    if type(node) is ast.BoolOp:
        return created(node.values[-1])
    if type(node) is ast.IfExp:
        return created(node.body) if created(node.body)[0] else created(node.orelse)
    return None, ""


def is_new(node: ast.expr) -> bool:
    """Return True if an expression creates a container with nothing in it."""
    kind, fills = created(node) if type(node) not in EITHER else (None, "")
    return kind is not None and fills != FILLED


def _has_items(node: ast.expr | None) -> bool:
    """Return True if a display is not empty; a comprehension counts as such."""
    items = node.values if type(node) is ast.Dict else getattr(node, "elts", True)
    return bool(items)


def _created_by_call(node: ast.Call, name: str) -> tuple[Kind | None, str]:
    found = kind_of_class(name)
    if name == "field":
        for keyword in node.keywords:
            if keyword.arg == "default_factory":
                if isinstance(keyword.value, ast.Lambda):
                    return created(keyword.value.body)[0], "field"
                return kind_of_class(last_name(keyword.value)), "field"
        return None, ""
    if name in ONLY_TYPES:
        return None, ""
    if found == "lookup":
        if node.args and isinstance(node.args[0], ast.Lambda):
            return "lookup", "bounded" if created(node.args[0].body)[0] == "bounded" else ""
        return "lookup", last_name(node.args[0]) if node.args else ""
    if name == "deque" and bound_argument(node) is not None:
        return "bounded", ""
    if found == "weak":
        return found, name
    return found, FILLED if node.args else ""


def drawn(node: ast.Call) -> str:
    """Return what draws each part of a text: `choice` in `"".join(choice(abc) for _ in abc)`."""
    part = node.args[0] if node.args else None
    if isinstance(part, ast.GeneratorExp | ast.ListComp):
        part = part.elt
    if type(part) is ast.Call and last_name(part.func) == "str" and part.args:
        part = part.args[0]
    name = last_name(part.func) if type(part) is ast.Call else ""
    return name if name in DRAWS else ""


def stored_value(node: ast.expr | None) -> Stored:
    """Return what kind of thing is put into a container."""
    if type(node) is ast.Call:
        return _stored_by_call(node)
    if type(node) is ast.Name:
        return "self" if node.id == "self" else "other"
    if type(node) is ast.Tuple or type(node) is ast.List:
        kinds = [stored_value(item) for item in node.elts]
        plain: Stored = "made" if type(node) is ast.List else "other"
        return next((kind for kind in kinds if kind != "other"), plain)
    if type(node) is ast.BinOp:
        return "sum"
    return "made" if type(node) in MADE else "other"


def _stored_by_call(node: ast.Call) -> Stored:
    name = last_name(node.func)
    if name in TASKS or (name == "Task" and dotted(node.func) == "asyncio.Task"):
        return "task"
    if name in LOCKS and not node.args:
        return "lock"
    if name == "submit":
        return "future"
    if name in ANSWERS:
        return "waiter"
    if name == "ref":
        return "weakref"
    return "made" if name[:1].isupper() or name == "deepcopy" else "other"
