"""Events and session state of MCP servers, for the official SDK and for FastMCP.

    events = FloodlineEventStore("sqlite:///mcp.db")
    app = http_app(server, events)                      # an MCPServer of the official SDK
    app = fastmcp_server.http_app(event_store=events)   # FastMCP

A client that reconnects gets the events that it missed, and only those of its own session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat, TypeVar
from urllib.parse import quote, unquote
from uuid import uuid4

from floodline._units import Duration, Size
from floodline.adapters._extras import missing
from floodline.adapters._leased_values import KEYS_IN_MEMORY, LeasedValues
from floodline.adapters._mcp.events import StreamRows
from floodline.adapters._store_flows import FlowStore
from floodline.errors import ConfigError, RowNotFound, SessionIdMissing
from floodline.sessions import AsyncSessions, AsyncUse
from floodline.stores import RowStore

try:
    from mcp.server.streamable_http import (
        EventCallback,
        EventId,
        EventStore,
        StreamId,
    )
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp_types import JSONRPCMessage
except ImportError as error:
    raise missing("the MCP SDK", "mcp", error) from error

__all__ = [
    "FloodlineEventStore",
    "FloodlineSessionManager",
    "FloodlineStateStore",
    "http_app",
    "session_state",
]

S = TypeVar("S")

STREAMS_IN_MEMORY = 1000


class FloodlineEventStore(EventStore):
    """The events of all streams, the newest `max_events` and `max_bytes` of each.

    `store` is a URL or a store; without one the events are in memory, those of the 1,000 streams
    used last. `max_streams` is that number, off by default for a store that you give; `retention`
    deletes streams unused for that long.

    The SDK names streams by the ids of requests, which two sessions share. So give this to
    `http_app` or `FloodlineSessionManager`, or to FastMCP, which keep sessions apart.
    """

    def __init__(
        self,
        store: RowStore | str | None = None,
        *,
        max_events: int = 100,
        max_bytes: Size = "1 MiB",
        retention: Duration | None = "1 h",
        max_streams: int | None = None,
        name: str = "mcp",
    ) -> None:
        if store is None and max_streams is None:
            max_streams = STREAMS_IN_MEMORY
        self._flows = FlowStore(store)
        self._events = StreamRows(name, max_events, max_bytes, retention, max_streams)

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """Store an event, and return the id under which a client can ask for what came after."""
        return await self._flows.arun(self._events.store("", stream_id, message))

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        """Send the events of a stream after one of them, in order; None if that is not known."""
        return await self._replay("", last_event_id, send_callback)

    def for_session(self) -> EventStore:
        """Return a store for the streams of one session, which sees those of no other."""
        return _SessionEvents(self)

    def close(self) -> None:
        """Close the store, unless it was given as an object."""
        self._flows.close()

    async def _replay(
        self, scope: str, last_event_id: EventId, send: EventCallback
    ) -> StreamId | None:
        key, _, quoted = last_event_id.partition(".")
        stream_id = unquote(quoted)
        if not key or not quoted:
            return None
        try:
            async for event in self._flows.astream(self._events.after(scope, stream_id, key)):
                await send(event)
        except RowNotFound:  # never stored, of another session, or too long ago
            return None
        return stream_id


class _SessionEvents(EventStore):
    """The events of one session."""

    def __init__(self, events: FloodlineEventStore) -> None:
        self._all = events
        self._scope = uuid4().hex

    async def store_event(self, stream_id: StreamId, message: JSONRPCMessage | None) -> EventId:
        """See `FloodlineEventStore`."""
        return await self._all._flows.arun(self._all._events.store(self._scope, stream_id, message))

    async def replay_events_after(
        self, last_event_id: EventId, send_callback: EventCallback
    ) -> StreamId | None:
        """See `FloodlineEventStore`."""
        return await self._all._replay(self._scope, last_event_id, send_callback)


class FloodlineSessionManager(StreamableHTTPSessionManager):
    """The SDK's session manager, with the events of each session apart."""

    @property
    def event_store(self) -> EventStore | None:
        """A store for the next session: the SDK reads this once for each."""
        shared = self._shared
        return shared.for_session() if isinstance(shared, FloodlineEventStore) else shared

    @event_store.setter
    def event_store(self, event_store: EventStore | None) -> None:
        self._shared = event_store


