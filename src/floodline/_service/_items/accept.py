"""Accepting items: completed as the API completes them, checked, and encoded once for good."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Any

import msgspec

from floodline._service._items.schema import Mismatch, by_type, check
from floodline._service._refusals import invalid

MAX_ITEMS = 20  # a call
ITEM_ID = re.compile(r"[A-Za-z0-9_.:~-]{1,200}")

# how the ids that we give begin, as those of the API do; other types begin with their own name
_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "computer_call": "cu",
    "computer_call_output": "cuo",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
}
# what the API fills in where a client may leave it out, by the type of an item or a part
_DEFAULTS: dict[str, dict[str, Any]] = {
    "output_text": {"annotations": []},
    "input_image": {"detail": "auto"},
    "computer_call": {"pending_safety_checks": []},
    "mcp_list_tools": {"tools": []},
    "reasoning": {"summary": []},
}


@dataclass(slots=True, frozen=True)
class Accepted:
    """An item as it is kept: `data` is what every later answer contains."""

    id: str
    item: dict[str, Any]
    data: bytes
    named: bool  # by the client, so that a repetition can be recognised

    def is_same(self, stored: bytes) -> bool:
        """Return True if a stored item has the same content, in whatever order it was written."""
        return stored == self.data or msgspec.json.decode(stored) == self.item


_encode = msgspec.json.Encoder().encode


def accept_all(given: Any, param: str = "items") -> list[Accepted]:
    """Return the items of one request, at most 20, or raise a `Refusal`."""
    if not isinstance(given, list):
        raise invalid("must be an array of items", param)
    if len(given) > MAX_ITEMS:
        raise invalid(f"{len(given)} items in a call; at most {MAX_ITEMS}", param, "too_many_items")
    return [accept(item, f"{param}[{index}]") for index, item in enumerate(given)]


def accept(given: Any, param: str = "item") -> Accepted:
    """Return one item, completed and checked, or raise a `Refusal` that names the place."""
    if not isinstance(given, dict):
        raise invalid("an item must be an object", param)
    item = {name: value for name, value in given.items() if name != "id"}
    if item.get("type") is None:
        item["type"] = "message" if "role" in item else None
    kind = item["type"]
    if not isinstance(kind, str) or kind not in by_type():
        known = ", ".join(sorted(by_type()))
        raise invalid(f"unknown item type; choose one of {known}", f"{param}.type")
    named = given.get("id") is not None
    item = {"id": given["id"] if named else _new_id(kind), **item}
    if not isinstance(item["id"], str) or not ITEM_ID.fullmatch(item["id"]):
        raise invalid("an id has 1 to 200 letters, digits or _ . : ~ -", f"{param}.id")
    _complete(item, kind)
    try:
        check(item, by_type()[kind])
    except Mismatch as found:
        raise invalid(f"{found.why} in an item of type {kind}", f"{param}{found.place}") from None
    return Accepted(item["id"], item, _encode(item), named)


def completed(kind: str) -> tuple[str, ...]:
    """Return what a client may leave out of an item of this type."""
    return "id", "status", *_DEFAULTS.get(kind, ())


def _new_id(kind: str) -> str:
    return f"{_PREFIXES.get(kind, kind)}_{secrets.token_hex(24)}"


def _complete(item: dict[str, Any], kind: str) -> None:
    if kind == "message" and isinstance(item.get("content"), str):
        part = "output_text" if item.get("role") == "assistant" else "input_text"
        item["content"] = [{"type": part, "text": item["content"]}]
    if "status" in by_type()[kind].get("required", ()) and item.get("status") is None:
        item["status"] = "completed"
    _fill(item, kind)
    if kind == "message" and isinstance(item.get("content"), list):
        item["content"] = [_with_detail(part) for part in item["content"]]
    for name in ("content", "output"):
        value = item.get(name)
        if isinstance(value, list):  # the client's own parts stay as they are
            item[name] = [_filled(part) for part in value]
        elif isinstance(value, dict):
            item[name] = _filled(value)


def _with_detail(part: Any) -> Any:
    """Complete a screenshot in a message; the one that a computer call returns has no detail."""
    if isinstance(part, dict) and part.get("type") == "computer_screenshot":
        return {"detail": "auto", **part}
    return part


def _filled(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    part = dict(part)
    _fill(part, part.get("type"))
    return part


def _fill(part: dict[str, Any], kind: Any) -> None:
    for name, value in _DEFAULTS.get(kind, {}).items() if isinstance(kind, str) else ():
        if part.get(name) is None:
            part[name] = list(value) if isinstance(value, list) else value
