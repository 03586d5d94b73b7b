"""The sessions that one request holds: entered while it is handled, released at its true end."""

from __future__ import annotations

from contextlib import AsyncExitStack
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from floodline import telemetry

if TYPE_CHECKING:
    from floodline.sessions import AsyncUse

S = TypeVar("S")

SCOPE_KEY = "floodline.held"

current_request: ContextVar[HeldRequest | None] = ContextVar("floodline_request", default=None)


class OpenTurn(Protocol):
    """An answer that is being streamed; see `floodline.web._asgi.turn`."""

    def interrupt(self) -> None:
        """Keep what was written so far, marked; later writes are refused."""


class HeldRequest:
    """What a request holds; its holds end together, after the response and background tasks."""

    def __init__(self) -> None:
        self.holds: list[AsyncUse[Any]] = []
        self.turns: list[OpenTurn] = []
        self._stack = AsyncExitStack()

    async def enter(self, use: AsyncUse[S]) -> S:
        """Enter a use and keep it until the request ends."""
        state = await self._stack.enter_async_context(use)
        self.holds.append(use)
        return state

    def hold_of(self, state: object) -> AsyncUse[Any] | None:
        """Return the hold whose state this is, or the only one, of which this is a part."""
        for hold in self.holds:
            if hold.entry is not None and hold.state is state:
                return hold
        return self.holds[0] if len(self.holds) == 1 else None

    async def save(self) -> None:
        """Save what the holds have changed, before the client is told that all went well."""
        for hold in self.holds:
            await hold.acknowledge()

    async def release(self, error: BaseException | None) -> None:
        """End all holds, the last first; turns that nobody ended are kept as interrupted."""
        for turn in list(self.turns):
            try:
                turn.interrupt()
            except Exception as problem:  # the history refused it; the hold must end all the same
                telemetry.emit("hook_error", "turn", error=telemetry.describe(problem))
        kind = None if error is None else type(error)
        traceback: TracebackType | None = None if error is None else error.__traceback__
        await self._stack.__aexit__(kind, error, traceback)
