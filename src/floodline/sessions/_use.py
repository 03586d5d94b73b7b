"""What a hold lets its holder do; the two drivers add how it is entered and left."""

from __future__ import annotations

from typing import Any, Generic

from floodline.errors import SessionClosed, SessionConflict, SessionError
from floodline.sessions._base import S
from floodline.sessions._core import Core, Flow
from floodline.sessions._entry import HELD, Entry, Hold
from floodline.sessions._saving import save
from floodline.telemetry import Reason


class UseBase(Hold, Generic[S]):
    """The state of a held session, and what shall become of it."""

    __slots__ = ()

    @property
    def state(self) -> S:
        """The state while it is held; assign to replace it."""
        state: S = self._held().state
        return state

    @state.setter
    def state(self, new: S) -> None:
        self._held_alone("replace").state = new

    def discard(self) -> None:
        """Do not save at the end: the object leaves, and the next use loads the last saved one."""
        self._held_alone("discard")
        self.discarded = True

    def _held(self) -> Entry:
        if self.entry is None or self.outcome != HELD:
            raise SessionError(f"session {self.id!r} is not held by this use; enter it first")
        return self.entry

    def _held_alone(self, what: str) -> Entry:
        entry = self._held()
        if self.shared:
            raise SessionError(
                f"a shared use cannot {what} session {self.id!r}; use it without shared=True"
            )
        return entry

    def _refuse_second_entry(self) -> None:
        if self.entry is not None:
            raise SessionError(f"this use of session {self.id!r} is under way; call use() again")


def checkpoint(core: Core, hold: UseBase[Any]) -> Flow[None]:
    """Save a held session now; without a store there is nothing to do."""
    entry = hold._held_alone("save")
    if not core.policy.stored:
        return
    if entry.leave is Reason.closed:
        raise SessionClosed(f"session {hold.id!r} was closed; a hold from before cannot write")
    try:
        yield from save(core, entry, release=False)
    except SessionConflict:
        hold.discarded = True
        raise
