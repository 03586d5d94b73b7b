"""Behave steps for the sessions of any program.

In a file of your steps folder: `from floodline.testing.behave_steps import *`. In
`environment.py`: `context.floodline = SessionKit(open_session, live=…)`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from floodline.errors import ConfigError
from floodline.testing._session_kit import SessionKit

__all__: list[str] = []


def abandon(context: Any, count: int) -> None:
    """Open sessions and never close them."""
    _kit(context).abandon(count)


def open_and_close(context: Any, count: int) -> None:
    """Open sessions and close them."""
    _kit(context).open_and_close(count)


def stays_below(context: Any, most: int) -> None:
    """Check the most sessions that were live at once."""
    _kit(context).check_live(most)


def is_flat(context: Any, rounds: int) -> None:
    """Soak the program: each round abandons five sessions."""
    _kit(context).check_flat(rounds)


def _kit(context: Any) -> SessionKit:
    kit = getattr(context, "floodline", None)
    if not isinstance(kit, SessionKit):
        raise ConfigError(
            "context.floodline is not a SessionKit; set it in environment.py: "
            "context.floodline = SessionKit(open_session, live=…)"
        )
    return kit


_step = import_module("behave").step  # matches Given, When and Then
_step("I open {count:d} sessions and abandon them")(abandon)
_step("I open {count:d} sessions and close them")(open_and_close)
_step("the live count stays at or below {most:d}")(stays_below)
_step("memory does not grow over {rounds:d} rounds")(is_flat)
