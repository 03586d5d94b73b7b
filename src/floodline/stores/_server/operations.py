"""What is the same about an operation on every server: when to ask again, and what to note."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from floodline.stores._owner import owner_is_dead
from floodline.stores._protocol import Grant
from floodline.stores._server.heartbeats import Heart
from floodline.stores._server.link import Operation
from floodline.stores._server.times import Judgement, Times
from floodline.stores._writer import Call


class ServerOperations(Heart):
    """The operations of a store, shared by its connections."""

    def __init__(self, times: Times, hears: Callable[[str], bool]) -> None:
        super().__init__()
        self._times, self._hears = times, hears

    def operate(self, call: Call) -> Operation:
        """Return the operation of a call, about to begin."""
        operation: Operation = getattr(self, call.what)(*call.args)
        return operation

    def acquire(self, name: str, id: str, owner: str, lease: float, known: int | None) -> Operation:
        """See `Store.acquire`; a holder that died on this machine is replaced."""
        dead: str | None = None
        while True:
            answer = yield from self._acquire(name, id, owner, lease, known, dead)
            if isinstance(answer, Grant) or answer.owner == dead:
                return answer
            if not owner_is_dead(answer.owner):
                return answer
            dead = answer.owner

    def purge(self, name: str, unused: float, limit: int) -> Operation:
        """See `Store.purge`."""
        date, note = (yield from self._date()) if self._times.are_the_servers else (None, None)
        return (yield from self._purge(name, unused, limit, self._times.judge(date, note)))

    def conflicts(self, name: str | None, limit: int) -> Operation:
        """Return the refused writes, newest first."""
        return self._kept("conflicts", name, limit)

    def quarantined(self, name: str | None, limit: int) -> Operation:
        """Return the records that could not be read, newest first."""
        return self._kept("quarantine", name, limit)

    @abstractmethod
    def _acquire(
        self, name: str, id: str, owner: str, lease: float, known: int | None, dead: str | None
    ) -> Operation:
        """Ask for a lease once, which may be taken from a `dead` owner."""

    @abstractmethod
    def _date(self) -> Operation:
        """Return the date of the server, and what was noted about it."""

    @abstractmethod
    def _purge(self, name: str, unused: float, limit: int, by: Judgement) -> Operation:
        """Delete what was not used for so long, by these times."""

    @abstractmethod
    def _kept(self, kind: str, name: str | None, limit: int) -> Operation:
        """Return bytes that were kept, newest first."""
