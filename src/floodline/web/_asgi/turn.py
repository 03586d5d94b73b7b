"""A streamed answer that is kept, however it ends."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from floodline.errors import SessionError
from floodline.history import INTERRUPTED, Conversation
from floodline.web._asgi.held_request import current_request

if TYPE_CHECKING:
    from floodline.history import Message
    from floodline.sessions import AsyncUse


class Turn:
    """One streamed turn of a conversation: `async with turn(chat) as reply:`."""

    def __init__(self, conversation: Conversation, hold: AsyncUse[Any] | None) -> None:
        request = current_request.get()
        if hold is None and request is not None:
            hold = request.hold_of(conversation)
        self._conversation, self._hold, self._request = conversation, hold, request
        self._text: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._over = False

    @property
    def text(self) -> str:
        """What was written so far."""
        return "".join(self._text)

    def write(self, piece: str | Mapping[str, Any]) -> None:
        """Add a piece: text, or a chat delta with `content` and parts of `tool_calls`."""
        if self._over:
            raise SessionError("this turn is over: the client is gone, or its block was left")
        if isinstance(piece, str):
            self._text.append(piece)
            return
        if not isinstance(piece, Mapping):
            raise TypeError(
                f"a {type(piece).__name__} cannot be written; write text, or the delta as a dict"
            )
        if piece.get("content"):
            self._text.append(piece["content"])
        for part in piece.get("tool_calls") or ():
            self._add_call(part)

    def interrupt(self) -> None:
        """Keep the text written so far, marked as interrupted; half a tool call is dropped."""
        if self._finish() and self._text:
            self._conversation.append({**self._message(), INTERRUPTED: True})

    async def __aenter__(self) -> Turn:
        if self._hold is not None:
            await self._hold.acknowledge()
        if self._request is not None:
            self._request.turns.append(self)
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.interrupt()
        elif self._finish() and (self._text or self._calls):
            message = self._message()
            if self._calls:
                message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
                message["content"] = message["content"] or None
            self._conversation.append(message)

    def _finish(self) -> bool:
        """Accept no more; return False if the turn was over already."""
        was_over, self._over = self._over, True
        if self._request is not None and self in self._request.turns:
            self._request.turns.remove(self)
        return not was_over

    def _message(self) -> Message:
        asked = self._conversation[-1] if self._conversation else {}
        if "parts" in asked:
            return {"role": "model", "parts": [{"text": self.text}]}
        return {"role": "assistant", "content": self.text}

    def _add_call(self, part: Mapping[str, Any]) -> None:
        call = self._calls.setdefault(
            part.get("index", len(self._calls)),
            {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
        )
        call["id"] = part.get("id") or call["id"]
        function = part.get("function") or {}
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""


def turn(conversation: Conversation, *, hold: AsyncUse[Any] | None = None) -> Turn:
    """Return a streamed turn: what is written to it becomes the answer, however it ends.

    Append the user's message first: it is saved before the block begins. In a request that holds
    its session by `floodline.web.asgi` the hold is found; elsewhere give `hold`. Left normally, the
    answer is appended. If the client goes away, or the block raises, the text so far is kept and
    marked with `floodline.history.INTERRUPTED`, a mark that `window()` leaves out.
    """
    if not isinstance(conversation, Conversation):
        raise TypeError(
            f"turn() takes a Conversation, not a {type(conversation).__name__}; "
            "if the state contains one, give that: turn(state.conversation)"
        )
    return Turn(conversation, hold)
