"""Events of the Agent Development Kit as rows of a log, and which of them a session loads."""

from __future__ import annotations

import msgspec

from floodline.adapters._extras import missing
from floodline.adapters._holding import PAGE, all_rows, newest_turns
from floodline.adapters._store_flows import Flow, ask
from floodline.stores import Row

try:
    from google.adk.events import Event
    from google.adk.sessions.base_session_service import GetSessionConfig
except ImportError as error:
    raise missing("Google's Agent Development Kit", "adk", error) from error

EVENTS = "events"


class StoredEvent(msgspec.Struct, array_like=True, frozen=True):
    """The row of an event: what a choice of events needs to know, and the event as JSON."""

    timestamp: float
    begins_turn: bool
    event: bytes


read_event = msgspec.msgpack.Decoder(StoredEvent).decode


def pack(event: Event) -> bytes:
    """Return the bytes of an event; equal events have equal bytes."""
    begins = event.author == "user" and not event.get_function_responses()
    text = event.model_dump_json(exclude_none=True).encode()
    return msgspec.msgpack.encode(StoredEvent(event.timestamp, begins, text))


def unpack(row: Row) -> Event:
    """Return the event of a row."""
    return Event.model_validate_json(read_event(row.data).event)


def chosen_events(
    name: str, id: str, config: GetSessionConfig | None, most: int | None
) -> Flow[list[Row]]:
    """Return the events that `config` asks for; without one the newest `most`, in whole turns."""
    recent = None if config is None else config.num_recent_events
    since = None if config is None else config.after_timestamp
    if since is not None:
        rows = yield from _since(name, id, since)
        return rows if recent is None else rows[len(rows) - min(recent, len(rows)) :]
    if recent is not None:
        terms = {"limit": recent, "newest_first": True}
        newest = (yield from ask("rows", name, id, EVENTS, **terms)) if recent else []
        return list(reversed(newest))
    if most is None:
        return (yield from all_rows(name, id, EVENTS))
    return (yield from newest_turns(name, id, EVENTS, most, _begins_turn))


def _begins_turn(row: Row) -> bool:
    return read_event(row.data).begins_turn


def _since(name: str, id: str, timestamp: float) -> Flow[list[Row]]:
    """Return the newest events down to the first that is older than `timestamp`."""
    found: list[Row] = []
    before: int | None = None
    while True:
        terms = {"before": before, "limit": PAGE, "newest_first": True}
        page: list[Row] = yield from ask("rows", name, id, EVENTS, **terms)
        for row in page:
            if read_event(row.data).timestamp < timestamp:
                return found[::-1]
            found.append(row)
        if len(page) < PAGE:
            return found[::-1]
        before = page[-1].number
