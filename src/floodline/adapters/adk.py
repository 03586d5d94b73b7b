"""Sessions of Google's Agent Development Kit in any floodline store.

    service = FloodlineSessionService("sqlite:///agents.db")
    runner = Runner(app_name="shop", agent=agent, session_service=service)

A session is one of the store: its state is the envelope, each event a row of its log. What starts
with `app:` or `user:` has a place of its own, and what starts with `temp:` has none.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from floodline._units import Duration, parse_count
from floodline.adapters._adk.events import unpack
from floodline.adapters._adk.flows import Found, Place, Sessions, Stored
from floodline.adapters._extras import missing
from floodline.adapters._holding import ROWS_IN_MEMORY, SESSIONS_IN_MEMORY, limit_of
from floodline.adapters._leased_values import KEYS_IN_MEMORY, LeasedValues
from floodline.adapters._store_flows import FlowStore
from floodline.adapters._upkeep import Upkeep
from floodline.stores import RowStore

try:
    from google.adk.events import Event
    from google.adk.platform import time as adk_time
    from google.adk.platform import uuid as adk_uuid
    from google.adk.sessions import BaseSessionService, Session
    from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
except ImportError as error:
    raise missing("Google's Agent Development Kit", "adk", error) from error

__all__ = ["FloodlineSessionService"]


class FloodlineSessionService(BaseSessionService):
    """Sessions in any store, for several workers: a write to what others changed is refused.

    `store` is a URL or a store; without one the last 1,000 sessions are in memory. `get_session`
    returns the newest `max_events` (500; None: all), from the beginning of a turn; with a config,
    what that asks for. `keep` is how many events of a session stay stored: all in a store that you
    give, 1,000 in memory. `retention` deletes sessions unused for that long, `max_sessions` the
    least recently used above that number, and `max_users` the least recently changed `user:` state.
    """

    def __init__(
        self,
        store: RowStore | str | None = None,
        *,
        max_events: int | None = 500,
        keep: int | None = None,
        retention: Duration | None = None,
        max_sessions: int | None = None,
        max_users: int | None = None,
        name: str = "adk",
    ) -> None:
        self._max_events = None if max_events is None else parse_count(max_events, "max_events")
        kept = limit_of(store, keep, ROWS_IN_MEMORY)
        most = limit_of(store, max_sessions, SESSIONS_IN_MEMORY)
        users = limit_of(store, max_users, KEYS_IN_MEMORY)
        self._sessions = Sessions(
            name,
            None if kept is None else parse_count(kept, "keep"),
            Upkeep(name, most=most, retention=retention, what="max_sessions"),
            LeasedValues(f"{name}:user", max_keys=users, what="max_users"),
            LeasedValues(f"{name}:app", max_keys=limit_of(store, None, KEYS_IN_MEMORY)),
        )
        self._store = FlowStore(store)

    async def close(self) -> None:
        """Close the store, unless it was given as an object."""
        self._store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.close()

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Begin a session, under an id of its own if none is given; see `BaseSessionService`."""
        chosen = (session_id or "").strip() or adk_uuid.new_uuid()
        place = Place(app_name, user_id, chosen)
        flow = self._sessions.create(place, state or {}, adk_time.get_time())
        return _session(await self._store.finish(flow))

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return a session, None if there is none."""
        place = Place(app_name, user_id, session_id.strip())
        found = await self._store.arun(self._sessions.get(place, config, self._max_events))
        return None if found is None else _session(found)

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Return sessions without their events, the last changed last; this reads all of them."""
        found = await self._store.arun(self._sessions.load_all(app_name, user_id))
        return ListSessionsResponse(sessions=[_session(one) for one in found])

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Delete a session with its events, if there is one; `app:` and `user:` state stays."""
        place = Place(app_name, user_id, session_id.strip())
        await self._store.finish(self._sessions.delete(place))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return what the sessions of a user share, without the prefix `user:`."""
        return await self._store.arun(self._sessions.user_state(app_name, user_id))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event; `StaleSessionError` if others changed the session since it was read."""
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)

        def is_stale(stored: Stored, version: int) -> bool:
            if session._storage_update_marker is None:  # not one that we returned
                return stored.updated > session.last_update_time
            return session._storage_update_marker != str(version)

        def written(stored: Stored, version: int | None) -> None:
            if version is not None:
                session.last_update_time = stored.updated
                session._storage_update_marker = str(version)
            if not any(one.id == event.id and one == event for one in session.events):
                self._commit_event_to_session(session, event)

        place = Place(session.app_name, session.user_id, session.id)
        await self._store.finish(self._sessions.append(place, event, is_stale, written))
        return event


def _session(found: Found) -> Session:
    session = Session(
        id=found.place.session,
        app_name=found.place.app,
        user_id=found.place.user,
        state=found.state,
        events=[unpack(row) for row in found.events],
        last_update_time=found.updated,
    )
    session._storage_update_marker = str(found.version)
    return session
