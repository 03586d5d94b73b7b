"""States as bytes: msgpack by msgspec, never pickle, and no name in a record is ever imported."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from floodline.errors import CodecError, ConfigError, UnreadableRecord
from floodline.stores._encoding.differences import (
    dumped,
    find_difference,
    find_unencodable,
    find_unplain,
    is_plain,
)
from floodline.stores._encoding.tags import (
    BARE,
    PLAIN_VALUES,
    Tagger,
    has_timestamps,
    is_wrapped,
    untag,
    wrap,
)

_NEXT_STEP = (
    "use plain data, a dataclass, an attrs class, a msgspec.Struct or a Pydantic model as "
    "state_type, or give the class __floodline_dump__ and __floodline_load__"
)
_decode_any = msgspec.msgpack.Decoder().decode
_PLAIN = (dict, list, tuple, set, frozenset, str, bytes, bytearray, int, float)
PLAIN_TYPES = BARE | PLAIN_VALUES | {dict, list, tuple, set, frozenset}


class Codec:
    """Encodes the states of one type; None, dict and list stand for plain data.

    Plain data is made of exactly dict, list, tuple, set, frozenset, str, int, float, bool, bytes,
    None, datetime, date, time, timedelta, UUID and Decimal, and comes back equal; with only dict,
    list, str, numbers, bytes and None it is standard msgpack. A type is whatever msgspec can
    decode, and any class with `__floodline_dump__(self)`, which returns plain data, and the class
    method `__floodline_load__(cls, data)`, also as the type of a field. So is a Pydantic model,
    recognised by its methods `model_dump` and `model_validate`.
    """

    __slots__ = ("_decode", "_encode", "_hooked", "state_type")

    def __init__(self, state_type: Any = None) -> None:
        self.state_type = state_type = None if state_type in (dict, list) else state_type
        self._hooked = hasattr(state_type, "__floodline_load__") or _is_model(state_type)
        wanted = Any if state_type is None or self._hooked else state_type
        try:
            self._decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder(
                wanted, dec_hook=_load
            ).decode
        except (TypeError, NameError) as error:
            raise ConfigError(
                f"state_type={state_type!r} cannot be decoded: {error}; {_NEXT_STEP}"
            ) from error
        self._encode = msgspec.msgpack.Encoder(enc_hook=_dump).encode

    def encode(self, state: Any) -> bytes:
        """Return the bytes of a state; `CodecError` ends with the place of what cannot be encoded.

        Plain data is decoded and compared each time, as that is cheap; a type only with `check`.
        """
        try:
            if self.state_type is not None:
                return self._encode(_dump(state) if self._hooked else state)
            with suppress(OverflowError):  # an integer of more than 64 bits
                payload = self._encode(state)
                if self._decode(payload) == state and not has_timestamps(payload):
                    return payload
            payload = self._encode_tagged(state)
        except (CodecError, MemoryError):
            raise
        except Exception as error:
            place, why = find_unencodable(self._encode, state, error)
            raise CodecError(
                f"the state cannot be encoded: {why}; {_NEXT_STEP}: {place}"
            ) from error
        self.check(state, payload)  # a NaN passes, though it does not compare equal
        return payload

    def _encode_tagged(self, state: Any) -> bytes:
        tagger = Tagger(self._encode)
        payload = self._encode(tagger.tag(state))
        return wrap(payload) if tagger.used else payload

    def decode(self, payload: bytes) -> Any:
        """Return the state; raise `UnreadableRecord` if the bytes do not fit the type."""
        try:
            if is_wrapped(payload):
                return self._fit(untag(_decode_any(payload)))
            data = self._decode(payload)
            return _load(self.state_type, data) if self._hooked else data
        except MemoryError:
            raise
        except Exception as error:
            wanted = "plain data" if self.state_type is None else self.state_type
            raise UnreadableRecord(f"the record cannot be read as {wanted}: {error}") from error

    def _fit(self, data: Any) -> Any:
        """Convert plain data from before there was a type into the type."""
        if self._hooked:
            return _load(self.state_type, data)
        if self.state_type is None:
            return data
        return msgspec.convert(data, self.state_type, dec_hook=_load)

    def check(self, state: Any, payload: bytes) -> None:
        """Decode `payload` and compare; `CodecError` says where it came back different."""
        try:
            back = self.decode(payload)
        except UnreadableRecord as error:
            raise CodecError(f"the state cannot be read back: {error}; {_NEXT_STEP}") from error
        mine, theirs = dumped(state), dumped(back)
        plain = (self.state_type is None or mine is not state) and is_plain(mine)
        if plain and type(back) is type(state) and mine == theirs:
            return  # fast path for almost every state; a full walk is ten times slower
        difference = find_difference(state, back)
        if difference is not None:
            next_step = _NEXT_STEP
            if self.state_type is None and not isinstance(state, _PLAIN):
                kind = type(state).__qualname__
                next_step = f"give state_type={kind}, or annotate the factory with -> {kind}"
            raise CodecError(f"the state came back different; {next_step}: {difference}")
        unplain = find_unplain(state) if self.state_type is None else None
        if unplain is not None:
            raise CodecError(f"the state is not plain data; {_NEXT_STEP}: {unplain}")


def _is_model(wanted: Any) -> bool:
    """Return True for a class like `pydantic.BaseModel`, which is not imported for this."""
    named = ("model_dump", "model_validate")
    return isinstance(wanted, type) and all(callable(getattr(wanted, n, None)) for n in named)


def _dump(value: Any) -> Any:
    dump = getattr(type(value), "__floodline_dump__", None)
    if dump is None and _is_model(type(value)):
        return value.model_dump(by_alias=True, round_trip=True)
    if dump is None:
        raise TypeError(f"a {type(value).__qualname__} has no encoding")
    _note(value)
    return dump(value)


class _Seen(threading.local):
    """What this thread has met while it encoded or decoded a state."""

    owners: list[Any] | None = None


_seen = _Seen()


def _note(value: Any) -> None:
    if _seen.owners is not None and hasattr(type(value), "__floodline_rows__"):
        _seen.owners.append(value)


def code_and_find(code: Callable[[Any], Any], what: Any) -> tuple[Any, list[Any]]:
    """Encode or decode a state, and return also its parts that have rows for its session's logs."""
    found: list[Any] = []
    return _finding(found, code, what), list({id(one): one for one in found}.values())


def find_parts(encode: Callable[[Any], Any], state: Any) -> list[Any]:
    """Return such parts alone, also of a state that cannot be encoded as far as it could be."""
    found: list[Any] = []
    with suppress(CodecError):
        _finding(found, encode, state)
    return list({id(one): one for one in found}.values())


def _finding(found: list[Any], code: Callable[[Any], Any], what: Any) -> Any:
    _seen.owners = found
    try:
        return code(what)
    finally:
        _seen.owners = None


def _load(wanted: Any, data: Any) -> Any:
    load = getattr(wanted, "__floodline_load__", None)
    if load is not None:
        loaded = load(data)
        _note(loaded)
        return loaded
    if _is_model(wanted):
        return wanted.model_validate(data, strict=False)  # msgpack has no sets, dates or UUIDs
    raise TypeError(f"{wanted!r} has no __floodline_load__")
