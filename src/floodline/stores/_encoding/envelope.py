"""The envelope around the payload of every record: schema, codec, version, length, checksum.

The checksum covers the header and the payload, so that a single flipped bit is noticed. All numbers
are big-endian; the magic begins with a byte that no text contains.
"""

from __future__ import annotations

import struct
import zlib

from floodline.errors import DamagedRecord, UnreadableRecord
from floodline.stores._encoding.tags import is_wrapped

_MAGIC = b"\xf1ood"
_SCHEMA = 1
PLAIN, TAGGED, LEARNED = 1, 2, 3  # what reads the payload: msgpack, its tags, a type not named
_HEADER = struct.Struct(">4sBBQQ")
_CHECKSUM = struct.Struct(">I")
_START = _HEADER.size + _CHECKSUM.size


def seal(payload: bytes, *, version: int, codec: int = PLAIN) -> bytes:
    """Wrap a payload; `version` is the writer's count, for people who look at lost records.

    `codec` is for readers that know less: 0.1 reads `PLAIN` alone. A payload with tags is noted.
    """
    if codec == PLAIN and is_wrapped(payload):
        codec = TAGGED
    header = _HEADER.pack(_MAGIC, _SCHEMA, codec, version, len(payload))
    checksum = zlib.crc32(payload, zlib.crc32(header))
    return b"".join((header, _CHECKSUM.pack(checksum), payload))


def unseal(envelope: bytes) -> bytes:
    """Return the payload; `UnreadableRecord` says what is wrong with the envelope."""
    if len(envelope) < _START:
        raise DamagedRecord(f"the record has {len(envelope)} bytes, fewer than its header")
    magic, schema, codec, _, length = _HEADER.unpack_from(envelope)
    if magic != _MAGIC:
        raise DamagedRecord(f"the record begins with {magic!r}, not with {_MAGIC!r}")
    payload = envelope[_START:]
    if length != len(payload):
        raise DamagedRecord(f"the record holds {len(payload)} bytes, but its header says {length}")
    (checksum,) = _CHECKSUM.unpack_from(envelope, _HEADER.size)
    if checksum != zlib.crc32(payload, zlib.crc32(envelope[: _HEADER.size])):
        raise DamagedRecord("the checksum of the record does not match its bytes")
    if schema != _SCHEMA:
        raise UnreadableRecord(f"the record has schema {schema}; this floodline reads {_SCHEMA}")
    if codec not in (PLAIN, TAGGED, LEARNED):
        known = f"{PLAIN} to {LEARNED}"
        raise UnreadableRecord(f"the record has codec {codec}; this floodline reads {known}")
    return payload


def codec_of(envelope: bytes) -> int:
    """Return the codec of an envelope that `unseal` has read."""
    codec: int = _HEADER.unpack_from(envelope)[2]
    return codec