def http_app(server: Any, events: FloodlineEventStore, **options: Any) -> Any:
    """Return `server.streamable_http_app(…)` with resumable streams, each session's apart.

    `server` is an `MCPServer` or a low-level `Server` of the official SDK.
    """
    if not isinstance(events, FloodlineEventStore):
        raise ConfigError(f"events={events!r} must be a FloodlineEventStore")
    app = server.streamable_http_app(**options)
    manager = server.session_manager
    # the SDK makes its manager itself, and reads its event store when a session begins
    manager.__class__ = FloodlineSessionManager
    manager.event_store = events
    return app


def session_state(context: Any, sessions: AsyncSessions[S]) -> AsyncUse[S]:
    """Return a use of the state of the MCP session: `async with session_state(ctx, sessions) as s`.

    `context` is the `Context` of a tool, of FastMCP or of the official SDK. `SessionIdMissing` if
    there is no session: on stdio, in stateless mode and on protocols without sessions.
    """
    # what the server knows: a header is only what the client says
    connection = getattr(context.request_context.session, "_connection", None)
    key = getattr(connection, "session_id", None)
    if not key:
        raise SessionIdMissing(
            "this request has no MCP session: the server is stateless or on stdio, or the protocol "
            "has none; use an id of your own: sessions.use(id)"
        )
    return sessions.use(key)


class FloodlineStateStore:
    """The state of FastMCP's sessions: `FastMCP("name", session_state_store=…)`.

    An `AsyncKeyValue` of py-key-value. `store` is a URL or a store; without one the values are in
    memory, the 10,000 written last. `max_keys` is that number, and `retention` deletes what was not
    written for that long; both are off by default for a store that you give.
    """

    def __init__(
        self,
        store: RowStore | str | None = None,
        *,
        max_keys: int | None = None,
        retention: Duration | None = None,
        name: str = "mcp-state",
    ) -> None:
        if store is None and max_keys is None:
            max_keys = KEYS_IN_MEMORY
        self._flows = FlowStore(store)
        self._values = LeasedValues(name, max_keys=max_keys, retention=retention)

    async def get(self, key: str, *, collection: str | None = None) -> dict[str, Any] | None:
        """Return a value."""
        return (await self.ttl(key, collection=collection))[0]

    async def ttl(
        self, key: str, *, collection: str | None = None
    ) -> tuple[dict[str, Any] | None, float | None]:
        """Return a value and the seconds that it has left."""
        found = await self._flows.arun(self._values.get(_state_id(collection, key)))
        if found is None:
            return None, None
        return found.data, found.seconds_left(self._values.wall())

    async def put(
        self,
        key: str,
        value: Mapping[str, Any],
        *,
        collection: str | None = None,
        ttl: SupportsFloat | None = None,
    ) -> None:
        """Set a value."""
        seconds = None if ttl is None else float(ttl)
        change = self._values.put(_state_id(collection, key), dict(value), seconds)
        await self._flows.finish(change)

    async def delete(self, key: str, *, collection: str | None = None) -> bool:
        """Delete a value; return True if it was there."""
        return await self._flows.finish(self._values.delete(_state_id(collection, key)))

    async def get_many(
        self, keys: Sequence[str], *, collection: str | None = None
    ) -> list[dict[str, Any] | None]:
        """See `get`."""
        return [await self.get(key, collection=collection) for key in keys]

    async def ttl_many(
        self, keys: Sequence[str], *, collection: str | None = None
    ) -> list[tuple[dict[str, Any] | None, float | None]]:
        """See `ttl`."""
        return [await self.ttl(key, collection=collection) for key in keys]

    async def put_many(
        self,
        keys: Sequence[str],
        values: Sequence[Mapping[str, Any]],
        *,
        collection: str | None = None,
        ttl: SupportsFloat | None = None,
    ) -> None:
        """See `put`."""
        for key, value in zip(keys, values, strict=True):
            await self.put(key, value, collection=collection, ttl=ttl)

    async def delete_many(self, keys: Sequence[str], *, collection: str | None = None) -> int:
        """See `delete`."""
        return sum([await self.delete(key, collection=collection) for key in keys])

    def close(self) -> None:
        """Close the store, unless it was given as an object."""
        self._flows.close()


def _state_id(collection: str | None, key: str) -> str:
    return f"{quote(collection or '', safe='')}:{key}"
