"""Sessions of the OpenAI Agents SDK, kept as bounded conversations in any store.

    sessions = agent_sessions("sqlite:///agents.db")
    result = await Runner.run(agent, "hello", session=FloodlineSession("alice", sessions))

The calls of the SDK are answered on a thread, so one object works from several event loops, as
`Runner.run_sync` needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from floodline.adapters._extras import missing
from floodline.errors import ConfigError, SessionNotFound
from floodline.history import Conversation
from floodline.sessions import Sessions
from floodline.stores import Store

try:
    from agents.memory import SessionSettings
    from agents.memory.session_settings import resolve_session_limit
except ImportError as error:
    raise missing("the OpenAI Agents SDK", "openai-agents", error) from error

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

__all__ = ["FloodlineSession", "agent_sessions"]

T = TypeVar("T")


def agent_sessions(
    store: Store | str | None = None,
    *,
    max_messages: int | None = 200,
    **options: Any,
) -> Sessions[Conversation]:
    """Return sessions for many users: `max_messages` for the model, the rest in the archive.

    Without a store the sessions are in memory, and what leaves it is gone. `options` are those of
    `Sessions`.
    """

    def begin() -> Conversation:
        archive: Literal["session"] | None = None if store is None else "session"
        return Conversation(max_messages=max_messages, archive=archive)

    return Sessions(begin, store=store, **{"name": "agents", **options})


class FloodlineSession:
    """One session of the SDK: `Runner.run(agent, text, session=FloodlineSession(id, sessions))`.

    `sessions` is a `Sessions` whose state is a `Conversation`, such as `agent_sessions` makes; any
    number of these objects may share it. `get_items` returns what the bounds of the conversation
    leave, and with a limit no more than that, without a result whose call is missing.
    """

    def __init__(
        self,
        session_id: str,
        sessions: Sessions[Conversation],
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(sessions, Sessions):
            raise ConfigError(
                f"sessions={sessions!r} must be Sessions: the SDK changes event loops, which "
                "AsyncSessions cannot follow"
            )
        self.session_id = session_id
        if not isinstance(session_settings, SessionSettings):
            session_settings = SessionSettings().resolve(session_settings)
        self.session_settings = session_settings
        self._sessions = sessions

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest items in order, at most `limit`."""
        most = resolve_session_limit(limit, self.session_settings)

        def read(chat: Conversation) -> list[Any]:
            return chat.newest(len(chat) or 1 if most is None else most)

        if most is not None and most <= 0:
            return []
        with suppress(SessionNotFound):
            return cast("list[TResponseInputItem]", await self._use(read, create=False))
        return []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items; they are saved when this returns."""
        if items:
            # models without ids of their own give all their messages the same one
            await self._use(lambda chat: chat.extend(cast("list[Any]", items), repeats=True))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item and return it as it was added, from the archive if need be."""
        with suppress(SessionNotFound):
            item = await self._use(Conversation.pop, create=False)
            return cast("TResponseInputItem | None", item)
        return None

    async def clear_session(self) -> None:
        """Delete the session: its window, its archive and its row."""
        await asyncio.to_thread(self._sessions.close, self.session_id)

    async def _use(self, work: Callable[[Conversation], T], *, create: bool = True) -> T:
        def hold() -> T:
            with self._sessions.use(self.session_id, create=create) as chat:
                return work(chat)

        # a cancelled caller leaves at once; what it asked for is finished and saved
        return await asyncio.shield(asyncio.to_thread(hold))
