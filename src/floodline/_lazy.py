"""Public names of a package that are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package, given its globals.

    `homes` maps a name to the module that defines it: `"_module"`, or `"_module:other_name"`.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        home, _, other = homes[name].partition(":")
        value = getattr(import_module(f"{package['__name__']}.{home}"), other or name)
        package[name] = value
        return value

    def names() -> list[str]:
        return sorted({*package, *homes})

    return find, names
