"""Requests of several callers as one run of a script, and the reply of each.

Only `acquire` and `save` come often enough to be worth it. Their scripts answer with one line of
numbers, three for each caller, and then with what is not a number, for those whose code is even.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from floodline.stores._redis.requests import Request

HELD, DONE, ROWS_REFUSED = 0, 1, 2
_TOGETHER = frozenset({"acquire", "save", "save_rows"})
_MOST = 64  # callers in one run, so that it does not hold up the server


@dataclass(slots=True)
class Batch:
    """One run of a script, and which of the requests it is for."""

    what: str
    head: tuple[Any, ...]
    args: list[Any]
    places: list[int]
    ids: set[str]  # each once: a run reads all of them before it writes one

    def answer(self, reply: Any, replies: list[Any]) -> None:
        """Give each of the requests its reply; an error is one for all."""
        if self.what not in _TOGETHER or isinstance(reply, Exception):
            for place in self.places:
                replies[place] = reply
            return
        numbers, blobs = iter(reply[0].split()), iter(reply)
        next(blobs)
        for place in self.places:
            code = int(next(numbers))
            blob = None if code % 2 else next(blobs)
            replies[place] = (code, int(next(numbers)), int(next(numbers)), blob)


def batches(requests: Sequence[Request], places: Sequence[int], most: int = _MOST) -> list[Batch]:
    """Return the runs that serve the requests at these places, in the order of their first."""
    made: list[Batch] = []
    open_ones: dict[tuple[Any, ...], Batch] = {}
    for place in places:
        what, head, args = requests[place]
        batch = open_ones.get((what, head))
        if batch is None or len(batch.places) >= most or args[0] in batch.ids:
            batch = Batch(what, head, [*args], [place], {args[0]} if args else set())
            made.append(batch)
            if what in _TOGETHER:
                open_ones[what, head] = batch
        else:
            batch.args += args
            batch.places.append(place)
            batch.ids.add(args[0])
    return made
