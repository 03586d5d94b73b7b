"""The row logs of a conversation: its items, its own record, and the keys of what was appended."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from floodline.adapters._store_flows import Flow, ask
from floodline.errors import SessionNotFound
from floodline.stores import Append, NewRow, Row

ITEMS, RECORD, KEYS = "items", "conversation", "idempotency"
MAX_KEYS = 1000  # remembered for each conversation; the oldest are forgotten
PAGE_BYTES = 4 << 20  # a page ends early above this; it has at least one item
FIRST_READ = 20
_RECORD_KEY = "record"


class ConversationRecord(msgspec.Struct, frozen=True):
    """What a conversation has besides items; `digest` is that of the request that created it."""

    created_at: int
    metadata: dict[str, str] = {}
    digest: str = ""


class RememberedKey(msgspec.Struct, frozen=True):
    """A key, the request it came with, and the items that this request appended."""

    digest: str
    items: list[str]


class Page(msgspec.Struct, frozen=True):
    """Rows in the order asked for."""

    rows: list[Row]
    has_more: bool


_encode = msgspec.json.Encoder().encode
_read_record = msgspec.json.Decoder(ConversationRecord).decode
_read_key = msgspec.json.Decoder(RememberedKey).decode


def digest_of(body: bytes) -> str:
    """Return what tells one request body from another."""
    return blake2b(body, digest_size=16).hexdigest()


def key_of(text: str) -> str:
    """Return the row key of an `Idempotency-Key`, however long or strange that is."""
    return blake2b(text.encode(), digest_size=24).hexdigest()


def append_record(record: ConversationRecord) -> Append:
    """Return the write of a conversation's record, over the old one."""
    return Append(RECORD, [NewRow(_RECORD_KEY, _encode(record))], when_taken="replace")


def append_key(key: str, remembered: RememberedKey) -> Append:
    """Return the write of a key."""
    row = NewRow(key, _encode(remembered))
    return Append(KEYS, [row], max_rows=MAX_KEYS, when_full="drop", when_taken="keep")


def read_record(name: str, id: str) -> Flow[ConversationRecord]:
    """Return the record of a conversation; raise `SessionNotFound` if there is no session."""
    found = yield from ask("get_rows", name, id, RECORD, [_RECORD_KEY])
    if found:
        return _read_record(found[_RECORD_KEY].data)
    if (yield from ask("load", name, id)) is None:
        raise SessionNotFound(f"there is no session {id!r} of {name!r}")
    # begun by other code than the service
    first = yield from ask("rows", name, id, ITEMS, limit=1)
    return ConversationRecord(int(first[0].at) if first else 0)


def read_key(name: str, id: str, key: str) -> Flow[RememberedKey | None]:
    """Return what is remembered of a key."""
    found = yield from ask("get_rows", name, id, KEYS, [key])
    return _read_key(found[key].data) if found else None


def read_remembered(data: bytes) -> RememberedKey:
    """Read a key that was not written yet."""
    return _read_key(data)


def read_page(name: str, id: str, *, after: str | None, limit: int, newest: bool) -> Flow[Page]:
    """Return at most `limit` items, fewer if they are large, in one direction from `after`."""
    rows: list[Row] = []
    size = 0
    while len(rows) <= limit:
        # a few at first: nobody knows yet how large they are
        wanted = min(limit + 1 - len(rows), FIRST_READ if not rows else _fitting(rows, size))
        edge = rows[-1].key if rows else after
        places = {"before" if newest else "after": edge}
        more = yield from ask("rows", name, id, ITEMS, limit=wanted, newest_first=newest, **places)
        for row in more:
            if rows and size + len(row.data) > PAGE_BYTES:
                return Page(rows, True)
            rows.append(row)
            size += len(row.data)
        if len(more) < wanted:
            break
    return Page(rows[:limit], len(rows) > limit)


def _fitting(rows: list[Row], size: int) -> int:
    return max(1, (PAGE_BYTES - size) * len(rows) // max(1, size))
