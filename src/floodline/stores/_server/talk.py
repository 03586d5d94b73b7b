"""What an event loop needs of a connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from floodline.errors import FloodlineError


class Talk(Protocol):
    """A connection that never waits."""

    def fileno(self) -> int:
        """Return the descriptor to watch."""
        ...

    def packed(self, requests: Sequence[Any]) -> tuple[bytes, Any]:
        """Return requests as bytes, and what `replies` needs to know of them."""
        ...

    def send(self, data: memoryview) -> int:
        """Send what can be sent now, and return how much that was."""
        ...

    def receive(self) -> None:
        """Take what has come; `ConnectionError` at the end."""
        ...

    def replies(self, sent: Any) -> list[Any] | None:
        """Return the replies to the oldest requests, or None if some are missing."""
        ...

    def unknown(self, error: BaseException) -> FloodlineError:
        """Return an error for a call whose outcome is unknown."""
        ...

    def moves_on(self, error: Exception) -> bool:
        """Return True if a new connection may reach a server that does better."""
        ...

    def close(self) -> None:
        """Close; harmless if it is closed."""
        ...

    def disown(self) -> None:
        """Let go of a connection of the parent process, without a word to the server."""
        ...
