"""Finds out which function was decorated, where the container is in the decorator's closure."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterator
from typing import Any

from floodline.leaks._heap.slot_values import length
from floodline.leaks._heap.walk import Held
from floodline.leaks._objects.frames import code_label

MOST_DECORATORS = 20


def decorated_function(held: list[Held]) -> str | None:
    """Return the function around which the closure with the fullest of these containers is.

    All that a decorator has decorated share one slot, which is named after its inner function.
    """
    fullest = max(held, key=lambda one: length(one.value), default=None)
    inner = fullest.holder if fullest is not None else None
    if type(inner) is not types.FunctionType:
        return None
    home = inner.__code__.co_qualname.partition(".<locals>")[0]
    for function in _wrapped(inner):
        within = function.__code__.co_qualname.partition(".<locals>")[0] == home
        if not within or function.__globals__ is not inner.__globals__:
            last = _innermost(function)
            return code_label(last.__code__, last.__globals__)
    return None


def _innermost(function: types.FunctionType) -> types.FunctionType:
    """Follow what `functools.wraps` noted, where one decorator is below another."""
    for _ in range(MOST_DECORATORS):
        noted = next(_noted(function), None)
        if noted is None:
            break
        function = noted
    return function


def _wrapped(inner: types.FunctionType) -> Iterator[types.FunctionType]:
    """Yield what `functools.wraps` noted, and the functions in the closure."""
    yield from _noted(inner)
    for cell in inner.__closure__ or ():
        for value in gc.get_referents(cell):
            yield from _functions(value)


def _noted(inner: types.FunctionType) -> Iterator[types.FunctionType]:
    for names in gc.get_referents(inner):  # reading `__dict__` would create it
        if type(names) is dict and names is not inner.__globals__:
            yield from _functions(dict.get(names, "__wrapped__"))


def _functions(value: Any) -> Iterator[types.FunctionType]:
    if type(value) is types.FunctionType:
        yield value
