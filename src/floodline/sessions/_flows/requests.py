"""What a flow can ask its driver to do.

The flows of a session (opening, saving, leaving) are written once, as generators that yield what
they want done and are sent the result: one driver does it by blocking, the other by awaiting.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from floodline.sessions._table.entry import Hold

T = TypeVar("T")

# The requests are not frozen: one is created for each step of each use, and frozen ones cost three
# times as much.


@dataclass(slots=True)
class StoreCall:
    """Call a method of the store."""

    method: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class UserCall:
    """Call user code; await the result if it is awaitable. What `blocks` leaves the loop alone."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    blocks: bool = False


@dataclass(slots=True)
class Await:
    """Wait until the hold is woken or the deadline has passed; the result says which."""

    hold: Hold
    deadline: float


@dataclass(slots=True)
class Pause:
    """Let some time pass before asking the store again, or less if the bell rings.

    The result says whether it did.
    """

    seconds: float
    bell: Any = None


@dataclass(slots=True)
class SeeOut:
    """Run a leaving flow: at once, or as a task of its own, for which only `wait` waits.

    The result is its problem, if that is already known.
    """

    flow: Flow[BaseException | None] | Flow[None]
    wait: bool = False


Request = StoreCall | UserCall | Await | Pause | SeeOut
Flow = Generator[Request, Any, T]
