"""How the events of MCP streams are laid out in a store: a stream is a session, and an event a row.

The id of an event is the key of its row, which nobody can guess, and the name of its stream.
"""

from __future__ import annotations

from urllib.parse import quote
from uuid import uuid4

from floodline._units import Duration, Size, parse_count, parse_size
from floodline.adapters._extras import missing
from floodline.adapters._store_flows import Flow, Give, Stream, ask
from floodline.adapters._upkeep import Upkeep
from floodline.stores import Append, NewRow, Row

try:
    from mcp.server.streamable_http import EventMessage
    from mcp_types import JSONRPCMessage, jsonrpc_message_adapter
except ImportError as error:
    raise missing("the MCP SDK", "mcp", error) from error

LOG = "events"
PAGE = 100


class StreamRows:
    """Stores and reads the events of streams; see `FloodlineEventStore`."""

    def __init__(
        self,
        name: str,
        max_events: int,
        max_bytes: Size,
        retention: Duration | None,
        max_streams: int | None,
    ) -> None:
        self._name = name
        self._max_events = parse_count(max_events, "max_events")
        self._max_bytes = parse_size(max_bytes, "max_bytes")
        self._upkeep = Upkeep(name, most=max_streams, retention=retention, what="max_streams")

    def store(self, scope: str, stream_id: str, message: JSONRPCMessage | None) -> Flow[str]:
        """Store an event, and return its id."""
        data = b"" if message is None else _encode(message)
        key = uuid4().hex
        append = Append(
            LOG,
            [NewRow(key, data)],
            max_rows=self._max_events,
            max_bytes=max(self._max_bytes, len(data)),  # one message above it stays alone
            when_full="drop",
        )
        yield from ask("append_rows", self._name, f"{scope}:{stream_id}", [append])
        yield from self._upkeep.wrote()
        return f"{key}.{quote(stream_id, safe='')}"

    def after(self, scope: str, stream_id: str, key: str) -> Stream:
        """Give the events after the row `key`, which must be there."""
        place = (self._name, f"{scope}:{stream_id}", LOG)
        while page := (yield from ask("rows", *place, after=key, limit=PAGE)):
            for row in page:
                if row.data:  # others only mark a place
                    yield Give(_event(row, stream_id))
            key = page[-1].key


def _encode(message: JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _event(row: Row, stream_id: str) -> EventMessage:
    message = jsonrpc_message_adapter.validate_json(row.data)
    return EventMessage(message, f"{row.key}.{quote(stream_id, safe='')}")
