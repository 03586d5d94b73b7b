from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodline.errors import UnreadableRecord
from floodline.stores import seal, unseal


@given(st.binary(), st.integers(0, 2**64 - 1))
def test_a_payload_comes_back(payload: bytes, version: int) -> None:
    assert unseal(seal(payload, version=version)) == payload


@given(st.binary(max_size=200), st.data())
def test_a_flipped_bit_anywhere_is_noticed(payload: bytes, data: st.DataObject) -> None:
    envelope = bytearray(seal(payload, version=3))
    bit = data.draw(st.integers(0, len(envelope) * 8 - 1))
    envelope[bit // 8] ^= 1 << bit % 8
    with pytest.raises(UnreadableRecord):
        unseal(bytes(envelope))


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_record_cut_short_or_prolonged_is_noticed(payload: bytes, data: st.DataObject) -> None:
    envelope = seal(payload, version=3)
    length = data.draw(st.integers(0, len(envelope) - 1))
    with pytest.raises(UnreadableRecord, match="bytes"):
        unseal(envelope[:length])
    with pytest.raises(UnreadableRecord, match="its header says"):
        unseal(envelope + b"\0")


def forge(*, magic: bytes = b"\xf1ood", schema: int = 1, codec: int = 1) -> bytes:
    header = struct.pack(">4sBBQQ", magic, schema, codec, 1, 1)
    return header + struct.pack(">I", zlib.crc32(b"x", zlib.crc32(header))) + b"x"


@pytest.mark.parametrize(
    ("envelope", "why"),
    [
        (b"", "0 bytes, fewer than its header"),
        (forge(magic=b"PKZZ"), "begins with b'PKZZ'"),
        (forge(schema=2), "schema 2; this floodline reads 1"),
        (forge(codec=9), "codec 9; this floodline reads 1"),
        (seal(b"x", version=1)[:-1] + b"y", "checksum"),
    ],
)
def test_the_error_says_what_is_wrong(envelope: bytes, why: str) -> None:
    with pytest.raises(UnreadableRecord, match=why) as unreadable:
        unseal(envelope)
    assert isinstance(unreadable.value, ValueError)


def test_a_forged_record_of_the_right_kind_is_read() -> None:
    assert unseal(forge()) == b"x"
