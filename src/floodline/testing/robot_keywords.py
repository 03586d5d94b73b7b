"""Robot Framework keywords for the sessions of any program.

`Library    floodline.testing.robot_keywords.SessionKeywords    my_project.kit`, where the argument
is the dotted name of a `SessionKit`, or of a function that returns one.
"""

from __future__ import annotations

from importlib import import_module

from floodline.errors import ConfigError
from floodline.testing._session_kit import SessionKit

__all__ = ["SessionKeywords"]


class SessionKeywords:
    """The keywords; a function that creates the kit is called once for each test."""

    ROBOT_LIBRARY_SCOPE = "TEST"

    def __init__(self, kit: str) -> None:
        module, _, name = kit.rpartition(".")
        found = getattr(import_module(module), name, None) if module else None
        made = found() if callable(found) else found
        if not isinstance(made, SessionKit):
            raise ConfigError(
                f"{kit!r} is not the dotted name of a SessionKit, or of a function that returns "
                "one; write Library  …SessionKeywords  my_project.kit"
            )
        self._kit = made

    def open_sessions_and_abandon_them(self, count: int) -> None:
        """Open sessions and never close them."""
        self._kit.abandon(count)

    def open_sessions_and_close_them(self, count: int) -> None:
        """Open sessions and close them."""
        self._kit.open_and_close(count)

    def live_count_stays_at_or_below(self, most: int) -> None:
        """Check the most sessions that were live at once."""
        self._kit.check_live(most)

    def memory_does_not_grow(self, rounds: int) -> None:
        """Soak the program: each round abandons five sessions."""
        self._kit.check_flat(rounds)
