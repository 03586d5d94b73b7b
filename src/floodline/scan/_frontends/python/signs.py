"""Signs for rules that need more than growth: clocks, final states, handles, labels, clients."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from floodline._python.bounds import LIMIT_WORDS, QUEUES, cache_size, is_endless_queue
from floodline._python.comparisons import ORDERS
from floodline._python.names import dotted, last_name, written
from floodline._python.numbers import number
from floodline.scan._facts.model import Mark
from floodline.scan._facts.origins import Origin
from floodline.scan._facts.references import INSTANCE, LOCAL, MODULE, Reference
from floodline.scan._frontends.python.expressions import at
from floodline.scan._frontends.python.scope import Found, Scope

CLOCKS = {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "now", "utcnow"}
CLOSES = {
    "close", "aclose", "shutdown", "dispose", "terminate", "disconnect", "release", "stop", "quit",
    "kill", "detach", "wait", "communicate", "cleanup", "wait_closed",
}  # fmt: skip
HANDLES = {
    "open", "fdopen", "Popen", "socket", "create_connection", "TemporaryFile",
    "NamedTemporaryFile", "SpooledTemporaryFile", "ZipFile", "mmap",
}  # fmt: skip
NO_OBJECTS = ("os.", "self.", "cls.")  # a number, or whatever an own method returns
FEW = 4  # results that a cache may keep without being a leak
# a client is recognised by the end of its name and by what is called on it
CLIENTS = (
    (("client", "session"),
     {"get", "post", "put", "patch", "delete", "head", "options", "request", "send", "stream"}),
    (("executor", "pool"),
     {"submit", "map", "apply", "apply_async", "imap", "imap_unordered", "starmap", "acquire"}),
    (("engine",), {"connect", "begin", "execute", "raw_connection"}),
    (("connection",), {"request", "cursor", "execute", "getresponse", "commit"}),
)  # fmt: skip
CLIENT_ENDS = tuple(end for ends, _ in CLIENTS for end in ends)
METERS = {
    "add", "record", "inc", "increment", "incr", "observe", "gauge", "histogram", "timing", "count",
    "distribution",
}  # fmt: skip
PLACES = {ast.Name, ast.Attribute, ast.Subscript}
LABELS = {"attributes", "tags", "labels"}
BLOCKS = {"wait", "result", "get"}
TIMERS = {"Timer", "call_later", "call_at"}


def inside(scope: Scope, node: ast.expr) -> Found | None:
    """Return the container whose value an expression looks into, if any."""
    while isinstance(node, ast.Attribute):
        node = node.value
    found = scope.reference(node)
    return found if found and found[1] and found[0].kind != LOCAL else None


def ages(scope: Scope, node: ast.Compare) -> tuple[Mark, ...]:
    """Return comparisons with the clock, named after the container whose value's age is checked."""
    if type(node.ops[0]) not in ORDERS:
        return ()
    sides = (node.left, node.comparators[0])
    if not any(_tells_time(scope.origin(side)) for side in sides):
        return ()
    for side in sides:
        told = scope.meant.get(side.id, side) if type(side) is ast.Name else side
        for part in ast.walk(told):
            if isinstance(part, ast.Attribute | ast.Subscript | ast.Name):
                found = inside(scope, part)
                if found:
                    return (Mark("ttl", "", at(node), scope.name, "", found[0]),)
    return (Mark("ttl", "", at(node), scope.name),)


def _tells_time(origin: Origin) -> bool:
    if origin.kind == "fresh":
        return origin.name in CLOCKS
    if origin.steps:
        last = origin.steps[-1]
        return last.how == "called" and last.name.endswith("clock")
    return origin.kind == "call" and origin.name.endswith("clock")


def flips(scope: Scope, target: ast.expr, value: ast.expr) -> Mark | None:
    """Return a mark if a value in a container changes its state: `jobs[i].state = "done"`."""
    final = type(value) is ast.Constant and type(value.value) in (str, bool)
    member = type(value) is ast.Attribute and dotted(value)[:1].isupper()
    if not (final or member):
        return None
    slot = type(target) is ast.Subscript and type(target.slice) is ast.Constant
    if not (slot or type(target) is ast.Attribute):
        return None
    found = inside(scope, target.value)  # type: ignore[attr-defined]  # both have a value
    if found is None:
        return None
    return Mark("flip", "", at(target), scope.name, written(value), found[0])


def keeps(scope: Scope, ref: Reference, target: ast.expr, value: ast.Call) -> Iterator[Mark]:
    """Yield a mark for an open handle or an unbounded queue that is put where it stays."""
    name = last_name(value.func)
    if name in HANDLES and ref.kind != LOCAL and not dotted(value.func).startswith(NO_OBJECTS):
        kind = "item" if isinstance(target, ast.Subscript) else "slot"
        yield Mark("handle", "", at(target), scope.name, kind, ref)
    elif name in QUEUES:
        if ref.kind != LOCAL and is_endless_queue(value):
            yield Mark("queue", "", at(target), scope.name, name, ref)
    elif name[:1].isupper() and (limits := [k.arg for k in value.keywords if k.arg in LIMIT_WORDS]):
        yield Mark("capped", "", at(target), scope.name, " ".join(map(str, limits)), ref)


