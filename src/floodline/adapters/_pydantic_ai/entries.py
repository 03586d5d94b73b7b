"""How the entries of a Pydantic AI conversation are laid out in its row log, and which stay."""

from __future__ import annotations

from typing import Any

import msgspec

from floodline.adapters._extras import missing
from floodline.adapters._holding import PAGE, TURN
from floodline.adapters._store_flows import Flow, ask
from floodline.stores import Row

try:
    from pydantic_ai.conversation_store import ConversationEntry
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        RetryPromptPart,
        ToolReturnPart,
        UserPromptPart,
    )
except ImportError as error:
    raise missing("Pydantic AI", "pydantic-ai", error) from error

ENTRIES = "entries"


class Entry(msgspec.Struct, array_like=True):
    """The row of an entry: the entry before it, and its message as JSON."""

    parent: str | None
    kind: Any
    begins_turn: bool
    message: bytes


read_entry = msgspec.msgpack.Decoder(Entry).decode


def pack(entry: ConversationEntry) -> Entry:
    """Return the row of an entry."""
    message = ModelMessagesTypeAdapter.dump_json([entry.message])
    return Entry(entry.parent_id, entry.kind, _begins_turn(entry.message), message)


def unpack(id: str, entry: Entry) -> ConversationEntry:
    """Return the entry of a row."""
    (message,) = ModelMessagesTypeAdapter.validate_json(entry.message)
    return ConversationEntry(id=id, parent_id=entry.parent, message=message, kind=entry.kind)


def _begins_turn(message: ModelMessage) -> bool:
    """Return True for a question of the user that answers no tool call."""
    if not isinstance(message, ModelRequest):
        return False
    answers = any(isinstance(part, ToolReturnPart | RetryPromptPart) for part in message.parts)
    return not answers and any(isinstance(part, UserPromptPart) for part in message.parts)


def history_of(
    name: str, id: str, head: str, most: int | None, *, turns: bool
) -> Flow[list[tuple[str, Entry]]]:
    """Return at most `most` entries up to `head`, in order.

    With `turns` they begin with a turn, and a last turn that is longer is whole, up to ten times
    as many.
    """
    found: list[tuple[str, Entry]] = []
    seen: dict[str, Entry] = {}
    start = 0
    before: int | None = None
    at: str | None = head
    while at is not None:
        while at not in seen:
            terms = {"before": before, "limit": PAGE, "newest_first": True}
            page: list[Row] = yield from ask("rows", name, id, ENTRIES, **terms)
            if not page:
                return found[::-1]  # what came before is not kept
            before = page[-1].number
            seen |= {row.key: read_entry(row.data) for row in page}
        if most is not None and len(found) >= most and (start or not turns):
            break
        if most is not None and len(found) >= TURN * most:
            break
        found.append((at, seen.pop(at)))
        if found[-1][1].begins_turn:
            start = len(found)
        at = found[-1][1].parent
    if turns and at is not None:
        return found[(start or most or 0) - 1 :: -1]
    return found[::-1]


def surplus(
    parents: dict[str, str | None], head: str | None, branches: list[str], keep: int
) -> tuple[list[str], list[str]]:
    """Return the branches that stay, and the entries that go, so that `keep` are left.

    The newest of the current history stay first, then those of the branches that were left last.
    """
    stay: set[str] = set()
    kept: list[str] = []
    for tip in [head, *reversed(branches)]:
        at = tip
        while at is not None and at in parents and at not in stay and len(stay) < keep:
            stay.add(at)
            at = parents[at]
        if tip in stay:
            kept.append(str(tip))
    return [one for one in branches if one in kept], [one for one in parents if one not in stay]
