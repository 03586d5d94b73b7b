"""Where a walk starts: modules, then frames, contexts and tasks, then what only C code holds."""

from __future__ import annotations

import atexit
import contextvars
import functools
import gc
import sys
import threading
import types
from collections.abc import Iterable
from typing import Any

from floodline.leaks._heap.context_variables import count_variables
from floodline.leaks._heap.slots import Slots
from floodline.leaks._heap.walk import Walk
from floodline.leaks._objects.anatomy import derives, is_standard, mro_of, names_of_type
from floodline.leaks._objects.frames import is_ours, own_module

_PLAIN = frozenset(map(id, (dict, list, set, tuple)))
_CALLED = frozenset(
    map(id, (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial))
)
THREAD_LOCAL = "<thread local>"
HELD_BY_C = "<held by the interpreter>"
AT_EXIT = "atexit.register"
LEAST_HANDLERS = 4  # in a map of the interpreter's; fewer may be the variables of a thread
_PACKAGE = __name__.split(".", 1)[0]


def survey(
    slots: Slots,
    *,
    own: Iterable[Any] = (),
    capture: frozenset[int] = frozenset(),
    walk: Walk | None = None,
) -> Walk:
    """Walk the whole process once; `own` are the engine's objects, which are left out."""
    if walk is None:
        walk = Walk(slots, capture=capture)
    collecting = gc.isenabled()
    gc.disable()  # the walk creates many objects and no garbage
    try:
        walk.seen.update(map(id, (slots, slots.__dict__, *slots.__dict__.values())))
        for obj in (walk, walk.queue, *own):
            _leave_out(obj, walk)
        loop = _running_loop()
        walk.seen.add(id(loop))  # all tasks lead to what the loop holds: it belongs to none
        _modules(walk)
        walk.run()
        _frames(walk)
        _asynchronous(walk, loop)
        walk.run()
        count_at_exit(walk)
        _orphans(walk)
        walk.run()
    finally:
        if collecting:
            gc.enable()
    return walk


def _leave_out(obj: Any, walk: Walk) -> None:
    """Mark what is below an object of the engine, except the program's objects."""
    todo = [obj]
    while todo:
        at = todo.pop()
        if id(at) in walk.seen:
            continue
        walk.seen.add(id(at))
        todo += [o for o in gc.get_referents(at) if _below(o)]


def _below(obj: Any) -> bool:
    kind = type(obj)
    if id(kind) in _PLAIN:
        return True
    name = kind.__module__ if type(kind) is type else ""
    return type(name) is str and (own_module(name) or name == "array")


def _modules(walk: Walk) -> None:
    found = [
        (name, module)
        for name, module in list(dict.items(sys.modules))
        if type(name) is str and not own_module(name) and module is not None
    ]
    for name, module in sorted(found, key=lambda pair: _rank(pair[0])):
        if _is_engine_main(name, module):
            continue
        walk.push(module, walk.slots.root(name))


def _rank(name: str) -> int:
    """Put the program's own names first, so that they win, and the engine's last."""
    return 2 if name.split(".", 1)[0] == _PACKAGE else int(is_standard(name))


def _is_engine_main(name: str, module: Any) -> bool:
    if name != "__main__" or not derives(type(module), types.ModuleType):
        return False
    return "_floodline_engine" in module.__dict__


def _frames(walk: Walk) -> None:
    mine = threading.get_ident()
    for ident, top in sys._current_frames().items():
        frame: types.FrameType | None = sys._getframe() if ident == mine else top
        while frame is not None:
            if not is_ours(frame):
                walk.frame(frame)
            frame = frame.f_back


def _running_loop() -> Any:
    asyncio = sys.modules.get("asyncio")
    return asyncio.events._get_running_loop() if asyncio else None


def _asynchronous(walk: Walk, loop: Any) -> None:
    context = contextvars.copy_context()
    count_variables(walk, context)
    walk.context(context)
    if loop is None:
        return
    walk.seen.discard(id(loop))
    walk.push(loop, walk.slots.root("asyncio.<running loop>"))
    for task in sys.modules["asyncio"].all_tasks(loop):
        walk.push(task, walk.slots.root("asyncio.<tasks>"))


def count_at_exit(walk: Walk) -> None:
    """Count the hooks that the interpreter keeps where no walk can reach."""
    slot = walk.slots.child(walk.slots.root("atexit"), "atexit", ".register")
    walk.push(atexit.register, slot)
    walk.lengthen(slot, atexit._ncallbacks())


def _orphans(walk: Walk) -> None:
    """Push what the collector tracks but no name leads to: thread locals, interpreter hooks.

    After `gc.freeze()` the collector no longer lists these.
    """
    seen = walk.seen
    known = gc.get_objects()
    orphans = [obj for obj in known if id(obj) not in seen]
    del known
    inner = set(map(id, gc.get_referents(*orphans)))
    local, hooks = walk.slots.root(THREAD_LOCAL), walk.slots.root(HELD_BY_C)
    for obj in orphans:
        if id(obj) in inner or obj is orphans or type(obj) is types.FrameType:
            continue
        if type(obj) is dict and not _is_hooks(obj):
            walk.namespace(obj, local, THREAD_LOCAL)
        else:
            kind = "hooks" if _is_hooks(obj) else type(obj).__name__
            walk.push(obj, walk.slots.child(hooks, "", f"→{kind}"))


def _is_hooks(obj: Any) -> bool:
    """Return True for a list or map of nothing but what can be called.

    Such as the hooks of a fork, or the search functions and error handlers of `codecs`. A thread's
    variables are a map too, but they are hardly ever all functions.
    """
    if type(obj) is list:
        items = list(obj)
    elif type(obj) is dict and all(type(key) is str for key in list(obj)):
        items = list(dict.values(obj))
        if len(items) < LEAST_HANDLERS:
            return False
    else:
        return False
    kinds = {id(type(item)): type(item) for item in items}
    return bool(kinds) and all(key in _CALLED or _is_called(kinds[key]) for key in kinds)


def _is_called(kind: type) -> bool:
    """Return True if instances of a Python class can be called."""
    return any("__call__" in names_of_type(base) for base in mro_of(kind)[:-1] if _is_plain(base))


def _is_plain(kind: type) -> bool:
    return not derives(kind, type)
