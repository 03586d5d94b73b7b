"""Shortens the texts of a message that is too large; its structure stays as it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from floodline._units import format_size
from floodline.errors import MalformedMessage
from floodline.history._formats.shapes import Message

_encode = msgspec.msgpack.Encoder().encode

# Fields that pair messages, name things or are signed by a provider break if they are cut.
_FIXED_KEYS = frozenset(
    {
        *("id", "type", "role", "name", "status"),
        *("call_id", "tool_call_id", "tool_use_id", "file_id"),
        *("approval_request_id", "server_label", "fingerprint"),
        *("signature", "thoughtSignature", "thought_signature", "encrypted_content"),
        *("mimeType", "mime_type", "media_type"),
    }
)
_FIXED_TYPES = frozenset(("thinking", "redacted_thinking", "reasoning"))
_MEDIA = {
    "image_url": "text",
    "input_audio": "text",
    "file": "text",
    "image": "text",
    "document": "text",
    "input_image": "input_text",
    "input_file": "input_text",
}
_LEAST = 64  # shorter texts are not worth a marker

Path = tuple[str | int, ...]


class _Spot(NamedTuple):
    """Something that can be made smaller: `how` is text, json, media or blob (a Gemini part)."""

    size: int
    path: Path
    how: str


def weigh(message: Message, place: str) -> int:
    """Return the bytes of a message as it would be stored.

    `MalformedMessage` names what cannot be stored.
    """
    try:
        return len(_encode(message))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        where = _unstorable(message, place)
        raise MalformedMessage(f"this cannot be stored ({error})", place=where) from error


def _unstorable(value: Any, place: str, depth: int = 0) -> str:
    parts: Iterator[tuple[str, Any]] = iter(())
    if isinstance(value, dict):
        parts = ((f"{place}.{key}", part) for key, part in value.items())
    elif isinstance(value, (list, tuple)):
        parts = ((f"{place}[{i}]", part) for i, part in enumerate(value))
    for where, part in parts:
        try:
            _encode(part)
        except Exception:  # whatever it is, it is below here
            return where if depth > 30 else _unstorable(part, where, depth + 1)
    return place


def shorten(message: Message, limit: int, place: str) -> tuple[Message, int]:
    """Return a copy of at most `limit` bytes, and its bytes.

    The largest texts lose their middle: head and tail stay around a marker that says how many
    characters were cut. Images and files become a line of text. Ids, names, signatures and
    reasoning are not touched, so a message that consists only of these stays above the limit.
    """
    size = weigh(message, place)
    draft = _Draft(message)
    for spot in sorted(_spots(message, ()), reverse=True):
        if size <= limit:
            break
        room = max(0, spot.size - (size - limit) - 8)  # 8: a length may need more bytes
        old = _at(draft.message, spot.path)
        new = _smaller(old, spot, room)
        saved = len(_encode(old)) - len(_encode(new))
        if saved > 0:
            draft.replace(spot.path, new)
            size -= saved
    return draft.message, size


class _Draft:
    """A message and its changes; what lies on the way to a change is copied once."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self._copies: set[int] = set()

    def replace(self, path: Path, new: Any) -> None:
        value: Any = self._own(self.message)
        self.message = value
        for step in path[:-1]:
            value[step] = self._own(value[step])
            value = value[step]
        value[path[-1]] = new

    def _own(self, value: Any) -> Any:
        if id(value) in self._copies:
            return value
        copy: Any = dict(value) if isinstance(value, dict) else list(value)
        self._copies.add(id(copy))
        return copy


def cut_text(text: str, room: int) -> str:
    """Return head and tail of `text` in at most `room` bytes, with a marker between them.

    If there is no room for that, only the marker is left.
    """
    whole = text.encode()
    for _ in range(2):  # the number in the marker depends on what is kept, and so does the room
        marker = f"\n[… {len(text)} characters cut …]\n"
        keep = max(0, room - len(marker.encode()))
        head = whole[: keep - keep // 2].decode(errors="ignore")
        tail = whole[len(whole) - keep // 2 :].decode(errors="ignore")
    cut = len(text) - len(head) - len(tail)
    return f"{head}\n[… {cut} characters cut …]\n{tail}"


def _spots(value: Any, path: Path) -> Iterator[_Spot]:
    if isinstance(value, str):
        if len(value) > _LEAST:
            how = "json" if path[-1] == "arguments" else "text"
            yield _Spot(len(value.encode()), path, how)
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _spots(part, (*path, i))
    elif isinstance(value, dict):
        type_ = value.get("type")
        if type_ in _FIXED_TYPES or value.get("thought"):
            return
        in_list = bool(path) and isinstance(path[-1], int)
        if in_list and type_ in _MEDIA:
            yield _Spot(len(_encode(value)), path, "media")
        elif in_list and ("inlineData" in value or "inline_data" in value):
            yield _Spot(len(_encode(value)), path, "blob")
        else:
            for key, part in value.items():
                if key not in _FIXED_KEYS:
                    yield from _spots(part, (*path, key))


def _smaller(value: Any, spot: _Spot, room: int) -> Any:
    if spot.how == "text":
        return cut_text(value, room)
    if spot.how == "json":
        return _cut_json(value, room)
    what = value.get("type", "data") if isinstance(value, dict) else "data"
    text = f"[{what} of {format_size(spot.size)} removed]"
    return {"text": text} if spot.how == "blob" else {"type": _MEDIA[what], "text": text}


def _cut_json(text: str, room: int) -> str:
    """Shorten the strings inside the JSON text of a call's arguments, so that it stays JSON."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict):
        for _ in range(10):
            written = json.dumps(value, ensure_ascii=False)
            excess = len(written.encode()) - room
            spot = max((s for s in _spots(value, ("",)) if s.how in ("text", "json")), default=None)
            if excess <= 0:
                return written
            if spot is None or spot.size <= 2 * _LEAST:
                break
            path = spot.path[1:]
            inner = cut_text(str(_at(value, path)), max(0, spot.size - excess - 8))
            value = _replaced(value, path, inner)
    while len(wrapped := json.dumps({"shortened": cut_text(text, room)})) > room > _LEAST:
        room //= 2
    return wrapped


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def _replaced(value: Any, path: Path, new: Any) -> Any:
    """Return a copy of `value` with `new` at the end of `path`; the rest is shared."""
    if not path:
        return new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy
