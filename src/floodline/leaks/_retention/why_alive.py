"""Finds what holds an object now, by searching from it up to a name.

Each step asks the collector for the holders of one object, which is one pass over the heap in C
and runs none of the program's code. The number of passes is bounded.
"""

from __future__ import annotations

import gc
import sys
import types
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from floodline.leaks._heap.roots import HELD_BY_C
from floodline.leaks._objects.anatomy import (
    Anatomy,
    derives,
    is_standard,
    label_of,
    names_of_module,
)
from floodline.leaks._objects.frames import (
    code_label,
    frame_of,
    is_ours,
    read_locals,
    running_frames,
)
from floodline.leaks._retention.path_text import MAX_LOOKED_AT, Route
from floodline.leaks._vocabulary import Hold

MAX_PASSES = 64
MAX_PATHS = 5
MAX_OPEN = 1000
_INTERPRETERS = 1000  # Python 3.12 freezes some objects of its own


@dataclass(slots=True, frozen=True)
class Retainer:
    """One way from a name to the object; `path` never contains keys or values."""

    path: str
    owner: str
    count: int = 1


@dataclass(slots=True, frozen=True)
class WhyAlive:
    """The answer of `why_alive`: `verdict` is held, caller, garbage or unknown."""

    type: str
    verdict: Hold
    retainers: tuple[Retainer, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The first path, or a sentence that says why there is none."""
        return self.retainers[0].path if self.retainers else _WORDS[self.verdict]

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain dicts, lists and numbers, ready for `json.dumps`."""
        retainers = [asdict(one) for one in self.retainers]
        return {**asdict(self), "verdict": str(self.verdict), "retainers": retainers}

    def __str__(self) -> str:
        if not self.retainers:
            lines = [f"{self.type}: {_WORDS[self.verdict]}"]
        else:
            lines = [f"{self.type} is held by"]
        for one in self.retainers:
            more = f"  ×{one.count}" if one.count > 1 else ""
            owner = f"  (owner {one.owner})" if one.owner != one.path else ""
            lines.append(f"  {one.path}{more}{owner}")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])


_WORDS = {
    Hold.CALLER: "only the caller holds it",
    Hold.GARBAGE: "only a garbage cycle holds it, until the next full collection",
    Hold.UNKNOWN: "no name that leads to it was found",
}


class _Nodes(list[Any]):
    """The objects of one search; its own type, so that no search mistakes it for a holder."""


OWN = frozenset((id(_Nodes),))


def why_alive(obj: Any) -> WhyAlive:
    """Return what keeps an object alive: paths from a name down to it, shortest first.

    The caller's own variables do not count. At most 64 passes are made over the heap; `notes` says
    what was left out. No reference is kept.
    """
    return Search(obj, frames=True, caller=_caller()).answer()


