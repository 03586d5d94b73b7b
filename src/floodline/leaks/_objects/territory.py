"""Tells the program's own code from installed packages and the standard library, by its files."""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from floodline.leaks._objects.anatomy import (
    derives,
    is_standard,
    module_of_type,
    names_of_module,
)

MISSING: Any = type("Missing", (), {})()
MOST_MODULES = 300
_PACKAGE = __name__.split(".", 1)[0]
_INSTALLED = ("site-packages", "dist-packages")
_STANDARD = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120  # a prefix of texts
_HOME = __file__.rpartition(f"{os.sep}leaks{os.sep}")[0] + os.sep


@lru_cache(maxsize=4096)
def is_program_file(file: str) -> bool:
    """Return True for a source file that is neither installed nor part of Python."""
    if file.startswith(("<frozen ", _STANDARD, _HOME)):
        return False
    return not any(part in file for part in _INSTALLED)


def rank_of_module(name: str) -> int:
    """Return 0 for a module of the program, 1 for a library's, 2 for the standard library's.

    A module that is not imported under its name was made by the program.
    """
    if name in ("__main__", "__mp_main__"):
        return 0
    if is_standard(name):
        return 2
    if name.split(".", 1)[0] == _PACKAGE:
        return 1
    module = dict.get(sys.modules, name, MISSING)
    if module is MISSING:
        return 0
    if not derives(type(module), types.ModuleType):
        return 1
    file = dict.get(names_of_module(module), "__file__")
    return int(type(file) is str and not is_program_file(file))


def program_modules() -> list[str]:
    """Return the modules of the program, the first ones of very many."""
    names = [one for one in list(sys.modules) if type(one) is str and rank_of_module(one) == 0]
    return names[:MOST_MODULES]


def users_of(module: str) -> Iterator[str]:
    """Yield the other modules of the program that have something of a module in a global."""
    own = dict.get(sys.modules, module)
    for name in program_modules():
        held = dict.get(sys.modules, name)
        if name == module or not derives(type(held), types.ModuleType):
            continue
        values = list(names_of_module(held).values())  # type: ignore[arg-type]  # it is one
        if any(value is own or _home_of(value) == module for value in values):
            yield name


def _home_of(value: Any) -> object:
    """Return the module of a class, of a function, or of an object's class."""
    if type(value) is types.FunctionType:
        return dict.get(value.__globals__, "__name__")
    try:
        return module_of_type(value if derives(type(value), type) else type(value))
    except AttributeError:  # a class that removed its own `__module__`
        return None


class Territory:
    """Remembers which modules are a library's."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}

    def is_library(self, module: Any) -> bool:
        """Return True if a module of this name is not the program's."""
        if type(module) is not str:
            return True
        known = self._known.get(module)
        if known is None:
            known = self._known[module] = rank_of_module(module) > 0
        return known
