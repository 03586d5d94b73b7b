"""Plain values that msgpack cannot represent, each as an extension with its own number.

Bytes that contain such values are one extension at the top (`TAGGED`), so that a reader that does
not know them sees it at once; all others are standard msgpack. The numbers stand for built-in types
of Python: nothing in a record is ever imported.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
from msgspec.msgpack import Ext

TAGGED = 70
_TUPLE, _SET, _FROZENSET, _PAIRS, _DATETIME, _DATE, _TIME, _TIMEDELTA, _UUID, _DECIMAL, _INT = (
    range(1, 12)
)
_DEPTH = 200
_FIRST_BYTES = frozenset({0xC7, 0xC8, 0xC9, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8})
_TIMESTAMPS = (b"\xd6\xff", b"\xd7\xff", b"\xc7\x0c\xff")
BARE = frozenset({str, int, float, bool, bytes, type(None)})

_encode = msgspec.msgpack.Encoder().encode


class Tagger:
    """Turns values into what msgpack can represent; `used` is True if anything had to be tagged."""

    __slots__ = ("_encode", "used")

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode, self.used = encode, False

    def tag(self, value: Any, depth: int = 0) -> Any:
        """Return dicts, lists, bare values and extensions; other values are left as they are."""
        kind = type(value)
        if kind in BARE:
            return (
                value if kind is not int or _fits(value) else self._extension(_INT, _bytes(value))
            )
        if depth > _DEPTH:
            raise ValueError(f"it is nested deeper than {_DEPTH}")
        if kind is dict:
            return self._tag_dict(value, depth + 1)
        if kind is list:
            return [self.tag(item, depth + 1) for item in value]
        if kind is tuple:
            return self._extension(_TUPLE, [self.tag(item, depth + 1) for item in value])
        if kind is set or kind is frozenset:
            items = [self._encode(self.tag(item, depth + 1)) for item in value]
            items.sort()  # the same set gives the same bytes in every process
            return self._extension(_SET if kind is set else _FROZENSET, map(msgspec.Raw, items))
        pack = _PACKERS.get(kind)
        return value if pack is None else self._extension(pack[0], pack[1](value))

    def _tag_dict(self, value: dict[Any, Any], depth: int) -> Any:
        if all(type(key) in BARE and (type(key) is not int or _fits(key)) for key in value):
            return {key: self.tag(item, depth) for key, item in value.items()}
        pairs = [[self.tag(key, depth), self.tag(item, depth)] for key, item in value.items()]
        return self._extension(_PAIRS, pairs)

    def _extension(self, code: int, content: Any) -> Ext:
        self.used = True
        return Ext(code, self._encode(list(content) if isinstance(content, map) else content))


def _fits(value: int) -> bool:
    """Return True for an integer of msgpack."""
    return -(2**63) <= value < 2**64


def _bytes(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def wrap(payload: bytes) -> bytes:
    """Mark bytes that hold tagged values."""
    return _encode(Ext(TAGGED, payload))


def is_wrapped(payload: bytes) -> bool:
    """Return True if these bytes come from `wrap`; no plain state begins like them."""
    return payload[:1] != b"" and payload[0] in _FIRST_BYTES


def untag(found: Ext) -> Any:
    """Return the value of bytes that `wrap` has marked."""
    if found.code != TAGGED:
        raise ValueError(f"unknown extension {found.code}; use a newer floodline")
    return _decode(found.data)


def has_timestamps(payload: bytes) -> bool:
    """Return True if a datetime may be inside, which msgpack would bring back in UTC."""
    # one byte first: it is rare, and faster to find than two
    return b"\xff" in payload and any(mark in payload for mark in _TIMESTAMPS)


def _pack_moment(value: datetime | time) -> list[Any]:
    zone = value.tzinfo.key if isinstance(value.tzinfo, ZoneInfo) else None
    return [value.isoformat(), value.fold, zone]


def _unpack_moment(kind: type[Any], packed: list[Any]) -> Any:
    text, fold, zone = packed
    moment = kind.fromisoformat(text).replace(fold=fold)
    if zone is None:
        return moment
    try:
        return moment.replace(tzinfo=ZoneInfo(zone))
    except (KeyError, ValueError, OSError):  # unknown on this machine; a time then has no offset
        return moment


_PACKERS: dict[type, tuple[int, Callable[[Any], Any]]] = {
    datetime: (_DATETIME, _pack_moment),
    time: (_TIME, _pack_moment),
    date: (_DATE, date.isoformat),
    timedelta: (_TIMEDELTA, lambda value: [value.days, value.seconds, value.microseconds]),
    UUID: (_UUID, lambda value: value.bytes),
    Decimal: (_DECIMAL, str),
}
_UNPACKERS: dict[int, Callable[[Any], Any]] = {
    _TUPLE: tuple,
    _SET: set,
    _FROZENSET: frozenset,
    _PAIRS: dict,
    _DATETIME: lambda packed: _unpack_moment(datetime, packed),
    _TIME: lambda packed: _unpack_moment(time, packed),
    _DATE: date.fromisoformat,
    _TIMEDELTA: lambda packed: timedelta(*packed),
    _UUID: lambda packed: UUID(bytes=packed),
    _DECIMAL: Decimal,
    _INT: lambda packed: int.from_bytes(packed, "big", signed=True),
}


def _unpack(code: int, data: memoryview) -> Any:
    unpack = _UNPACKERS.get(code)
    if unpack is None:
        raise ValueError(f"unknown extension {code}; use a newer floodline")
    return unpack(_decode(data))


_decode = msgspec.msgpack.Decoder(ext_hook=_unpack).decode
PLAIN_VALUES = frozenset(_PACKERS)
