"""Reading requests: bodies of bounded size, in bounded time, with a bounded number of values."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request

from floodline._service._limits import Limits
from floodline._service._refusals import Refusal, invalid, overloaded, too_large
from floodline._units import format_size
from floodline.memory._malloc_trim import trim_malloc

MAX_VALUES = 100_000
GIVE_BACK = 16 << 20
MAX_DEPTH = 64
MAX_PAIRS, MAX_NAME, MAX_VALUE = 16, 64, 512

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


class Buffers:
    """How many bytes of bodies are in memory now."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.held = limits, 0
        self.reading = 0  # bodies that are still coming, perhaps slowly
        self.released = 0  # since the free memory of malloc was given back

    async def read(self, request: Request) -> bytes:
        """Return the body, which counts until `request.state.body` is released."""
        limit = self.limits.max_body
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and (len(declared) > 15 or int(declared) > limit):
            raise _body_too_large(limit)
        self.reading += 1
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                return await self._collect(request, limit)
        except TimeoutError:
            raise Refusal(408, "body_timeout", "The body took too long.") from None
        except ClientDisconnect:
            raise Refusal(400, "body_incomplete", "The body ended early.") from None
        finally:
            self.reading -= 1

    async def _collect(self, request: Request, limit: int) -> bytes:
        parts = bytearray()
        async for part in request.stream():
            if len(parts) + len(part) > limit:
                raise _body_too_large(limit)
            if self.held + len(part) > self.limits.max_buffered:
                raise overloaded("Too many large requests at once; try again.", "overloaded")
            self.held += len(part)
            request.scope["floodline.buffered"] = request.scope.get("floodline.buffered", 0) + len(
                part
            )
            parts += part
        return bytes(parts)

    def release(self, scope: Mapping[str, Any]) -> None:
        """Forget the body of a request that is answered."""
        size = scope.get("floodline.buffered", 0)
        self.held -= size
        self.released += size

    def give_back(self) -> bool:
        """Return what many bodies took to the system: malloc would keep it in pieces."""
        if self.released < GIVE_BACK:
            return False
        self.released = 0
        return trim_malloc()


def _body_too_large(limit: int) -> Refusal:
    # the rest is not read, so the connection cannot be used again
    refusal = too_large(f"The body is larger than {format_size(limit)}.", "body_too_large")
    refusal.headers["connection"] = "close"
    return refusal


def check_content_type(request: Request, body: bytes) -> None:
    """Refuse a body that a form or a script of another site could send without asking."""
    given = request.headers.get("content-type")
    if given is None and not body:
        return
    if (given or "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal(415, "unsupported_media_type", "Send the body as application/json.")


def parse_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; an empty body is an empty one."""
    if not body.strip():
        return {}
    if _values(body) > MAX_VALUES:
        raise too_large(f"The body has more than {MAX_VALUES} values.", "too_many_values")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise invalid("The body is not valid JSON.", code="invalid_json") from None
    if not isinstance(value, dict):
        raise invalid("The body must be a JSON object.", code="invalid_json")
    if _depth(value) > MAX_DEPTH:
        raise invalid(f"The body is nested more than {MAX_DEPTH} deep.", code="invalid_json")
    return value


def _values(body: bytes) -> int:
    """Return how many values a body has at most; exactly, if that may be too many."""
    if (rough := _separators(body)) <= MAX_VALUES:
        return rough
    return _separators(_STRING.sub(b"", body))


def _separators(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
    return depth


def read_metadata(body: Mapping[str, Any], *, required: bool = False) -> dict[str, str]:
    """Return `metadata`: at most 16 pairs of 64 and 512 characters; null is none."""
    given = body.get("metadata")
    if given is None:
        if required and "metadata" not in body:
            raise invalid("is missing", "metadata", "missing_required_parameter")
        return {}
    if not isinstance(given, dict):
        raise invalid("must be an object of strings", "metadata")
    if len(given) > MAX_PAIRS:
        raise invalid(f"has {len(given)} pairs; at most {MAX_PAIRS}", "metadata")
    for name, value in given.items():
        if len(name) > MAX_NAME:
            raise invalid(f"a name has {len(name)} characters; at most {MAX_NAME}", "metadata")
        if not isinstance(value, str) or len(value) > MAX_VALUE:
            raise invalid(f"must be a string of at most {MAX_VALUE} characters", f"metadata.{name}")
    return given


def whole_number(
    query: Mapping[str, str], name: str, default: int | None, low: int, high: int
) -> int | None:
    """Return a number of the query."""
    text = query.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,15}", text) or not low <= int(text) <= high:
        raise invalid(f"must be a whole number from {low} to {high}", name)
    return int(text)


def one_of(query: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """Return a word of the query, by default the first."""
    text = query.get(name, choices[0])
    if text not in choices:
        raise invalid(f"must be one of {', '.join(choices)}", name)
    return text
