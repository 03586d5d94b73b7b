"""What single expressions of Python mean: kinds of containers, and where a key comes from."""

from __future__ import annotations

import ast

from floodline.scan._model import At

MAPS = {"dict", "OrderedDict", "Counter", "Dict", "UserDict", "MutableMapping", "ChainMap"}
LISTS = {"list", "deque", "List", "UserList", "Deque", "MutableSequence"}
# nobody makes one of these; what a framework makes under the same name is something else
ONLY_TYPES = {"Dict", "List", "Set", "Deque", "MutableMapping", "MutableSequence", "MutableSet"}
SETS = {"set", "Set", "MutableSet"}
WEAK = {"WeakKeyDictionary", "WeakValueDictionary", "WeakSet"}
STACKS = {"ExitStack", "AsyncExitStack"}
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
}  # fmt: skip
OPENNESS = ["fresh", "param", "attr", "call", "loop", "self", "global", "unknown", "enum", "type"]
LOCKS = {"Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition", "Event"}
ANSWERS = {"create_future", "Future", "Queue", "SimpleQueue"}
TASKS = {"create_task", "ensure_future", "run_coroutine_threadsafe", "start_soon"}


def at(node: ast.expr | ast.stmt) -> At:
    """Return the place of a node, columns from 1."""
    return At(
        node.lineno,
        node.col_offset + 1,
        node.end_lineno or node.lineno,
        (node.end_col_offset or node.col_offset) + 1,
    )


def last_name(node: ast.expr | None) -> str:
    """Return the last part of a dotted name, `""` for anything else."""
    if type(node) is ast.Name:
        return node.id
    if type(node) is ast.Attribute:
        return node.attr
    if type(node) is ast.Subscript:
        return last_name(node.value)
    return ""


def dotted(node: ast.expr) -> str:
    """Return `a.b.c`, or `""` if something else than names is in it."""
    parts = []
    while type(node) is ast.Attribute:
        parts.append(node.attr)
        node = node.value
    if type(node) is not ast.Name:
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))


def kind_of_class(name: str) -> str:
    """Return the kind of container that a class of this name is, `""` if it is none."""
    if name in MAPS:
        return "map"
    if name in LISTS:
        return "list"
    if name in SETS:
        return "set"
    if name == "defaultdict" or name == "DefaultDict":
        return "lookup"
    if name in WEAK:
        return "weak"
    return "stack" if name in STACKS else ""


def created(node: ast.expr | None) -> tuple[str, str]:
    """Return the kind of a container expression and what it fills in; `("", "")` if it is none."""
    kind = type(node)
    if kind is ast.Dict or kind is ast.DictComp:
        return "map", ""
    if kind is ast.List or kind is ast.ListComp:
        return "list", ""
    if kind is ast.Set or kind is ast.SetComp:
        return "set", ""
    if isinstance(node, ast.BoolOp):
        return created(node.values[-1])
    if isinstance(node, ast.IfExp):
        return created(node.body) if created(node.body)[0] else created(node.orelse)
    if isinstance(node, ast.Call):
        return _created_by_call(node)
    return "", ""


def _created_by_call(node: ast.Call) -> tuple[str, str]:
    name = last_name(node.func)
    if name == "field":
        for keyword in node.keywords:
            if keyword.arg == "default_factory":
                if isinstance(keyword.value, ast.Lambda):
                    return created(keyword.value.body)[0], "field"
                return kind_of_class(last_name(keyword.value)), "field"
        return "", ""
    found = kind_of_class(name) if name not in ONLY_TYPES else ""
    if found == "lookup":
        return "lookup", last_name(node.args[0]) if node.args else ""
    if name == "deque" and (len(node.args) > 1 or _given(node, "maxlen")):
        return "bounded", ""
    return found, name if found == "weak" else ""


def _given(node: ast.Call, name: str) -> bool:
    return any(
        k.arg == name and not (isinstance(k.value, ast.Constant) and k.value.value is None)
        for k in node.keywords
    )


def stored_value(node: ast.expr | None) -> str:
    """Return what kind of thing is put into a container."""
    if isinstance(node, ast.Name):
        return "self" if node.id == "self" else "other"
    if isinstance(node, ast.Tuple | ast.List):
        kinds = [stored_value(item) for item in node.elts]
        return next((kind for kind in kinds if kind != "other"), "other")
    if isinstance(node, ast.Attribute) and dotted(node).startswith("self."):
        return "other"
    if isinstance(node, ast.Call):
        name = last_name(node.func)
        if name in TASKS or dotted(node.func) == "asyncio.Task":
            return "task"
        if name in LOCKS and not node.args:
            return "lock"
        if name == "submit":
            return "future"
        if name in ANSWERS:
            return "waiter"
        if name == "ref":
            return "weakref"
    return "other"


def most_open(origins: list[str]) -> str:
    """Of several origins the one with the widest range of values decides."""
    for kind in OPENNESS:
        for origin in origins:
            if origin.partition(":")[0] == kind:
                return origin
    return "const"
