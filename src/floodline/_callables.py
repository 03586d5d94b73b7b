"""How to call a factory: with the key or id it creates something for, or without arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType


def takes_key(factory: Callable[..., object]) -> bool:
    """Return True if a factory requires the key: it has a positional parameter without a default.

    Builtin containers, and classes and functions without such a parameter, get no arguments.
    """
    if type(factory) is FunctionType:
        return factory.__code__.co_argcount > len(factory.__defaults__ or ())
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # some builtins have no signature
        return False
    return any(p.kind <= p.POSITIONAL_OR_KEYWORD and p.default is p.empty for p in parameters)
