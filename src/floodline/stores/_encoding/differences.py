"""Finds where a value is not plain, cannot be encoded, or came back different: `$.list[3].role`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec

from floodline.stores._encoding.tags import BARE, PLAIN_VALUES

_LEAVES = BARE | PLAIN_VALUES
_SEVERAL = (list, tuple, set, frozenset)
_DEPTH = 200


def is_plain(value: Any) -> bool:
    """Return True if all of a finite value is plain data."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if type(found) is dict:
            if not _LEAVES.issuperset(map(type, found)):
                waiting.extend(found)
            found = found.values()
        elif type(found) not in _SEVERAL:
            if type(found) not in _LEAVES:
                return False
            continue
        waiting.extend(child for child in found if type(child) not in _LEAVES)
    return True


def find_unplain(value: Any) -> str | None:
    """Return `$.place: what` for the first value that is not plain data, or None."""
    for place, found in _walk(value, "$"):
        if type(found) is dict:
            odd = [_kind(key) for key in found if not is_plain(key)]
            if odd:
                return f"{place}: a key is a {odd[0]}"
        elif type(found) not in _SEVERAL and type(found) not in _LEAVES:
            return f"{place}: is a {_kind(found)}"
    return None


def find_unencodable(
    encode: Callable[[Any], bytes], value: Any, error: Exception
) -> tuple[str, str]:
    """Return the place of the innermost value that `encode` refuses, and the reason."""
    place, above = "$", [id(value)]
    while len(above) < _DEPTH:
        try:
            children = _children(value)
        except Exception as refused:  # the user's hook raised
            return place, f"{type(refused).__name__}: {refused}"
        for name, child in children:
            if id(child) in above:
                return place + name, "it contains itself"
            try:
                encode(child)
            except Exception as refused:  # including users' hooks
                place, value, error = place + name, child, refused
                above.append(id(child))
                break
        else:
            return place, str(error)
    return place, f"it is nested deeper than {_DEPTH}"


def find_difference(was: Any, back: Any, place: str = "$", depth: int = 0) -> str | None:
    """Return `$.place: difference` for the first difference, including type and order."""
    if type(was) is not type(back):
        return f"{place}: {_kind(was)} came back as {_kind(back)}"
    if depth > _DEPTH:
        return f"{place}: nested deeper than {_DEPTH}"
    if hasattr(type(was), "__floodline_dump__"):
        return find_difference(dumped(was), dumped(back), place, depth + 1)
    if isinstance(was, (set, frozenset)):  # sets have no order
        return None if was == back else f"{place}: {_short(was)} came back as {_short(back)}"
    mine, theirs = _children(was), _children(back)
    if not mine and not theirs:
        return None if _same(was, back) else f"{place}: {_short(was)} came back as {_short(back)}"
    if len(mine) != len(theirs):
        return f"{place}: {len(mine)} items came back as {len(theirs)}"
    for (step, one), (other_step, other) in zip(mine, theirs, strict=True):
        if step != other_step:
            return f"{place}: {step} came back as {other_step}"
        found = find_difference(one, other, place + step, depth + 1)
        if found is not None:
            return found
    return None


def _walk(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    yield place, value
    if type(value) is dict or type(value) in _SEVERAL:
        for name, child in _children(value):
            yield from _walk(child, place + name)


def _children(value: Any) -> list[tuple[str, Any]]:
    """Return the parts of a value, or of its dump, with their steps in a path."""
    value = dumped(value)
    kind = type(value)
    if isinstance(value, dict):
        return [(_step(key), child) for key, child in value.items()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [(f"[{n}]", child) for n, child in enumerate(value)]
    if isinstance(value, msgspec.Struct):
        names: tuple[str, ...] = value.__struct_fields__
    elif is_dataclass(kind):
        names = tuple(field.name for field in fields(kind))
    elif hasattr(kind, "__attrs_attrs__"):
        names = tuple(field.name for field in kind.__attrs_attrs__)
    else:
        return []
    return [(f".{name}", getattr(value, name)) for name in names if hasattr(value, name)]


def dumped(value: Any) -> Any:
    """Return what a value of a type of its own says is stored of it; any other as it is."""
    dump = getattr(type(value), "__floodline_dump__", None)
    return value if dump is None else dump(value)


def _step(key: Any) -> str:
    return f".{key}" if type(key) is str and key.isidentifier() else f"[{_key(key)}]"


def _key(key: Any) -> str:
    """Return a key's text, whatever the order of its sets."""
    if type(key) is tuple:
        return f"({', '.join(map(_key, key))}{',' if len(key) == 1 else ''})"
    return f"frozenset({sorted(map(_key, key))})" if type(key) is frozenset else repr(key)


def _same(was: Any, back: Any) -> bool:
    return bool(was == back) or (was != was and back != back)  # NaN is the same as NaN


def _kind(value: Any) -> str:
    return type(value).__qualname__


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
