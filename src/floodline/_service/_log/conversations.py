"""What a client can do with conversations: each request is one flow, each write one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from floodline._service._items.accept import Accepted
from floodline._service._log.flows import Hold, Keeping, close, save
from floodline._service._log.provider_shapes import RESPONSES, translated
from floodline._service._log.rows import (
    ITEMS,
    KEYS,
    ConversationRecord,
    Page,
    RememberedKey,
    append_key,
    append_record,
    read_key,
    read_page,
    read_record,
    read_remembered,
)
from floodline._service._refusals import Refusal, conflict, not_found, too_large
from floodline.adapters._store_flows import Flow, ask
from floodline.bounded import BoundedMap
from floodline.errors import ConfigError, MalformedMessage, SessionNotFound, UnreadableRecord
from floodline.history import Conversation
from floodline.history._copies import attached
from floodline.stores import Append, NewRow, Row

T = TypeVar("T")
BUSY_WAIT = 2.0
COUNTS = 100  # of items, remembered so that not every append has to ask


@dataclass(slots=True, frozen=True)
class Once:
    """What makes an append recognisable: the row key of its key, and the digest of its body."""

    key: str
    digest: str


@dataclass(slots=True, frozen=True)
class Appended:
    """The items of an append as they are stored, and how many of them are new."""

    data: list[bytes]
    ids: list[str]
    new: int


class Conversations:
    """The conversations of one tenant."""

    def __init__(
        self,
        keeping: Keeping,
        *,
        max_items: int,
        max_history: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.keeping, self.name = keeping, keeping.name
        self.max_items, self.max_history, self._clock = max_items, max_history, clock
        self._counts: BoundedMap[str, tuple[int, int]] = BoundedMap(COUNTS, name="item counts")

    async def create(
        self, id: str, metadata: dict[str, str], items: Sequence[Accepted], digest: str = ""
    ) -> ConversationRecord:
        """Begin a conversation; with a digest, one that exists already is the same request."""
        record = ConversationRecord(int(self._clock()), metadata, digest)

        def work(hold: Hold) -> Flow[ConversationRecord]:
            if digest:
                try:
                    found = yield from read_record(self.name, id)
                except SessionNotFound:
                    pass
                else:
                    if found.digest != digest:
                        raise _key_reused()
                    return found
            try:
                yield from self._take_in(hold, items)
            except Exception:
                hold.discard()  # else an empty conversation would stay that nobody knows
                raise
            hold.append_rows(append_record(record))
            return record

        return await self._use(id, work, create=True)

    async def record(self, id: str) -> ConversationRecord:
        """Return what a conversation has besides items."""
        return await self.keeping.read(read_record(self.name, id))

    async def update(self, id: str, metadata: dict[str, str]) -> ConversationRecord:
        """Replace the metadata."""

        def work(hold: Hold) -> Flow[ConversationRecord]:
            old = yield from read_record(self.name, id)
            new = ConversationRecord(old.created_at, metadata, old.digest)
            hold.append_rows(append_record(new))
            return new

        return await self._use(id, work)

    async def delete(self, id: str) -> None:
        """Delete a conversation: its items, its window and its keys."""

        def work(_hold: Hold) -> Flow[None]:
            yield from close()

        try:  # in a hold, which is had within the time that clients wait, or not at all
            await self._use(id, work)
        except UnreadableRecord:
            await self.keeping.call("close", id)

    async def append(
        self, id: str, items: Sequence[Accepted], once: Once | None = None
    ) -> Appended:
        """Append items; what is known by its id or by the key is not appended again."""

        def work(hold: Hold) -> Flow[Appended]:
            if once is not None:
                known = yield from self._remembered(hold, once.key)
                if known is not None:
                    if known.digest != once.digest:
                        raise _key_reused()
                    return (yield from self._again(hold, known.items))
            done = yield from self._take_in(hold, items)
            if once is not None:
                hold.append_rows(append_key(once.key, RememberedKey(once.digest, done.ids)))
            return done

        return await self._use(id, work)

    async def page(self, id: str, *, after: str | None, limit: int, newest: bool) -> Page:
        """Return items from the log."""

        def flow() -> Flow[Page]:
            if after is None:
                page = yield from read_page(self.name, id, after=None, limit=limit, newest=newest)
                if page.rows:
                    return page
            yield from read_record(self.name, id)
            return (yield from read_page(self.name, id, after=after, limit=limit, newest=newest))

        return await self.keeping.read(flow())

    async def item(self, id: str, item: str) -> bytes:
        """Return one item as it was accepted."""

        def flow() -> Flow[bytes]:
            return (yield from self._row(id, item)).data

        return await self.keeping.read(flow())

    async def delete_item(self, id: str, item: str) -> ConversationRecord:
        """Delete an item from the log and from the window, which stays valid."""

        def work(hold: Hold) -> Flow[ConversationRecord]:
            yield from self._row(id, item)
            # the window first: after a crash in between the item is listed, and can be deleted
            self._forget(hold, item)
            yield from save()
            assert hold.entry is not None
            fence = hold.entry.fence
            yield from ask("delete_rows", self.name, id, ITEMS, keys=[item], fence=fence)
            return (yield from read_record(self.name, id))

        return await self._use(id, work)

    async def window(self, id: str, *, max_tokens: int | None, provider: str | None) -> Any:
        """Return what to send to a model: messages, system messages and their tokens."""

        def work(hold: Hold) -> Flow[Any]:
            yield from ()
            return _composed(self._chat(hold), max_tokens, provider)

        chat = await self.keeping.newest(id)
        if isinstance(chat, Conversation) and self._is_within(chat):
            return _composed(chat, max_tokens, provider)
        return await self._use(id, work)

    async def leave(self, id: str, how: str) -> None:
        """Complete or park a conversation that exists."""
        await self.record(id)
        await self.keeping.call(how, id)

    async def _use(self, id: str, work: Callable[[Hold], Flow[T]], *, create: bool = False) -> T:
        try:
            return await self.keeping.use(id, work, create=create, wait=BUSY_WAIT)
        except ConfigError as error:  # an id that no store can write
            raise error if create else not_found("conversation") from error

    def _row(self, id: str, item: str) -> Flow[Row]:
        yield from read_record(self.name, id)
        found = yield from ask("get_rows", self.name, id, ITEMS, [item])
        if not found:
            raise not_found("item")
        row: Row = found[item]
        return row

    def _take_in(self, hold: Hold, items: Sequence[Accepted]) -> Flow[Appended]:
        """Put new items into the window and have them written with the save."""
        named = [item.id for item in items if item.named]
        known: dict[str, bytes] = {}
        if named:
            found = yield from ask("get_rows", self.name, hold.id, ITEMS, named)
            known = {key: row.data for key, row in found.items()}
        waiting = _waiting(hold, ITEMS)
        known |= waiting
        new: dict[str, Accepted] = {}
        for item in items:
            old = new[item.id].data if item.id in new else known.get(item.id)
            if old is None:
                new[item.id] = item
            elif not item.is_same(old):
                raise conflict(f"item {item.id} has different content", "item_conflict", "items")
        if new:
            kept = yield from self._count(hold, len(new) + len(waiting))
            if kept + len(waiting) + len(new) > self.max_items:
                raise too_large(
                    f"the conversation has {kept} items, and the limit is {self.max_items}; "
                    "delete some, or start another",
                    "too_many_items",
                    "items",
                )
            chat = self._chat(hold)
            _extend(hold, chat, list(new.values()))
            if self.max_history is not None:  # nobody else appends, and the log knows all ids
                chat._keeper.ids = None
            rows = [NewRow(item.id, item.data) for item in new.values()]
            hold.append_rows(Append(ITEMS, rows))
        data = [known.get(item.id, item.data) for item in items]
        return Appended(data, [item.id for item in items], len(new))

    def _count(self, hold: Hold, more: int) -> Flow[int]:
        """Return how many items are stored, and note how many there are once this is saved.

        What was noted holds for one version; deletions elsewhere may make it too high, so that it
        is only good enough for saying yes.
        """
        assert hold.entry is not None
        version, kept = self._counts.get(hold.id, (0, 0))
        if version != hold.entry.version or kept + more > self.max_items:
            kept = yield from ask("count_rows", self.name, hold.id, ITEMS)
        self._counts[hold.id] = hold.entry.version + 1, kept + more
        return kept

    def _chat(self, hold: Hold) -> Conversation:
        """Return the window, within the present bound: it was stored with the one of its time."""
        chat = hold.state
        if not isinstance(chat, Conversation):
            raise Refusal(500, "wrong_state", f"This session holds a {type(chat).__name__}.")
        if not self._is_within(chat):
            chat = hold.state = _rebuilt(chat, list(chat), max_messages=self.max_history)
        return chat

    def _is_within(self, chat: Conversation) -> bool:
        return self.max_history in (None, chat._keeper.bounds.max_messages)

    def _forget(self, hold: Hold, item: str) -> None:
        """Rebuild the window without one item."""
        chat = self._chat(hold)
        left = [message for message in chat if message.get("id") != item]
        if len(left) < len(chat):
            hold.state = _rebuilt(chat, left)
        elif chat._keeper.ids is not None:  # it has left the window, and may be appended again
            chat._keeper.ids.forget(item)

    def _remembered(self, hold: Hold, key: str) -> Flow[RememberedKey | None]:
        waiting = _waiting(hold, KEYS)
        if key in waiting:
            return read_remembered(waiting[key])
        return (yield from read_key(self.name, hold.id, key))

    def _again(self, hold: Hold, ids: list[str]) -> Flow[Appended]:
        """Answer a repeated request; what was deleted since is left out."""
        found = yield from ask("get_rows", self.name, hold.id, ITEMS, ids)
        data = {key: row.data for key, row in found.items()} | _waiting(hold, ITEMS)
        here = [each for each in ids if each in data]
        return Appended([data[each] for each in here], here, 0)


def _waiting(hold: Hold, log: str) -> dict[str, bytes]:
    """Return rows that a failed save has left to be written; they are as good as stored."""
    return {row.key: row.data for one in hold.waiting_rows if one.log == log for row in one.rows}


def _extend(hold: Hold, chat: Conversation, items: list[Accepted]) -> None:
    """Show new items to the window; one that a model would reject is in the log only."""
    try:
        chat.extend([item.item for item in items])
    except MalformedMessage:
        for item in items:
            try:
                chat.append(item.item)
            except MalformedMessage:
                continue
            except Exception:
                hold.discard()
                raise


def _composed(chat: Conversation, max_tokens: int | None, provider: str | None) -> Any:
    if provider is not None and provider != RESPONSES:
        chat = translated(chat, provider)
    messages = chat.window(max_tokens, provider)
    system = [one for one in chat.system() if one not in messages]
    return {"messages": messages, "system": system, "tokens": chat._window_tokens}


def _rebuilt(chat: Conversation, messages: Iterable[Any], **bounds: int | None) -> Conversation:
    """Return a window of these messages; a call or result that stands alone is left out."""
    own: dict[str, Any] = dict(zip(_BOUNDS, chat._keeper.bounds.as_list(), strict=True))
    fresh = Conversation(archive_id=chat._archive_id, **(own | bounds))
    fresh.configure(**attached(chat._keeper))
    for message in messages:
        with suppress(MalformedMessage):
            fresh.append(message)
    return fresh


_BOUNDS = ("max_messages", "max_tokens", "max_bytes", "max_message_bytes")


def _key_reused() -> Exception:
    return conflict("this Idempotency-Key was used with a different body", "idempotency_key_reused")
