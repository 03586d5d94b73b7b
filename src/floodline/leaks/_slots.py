"""Named places that hold something: `app.SERVICE._sessions`, `app.Chat.events`, `app.run()jobs`.

A place below named things alone keeps its whole path as its key. Below an item of a container the
many places of one kind are one slot (`Chat.events` of all chats), and so are the links of a chain.
"""

from __future__ import annotations

from typing import Final

from floodline.leaks._anatomy import is_standard

MAX_DEPTH = 14
MAX_SLOTS = 100_000
MAX_PATH = 200
MAX_UP = 64  # steps; a function may lie in a variable of its own


class Slot:
    """One named place, or all places of one name below the items of a container."""

    __slots__ = (
        *("anchor", "depth", "entered", "index", "key", "kids"),
        *("label", "parent", "path", "starred"),
    )

    def __init__(
        self, index: int, key: str, parent: Slot | None, anchor: str, label: str, *, starred: bool
    ) -> None:
        self.index, self.key, self.parent = index, key, parent
        self.anchor, self.label, self.starred = anchor, label, starred
        self.depth: int = parent.depth + 1 if parent else 0
        path = (parent.path if parent else "") + label
        self.path: str = key if path == key else path  # one text less for most
        self.kids = NO_KIDS
        self.entered: Slot | None = None  # where the function or generator of a cell, a local is

    @property
    def named(self) -> bool:
        """Whether a developer wrote this name: an attribute, a global, a cell, a local."""
        return self.label[:1] not in ("[", "→")

    @property
    def owner(self) -> str:
        """The name to search for: `pkg.mod.Class.attr`, whatever path led there."""
        return self.anchor + self.label if self.named else ""

    @property
    def standard(self) -> bool:
        """Whether the name is written in the standard library, not in the program."""
        return is_standard(self.anchor or self.label)

    def head(self) -> Slot:
        """Return the nearest slot with a name that the program itself wrote, else with any name.

        What lies in an item of a container that the library keeps for itself is not the program's:
        all loggers hang below each of them. A variable of a function of the library belongs to
        where that function lies.
        """
        first: Slot | None = None
        at: Slot | None = self
        for _ in range(MAX_UP):
            if at is None:
                break
            if at.named and first is None:
                first = at
            if at.named and not at.standard:
                return at
            if first is not None and at.label[0] == "[" and _kept_by_library(at.parent):
                return first
            at = at.entered or at.parent
        return first or self


def _kept_by_library(slot: Slot | None) -> bool:
    """Tell whether a container is an attribute of something that is an attribute of the library."""
    if slot is None or slot.parent is None:
        return False
    return all(one.named and one.standard for one in (slot, slot.parent))


NO_KIDS: Final[dict[str, Slot]] = {}  # most slots have none


class Slots:
    """All slots of a process, the same objects from one walk to the next."""

    def __init__(self) -> None:
        self.all: list[Slot] = []
        self._by_key: dict[str, Slot] = {}  # floodline: bounded[MAX_SLOTS, and one root a module]

    def get(self, key: str) -> Slot | None:
        """Return the slot of a key, None if it was never seen."""
        return self._by_key.get(key)

    def root(self, name: str) -> Slot:
        """Return the slot of a root: a module, a class, a function, the frames of a thread."""
        found = self._by_key.get(name)
        return found or self._make(name, None, "", name, starred=False)

    def child(self, parent: Slot, anchor: str, label: str) -> Slot:
        """Return the slot of `label` below `parent`; `anchor` is the class or function it is of."""
        known = parent.kids.get(anchor + label)
        if known is None:
            known = self._place(parent, anchor, label)
            if parent.kids is NO_KIDS:
                parent.kids = {}
            name = anchor + label
            parent.kids[known.key if known.key == name else name] = known
        return known

    def _place(self, parent: Slot, anchor: str, label: str) -> Slot:
        if len(self.all) >= MAX_SLOTS:
            return parent
        if label[0] in "[→":
            if _run_of(parent, label) >= 3:
                return parent
            key, starred = parent.key + label, True
        elif parent.starred or parent.depth >= MAX_DEPTH or _again(parent, anchor, label):
            key, starred = f"*{anchor}{label}", True
        else:
            key, starred = parent.key + label, False
        found = self._by_key.get(key)
        return found or self._make(key, parent, anchor, label, starred=starred)

    def _make(
        self, key: str, parent: Slot | None, anchor: str, label: str, *, starred: bool
    ) -> Slot:
        slot = Slot(len(self.all), key, parent, anchor, label, starred=starred)
        self.all.append(slot)
        self._by_key[key] = slot
        return slot


def _run_of(slot: Slot, label: str) -> int:
    """Count how many unnamed steps end here, so that nested lists do not make slots for ever."""
    count = 0
    at: Slot | None = slot
    while at is not None and not at.named:
        count += 1 if at.label == label or label[0] == "→" else 0
        at = at.parent
    return count


def _again(slot: Slot, anchor: str, label: str) -> bool:
    at: Slot | None = slot
    while at is not None:
        if at.label == label and at.anchor == anchor:
            return True
        at = at.parent
    return False


def shorten(path: str) -> str:
    """Cut the middle out of a path of more than 200 characters."""
    if len(path) < MAX_PATH:
        return path
    return path[: MAX_PATH // 2 - 2] + "…" + path[-(MAX_PATH // 2 - 2) :]
