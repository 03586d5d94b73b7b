"""Tombstones: ids that were closed recently and are refused."""

from __future__ import annotations

from collections import OrderedDict

from floodline.errors import SessionClosed

MAX_TOMBS = 10_000


class Tombs:
    """At most 10,000 tombstones; the oldest is forgotten."""

    def __init__(self) -> None:
        self._until: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until)

    def bury(self, id: str, until: float) -> None:
        """Refuse `id` until then."""
        self._until[id] = until
        self._until.move_to_end(id)
        while len(self._until) > MAX_TOMBS:
            self._until.popitem(last=False)

    def until(self, id: str) -> float | None:
        """Return how long an id is refused, if it is."""
        return self._until.get(id)

    def put_back(self, id: str, until: float | None) -> None:
        """Refuse an id as long as before."""
        if until is None:
            self._until.pop(id, None)
        else:
            self._until[id] = until

    def refuse(self, id: str, now: float) -> None:
        """Raise `SessionClosed` for an id that still has a tombstone."""
        until = self._until.get(id)
        if until is None:
            return
        if now < until:
            raise SessionClosed(
                f"session {id!r} was closed; its tombstone refuses the id for "
                f"{until - now:.3g} s more"
            )
        del self._until[id]

    def clear_expired(self, now: float) -> None:
        """Forget the expired ones."""
        while self._until and next(iter(self._until.values())) <= now:
            self._until.popitem(last=False)
