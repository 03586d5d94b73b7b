"""Reading and writing conversations of Pydantic AI as sessions of a store."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterable, Sequence

import msgspec

from floodline.adapters._extras import missing
from floodline.adapters._holding import all_rows, hold, ids
from floodline.adapters._pydantic_ai.entries import (
    ENTRIES,
    Entry,
    history_of,
    pack,
    read_entry,
    surplus,
)
from floodline.adapters._store_flows import Flow, ask
from floodline.adapters._upkeep import Upkeep
from floodline.bounded import BoundedMap
from floodline.errors import SessionConflict
from floodline.stores import Append, Grant, NewRow, seal, unseal

try:
    from pydantic import TypeAdapter
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
    )
except ImportError as error:
    raise missing("Pydantic AI", "pydantic-ai", error) from error

HOMES = 1000  # entries whose conversation is remembered

_record = TypeAdapter(ConversationRecord)


class Conversations:
    """The flows of the conversations under one name."""

    def __init__(self, name: str, keep: int | None, upkeep: Upkeep) -> None:
        self._name, self._keep, self._upkeep = name, keep, upkeep
        self._homes: BoundedMap[str, str] = BoundedMap(HOMES, name=f"{name} entries")

    def load(self, id: str) -> Flow[ConversationRecord | None]:
        """Return the record of a conversation."""
        record = yield from ask("load", self._name, id)
        return None if record is None else self._decode(id, record.envelope)

    def load_all(self, scope: str | None) -> Flow[list[ConversationRecord]]:
        """Return the records of a scope, or all."""
        found = []
        for one in (yield from ids(self._name)):
            record = yield from self.load(one)
            if record is not None and scope in (None, record.scope):
                found.append(record)
        return found

    def _decode(self, id: str, envelope: bytes) -> ConversationRecord:
        text = msgspec.msgpack.decode(unseal(envelope), type=str)
        record = _record.validate_json(text)
        self._remember(id, [record.head_id, *record.branches])
        return record

    def _remember(self, id: str, entries: Iterable[str | None]) -> None:
        for one in entries:
            if one is not None:
                self._homes[one] = id

    def home(
        self, entry: str, guess: str | None = None, *, search: bool = True
    ) -> Flow[tuple[str, Entry]]:
        """Return the conversation that has an entry, and the entry; `KeyError` if none has."""
        likely = [one for one in (self._homes.get(entry), guess) if one is not None]
        for one in dict.fromkeys(likely):
            found = yield from self._get(one, entry)
            if found is not None:
                return one, found
        for one in (yield from ids(self._name)) if search else ():
            found = yield from self._get(one, entry)
            if found is not None:
                self._remember(one, [entry])
                return one, found
        raise KeyError(entry)

    def _get(self, id: str, entry: str) -> Flow[Entry | None]:
        found = yield from ask("get_rows", self._name, id, ENTRIES, [entry])
        return read_entry(found[entry].data) if entry in found else None

    def history(self, head: str, most: int | None, *, turns: bool) -> Flow[list[tuple[str, Entry]]]:
        """Return the entries up to `head`; see `history_of`."""
        home, _ = yield from self.home(head)
        return (yield from history_of(self._name, home, head, most, turns=turns))

    def write(
        self, record: ConversationRecord, new: Sequence[ConversationEntry], expected: str | None
    ) -> Flow[None]:
        """Write a record and entries over the revision that is expected."""
        name, place = self._name, record.conversation_id
        entries = {one.id: pack(one) for one in new}

        def work(grant: Grant) -> Flow[None]:
            stored = self._decode(place, grant.envelope) if grant.envelope else None
            if (None if stored is None else stored.revision) != expected:
                raise ConversationConflict(place)
            borrowed = yield from self._borrow(record, stored, entries)
            written, gone = record, list[str]()
            if self._keep is not None:
                count = (yield from ask("count_rows", name, place, ENTRIES)) + len(entries)
                if count + len(borrowed) > self._keep + self._keep // 8:
                    old = yield from all_rows(name, place, ENTRIES)
                    line = {row.key: read_entry(row.data).parent for row in old}
                    line |= {key: one.parent for key, one in (borrowed | entries).items()}
                    branches, gone = surplus(line, record.head_id, record.branches, self._keep)
                    written = dataclasses.replace(record, branches=branches)
            text = _record.dump_json(written).decode()
            envelope = seal(msgspec.msgpack.encode(text), version=grant.version + 1)
            rows = [
                NewRow(key, msgspec.msgpack.encode(one))
                for key, one in (borrowed | entries).items()
            ]
            yield from ask(
                "save",
                *(name, place, envelope),
                fence=grant.fence,
                version=grant.version,
                write_id=uuid.uuid4().hex,
                release=not gone,
                rows=[Append(ENTRIES, rows, when_taken="replace")] if rows else [],
            )
            if gone:
                yield from ask("delete_rows", name, place, ENTRIES, keys=gone, fence=grant.fence)
                yield from ask("release", name, place, grant.fence)
            self._remember(place, [record.head_id])

        try:
            yield from hold(name, place, work)
        except SessionConflict as error:
            raise ConversationConflict(place) from error
        yield from self._upkeep.wrote()

    def _borrow(
        self,
        record: ConversationRecord,
        stored: ConversationRecord | None,
        entries: dict[str, Entry],
    ) -> Flow[dict[str, Entry]]:
        """Return copies of the entries that a fork takes from another conversation.

        With them a conversation is complete, so that deleting one never harms another.
        """
        head = record.head_id
        root = next(iter(entries.values())).parent if head in entries else head
        if root is None or (stored is not None and root == stored.head_id):
            return {}
        if (yield from self._get(record.conversation_id, root)) is not None:
            return {}
        try:
            home, _ = yield from self.home(root, record.forked_from, search=root == head)
        except KeyError:
            if root == head:
                raise ConversationConflict(record.conversation_id) from None
            return {}  # no longer kept: the history begins with the new entries
        return dict((yield from history_of(self._name, home, root, None, turns=False)))

    def delete(self, id: str, expected: str) -> Flow[None]:
        """Delete the conversation with the revision that is expected."""

        def work(grant: Grant) -> Flow[None]:
            stored = self._decode(id, grant.envelope) if grant.envelope else None
            if stored is None or stored.revision != expected:
                raise ConversationConflict(id)
            yield from ask("delete", self._name, id, fence=grant.fence)

        yield from hold(self._name, id, work)
