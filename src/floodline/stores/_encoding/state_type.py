"""Infers the type that a factory returns."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

_PLAIN: tuple[Any, ...] = (dict, list, Any, object, None, type(None), inspect.Signature.empty)
_AWAITABLE = (collections.abc.Awaitable, collections.abc.Coroutine)


def infer_state_type(factory: Callable[..., Any] | None) -> Any:
    """Return the class or the annotated return type of a factory, None for plain data.

    Builtin containers mean plain data, and so does an annotation that is missing or cannot be
    resolved. For an awaitable it is the type of its result.
    """
    while isinstance(factory, functools.partial):
        factory = factory.func
    if factory is None:
        return None
    made = factory if isinstance(factory, type) else _returned(factory)
    if typing.get_origin(made) in _AWAITABLE:
        made = typing.get_args(made)[-1]
    if any(made is plain for plain in _PLAIN) or isinstance(made, (str, typing.TypeVar)):
        return None
    return made


def tells_state_type(factory: Callable[..., Any]) -> bool:
    """Return True if the factory or its annotation says anything about the type."""
    while isinstance(factory, functools.partial):
        factory = factory.func
    if isinstance(factory, type):
        return factory is not object
    made = _returned(factory)
    return made in (dict, list) or infer_state_type(factory) is not None


def _returned(factory: Callable[..., Any]) -> Any:
    if not isinstance(factory, (types.FunctionType, types.MethodType)):
        factory = getattr(factory, "__call__", factory)  # noqa: B004 - its annotations are wanted
    try:
        return typing.get_type_hints(inspect.unwrap(factory)).get("return")
    except Exception:  # names that exist only for type checkers, and whatever else users write
        return None
