"""Named places that hold something: `app.SERVICE._sessions`, `app.Chat.events`, `app.run()jobs`.

A place reached only through names has its whole path as its key. Below an item of a container, the
many places of one kind are one slot (`Chat.events` of all chats), and so are the links of a chain.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from floodline.leaks._objects.anatomy import is_standard

MAX_DEPTH = 14
MAX_SLOTS = 400_000
MAX_PATH = 200
MAX_UP = 64  # steps; a function may be in a variable of its own
NOWHERE = -1
ANCHOR = -2  # as a parent: the root called as the anchor, made when it gets a child
ITEM = "[*]"
KEYS = "[keys]"


class Slots:
    """All slots of a process; their numbers stay the same from one walk to the next.

    A slot is a number in flat columns, because so many objects of our own would trigger the
    collector. Its key is put together when needed: thousands of paths would take megabytes.
    """

    def __init__(self, most: int = MAX_SLOTS) -> None:
        self.most = most
        self.anchors: list[str] = []
        self.labels: list[str] = []
        self.parents = array("l")
        self.depths = array("l")
        self.starred = bytearray()
        self.library = bytearray()  # True if the path starts in the standard library
        self._entered: dict[int, int] = {}
        self._by_key: dict[int, int] = {}  # by the hashes of their keys
        self.kids: dict[int, int] = {}  # by the parent and the number of the name
        self.names = {ITEM: 0}  # anchors with labels, numbered
        self.root("<more>")  # for further ones when all are taken

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Slot:
        return Slot(self, index)

    def __iter__(self) -> Iterator[Slot]:
        return (Slot(self, index) for index in range(len(self)))

    def get(self, key: str) -> Slot | None:
        """Return the slot of a key, None if it was never seen."""
        index = self._by_key.get(hash(key))
        return None if index is None else Slot(self, index)

    def key(self, index: int) -> str:
        """Return what distinguishes a slot from all others."""
        steps, at = [], index
        while self.parents[at] != NOWHERE:
            label = self.labels[at]
            if self.starred[at] and is_name(label):
                steps.append(f"*{self.anchors[at]}{label}")
                break
            steps.append(label)
            at = self.parents[at]
        else:
            steps.append(self.labels[at])
        return "".join(reversed(steps))

    def root(self, name: str) -> int:
        """Return the slot of a root: a module, a class, a function, the frames of a thread."""
        found = self._by_key.get(hash(name))
        return self._make(name, NOWHERE, "", name, starred=False) if found is None else found

    def child(self, parent: int, anchor: str, label: str) -> int:
        """Return the slot of `label` below `parent`; `anchor` is its class or function."""
        name = anchor + label
        number = self.names.get(name)
        found = self.kids.get(parent << 32 | number) if number is not None else None
        if found is None:
            found = self._place(parent, anchor, label)
            if len(self.labels) < self.most:
                number = self.names.setdefault(name, len(self.names))
                self.kids[parent << 32 | number] = found
        return found

    def along(self, root: str, steps: Iterable[tuple[str, str]]) -> int:
        """Return a slot of one way from a root, whatever other ways lead to the same name."""
        at, key = self.root(root), root
        for anchor, label in steps:
            key += label
            found = self._by_key.get(hash(key))
            if found is None:
                starred = bool(self.starred[at]) or not is_name(label)
                found = self._make(key, at, anchor, label, starred=starred)
            at = found
        return at

    def enter(self, index: int, entered: int) -> None:
        """Note the slot of the function or generator of a cell or local, unless it is known."""
        self._entered.setdefault(index, entered)

    def entered(self, index: int) -> int:
        """Return the slot of the function or generator of a cell or local, else `NOWHERE`."""
        return self._entered.get(index, NOWHERE)

    def _place(self, parent: int, anchor: str, label: str) -> int:
        parent = self.root(anchor) if parent == ANCHOR else parent
        if label[0] in "[→":
            if self._run_of(parent, label) >= 3:
                return parent
            key, starred = self.key(parent) + label, True
        elif (
            self.starred[parent]
            or self.depths[parent] >= MAX_DEPTH
            or self._again(parent, anchor, label)
        ):
            key, starred = f"*{anchor}{label}", True
        else:
            key, starred = self.key(parent) + label, False
        found = self._by_key.get(hash(key))
        return self._make(key, parent, anchor, label, starred=starred) if found is None else found

    def _make(self, key: str, parent: int, anchor: str, label: str, *, starred: bool) -> int:
        index, above = len(self.labels), parent != NOWHERE
        if index >= self.most:
            return max(parent, 0)
        self.anchors.append(anchor)
        self.labels.append(label)
        self.parents.append(parent)
        self.depths.append(self.depths[parent] + 1 if above else 0)
        self.starred.append(starred)
        self.library.append(self.library[parent] if above else is_standard(label + "."))
        self._by_key[hash(key)] = index
        return index

    def _run_of(self, index: int, label: str) -> int:
        """Count the unnamed steps that end here, so that nested lists do not add slots forever."""
        count = 0
        while index != NOWHERE and not is_name(self.labels[index]):
            count += 1 if self.labels[index] == label or label[0] == "→" else 0
            index = self.parents[index]
        return count

    def _again(self, index: int, anchor: str, label: str) -> bool:
        while index != NOWHERE:
            if self.labels[index] == label and self.anchors[index] == anchor:
                return True
            index = self.parents[index]
        return False


@dataclass(slots=True, frozen=True)
class Slot:
    """One named place, or all places of one name below the items of a container."""

    slots: Slots
    index: int

    @property
    def key(self) -> str:
        """What distinguishes it from all others."""
        return self.slots.key(self.index)

    @property
    def anchor(self) -> str:
        """The module, class or function that the name belongs to."""
        return self.slots.anchors[self.index]

    @property
    def label(self) -> str:
        """The last step of the path."""
        return self.slots.labels[self.index]

    @property
    def depth(self) -> int:
        """The steps from the root."""
        return self.slots.depths[self.index]

    @property
    def starred(self) -> bool:
        """True if it stands for many places."""
        return bool(self.slots.starred[self.index])

    @property
    def parent(self) -> Slot | None:
        """The slot above, None for a root."""
        return self._at(self.slots.parents[self.index])

    @property
    def entered(self) -> Slot | None:
        """The slot of the function or generator whose cell or local this is."""
        return self._at(self.slots.entered(self.index))

    def _at(self, index: int) -> Slot | None:
        return None if index == NOWHERE else Slot(self.slots, index)

    @property
    def way(self) -> list[str]:
        """The labels of the root and of the steps from there."""
        slots, labels, at = self.slots, [], self.index
        while at != NOWHERE:
            labels.append(slots.labels[at])
            at = slots.parents[at]
        labels.reverse()
        return labels

    @property
    def path(self) -> str:
        """The whole path from the root as one text."""
        return "".join(self.way)

    @property
    def named(self) -> bool:
        """True if a developer wrote this name: an attribute, a global, a cell, a local."""
        return is_name(self.label)

    @property
    def owner(self) -> str:
        """The name to search for: `pkg.mod.Class.attr`, whatever path led there."""
        return self.anchor + self.label if self.named else ""

    @property
    def standard(self) -> bool:
        """True if the name is written in the standard library, not in the program."""
        return is_standard(self.anchor or self.label)

    def head(self) -> Slot:
        """Return the nearest slot with a name that the program itself wrote, else with any name.

        What is in an item of a container that the library keeps for itself is not the program's:
        all loggers are reachable from each of them. A variable of a library function belongs to
        the place of that function.
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
    """Return True if a container is an attribute of an attribute of the library."""
    if slot is None or slot.parent is None:
        return False
    return all(one.named and one.standard for one in (slot, slot.parent))


def is_name(label: str) -> bool:
    """Return True if a developer wrote the name: neither an item nor an unnamed reference."""
    return label[:1] not in ("[", "→")


def is_placeholder(name: str) -> bool:
    """Return True for `<thread local>` and the like, used where the source has no name."""
    return name.startswith("<")


def shorten(path: str) -> str:
    """Cut the middle out of a path of more than 200 characters."""
    if len(path) < MAX_PATH:
        return path
    return path[: MAX_PATH // 2 - 2] + "…" + path[-(MAX_PATH // 2 - 2) :]
