"""`trim`, for code that keeps its own list of messages."""

from __future__ import annotations

from collections.abc import Iterable

from floodline._units import Size
from floodline.history._conversation import Conversation
from floodline.history._formats.shapes import Message
from floodline.history._tokens import CountTokens, estimate


def trim(
    messages: Iterable[Message],
    *,
    max_messages: int | None = None,
    max_tokens: int | None = None,
    max_bytes: Size | None = None,
    max_message_bytes: Size | None = None,
    count_tokens: CountTokens = estimate,
    provider: str | None = None,
) -> list[Message]:
    """Return the newest of `messages` that fit the bounds, as a list the API accepts.

    The rules are those of `Conversation`: system messages stay, cuts fall between atoms, the list
    starts at a user's turn, results without a call go. Neither the list nor its dicts change.
    """
    conversation = Conversation(
        messages,
        max_messages=max_messages,
        max_tokens=max_tokens,
        max_bytes=max_bytes,
        max_message_bytes=max_message_bytes,
        count_tokens=count_tokens,
    )
    return conversation.window(provider=provider)