def closes(scope: Scope, node: ast.Attribute | ast.withitem) -> Iterator[Mark]:
    """Yield a mark for what is closed or entered by `with`: it does not stay open."""
    held = node.value if isinstance(node, ast.Attribute) else node.context_expr
    if type(held) in PLACES:
        found = scope.reference(held)
        if found and found[0].kind != LOCAL:
            yield Mark("close", "", at(held), scope.name, "", found[0])


def size_of_cache(decorator: ast.expr) -> str:
    """Return the size of a decorator's cache: unbounded, bounded or few; `""` if there is none."""
    size = cache_size(decorator)
    if size is None:
        return ""
    given = number(size.given)
    if given is not None and given <= FEW:
        return "few"
    return "bounded" if size.is_bounded else "unbounded"


def awaits(scope: Scope, node: ast.Await) -> Iterator[Mark]:
    """Yield a mark for a wait for an answer that was put into a container before."""
    limits = isinstance(node.value, ast.Call) and (
        last_name(node.value.func) in ("wait_for", "wait")
        or any(k.arg == "timeout" for k in node.value.keywords)
    )
    for part in ast.walk(node.value):
        if isinstance(part, ast.Name) and part.id in scope.waiters:
            how = "timeout" if limits else ""
            yield Mark("waits", "", at(node), scope.name, how, scope.waiters[part.id])


def blocks(scope: Scope, node: ast.Call, function: ast.Attribute) -> Iterator[Mark]:
    """Do the same for threads: `event.wait(5)`, `future.result(timeout=5)`."""
    if isinstance(function.value, ast.Name) and function.value.id in scope.waiters:
        how = "timeout" if node.args or node.keywords else ""
        waits_in = scope.waiters[function.value.id]
        yield Mark("waits", "", at(node), scope.name, how, waits_in)


def asks_by_name(scope: Scope, node: ast.Call) -> Mark | None:
    """Return a mark for `getattr(self, f"do_{verb}")`: it may mean any method that begins so."""
    if len(node.args) < 2 or not scope.owner or written(node.args[0]) != "self":
        return None
    asked = node.args[1]
    first = asked.values[0] if isinstance(asked, ast.JoinedStr) and asked.values else None
    if isinstance(asked, ast.BinOp) and isinstance(asked.op, ast.Add | ast.Mod):
        first = asked.left
    if not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
        return None
    prefix = first.value.partition("%")[0]
    return Mark("by_name", prefix, at(node), scope.name) if len(prefix) > 1 else None


def refers(value: ast.expr, key: str) -> bool:
    """Return True if a value is built from its key: `map[x] = Wrapper(x)`, `map[x] = x.method`."""
    if isinstance(value, ast.Attribute):
        return isinstance(value.value, ast.Name) and value.value.id == key
    if not isinstance(value, ast.Call):
        return False
    given = [*value.args, *(keyword.value for keyword in value.keywords)]
    return any(isinstance(item, ast.Name) and item.id == key for item in given)


def finalizers(scope: Scope, node: ast.Call) -> Iterator[Mark]:
    """Yield a mark for a finalizer on something that existed before the call."""
    found = scope.reference(node.args[0])
    if found and not found[1] and found[0].kind in (INSTANCE, MODULE):
        yield Mark("finalize", "", at(node), scope.name, dotted(node.func), found[0])


def labels(scope: Scope, node: ast.Call, name: str) -> Iterator[Mark]:
    """Yield the values that become metric labels: each new one creates a series that stays."""
    given: list[ast.expr] = []
    if name == "labels":
        given = [*node.args, *(k.value for k in node.keywords if k.arg)]
    elif name in METERS:
        maps = [k.value for k in node.keywords if k.arg in LABELS] + node.args[1:2]
        given = [value for item in maps if isinstance(item, ast.Dict) for value in item.values]
    for value in given:
        if isinstance(value, ast.Starred):
            continue
        origin = scope.origin(value)
        if origin.kind not in ("constant", "unknown", "type"):
            yield Mark("label", ast.unparse(value), at(value), scope.name, origin=origin)


def client(node: ast.expr) -> str:
    """Return the dotted name of what creates a client, an engine or an executor, else `""`."""
    if type(node) is ast.Await:
        node = node.value
    name = last_name(node.func) if type(node) is ast.Call else ""
    made = name[:1].isupper() or name.startswith("create_")
    if made and name.lower().endswith(CLIENT_ENDS):
        return dotted(node.func)  # type: ignore[attr-defined]  # a name was found
    return ""


def inline_client(scope: Scope, function: ast.Attribute) -> Iterator[Mark]:
    """Yield `Client().get(url)`: used once, neither kept nor closed."""
    maker = client(function.value)
    if maker and _works(maker, {function.attr}):
        yield Mark("client", maker, at(function.value), scope.name, "")


def unclosed(node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Iterator[Mark]:
    """Yield the clients that a function creates for itself, uses and never closes."""
    used: dict[str, set[str]] = {name: set() for name in scope.clients}
    asked, kept = set(), set()
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            asked.add(id(part.value))
            if part.value.id in used:
                used[part.value.id].add(part.attr)
        elif isinstance(part, ast.Name) and type(part.ctx) is ast.Load and id(part) not in asked:
            kept.add(part.id)
    for name, value in scope.clients.items():
        maker = client(value)
        if name not in kept and not used[name] & CLOSES and _works(maker, used[name]):
            yield Mark("client", maker, at(value), scope.name, name)


def _works(maker: str, used: set[str]) -> bool:
    name = maker.lower()
    return any(name.endswith(ends) and used & work for ends, work in CLIENTS)
