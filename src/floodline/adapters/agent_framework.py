"""Histories and sessions of Microsoft's Agent Framework in any floodline store.

    history = FloodlineHistoryProvider("sqlite:///agents.db")
    agent = Agent(client, context_providers=[history])

A history is a session of the store, and each message a row of its log.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

from floodline._units import Duration, Size, parse_count, parse_size
from floodline.adapters._agent_framework.messages import Histories, pack, unpack
from floodline.adapters._extras import missing
from floodline.adapters._holding import ROWS_IN_MEMORY, SESSIONS_IN_MEMORY, limit_of
from floodline.adapters._leased_values import LeasedValues
from floodline.adapters._store_flows import FlowStore
from floodline.adapters._upkeep import Upkeep
from floodline.errors import CodecError, SessionIdMissing, TooLarge
from floodline.stores import RowStore

try:
    from agent_framework import AgentSession, HistoryProvider, Message, SessionStore
except ImportError as error:
    raise missing("the Agent Framework", "agent-framework", error) from error

__all__ = ["FloodlineHistoryProvider", "FloodlineSessionStore"]


class FloodlineHistoryProvider(HistoryProvider):
    """The messages of each session in any store, for several workers.

    `store` is a URL or a store; without one the last 1,000 histories are in memory. The agent gets
    the newest `max_messages` (200; None: all), from the beginning of a turn. `keep` is how many
    messages of a session stay stored: all in a store that you give, 1,000 in memory. `retention`
    deletes histories unused for that long, and `max_sessions` the least recently used above that
    number. The other arguments are those of `HistoryProvider`; two providers on one store need two
    values of `source_id` or `name`.
    """

    def __init__(
        self,
        store: RowStore | str | None = None,
        *,
        max_messages: int | None = 200,
        keep: int | None = None,
        retention: Duration | None = None,
        max_sessions: int | None = None,
        source_id: str = "floodline",
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
        skip_excluded: bool = False,
        name: str = "agent-framework",
    ) -> None:
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self.skip_excluded = skip_excluded
        most = None if max_messages is None else parse_count(max_messages, "max_messages")
        self._max_messages = most
        kept = limit_of(store, keep, ROWS_IN_MEMORY)
        chats = limit_of(store, max_sessions, SESSIONS_IN_MEMORY)
        place = f"{name}:{source_id}"
        upkeep = Upkeep(place, most=chats, retention=retention, what="max_sessions")
        self._histories = Histories(
            place, None if kept is None else parse_count(kept, "keep"), upkeep
        )
        self._store = FlowStore(store)

    async def get_messages(
        self,
        session_id: str | None,
        *,
        state: dict[str, Any] | None = None,  # noqa: ARG002 - for providers that keep theirs there
        **kwargs: Any,  # noqa: ARG002 - the framework may pass more
    ) -> list[Message]:
        """Return the newest messages of a session, none if it has none."""
        flow = self._histories.newest(_checked(session_id), self._max_messages)
        found = [unpack(row) for row in await self._store.arun(flow)]
        if self.skip_excluded:
            return [one for one in found if not one.additional_properties.get("_excluded", False)]
        return found

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,  # noqa: ARG002 - for providers that keep theirs there
        **kwargs: Any,  # noqa: ARG002 - the framework may pass more
    ) -> None:
        """Append messages; they are saved when this returns. What is repeated is saved once."""
        if messages:
            rows = [pack(one) for one in messages]
            await self._store.finish(self._histories.append(_checked(session_id), rows))

    async def clear(self, session_id: str) -> None:
        """Delete the history of a session, if there is one."""
        await self._store.finish(self._histories.delete(_checked(session_id)))

    def close(self) -> None:
        """Close the store, unless it was given as an object."""
        self._store.close()


with warnings.catch_warnings():  # those who import the history do not use what is experimental
    warnings.simplefilter("ignore", FutureWarning)

    class FloodlineSessionStore(SessionStore):
        """Sessions in any store, for several workers; the last that sets a session wins.

        `store` is a URL or a store; without one the last 1,000 sessions are in memory. `max_bytes`
        is how large one session may be: above it, `set` raises `TooLarge`. `retention` deletes
        sessions not set for that long, and `max_sessions` the least recently changed above
        that number.
        """

        def __init__(
            self,
            store: RowStore | str | None = None,
            *,
            max_bytes: Size | None = "8 MiB",
            retention: Duration | None = None,
            max_sessions: int | None = None,
            name: str = "agent-framework-sessions",
        ) -> None:
            super().__init__()
            most = limit_of(store, max_sessions, SESSIONS_IN_MEMORY)
            self._max_bytes = None if max_bytes is None else parse_size(max_bytes, "max_bytes")
            self._values = LeasedValues(
                name, max_keys=most, retention=retention, what="max_sessions"
            )
            self._store = FlowStore(store)

        async def get(self, session_id: str) -> AgentSession | None:
            """Return a copy of a session, None if there is none."""
            self.validate_session_id(session_id)
            found = await self._store.arun(self._values.get(session_id))
            return None if found is None else AgentSession.from_dict(json.loads(found.data))

        async def set(self, session_id: str, session: AgentSession) -> None:
            """Set a session, replacing what was there; it is saved when this returns."""
            self.validate_session_id(session_id)
            text = _text(session)
            size = len(text.encode())
            if self._max_bytes is not None and size > self._max_bytes:
                raise TooLarge(
                    f"session {session_id!r} has {size:,} bytes, and max_bytes is "
                    f"{self._max_bytes:,}; nothing was written. FloodlineHistoryProvider keeps the "
                    "messages outside the session"
                )
            await self._store.finish(self._values.put(session_id, text))

        async def delete(self, session_id: str) -> None:
            """Delete a session, if there is one."""
            self.validate_session_id(session_id)
            await self._store.finish(self._values.delete(session_id))

        def close(self) -> None:
            """Close the store, unless it was given as an object."""
            self._store.close()


def _text(session: AgentSession) -> str:
    if type(session) is not AgentSession:
        raise TypeError(
            f"{type(session).__name__} would come back as AgentSession; put what it adds into its "
            "state"
        )
    try:
        return json.dumps(session.to_dict(), ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise CodecError(
            f"session {session.session_id!r} cannot be stored: {error}; register_state_type() "
            "tells the framework how to write a type of your own"
        ) from error


def _checked(session_id: str | None) -> str:
    if not session_id:
        raise SessionIdMissing(
            f"session_id={session_id!r} names no session; run the agent with "
            "session=agent.create_session(session_id=…)"
        )
    return session_id
