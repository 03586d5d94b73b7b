"""Feeds one class more than its limit, in a child process: `python _probe.py REQUEST`.

Standard library only, and nothing from floodline: the code under test comes first on the path.
Counting runs no user code: sizes are read through the builtin types the containers derive from,
and those of floodline's own holders, which the code under test may have imported, by `len`.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import functools
import importlib
import importlib.util
import inspect
import json
import sys
from collections import deque
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

BUILTIN = (dict, list, set, deque)
CACHED = type(functools.lru_cache(len))
DEPTH = 3
IMPORT, MAKE, FEED, GUESS = "import", "make", "feed", "guess"  # stages that may fail
Kept = dict[str, list[Any]]


class _Names(dict[str, Any]):
    """The names of a feed: the module's, the object's, new values; any other is the object.

    `i` is the number of the item. What the feed assigns to a name of the module is set there.
    """

    def __init__(self, module: ModuleType, it: Any, i: int, new: frozenset[str]) -> None:
        super().__init__(vars(module))
        self._module = module
        self._it = it
        self._i = i
        self._new = new

    def __missing__(self, name: str) -> Any:
        if hasattr(self._it, name):
            return getattr(self._it, name)
        if name == "i":
            return self._i
        if name in self._new:
            return f"{name}-{self._i:09}"
        if hasattr(builtins, name):
            raise KeyError(name)  # so that Python looks in its builtins
        return self._it

    def __setitem__(self, name: str, value: Any) -> None:
        if name in vars(self._module):
            setattr(self._module, name, value)
        super().__setitem__(name, value)


def _compiled(text: str) -> tuple[CodeType, frozenset[str]]:
    """Return a feed as code, with the names that only stand for a key or a value.

    A feed without a number in it, such as `RATE[k] = v`, would add the same item again and again:
    there `k` and `v` get a new value each time. The object itself is called `it` or `self`.
    """
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    values = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    used = [n.func if isinstance(n, ast.Call) else getattr(n, "value", None) for n in nodes
            if isinstance(n, ast.Call | ast.Attribute | ast.Subscript)]  # fmt: skip
    bases = {base.id for base in used if isinstance(base, ast.Name)}
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        code = compile(text, "<feed>", "eval", flags=flags)
    except SyntaxError:  # a statement
        code = compile(text, "<feed>", "exec", flags=flags)
    return code, frozenset(values - bases - {"it", "self"})


def load(file: Path, name: str, root: str) -> ModuleType:
    """Import the file as its own program would."""
    sys.path.insert(0, root)
    if "." in name or file.name == "__init__.py":
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look it up
    spec.loader.exec_module(module)
    return module


def _finished(value: Any) -> Any:
    return _runner().run(value) if inspect.iscoroutine(value) else value


@functools.cache
def _runner() -> asyncio.Runner:
    return asyncio.Runner()


def make(module: ModuleType, symbol: list[str], expression: str | None) -> Any:
    """Return the object to feed: what `make` says, an instance of the class, or the module."""
    if expression is not None:
        return _finished(eval(expression.strip(), dict(vars(module))))
    kind = _class(module, symbol)
    return kind() if kind is not None else module


def _class(module: ModuleType, symbol: list[str]) -> type | None:
    """Return the innermost class on the path of a symbol."""
    found = None
    here = vars(module)
    for part in symbol:
        inner = here.get(part)
        if not isinstance(inner, type):
            break
        found, here = inner, dict(vars(inner))
    return found


def feed(module: ModuleType, it: Any, expression: str, i: int) -> None:
    """Run the expression or statement with the number in it."""
    numbered = "{i}" in expression
    code, new = _compiled(expression.strip().replace("{i}", str(i)))
    names = _Names(module, it, i, frozenset() if numbered else new)
    _finished(eval(code, vars(module), names))


def feed_by_call(it: Any, function: str, i: int, *, as_text: bool) -> None:
    """Call the function that adds, with the number or its text for each required argument."""
    target = getattr(it, function.rpartition(".")[2])
    needed = [
        p
        for p in inspect.signature(target).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    value = f"item-{i:09}" if as_text else i
    by_name = {p.name: value for p in needed if p.kind is p.KEYWORD_ONLY}
    _finished(target(*[value] * (len(needed) - len(by_name)), **by_name))


def _is(value: Any, *kinds: type) -> bool:
    """Return True for an instance, without asking the value for its `__class__`."""
    return issubclass(type(value), kinds)


def _is_holder(value: Any) -> bool:
    """Return True for what floodline bounds itself: sessions, a map, a log, a batch."""
    kind = type(value)
    return kind.__module__.partition(".")[0] == "floodline" and hasattr(kind, "__len__")


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an instance, without running a property or a `__getattr__`."""
    found: dict[str, Any] = {}
    kind = type(value)
    for base in reversed(kind.__mro__):
        for name, member in vars(base).items():
            if type(member).__name__ == "member_descriptor":
                try:
                    found[name] = member.__get__(value, kind)
                except AttributeError:
                    continue
            elif _is(member, *BUILTIN):
                found[name] = member
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return found
    return {**found, **own} if type(own) is dict else found


