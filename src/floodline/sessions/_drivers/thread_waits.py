"""How a thread waits for a hold: on a lock of its own, and never on an event loop's thread."""

from __future__ import annotations

import threading
import time
from asyncio import _get_running_loop
from typing import Any

from floodline.errors import WouldBlockLoop
from floodline.sessions._flows.guarded_table import Core
from floodline.sessions._table.entry import WAIT


def wait(core: Core, hold: Any, deadline: float) -> bool:
    """Sleep until the hold is woken or the deadline has passed; return which."""
    if not core.locked(_arm, hold):
        return True
    refuse_loop(f"session {hold.id!r} is busy, or there is no room for it; waiting")
    patience = min(deadline - core.clock(), threading.TIMEOUT_MAX)
    return bool(hold._parker.acquire(timeout=max(0.0, patience)))


def _arm(hold: Any) -> bool:
    """Prepare to sleep, unless the hold has already been served."""
    if hold.outcome != WAIT or hold.error is not None:
        return False
    hold._parker = threading.Lock()
    hold._parker.acquire()
    return True


def pause(seconds: float, bell: Any) -> Any:
    """Let some time pass, or less if the bell rings; return whether it did."""
    refuse_loop(f"another owner holds the session; waiting {seconds:.3g} s")
    return time.sleep(seconds) if bell is None else bell.wait(seconds)


def refuse_loop(what: str) -> None:
    """Raise if waiting here would stop an event loop."""
    if _get_running_loop() is not None:
        raise WouldBlockLoop(
            f"{what} would block the event loop that runs on this thread; "
            "use AsyncSessions there, or a thread"
        )
