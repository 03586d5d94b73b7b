"""Where a container grows, and what leads there."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.references import INSTANCE
from floodline.scan._program.program import Held
from floodline.scan._proofs.reach import Reach


class Growing:
    """Where a container grows, for the ways out of it."""

    def __init__(self, held: Held, places: list[tuple[FileFacts, Change]], reach: Reach) -> None:
        self.places = places
        self.functions = [f"{file.module}:{change.function}" for file, change in places]
        self.owner = held.key.rpartition(".")[0] if held.made[0].ref.kind == INSTANCE else ""
        self._held, self._reach = held, reach

    def without(self, function: str) -> Growing:
        """Return the growth that other functions cause."""
        kept = [p for p, name in zip(self.places, self.functions, strict=True) if name != function]
        return Growing(self._held, kept, self._reach) if len(kept) < len(self.places) else self

    @cached_property
    def by_function(self) -> dict[str, list[int]]:
        """The numbers of the places to which a function leads."""
        led = defaultdict(list)
        for number, function in enumerate(self.functions):
            for above in self._reach.ancestors(function):
                led[above].append(number)
        return led
