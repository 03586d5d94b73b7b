"""One heartbeat for all the leases of an owner, instead of a renewal for each.

A lease lasts as long as it was given for. If it is still in use when its owner renews, it is tied
to the owner's heartbeat, and lasts as long as that: from then on a renewal costs one short request,
however many leases there are. What was tied and is no longer in use is freed with the next
heartbeat, in case its release was lost.

Only a heartbeat that stopped for longer than the lease can have cost us one. The server says so,
and we then name all of them again. So we do after each new connection, because another server, or
the same one after a crash, may not know what was tied, or may know too much: ties have the number
of their connection, and only those of the heartbeat's own number count.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

from floodline.stores._server.link import Operation

Fences = Mapping[str, int]


class Beat(NamedTuple):
    """What a heartbeat says: its number, what to tie to it, and what to free."""

    number: int
    new: Fences
    gone: Fences


class Ties:
    """Which leases are tied to a heartbeat, as far as this process knows."""

    def __init__(self) -> None:
        self._tied: dict[tuple[str, str], tuple[int, dict[str, int]]] = {}
        self._number = 1

    def renumber(self) -> None:
        """Note a new connection, whose server may know of other ties than we do."""
        self._number += 1

    def next_beat(self, name: str, owner: str, fences: Fences) -> Beat:
        """Return what to say to keep these leases and no others."""
        number, noted = self._tied.get((name, owner), (0, {}))
        tied = noted.copy()
        gone = {one: fence for one, fence in tied.items() if fences.get(one) != fence}
        if number != self._number:
            tied = {}
        new = {one: fence for one, fence in fences.items() if tied.get(one) != fence}
        return Beat(self._number, new, gone)

    def note(self, name: str, owner: str, number: int, tied: dict[str, int]) -> None:
        """Note what is tied now."""
        self._tied[name, owner] = (number, tied)

    def ended(self, name: str, id: str, fence: int) -> None:
        """Note that a lease was given back."""
        for (of, owner), (_, tied) in list(self._tied.items()):
            if of == name and tied.get(id) == fence:
                tied.pop(id, None)
                if not tied:
                    self._tied.pop((of, owner), None)


class Heart:
    """The renewal of leases by heartbeats, for the operations of a store."""

    def __init__(self) -> None:
        self.ties = Ties()

    @abstractmethod
    def _beat(self, name: str, owner: str, lease: float, beat: Beat) -> Operation:
        """Prolong the heartbeat, tie and free leases; return whether it had stopped, and which of
        the new ones are lost.
        """

    def renew(self, name: str, owner: str, fences: Fences, lease: float) -> Operation:
        """See `Store.renew`."""
        beat = self.ties.next_beat(name, owner, fences)
        stopped, lost = yield from self._beat(name, owner, lease, beat)
        rest = {one: fence for one, fence in fences.items() if one not in beat.new}
        if stopped and rest:
            _, more = yield from self._beat(name, owner, lease, Beat(beat.number, rest, {}))
            lost |= more
        kept = {one: fence for one, fence in fences.items() if one not in lost}
        self.ties.note(name, owner, beat.number, kept)
        return lost
