"""Chat histories of LlamaIndex in any floodline store, one row for each message.

memory = ChatMemoryBuffer.from_defaults(
    chat_store=FloodlineChatStore("sqlite:///chats.db"), chat_store_key="alice"
)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import uuid4

from floodline._units import Duration, Size, parse_count, parse_size
from floodline.adapters._extras import missing
from floodline.adapters._leased_values import acquire
from floodline.adapters._store_flows import Flow, FlowStore, ask
from floodline.adapters._upkeep import Upkeep
from floodline.stores import Append, Codec, Grant, NewRow, Row, RowStore, seal, unseal

try:
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.llms import ChatMessage, MessageRole
    from llama_index.core.storage.chat_store.base import BaseChatStore
except ImportError as error:
    raise missing("LlamaIndex", "llama-index", error) from error

__all__ = ["FloodlineChatStore"]

T = TypeVar("T")

CHATS_IN_MEMORY = 1000
WAIT = 30.0
PAGE = 500

_codec = Codec()


class FloodlineChatStore(BaseChatStore):
    """A chat store, blocking and async, that keeps the newest messages of each key.

    `store` is a URL or a store; without one the chats are in memory, the 1,000 changed last.
    `max_messages` and `max_bytes` are what a chat keeps; where older messages had to leave, it
    begins at a user message. `max_keys` is how many chats there are, and `retention` deletes those
    unchanged for that long; both are off by default for a store that you give.
    """

    _flows: FlowStore = PrivateAttr()
    _chats: _Chats = PrivateAttr()

    def __init__(
        self,
        store: RowStore | str | None = None,
        *,
        max_messages: int | None = 1000,
        max_bytes: Size | None = "8 MiB",
        max_keys: int | None = None,
        retention: Duration | None = None,
        name: str = "llama-index",
    ) -> None:
        super().__init__()
        if store is None and max_keys is None:
            max_keys = CHATS_IN_MEMORY
        self._flows = FlowStore(store)
        upkeep = Upkeep(name, most=max_keys, retention=retention, what="max_keys")
        self._chats = _Chats(name, max_messages, max_bytes, upkeep)

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex writes into what it serializes."""
        return "FloodlineChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace all messages of a chat, or none."""
        self._flows.run(self._chats.replace(key, messages))

    def get_messages(self, key: str) -> list[ChatMessage]:
        """Return the messages of a chat, none if it is not there."""
        return self._flows.run(self._chats.messages(key))

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Append a message; it is saved when this returns."""
        self._flows.run(self._chats.append(key, message))

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Delete a chat and return its messages, None if it is not there."""
        return self._flows.run(self._chats.delete(key))

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete one message and return it, None if it is not there."""
        return self._flows.run(self._chats.delete_one(key, idx))

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Delete the newest message and return it, None if there is none."""
        return self._flows.run(self._chats.delete_one(key, -1))

    def get_keys(self) -> list[str]:
        """Return the keys of all chats."""
        return self._flows.run(self._chats.keys())

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """See `set_messages`."""
        await self._flows.finish(self._chats.replace(key, messages))

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        """See `get_messages`."""
        return await self._flows.arun(self._chats.messages(key))

    async def async_add_message(self, key: str, message: ChatMessage) -> None:
        """See `add_message`."""
        await self._flows.finish(self._chats.append(key, message))

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        """See `delete_messages`."""
        return await self._flows.finish(self._chats.delete(key))

    async def adelete_message(self, key: str, idx: int) -> ChatMessage | None:
        """See `delete_message`."""
        return await self._flows.finish(self._chats.delete_one(key, idx))

    async def adelete_last_message(self, key: str) -> ChatMessage | None:
        """See `delete_last_message`."""
        return await self._flows.finish(self._chats.delete_one(key, -1))

    async def aget_keys(self) -> list[str]:
        """See `get_keys`."""
        return await self._flows.arun(self._chats.keys())

    def close(self) -> None:
        """Close the store, unless it was given as an object."""
        self._flows.close()


