"""How a factory wants to be called: with the key or id that it makes something for, or without."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType


def takes_key(factory: Callable[..., object]) -> bool:
    """Tell whether a factory must be given the key: it has a positional parameter without default.

    Builtin containers, and classes and functions without such a parameter, are called with nothing.
    """
    if type(factory) is FunctionType:
        return factory.__code__.co_argcount > len(factory.__defaults__ or ())
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # some builtins do not tell
        return False
    return any(p.kind <= p.POSITIONAL_OR_KEYWORD and p.default is p.empty for p in parameters)
