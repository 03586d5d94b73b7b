"""Reads parts of a container, each in one step that no other thread can interrupt."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any


def part(obj: Any, base: type | None, begin: int, end: int, *, keys: bool = False) -> list[Any]:
    """Return the items `begin` to `end` of a container of this builtin base; a dict's values."""
    for _ in range(3):
        try:
            if base is list:
                return list.__getitem__(obj, slice(begin, end))
            if base is tuple:
                return list(tuple.__getitem__(obj, slice(begin, end)))
            return list(islice(_items(obj, base, keys=keys), begin, end))
        except RuntimeError:  # another thread changed it meanwhile
            continue
    return []


def _items(obj: Any, base: type | None, *, keys: bool) -> Iterable[Any]:
    if base is dict:
        return dict.keys(obj) if keys else dict.values(obj)
    if base is set:
        return set.__iter__(obj)
    if base is frozenset:
        return frozenset.__iter__(obj)
    return deque.__iter__(obj) if base is deque else ()


def edges(obj: Any, base: type | None, edge: int) -> list[Any]:
    """Return the first and last items of a large container; any items of a set."""
    if base is list or base is tuple:
        return part(obj, base, 0, edge) + part(obj, base, -edge, sys.maxsize)
    last: list[Any] = []
    for _ in range(3):
        try:
            if base is dict:
                last = list(islice(reversed(dict.values(obj)), edge))
            elif base is deque:
                last = list(islice(deque.__reversed__(obj), edge))
            break
        except RuntimeError:  # another thread changed it meanwhile
            continue
    return part(obj, base, 0, edge if last else 2 * edge) + last


def some(obj: Any, base: type | None, size: int, most: int) -> list[Any]:
    """Return all items up to `most`, else that many from both ends."""
    if size <= most:
        return part(obj, base, 0, size)
    return edges(obj, base, most // 2)