class Search:
    """One search; `frames` also reads the locals of running functions.

    `caller` is the frame whose variables do not count, `own` the ids of holders to skip.
    """

    def __init__(
        self,
        obj: Any,
        *,
        frames: bool,
        caller: types.FrameType | None = None,
        passes: int = MAX_PASSES,
        own: frozenset[int] = frozenset(),
    ) -> None:
        self._nodes = _Nodes((obj,))
        self._held: list[list[int]] = [[]]
        self._index = {id(obj): 0}
        self._passes, self._own = passes, own
        self._modules = _module_names()
        self._caller = id(caller)
        self._locals = _running_locals(obj, caller) if frames else {}
        self._left_out = 0
        self._roots: list[tuple[str, int]] = []
        self._sampled: list[str] = []

    def answer(self) -> WhyAlive:
        """Search, write the answer, and drop every reference."""
        kind = label_of(type(self._nodes[0]))
        try:
            done = self._climb()
            verdict = Hold.HELD
            if not self._roots:
                verdict = self._without_root() if done else Hold.UNKNOWN
            return WhyAlive(kind, verdict, self._retainers(), self._notes(done))
        finally:
            self._nodes.clear()

    def _climb(self) -> bool:
        """Go up, nearest holders first; return True if everything was seen."""
        at = passes = 0
        while at < len(self._nodes):
            if passes >= self._passes or len(self._roots) >= MAX_PATHS * 4:
                return False
            if not self._name(at):
                self._add_holders(at)
                passes += 1
            at += 1
        return not self._left_out

    def _name(self, at: int) -> bool:
        """Note which roots an object is; a root need not be followed further up."""
        node = self._nodes[at]
        label = self._locals.get(id(node))
        if label is not None:
            self._roots.append((label, at))
        if at and id(node) in self._modules:
            self._roots.append((self._modules[id(node)], at))
        elif at and derives(type(node), type):
            self._roots.append((label_of(node), at))
        else:
            return False
        return True

    def _add_holders(self, at: int) -> None:
        target = (self._nodes[at],)
        found = gc.get_referrers(*target)
        own = self._own | {id(target), id(found)}
        new = 0
        for holder in found:
            if id(holder) in own or id(type(holder)) in OWN or self._is_passed_over(holder, at):
                continue
            if id(holder) in self._index:
                self._link(self._index[id(holder)], at)
                continue
            new += 1
            # one object with many holders must not use up all passes; a module costs none
            if new > max(4, self._passes // 4) and id(holder) not in self._modules:
                self._left_out += 1
            else:
                self._index[id(holder)] = len(self._nodes)
                self._nodes.append(holder)
                self._held.append([at])

    def _is_passed_over(self, holder: Any, at: int) -> bool:
        """Return True if it is a frame of ours, or the caller's as far as it holds the object."""
        frame = frame_of(holder)
        if frame is None:
            return False
        return is_ours(frame) or (at == 0 and id(frame) == self._caller)

    def _link(self, holder: int, at: int) -> None:
        """Note another way down: the collector decides which one is met first."""
        if len(self._held[holder]) < MAX_PATHS:
            self._held[holder].append(at)

    def _without_root(self) -> Hold:
        """Say what holds a closed set: C code, only itself, or only the caller."""
        if any(map(_is_large, self._nodes)):
            self._sampled.append(
                f"a holder with more than {MAX_LOOKED_AT:,} items was not searched"
            )
            return Hold.UNKNOWN
        inner: Counter[int] = Counter()
        looped = False
        for node in self._nodes:
            held = [id(o) for o in gc.get_referents(node) if id(o) in self._index]
            inner.update(held)
            # a cell that nothing holds is a variable of the caller
            looped |= id(self._nodes[0]) in held and type(node) is not types.CellType
        del node
        spare = [sys.getrefcount(node) - 3 - inner[id(node)] for node in self._nodes]
        for at, (count, node) in enumerate(zip(spare, self._nodes, strict=True)):
            if at and count > 0 and type(node) is not types.CellType:
                self._roots.append((f"{HELD_BY_C} {label_of(type(node))}", at))
        if self._roots:
            return Hold.HELD
        return Hold.GARBAGE if looped else Hold.CALLER

    def _retainers(self) -> tuple[Retainer, ...]:
        found: Counter[tuple[str, str]] = Counter()
        for label, root in self._roots[: MAX_PATHS * 4]:
            for way in self._ways(root):
                chain = _Nodes(self._nodes[at] for at in way)
                is_module = self._modules.get(id(chain[0])) == label
                route = Route(label, chain, is_module=is_module)
                found[route.path, route.owner] += 1
                self._sampled += route.notes
        # the program's own names say more than those of the library
        order = sorted(found, key=lambda one: is_standard(one[0]))
        return tuple(Retainer(*one, found[one]) for one in order[:MAX_PATHS])

    def _ways(self, root: int) -> list[list[int]]:
        """Return some ways from a root down to the object, shortest first, without detours."""
        ways: list[list[int]] = []
        open_ends = [[root]]
        while open_ends and len(ways) < MAX_PATHS:
            way = open_ends.pop(0)
            if any(set(way).issuperset(short) for short in ways):
                continue
            if way[-1] == 0:
                ways.append(way)
            elif len(open_ends) < MAX_OPEN:
                open_ends += [[*way, at] for at in self._held[way[-1]] if at not in way]
        return ways

    def _notes(self, done: bool) -> tuple[str, ...]:
        notes = list(dict.fromkeys(self._sampled))
        if not done:
            notes.append("not every holder was followed: there may be more paths")
        if (frozen := gc.get_freeze_count()) > _INTERPRETERS:
            notes.append(f"{frozen} objects are frozen (gc.freeze) and were not searched")
        return tuple(notes)


def _is_large(node: Any) -> bool:
    length = Anatomy(type(node)).length
    return length is not None and length(node) > MAX_LOOKED_AT


def _module_names() -> dict[int, str]:
    """Return the names of modules by the identity of their globals."""
    return {
        id(names_of_module(module)): name
        for name, module in reversed(list(dict.items(sys.modules)))
        if type(name) is str and derives(type(module), types.ModuleType)
    }


def _running_locals(obj: Any, caller: types.FrameType | None) -> dict[int, str]:
    """Return names for what running functions' locals hold, except the caller's for `obj`."""
    found: dict[int, str] = {}
    for frame in running_frames():
        label = code_label(frame.f_code, frame.f_globals)
        for name, value in read_locals(frame).items():
            if value is not obj or frame is not caller:
                found.setdefault(id(value), f"{label}(){name}")
    return found


def _caller() -> types.FrameType | None:
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    return frame
