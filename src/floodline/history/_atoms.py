"""The unit of trimming: a call with all its results and the reasoning before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from floodline.history._formats.shapes import (
    PAIRED_ITEMS,
    RESPONSES,
    Kind,
    Message,
    Reading,
    is_linked,
)

AS_APPENDED, CHANGED, OURS = 0, 1, 2  # where an entry's message comes from


class Entry:
    """One stored message with its measures; `origin` says whether it must still be archived.

    A CHANGED message was shortened or split, and its original is already archived; one that is
    OURS was written by floodline.
    """

    __slots__ = ("message", "origin", "seq", "size", "tokens")

    def __init__(
        self, message: Message, size: int, tokens: int, seq: int, origin: int = AS_APPENDED
    ) -> None:
        self.message, self.size, self.tokens = message, size, tokens
        self.seq, self.origin = seq, origin

    def dump(self) -> list[Any]:
        """Return plain data, such that `Entry(*data)` is equal."""
        return [self.message, self.size, self.tokens, self.seq, self.origin]


class Atom:
    """Messages that stay or go together; `open` holds the calls without a result.

    `key` is the number of the first message. `props` counts the pinned atoms that need this one,
    the user's message of their turn.
    """

    __slots__ = ("entries", "family", "key", "kind", "open", "pinned", "props", "turn")

    def __init__(self, kind: Kind, family: str | None, turn: int, key: int) -> None:
        self.kind, self.family, self.turn, self.key = kind, family, turn, key
        self.entries: list[Entry] = []
        self.open: list[str] = []
        self.pinned = False
        self.props = 0

    @property
    def dangling(self) -> bool:
        """True if this ends in reasoning, whose provider requires the item that follows it."""
        return self.entries[-1].message.get("type") == "reasoning"

    @property
    def reasoned(self) -> bool:
        """True if reasoning leads this; it is never further back."""
        return self.entries[0].message.get("type") == "reasoning"

    @property
    def in_flight(self) -> bool:
        """True if something that belongs to this is still to come."""
        return bool(self.open) or (self.family == RESPONSES and self.dangling)

    @property
    def fixed(self) -> bool:
        """True if this stays, whatever its turn."""
        return self.kind is Kind.system or self.pinned or self.props > 0

    def gathers(self, reading: Reading, message: Message) -> bool:
        """Return True if the next item of a response belongs to this atom.

        Reasoning belongs to everything after it in its response, up to the next reasoning: the API
        knows by its id what an item came with, hosted ones included. Adjacent calls are one step
        of the model.
        """
        last = self.entries[-1].message.get("type")
        if reading.kind is Kind.reasoning or not self.reasoned:
            return last == "reasoning" or (
                last in PAIRED_ITEMS and message.get("type") in PAIRED_ITEMS
            )
        return last == "reasoning" or is_linked(message)

    def weight(self) -> tuple[int, int, int]:
        """Return messages, tokens and bytes."""
        return weight_of(self.entries)

    def dump(self) -> list[Any]:
        """Return plain data for `Atom.load`."""
        entries = [entry.dump() for entry in self.entries]
        flags = [self.pinned, self.props]
        return [self.kind.value, self.family, self.turn, entries, list(self.open), *flags]

    @classmethod
    def load(cls, data: list[Any]) -> Atom:
        """Create an atom from what `dump` returned."""
        kind, family, turn, entries, open_calls, pinned, props = data
        atom = cls(Kind(kind), family, turn, entries[0][3])
        atom.entries = [Entry(*entry) for entry in entries]
        atom.open, atom.pinned, atom.props = list(open_calls), pinned, props
        return atom


def weight_of(entries: Iterable[Entry]) -> tuple[int, int, int]:
    """Return messages, tokens and bytes of some entries."""
    messages = tokens = size = 0
    for entry in entries:
        messages += 1
        tokens += entry.tokens
        size += entry.size
    return messages, tokens, size
