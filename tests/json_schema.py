"""Checks a document against a JSON schema (draft 4), as far as the schemas of the tests need it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
KNOWN = {
    "$schema", "id", "title", "description", "type", "properties", "required", "definitions",
    "additionalProperties", "items", "enum", "minimum", "maximum", "minItems", "uniqueItems",
    "pattern", "format", "default", "$ref", "oneOf", "anyOf", "allOf", "not", "exclusiveMinimum",
}  # fmt: skip


def errors(document: Any, schema: dict[str, Any]) -> list[str]:
    """Return what does not fit, each with its place; an unknown word of the schema raises."""
    return list(_errors(document, schema, schema, "$"))


def _errors(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str) -> Iterator[str]:
    if unknown := schema.keys() - KNOWN:
        raise NotImplementedError(f"{at}: {sorted(unknown)}")
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/definitions/")
        yield from _errors(value, root["definitions"][name], root, at)
        return
    if "type" in schema and not _is(value, schema["type"]):
        yield f"{at}: {value!r} is no {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    for word, joined in (("oneOf", sum), ("anyOf", any), ("allOf", all)):
        fits = [not list(_errors(value, part, root, at)) for part in schema.get(word, ())]
        if fits and (joined(fits) != 1 if word == "oneOf" else not joined(fits)):
            yield f"{at}: {word} does not hold"
    if "not" in schema and not list(_errors(value, schema["not"], root, at)):
        yield f"{at}: what must not hold holds"
    if isinstance(value, dict):
        yield from _of_object(value, schema, root, at)
    elif isinstance(value, list):
        yield from _of_array(value, schema, root, at)
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{at}: {value!r} does not fit {schema['pattern']}"
    elif _is(value, "number") and not (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
    ):
        yield f"{at}: {value} is out of range"


def _is(value: Any, kinds: str | list[str]) -> bool:
    names = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, KINDS[name]) for name in names)


def _of_object(
    value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], at: str
) -> Iterator[str]:
    known = schema.get("properties", {})
    yield from (
        f"{at}: {name} is missing" for name in schema.get("required", ()) if name not in value
    )
    others = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in known:
            yield from _errors(item, known[name], root, f"{at}.{name}")
        elif others is False:
            yield f"{at}: {name} is not known"
        elif isinstance(others, dict):
            yield from _errors(item, others, root, f"{at}.{name}")


def _of_array(
    value: list[Any], schema: dict[str, Any], root: dict[str, Any], at: str
) -> Iterator[str]:
    if len(value) < schema.get("minItems", 0):
        yield f"{at}: {len(value)} items are too few"
    if schema.get("uniqueItems") and any(item in value[:n] for n, item in enumerate(value)):
        yield f"{at}: items are there twice"
    for number, item in enumerate(value):
        yield from _errors(item, schema.get("items", {}), root, f"{at}[{number}]")
