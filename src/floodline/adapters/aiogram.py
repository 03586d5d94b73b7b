"""States and data of aiogram's dialogs in any floodline store, and one update at a time per key.

    dispatcher = Dispatcher(
        storage=FloodlineStorage("sqlite:///bot.db"),
        events_isolation=FloodlineIsolation("sqlite:///bot.db"),
    )

A user whose state and data are cleared leaves nothing behind, and so does a lock that is released.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from floodline._units import Duration
from floodline.adapters._extras import missing
from floodline.adapters._leased_values import KEYS_IN_MEMORY, LeasedValues, Value
from floodline.adapters._store_flows import Flow, FlowStore
from floodline.sessions import AsyncSessions
from floodline.stores import MemoryStore, RowStore

try:
    from aiogram.exceptions import DataNotDictLikeError
    from aiogram.fsm.state import State
    from aiogram.fsm.storage.base import BaseEventIsolation, BaseStorage, StateType, StorageKey
except ImportError as error:
    raise missing("aiogram", "aiogram", error) from error

__all__ = ["FloodlineIsolation", "FloodlineStorage"]

STATE, DATA = "state", "data"


class FloodlineStorage(BaseStorage):
    """The storage of a dispatcher, safe with several workers; `update_data` loses no update.

    `store` is a URL or a store; without one the dialogs are in memory, the 10,000 changed last.
    `max_keys` is that number, and `retention` deletes dialogs unchanged for that long; both are off
    by default for a store that you give. Data is a dict of plain values: those of JSON, and bytes,
    tuples, sets, dates, UUIDs and decimals.
    """

    def __init__(
        self,
        store: RowStore | str | None = None,
        *,
        max_keys: int | None = None,
        retention: Duration | None = None,
        name: str = "aiogram",
    ) -> None:
        if store is None and max_keys is None:
            max_keys = KEYS_IN_MEMORY
        self._flows = FlowStore(store)
        self._values = LeasedValues(name, max_keys=max_keys, retention=retention)

    async def set_state(self, key: StorageKey, state: StateType = None) -> None:
        """Set the state, or clear it."""
        text = state.state if isinstance(state, State) else state
        await self._flows.finish(self._set(key, STATE, text))

    async def get_state(self, key: StorageKey) -> str | None:
        """Return the state."""
        state: str | None = (await self._record(key)).get(STATE)
        return state

    async def set_data(self, key: StorageKey, data: Mapping[str, Any]) -> None:
        """Replace the data."""
        await self._flows.finish(self._set(key, DATA, _checked(data) or None))

    async def get_data(self, key: StorageKey) -> dict[str, Any]:
        """Return the data, your own copy."""
        data: dict[str, Any] = (await self._record(key)).get(DATA, {})
        return data

    async def update_data(self, key: StorageKey, data: Mapping[str, Any]) -> dict[str, Any]:
        """Change some of the data, in one step, and return all of it."""
        return await self._flows.finish(self._update(key, dict(data)))

    async def close(self) -> None:
        """Close the store, unless it was given as an object."""
        self._flows.close()

    async def _record(self, key: StorageKey) -> dict[str, Any]:
        found = await self._flows.arun(self._values.get(_id(key)))
        return {} if found is None else found.data

    def _set(self, key: StorageKey, part: str, content: Any) -> Flow[Value | None]:
        def put(old: Value | None) -> Value | None:
            rest = {} if old is None else {k: v for k, v in old.data.items() if k != part}
            record = rest if content is None else {**rest, part: content}
            return Value(record) if record else None

        return self._values.change(_id(key), put)

    def _update(self, key: StorageKey, data: dict[str, Any]) -> Flow[dict[str, Any]]:
        new: dict[str, Any] = {}

        def put(old: Value | None) -> Value | None:
            record = {} if old is None else old.data
            new.clear()
            new.update({**record.get(DATA, {}), **data})
            full = {**record, DATA: new} if new else record
            return Value(full) if full else None

        yield from self._values.change(_id(key), put)
        return dict(new)


class FloodlineIsolation(BaseEventIsolation):
    """Handles the updates of one key one after another, in the order of their arrival.

    With a store that several workers share, a key is locked in all of them; a worker that dies or
    loses its connection loses its locks after `lease`. `wait` is how long an update waits for its
    turn before `SessionBusy`, forever by default. Locks that nobody holds take no memory and no
    place in the store.
    """

    def __init__(
        self,
        store: RowStore | str | None = None,
        *,
        wait: Duration | None = None,
        lease: Duration = "15 s",
        name: str = "aiogram-locks",
    ) -> None:
        self._locks = AsyncSessions(
            dict,
            store=MemoryStore() if store is None else store,
            max_sessions=None,
            busy_wait=wait,
            lease=lease,
            name=name,
        )

    @asynccontextmanager
    async def lock(self, key: StorageKey) -> AsyncGenerator[None, None]:
        """Hold a key."""
        async with (hold := self._locks.use(_id(key))):
            hold.discard()  # a lock has no state to keep
            yield

    async def close(self) -> None:
        """Release what is left, and close the store unless it was given as an object."""
        await self._locks.shutdown(grace=0)


def _id(key: StorageKey) -> str:
    numbers = ":".join(str(part) for part in (key.bot_id, key.chat_id, key.user_id))
    thread = "" if key.thread_id is None else key.thread_id
    business = "" if key.business_connection_id is None else f"={key.business_connection_id}"
    return f"{numbers}:{thread}:{quote(business, safe='=')}:{quote(key.destiny, safe='')}"


def _checked(data: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise DataNotDictLikeError(
            f"Data must be a dict or dict-like object, got {type(data).__name__}"
        )
    return data