def contents(value: Any, path: str, depth: int = DEPTH) -> dict[str, Any]:
    """Return the containers in a value by path; their own contents are not searched."""
    if _is(value, *BUILTIN, CACHED) or _is_holder(value):
        return {path: value}
    if depth == 0 or _is(value, type, ModuleType, FunctionType):
        return {}
    found = {}
    for name, inner in _attributes(value).items():
        found.update(contents(inner, f"{path}.{name}", depth - 1))
    return found


def size(value: Any) -> int:
    """Count a container through the builtin type it derives from."""
    if _is(value, CACHED):
        return int(CACHED.cache_info(value).currsize)
    if _is_holder(value):
        return len(value)
    kind = next(each for each in BUILTIN if _is(value, each))
    return kind.__len__(value)


def items(value: Any) -> list[Any]:
    """Return the keys or items of a container, oldest first where it has an order."""
    if _is(value, CACHED):
        return []
    if _is_holder(value):
        return list(value if hasattr(type(value), "__iter__") else getattr(value, "ids", list)())
    kind = next(each for each in BUILTIN if _is(value, each))
    return list(kind.__iter__(value))


def look(module: ModuleType, it: Any, symbol: list[str]) -> dict[str, Any]:
    """Return the containers that a symbol means now."""
    name = ".".join(symbol)
    kind = _class(module, symbol)
    first = vars(module).get(symbol[0])
    if kind is None and not isinstance(first, FunctionType):
        return contents(first, name)
    if kind is None or it is module:
        public = {n: v for n, v in vars(module).items() if not n.startswith("__")}
        return {n: v for n, v in public.items() if _is(v, *BUILTIN, CACHED) or _is_holder(v)}
    inside = _attributes(it)
    if symbol[-1] in inside:
        return contents(inside[symbol[-1]], name)
    return contents(it, kind.__name__)


class Watch:
    """Follows the sizes of the containers from one feeding to the next."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.top: dict[str, int] = {}
        self.start: dict[str, int] = {}
        self.flushes: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._full: Kept = {}

    def see(self, found: dict[str, Any], fed: int) -> None:
        """Count, and remember the items when the limit should be reached."""
        for path, value in found.items():
            count = size(value)
            if fed == 0:
                self.start[path] = count
            before = self._last.get(path, 0)
            if before >= max(self._limit - 1, 1) and count <= before // 2:
                self.flushes[path] = self.flushes.get(path, 0) + 1
            self.top[path] = max(self.top.get(path, 0), count)
            self._last[path] = count
            if fed == self._limit:
                self._full[path] = items(value)

    def record(self, found: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return how far each container grew, and what is left of the first items."""
        told = {}
        for path, value in found.items():
            if self.top[path] <= self.start.get(path, 0):
                continue
            left = {id(item) for item in items(value)}
            told[path] = {
                "top": self.top[path],
                "end": size(value),
                "flushes": self.flushes.get(path, 0),
                "kept": sum(id(item) in left for item in self._full.get(path, ())),
                "distinct": _is(value, CACHED) or len(left) == size(value),
            }
        return told


def probe(request: dict[str, Any]) -> dict[str, Any]:
    """Import, make and feed; whatever the code raises is an answer, with the stage it came from."""
    stage = IMPORT
    try:
        module = load(Path(request["file"]), request["module"], request["root"])
        stage = MAKE
        it = make(module, request["symbol"], request["make"])
        stage = FEED
        return _fed(request, module, it)
    except BaseException as error:  # also SystemExit: the claimed code raised it
        return {"stage": stage, "error": f"{type(error).__name__}: {error}"[:500]}


def _fed(request: dict[str, Any], module: ModuleType, it: Any) -> dict[str, Any]:
    if request["feed"] is not None:
        return _run(request, module, it, lambda made, i: feed(module, made, request["feed"], i))
    error: Exception | None = None
    for function in request["feeders"]:
        for as_text in (True, False):
            try:
                made = make(module, request["symbol"], request["make"])
                feed_by_call(made, function, 0, as_text=as_text)
            except Exception as raised:  # the next guess may fit
                error = raised
                continue
            call = functools.partial(feed_by_call, function=function, as_text=as_text)
            fresh = make(module, request["symbol"], request["make"])
            return _run(request, module, fresh, lambda it, i, call=call: call(it, i=i))
    why = f"{type(error).__name__}: {error}" if error else "nothing that adds to it was found"
    return {"stage": GUESS, "error": why[:500]}


def _run(request: dict[str, Any], module: ModuleType, it: Any, give: Any) -> dict[str, Any]:
    limit, refused = request["limit"], 0
    watch = Watch(limit)
    watch.see(look(module, it, request["symbol"]), 0)
    total = 2 * limit + 2
    for i in range(total):
        try:
            give(it, i)
        except Exception:
            if i < limit - 1:  # not because it is full
                raise
            refused += 1
        watch.see(look(module, it, request["symbol"]), i + 1)
    found = look(module, it, request["symbol"])
    return {"fed": total, "refused": refused, "containers": watch.record(found)}


if __name__ == "__main__":  # pragma: no cover  # runs in the child that `execute` starts
    sys.path.pop(0)
    asked = json.loads(sys.argv.pop(1))
    Path(asked["out"]).write_text(json.dumps(probe(asked)), encoding="utf-8")
