"""Conversations of Pydantic AI in any floodline store.

    store = FloodlineConversationStore("sqlite:///chats.db")
    chat = await store.load(id) or Conversation(conversation_id=id)
    await store.save(await agent.run(text, conversation=chat))

A conversation is a session of the store: its record is the envelope, each entry a row of its log.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from floodline._units import Duration, parse_count
from floodline.adapters._extras import missing
from floodline.adapters._holding import ROWS_IN_MEMORY, SESSIONS_IN_MEMORY, limit_of
from floodline.adapters._pydantic_ai.entries import unpack
from floodline.adapters._pydantic_ai.flows import Conversations
from floodline.adapters._store_flows import FlowStore
from floodline.adapters._upkeep import Upkeep
from floodline.stores import RowStore

try:
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import (
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.run import AgentRunResult
except ImportError as error:
    raise missing("Pydantic AI", "pydantic-ai", error) from error

__all__ = ["FloodlineConversationStore"]

_whole: ContextVar[bool] = ContextVar("floodline_pydantic_ai_whole", default=False)


class FloodlineConversationStore(ConversationStore):
    """Conversations in any store, for several workers: a save over a newer one is a conflict.

    `store` is a URL or a store; without one the last 1,000 conversations are in memory. `load`
    returns the newest `max_messages` (200; None: all), from the beginning of a turn; with `limit`,
    as many as asked for. `keep` is how many messages of a conversation stay stored: all in a store
    that you give, 1,000 in memory. `retention` deletes conversations unused for that long, and
    `max_conversations` the least recently used above that number.
    """

    def __init__(
        self,
        store: RowStore | str | None = None,
        *,
        max_messages: int | None = 200,
        keep: int | None = None,
        retention: Duration | None = None,
        max_conversations: int | None = None,
        name: str = "pydantic-ai",
    ) -> None:
        most = None if max_messages is None else parse_count(max_messages, "max_messages")
        self._max_messages = most
        kept = limit_of(store, keep, ROWS_IN_MEMORY)
        chats = limit_of(store, max_conversations, SESSIONS_IN_MEMORY)
        upkeep = Upkeep(name, most=chats, retention=retention, what="max_conversations")
        self._flows = Conversations(
            name, None if kept is None else parse_count(kept, "keep"), upkeep
        )
        self._store = FlowStore(store)

    def close(self) -> None:
        """Close the store, unless it was given as an object."""
        self._store.close()

    async def save(
        self, conversation: Conversation | AgentRunResult[Any], *, scope: str | None = None
    ) -> list[ConversationEntry]:
        """Save a conversation; see `ConversationStore.save`."""
        whole = _whole.set(True)  # what it compares with must not be cut
        try:
            return await super().save(conversation, scope=scope)
        finally:
            _whole.reset(whole)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation, None if there is none."""
        return await self._store.arun(self._flows.load(conversation_id))

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Return records, the last saved first; this reads all of them."""
        found = await self._store.arun(self._flows.load_all(scope))
        found.sort(key=lambda record: record.updated_at, reverse=True)
        return found[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Write a record and its new entries in one transaction, or raise a conflict."""
        await self._store.finish(self._flows.write(record, new_entries, expected_revision))

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation with all its messages; forks have copies of their own."""
        await self._store.finish(self._flows.delete(conversation_id, expected_revision))

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return an entry; one of an unknown conversation is looked for in all of them."""
        home = await self._store.arun(self._flows.home(entry_id))
        return unpack(entry_id, home[1])

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """Return the entries up to `head_id`: `limit`, or the newest `max_messages`."""
        if head_id is None or limit == 0:
            return []
        turns = limit is None and not _whole.get()
        most = self._max_messages if turns else limit
        found = await self._store.arun(self._flows.history(head_id, most, turns=turns))
        return [unpack(*one) for one in found]
