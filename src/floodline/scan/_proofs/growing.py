"""Where a container grows, and what leads there."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.reasons import Reason
from floodline.scan._facts.references import INSTANCE
from floodline.scan._program.edges import Edge
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.events import Events
from floodline.scan._proofs.grounds import Path
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

    def taken(self, function: str, key_text: str) -> list[Change]:
        """Return what takes the entry of one key out in a function, not counting error handlers."""
        return [
            change
            for file, change in self._held.changes
            if change.verb == "shrink"
            and change.key_text == key_text
            and f"{file.module}:{change.function}" == function
            and "except" not in change.marks
        ]

    @cached_property
    def by_function(self) -> dict[str, list[int]]:
        """The numbers of the places to which a function leads."""
        led = defaultdict(list)
        for number, function in enumerate(self.functions):
            for above in self._reach.ancestors(function):
                led[above].append(number)
        return led


def unseen(program: Program, reach: Reach, events: Events, function: str) -> Reason:
    """Return what is known of a function's callers if no event is near: the best of it."""
    name = _last(function)
    if reach.is_passed(function):
        return Path.PASSED(name)
    above = sorted(reach.ancestors(function) - {function})
    if handlers := [item for item in above if item in events.handlers]:
        return Path.FAR_FROM_EVENT(name, _last(handlers[0]))
    if passed := [item for item in above if reach.is_passed(item)]:
        return Path.FAR_FROM_PASSED(name, _last(passed[0]))
    if any(edge.caller != function for edge in program.callers.get(function, ())):
        return Path.UNSEEN_ABOVE(name)
    unnamed = events.shown and reach.is_unnamed(function)
    return (Path.UNNAMED if unnamed else Path.UNSEEN)(name)


def _last(function: str) -> str:
    return function.rpartition(":")[2].rpartition(".")[2]


def fills_empty(program: Program, reach: Reach, held: Held, function: str) -> bool:
    """Return True if a function is only called, once, where what it fills was found to be empty."""
    edges = program.callers.get(function, ())
    others = reach.is_passed(function) or not reach.is_own(function)
    if not edges or others or program.related.get(function) or _is_inherited(program, function):
        return False
    return all(not edge.guessed and _was_empty(program, held, edge) for edge in edges)


def _is_inherited(program: Program, function: str) -> bool:
    """Return True for a method whose class has an external base, which may call it."""
    names, module = program.names, function.partition(":")[0]
    owner = names.functions[function].owner
    return bool(owner) and any(
        names.is_outside(above.partition(":")[0], base)
        for above in names.order(f"{module}:{owner}")
        for base in names.classes[above].bases
    )


def _was_empty(program: Program, held: Held, edge: Edge) -> bool:
    if edge.repeats not in ("", "once"):
        return False
    texts = [arm.text for arm in edge.call.arms if arm.kind == "empty"]
    return any(held.key in _keys(program, edge.caller, text) for text in texts)


def _keys(program: Program, function: str, text: str) -> list[str]:
    """Return the keys of the containers that a name may mean in a function."""
    names, module = program.names, function.partition(":")[0]
    head, _, attribute = text.partition(".")
    if not attribute:
        return [names.resolve(module, text)]
    known = names.functions.get(function)
    if head != "self" or known is None or not known.owner:
        return []
    return [f"{owner}.{attribute}" for owner in names.order(f"{module}:{known.owner}")]
