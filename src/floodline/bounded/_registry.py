"""What every container does once: takes a name, registers itself, and starts empty in a fork."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Iterator
from typing import NoReturn, Protocol

from floodline import telemetry
from floodline.errors import ConfigError

_numbers: dict[str, Iterator[int]] = {}
_enrolled: dict[int, weakref.ref[Container]] = {}
_inherited: list[object] = []


class Container(telemetry.Holder, Protocol):
    """A holder that can leave behind what it inherited."""

    def _start_anew(self) -> object:
        """Become empty, with new locks; return what was inside, which must not be finalized."""
        ...


def name_of(kind: str, name: object) -> str:
    """Return the user's name, or the next of `map-1`, `map-2`, …"""
    if name is None:
        return f"{kind}-{next(_numbers.setdefault(kind, itertools.count(1)))}"
    if not isinstance(name, str) or not name:
        raise ConfigError(f"name={name!r} must be a non-empty string; give one or leave it out")
    return name


def refuse_copy(container: object, _protocol: object) -> NoReturn:
    """Refuse to copy or pickle a container: the copy would share its lock, entries and hooks."""
    kind = type(container).__name__
    raise TypeError(
        f"a {kind} cannot be copied or pickled: what leaves it leaves once, through the hooks of "
        f"one container; create another {kind} and fill it from this one"
    )


def enrol(container: Container) -> None:
    """Show the container in telemetry and empty it in forked children, while it lives."""
    key = id(container)

    def forget(ref: object, key: int = key) -> None:
        if _enrolled.get(key) is ref:
            del _enrolled[key]

    _enrolled[key] = weakref.ref(container, forget)
    telemetry.register(container)


def _after_fork() -> None:
    for ref in list(_enrolled.values()):
        container = ref()
        if container is not None:
            # kept forever: freeing it would run finalizers that belong to the parent
            _inherited.append(container._start_anew())
            telemetry.register(container)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
