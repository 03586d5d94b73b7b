"""A validator for the part of JSON Schema that the item types use.

`types.json` is made from the models that OpenAI's clients validate answers with (a test compares
the two), so what passes here passes there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

Schema = dict[str, Any]


class Mismatch(ValueError):
    """A value that does not fit; `place` is a path such as `.content[0].text`."""

    def __init__(self, why: str, place: str = "") -> None:
        super().__init__(why)
        self.why, self.place = why, place


@cache
def types() -> Schema:
    """Return the schema of all item types, with `$defs` and one branch for each type."""
    text = files("floodline._service._items").joinpath("types.json").read_bytes()
    read: Schema = msgspec.json.decode(text)
    return read


@cache
def by_type() -> dict[str, Schema]:
    """Return the schema of each item type by its name."""
    branches = [_resolved(branch) for branch in types()["anyOf"]]
    return {branch["properties"]["type"]["const"]: branch for branch in branches}


def check(value: Any, schema: Schema, place: str = "") -> None:
    """Raise `Mismatch` unless the value fits."""
    schema = _resolved(schema)
    if "anyOf" in schema:
        _check_any(value, schema["anyOf"], place)
    elif "const" in schema:
        if value != schema["const"] or type(value) is not type(schema["const"]):
            raise Mismatch(f"must be {schema['const']!r}", place)
    elif "enum" in schema:
        if not isinstance(value, str) or value not in schema["enum"]:
            raise Mismatch(f"must be one of {', '.join(schema['enum'])}", place)
    elif (kind := schema.get("type")) is not None:
        if not _IS[kind](value):
            raise Mismatch(f"must be of type {kind}", place)
        if kind == "object":
            _check_object(value, schema, place)
        elif kind == "array" and schema.get("items"):
            for index, each in enumerate(value):
                check(each, schema["items"], f"{place}[{index}]")


def _check_object(value: dict[str, Any], schema: Schema, place: str) -> None:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            raise Mismatch("is missing", f"{place}.{name}")
    rest = schema.get("additionalProperties")
    for name, each in value.items():
        if name in known:
            check(each, known[name], f"{place}.{name}")
        elif isinstance(rest, dict):
            check(each, rest, f"{place}.{name[:64]}")


def _check_any(value: Any, branches: list[Schema], place: str) -> None:
    """Try each branch; report the mismatch of the branch that was meant, by its `type`."""
    found: Mismatch | None = None
    for branch in branches:
        try:
            check(value, branch, place)
        except Mismatch as mismatch:
            meant = isinstance(value, dict) and value.get("type") in _kinds(branch)
            if meant or found is None:
                found = mismatch
            if meant:
                break
        else:
            return
    else:
        kinds = sorted(kind for branch in branches for kind in _kinds(branch))
        if kinds and isinstance(value, dict):
            raise Mismatch(f"must be one of {', '.join(kinds)}", f"{place}.type")
    assert found is not None
    raise found


def _kinds(branch: Schema) -> list[str]:
    """Return the words for `type` that only this branch accepts."""
    kind = _resolved(branch).get("properties", {}).get("type", {})
    return [kind["const"]] if "const" in kind else kind.get("enum", [])


def _resolved(schema: Schema) -> Schema:
    while "$ref" in schema:
        schema = types()["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_IS: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": _is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
