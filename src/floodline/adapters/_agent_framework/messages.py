"""Messages of the Agent Framework as rows of a log, each written once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import msgspec

from floodline.adapters._extras import missing
from floodline.adapters._holding import all_rows, delete, hold, newest_turns
from floodline.adapters._store_flows import Flow, ask
from floodline.adapters._upkeep import Upkeep
from floodline.stores import Append, Grant, NewRow, Row, seal

try:
    from agent_framework import Message
except ImportError as error:
    raise missing("the Agent Framework", "agent-framework", error) from error

MESSAGES = "messages"

_ANSWERS = {"function_result", "function_approval_response"}
_EMPTY = msgspec.msgpack.encode({})


class StoredMessage(msgspec.Struct, array_like=True, frozen=True):
    """The row of a message: whether a turn begins with it, its id or else its content, its JSON."""

    begins_turn: bool
    identity: str
    message: str
    has_id: bool = False


read_message = msgspec.msgpack.Decoder(StoredMessage).decode


def pack(message: Message) -> StoredMessage:
    """Return the row of a message."""
    plain = message.to_dict()
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    contents: list[dict[str, Any]] = plain.get("contents", [])
    answers = any(one.get("type") in _ANSWERS for one in contents)
    named = message.message_id
    said = named or json.dumps([str(message.role), contents], sort_keys=True)
    return StoredMessage(message.role == "user" and not answers, said, text, bool(named))


def unpack(row: Row) -> Message:
    """Return the message of a row."""
    return Message.from_dict(json.loads(read_message(row.data).message))


class Histories:
    """The flows of the histories under one name."""

    def __init__(self, name: str, keep: int | None, upkeep: Upkeep) -> None:
        self._name, self._keep, self._upkeep = name, keep, upkeep

    def newest(self, id: str, most: int | None) -> Flow[list[Row]]:
        """Return the newest messages, at most `most`, from the beginning of a turn."""
        if most is None:
            return (yield from all_rows(self._name, id, MESSAGES))
        return (yield from newest_turns(self._name, id, MESSAGES, most, _begins_turn))

    def append(self, id: str, messages: Sequence[StoredMessage]) -> Flow[None]:
        """Append those messages that are not a repetition of what is stored."""

        def work(grant: Grant) -> Flow[None]:
            # one more than can be repeated, so that a part is not taken for the whole
            terms = {"limit": len(messages) + 1, "newest_first": True}
            rows: list[Row] = yield from ask("rows", self._name, id, MESSAGES, **terms)
            new = unseen([read_message(row.data) for row in reversed(rows)], messages)
            if not new:
                yield from ask("release", self._name, id, grant.fence)
                return
            added = [NewRow(uuid4().hex, msgspec.msgpack.encode(one)) for one in new]
            yield from ask(
                "save",
                self._name,
                id,
                seal(_EMPTY, version=grant.version + 1),
                fence=grant.fence,
                version=grant.version,
                write_id=uuid4().hex,
                release=True,
                rows=[Append(MESSAGES, added, max_rows=self._keep, when_full="drop")],
            )

        yield from hold(self._name, id, work)
        yield from self._upkeep.wrote()

    def delete(self, id: str) -> Flow[bool]:
        """Delete a history."""
        return (yield from delete(self._name, id))


def unseen(
    stored: Sequence[StoredMessage], incoming: Sequence[StoredMessage]
) -> Sequence[StoredMessage]:
    """Return what is new of `incoming`, which may repeat the end of what is stored.

    A client that sends the whole conversation again repeats all of it, in front or after messages
    that were never stored. One question that a user asks twice is not a repetition.
    """
    had = [one.identity for one in stored]
    says = [one.identity for one in incoming]
    for start in range(len(says) - len(had) + 1 if had else 0):
        if says[start : start + len(had)] == had and not (start == 0 and _asked_again(stored)):
            return incoming[start + len(had) :]
    for length in range(min(len(had), len(says)), 0, -1):
        if had[-length:] == says[:length] and not _asked_again(stored[-length:]):
            return incoming[length:]
    return incoming


def _asked_again(stored: Sequence[StoredMessage]) -> bool:
    """Return True if all that is repeated is one question, without an id that would identify it."""
    return len(stored) == 1 and stored[0].begins_turn and not stored[0].has_id


def _begins_turn(row: Row) -> bool:
    return read_message(row.data).begins_turn
