"""How a thread waits for a hold: on a lock of its own, and never on an event loop's thread."""

from __future__ import annotations

import threading
from asyncio import _get_running_loop
from typing import Any

from floodline.errors import WouldBlockLoop
from floodline.sessions._table.entry import WAIT


def arm(hold: Any) -> bool:
    """Prepare to sleep, unless the hold has already been served."""
    if hold.outcome != WAIT or hold.error is not None:
        return False
    hold._parker = threading.Lock()
    hold._parker.acquire()
    return True


def refuse_loop(what: str) -> None:
    """Raise if waiting here would stop an event loop."""
    if _get_running_loop() is not None:
        raise WouldBlockLoop(
            f"{what} would block the event loop that runs on this thread; "
            "use AsyncSessions there, or a thread"
        )
