"""Cuts that are planned before anything leaves."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from floodline.history._atoms import Atom, Entry


class Plan:
    """What would leave, and all that was `passed` in the queue for it; nothing has left yet."""

    __slots__ = ("passed", "victims")

    def __init__(self) -> None:
        self.passed: list[Atom] = []
        self.victims: dict[int, Atom] = {}

    def entries(self) -> list[Entry]:
        """Return what would leave, oldest first."""
        found = [entry for atom in self.victims.values() for entry in atom.entries]
        found.sort(key=lambda entry: entry.seq)
        return found


class Front:
    """Reads a queue from its front, and records in `passed` what was read."""

    __slots__ = ("_ahead", "_passed", "_queue")

    def __init__(self, queue: deque[Atom], passed: list[Atom]) -> None:
        self._queue, self._passed = iter(queue), passed
        self._ahead = next(self._queue, None)

    def _step(self, atom: Atom) -> Atom:
        self._passed.append(atom)
        self._ahead = next(self._queue, None)
        return atom

    def take_first(self, wanted: Callable[[Atom], bool]) -> Atom | None:
        """Read up to the first atom that is wanted."""
        while (atom := self._ahead) is not None:
            if wanted(self._step(atom)):
                return atom
        return None

    def take_turn(self, turn: int) -> Atom | None:
        """Read the next atom if it is of this turn."""
        atom = self._ahead
        return self._step(atom) if atom is not None and atom.turn == turn else None
