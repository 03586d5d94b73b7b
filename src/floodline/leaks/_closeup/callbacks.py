"""Names what a hook or a finalizer calls."""

from __future__ import annotations

import functools
import types
import weakref
from typing import Any

from floodline.leaks._objects.anatomy import label_of
from floodline.leaks._objects.frames import code_label

_Pending: type = vars(weakref.finalize)["_Info"]
_function_of = vars(_Pending)["func"].__get__
_partial_of = vars(functools.partial)["func"].__get__


def name_of_called(value: Any) -> str | None:
    """Return `module.Class.method` for a function, method, partial or callable object."""
    if type(value) is types.MethodType:
        value = value.__func__
    if type(value) is functools.partial:
        return name_of_called(_partial_of(value))
    if type(value) is types.FunctionType:
        return code_label(value.__code__, value.__globals__)
    kind = type(value)
    called = type(kind) is type and any("__call__" in vars(base) for base in kind.__mro__[:-1])
    return label_of(kind) if called and "." in label_of(kind) else None


def kind_of_item(value: Any) -> str:
    """Return what to call an item: its class, or what a pending finalizer will call."""
    if type(value) is _Pending:
        name = name_of_called(_function_of(value))
        if name is not None:
            return name
    return label_of(type(value)).rpartition(".")[2]
