"""What stands around the payload of every record: schema, codec, version, length, checksum.

The checksum covers the header and the payload, so that one flipped bit anywhere is noticed. All
numbers are big-endian; the magic begins with a byte that no text has.
"""

from __future__ import annotations

import struct
import zlib

from floodline.errors import UnreadableRecord

_MAGIC = b"\xf1ood"
_SCHEMA = 1
_MSGPACK = 1
_HEADER = struct.Struct(">4sBBQQ")
_CHECKSUM = struct.Struct(">I")
_START = _HEADER.size + _CHECKSUM.size


def seal(payload: bytes, *, version: int) -> bytes:
    """Wrap a payload; `version` is the writer's count, for people who look at lost records."""
    header = _HEADER.pack(_MAGIC, _SCHEMA, _MSGPACK, version, len(payload))
    checksum = zlib.crc32(payload, zlib.crc32(header))
    return b"".join((header, _CHECKSUM.pack(checksum), payload))


def unseal(envelope: bytes) -> bytes:
    """Return the payload; `UnreadableRecord` says what is wrong with the envelope."""
    if len(envelope) < _START:
        raise UnreadableRecord(f"the record has {len(envelope)} bytes, fewer than its header")
    magic, schema, codec, _, length = _HEADER.unpack_from(envelope)
    if magic != _MAGIC:
        raise UnreadableRecord(f"the record begins with {magic!r}, not with {_MAGIC!r}")
    payload = envelope[_START:]
    if length != len(payload):
        raise UnreadableRecord(f"the record holds {len(payload)} bytes and announces {length}")
    (checksum,) = _CHECKSUM.unpack_from(envelope, _HEADER.size)
    if checksum != zlib.crc32(payload, zlib.crc32(envelope[: _HEADER.size])):
        raise UnreadableRecord("the checksum of the record does not fit its bytes")
    if schema != _SCHEMA:
        raise UnreadableRecord(f"the record has schema {schema}; this floodline reads {_SCHEMA}")
    if codec != _MSGPACK:
        raise UnreadableRecord(f"the record has codec {codec}; this floodline reads {_MSGPACK}")
    return payload
