"""What a task waits for, and how it is woken again if asyncio has forgotten it.

asyncio marks a future as done and then schedules whoever waits for it. An exception from a signal
handler that arrives in between, inside `call_soon`, makes it forget the task for good.
"""

from __future__ import annotations

import asyncio
from typing import Any

from floodline.sessions._table.entry import WAIT


class Doorbell:
    """A future that one task awaits; its result says whether the task was served."""

    __slots__ = ("_task", "_wakers", "future")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[bool] = loop.create_future()
        self._task: Any = asyncio.current_task(loop)
        self._wakers: Any = ()

    def ring(self, served: bool) -> None:
        """Wake the task; only the first ring counts."""
        if self.future.done():
            return
        self._wakers = self.future._callbacks or ()
        try:
            self.future.set_result(served)
        except BaseException:
            self.look_after()
            raise

    def look_after(self) -> None:
        """Wake the task in a later turn of the loop, if it was not scheduled for this one."""
        self.future.get_loop().call_soon(self._wake_again)

    def _wake_again(self) -> None:
        if self.future.done() and self._task._fut_waiter is self.future:
            for waker, context in self._wakers:
                context.run(waker, self.future)


def arm(hold: Any, loop: asyncio.AbstractEventLoop) -> Doorbell | None:
    """Prepare to wait, unless the hold has already been served."""
    if hold.outcome != WAIT or hold.error is not None:
        return None
    hold._bell = bell = Doorbell(loop)
    return bell