class _Chats:
    """The flows: a chat is a session of the store, and a message a row of its current log.

    The envelope names that log. To replace all messages, the new ones are written into
    another log, which the same save makes the current one.
    """

    def __init__(
        self, name: str, max_messages: int | None, max_bytes: Size | None, upkeep: Upkeep
    ) -> None:
        self._name = name
        self._max_messages = (
            None if max_messages is None else parse_count(max_messages, "max_messages")
        )
        self._max_bytes = None if max_bytes is None else parse_size(max_bytes, "max_bytes")
        self._upkeep = upkeep

    def messages(self, key: str) -> Flow[list[ChatMessage]]:
        log = yield from self._current(key)
        while log is not None:
            rows = yield from self._rows(key, log)
            now = yield from self._current(key)
            if now == log:
                return [_read(row) for row in rows]
            log = now  # other messages took the place of those that were being read
        return []

    def append(self, key: str, message: ChatMessage) -> Flow[None]:
        def save(grant: Grant) -> Flow[None]:
            yield from self._save(key, grant, _log_of(grant.envelope) or _log(0), [message])

        yield from self._hold(key, save)
        yield from self._upkeep.wrote()

    def replace(self, key: str, messages: Sequence[ChatMessage]) -> Flow[None]:
        def save(grant: Grant) -> Flow[None]:
            current = _log_of(grant.envelope)
            log = _log(0 if current is None else int(current[1:]) + 1)
            yield from self._save(key, grant, log, messages)
            for one in (yield from ask("logs", self._name, key)):
                if one.log < log:  # not one that came after ours meanwhile
                    yield from ask("delete_rows", self._name, key, one.log)

        yield from self._hold(key, save)
        yield from self._upkeep.wrote()

    def delete(self, key: str) -> Flow[list[ChatMessage] | None]:
        def delete(grant: Grant) -> Flow[list[ChatMessage] | None]:
            log = _log_of(grant.envelope)
            rows = [] if log is None else (yield from self._rows(key, log))
            if not grant.version:
                yield from ask("release", self._name, key, grant.fence)
                return None
            yield from ask("delete", self._name, key, fence=grant.fence)
            return [_read(row) for row in rows]

        return (yield from self._hold(key, delete))

    def delete_one(self, key: str, index: int) -> Flow[ChatMessage | None]:
        def delete(grant: Grant) -> Flow[ChatMessage | None]:
            log = _log_of(grant.envelope)
            rows = [] if log is None else (yield from self._rows(key, log))
            found = rows[index] if log and -len(rows) <= index < len(rows) else None
            if found is not None:
                terms = {"keys": [found.key], "fence": grant.fence}
                yield from ask("delete_rows", self._name, key, log, **terms)
            yield from ask("release", self._name, key, grant.fence)
            return None if found is None else _read(found)

        return (yield from self._hold(key, delete))

    def keys(self) -> Flow[list[str]]:
        found: list[str] = []
        after = ""
        while page := (yield from ask("ids", self._name, after=after, limit=PAGE)):
            found += page
            after = page[-1]
        return found

    def _hold(self, key: str, work: Callable[[Grant], Flow[T]]) -> Flow[T]:
        grant = yield from acquire(self._name, key, WAIT)
        try:
            return (yield from work(grant))
        except Exception:
            yield from ask("release", self._name, key, grant.fence)
            raise

    def _current(self, key: str) -> Flow[str | None]:
        record = yield from ask("load", self._name, key)
        return None if record is None else _log_of(record.envelope)

    def _save(
        self, key: str, grant: Grant, log: str, messages: Sequence[ChatMessage]
    ) -> Flow[None]:
        rows = [NewRow(uuid4().hex, _encode(message)) for message in messages]
        most = self._max_bytes
        if most is not None:  # one message above it stays alone
            most = max([most, *(len(row.data) for row in rows)])
        append = Append(log, rows, max_rows=self._max_messages, max_bytes=most, when_full="drop")
        envelope = seal(_codec.encode({"log": log}), version=grant.version + 1)
        yield from ask(
            "save",
            self._name,
            key,
            envelope,
            fence=grant.fence,
            version=grant.version,
            write_id=uuid4().hex,
            release=True,
            rows=[append] if rows else [],
        )

    def _rows(self, key: str, log: str) -> Flow[list[Row]]:
        found: list[Row] = []
        after: str | int | None = None
        while page := (yield from ask("rows", self._name, key, log, after=after, limit=PAGE)):
            found += page
            after = page[-1].number
        return self._from_a_user_message(found)

    def _from_a_user_message(self, rows: list[Row]) -> list[Row]:
        """Leave out the rest of a turn whose beginning had to leave."""
        if not rows or rows[0].number == 0:
            return rows
        full = self._max_messages is not None and len(rows) >= self._max_messages
        size = sum(len(row.data) for row in rows)
        full = full or (self._max_bytes is not None and size >= self._max_bytes // 2)
        starts = (MessageRole.USER, MessageRole.SYSTEM)
        first = next((n for n, row in enumerate(rows) if _read(row).role in starts), 0)
        return rows[first:] if full else rows


def _log(number: int) -> str:
    return f"m{number:012}"


def _log_of(envelope: bytes | None) -> str | None:
    return _codec.decode(unseal(envelope))["log"] if envelope else None


def _encode(message: ChatMessage) -> bytes:
    return message.model_dump_json().encode()


def _read(row: Row) -> ChatMessage:
    return ChatMessage.model_validate_json(row.data)
