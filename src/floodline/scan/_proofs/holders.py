"""Proof 1: who holds the container, and does that live as long as the process?"""

from __future__ import annotations

from floodline.scan._program.program import Held, Making, Program
from floodline.scan._proofs.proof import ASSUMED, PROVED, REFUTED, UNKNOWN, Proof, place
from floodline.scan._proofs.reach import LOOPS, REPEATS, STARTS, Reach

DEEP = 6
PLAIN_BASES = {"object", "ABC", "Generic", "Protocol", "dict", "list", "set"}
SHORT_LIVED = {"Exception", "BaseException", "NodeVisitor", "NodeTransformer", "HTMLParser", "Enum",
               "NamedTuple", "TestCase", "TypedDict", "Protocol", "Action"}  # fmt: skip

HANDED_ON = "is handed on"
_PASSING = ("argument", "local", "item", "dropped")


class Holders:
    """Follows instances from where they are made to where they are kept."""

    def __init__(self, program: Program, reach: Reach, *, library: bool) -> None:
        self._program = program
        self._reach = reach
        self._library = library
        self._known: dict[str, Proof] = {}

    def proof(self, held: Held) -> Proof:
        """Say whether the holder of a container is long-lived."""
        made = held.made[0]
        at = place(held.file.path, made.at.line)
        if made.ref[:2] == "g:":
            return Proof("held by the module", PROVED, at)
        if made.ref[:2] == "o:":
            return Proof("held by an object of the module", PROVED, at)
        if made.ref[:2] == "l:":
            return self._captured(held, at)
        owner = held.key.rpartition(".")[0]
        shared = [
            m
            for m in held.made
            if m.function.endswith(":") and m.fills != "field" and m.ref != "s:"
        ]
        if shared and len(shared) == len(held.made):
            if "type" in self._program.names.classes[owner].bases:
                return Proof("held by a class of classes", UNKNOWN, at)
            if all(m.fills == "annotated" for m in shared) and self._has_outer_base(owner):
                return Proof("perhaps a field that its base class makes anew", UNKNOWN, at)
            return Proof("held by the class, shared by all instances", PROVED, at)
        return self.instance(owner)

    def _has_outer_base(self, owner: str) -> bool:
        """Whether a base of a class is not known: it may give each instance its own fields."""
        names = self._program.names
        return any(
            names.is_outside(kind.partition(":")[0], base)
            for kind in names.order(owner)
            for base in names.classes[kind].bases
            if base.rpartition(".")[2] not in PLAIN_BASES
        )

    def _captured(self, held: Held, at: str) -> Proof:
        function = self._program.names.functions.get(f"{held.file.module}:{held.made[0].function}")
        inner = f"{held.made[0].function}.<locals>."
        if (
            function is None
            or not function.returns_inner
            or not any(c.verb != "shrink" and c.function.startswith(inner) for _, c in held.changes)
        ):
            if _endless(held):
                return Proof("a local of a function that goes round for ever", PROVED, at)
            return Proof("a local of one call", REFUTED, at)
        edges = self._program.callers.get(f"{held.file.module}:{function.name}", ())
        if any(e.call.kept[:2] in ("g:", "c:") or e.caller.endswith(":") for e in edges):
            return Proof("captured by a function that the module keeps", PROVED, at)
        if edges:
            return Proof("captured by a function that its caller has", UNKNOWN, at)
        return Proof("captured by the function that is returned", PROVED, at)

    def instance(self, owner: str, depth: int = 0) -> Proof:
        """Say whether instances of a class live long."""
        if owner not in self._known:
            self._known[owner] = Proof("a cycle of owners", UNKNOWN, "")
            self._known[owner] = self._judge(owner, depth)
        return self._known[owner]

    def _judge(self, owner: str, depth: int) -> Proof:
        names = self._program.names
        found = names.classes.get(owner)
        if found is None or depth > DEEP:
            return Proof("the holder is not known", UNKNOWN, "")
        path = names.modules[owner.partition(":")[0]].path
        at = place(path, found.line)
        bases = {b.rpartition(".")[2] for k in names.order(owner) for b in names.classes[k].bases}
        if bases & SHORT_LIVED or any(base.endswith("Error") for base in bases):
            return Proof("instances are short-lived values", REFUTED, at)
        if owner in self._program.singletons:
            return Proof(f"{found.name} keeps its only instance", PROVED, at)
        kinds = [owner, *names.children.get(owner, ())]
        makings = _settled([m for kind in kinds for m in self._program.makings.get(kind, ())])
        proofs = [self._kept(owner, making, depth) for making in makings]
        best = next((p for p in proofs if p.state == PROVED), None)
        passing = [p for p in proofs if p.state == REFUTED]
        if best and not passing:
            return best
        if best:
            return Proof(f"{best.claim}, but others pass: {passing[0].claim}", UNKNOWN, best.at)
        public = not found.name.startswith("_")
        if self._library and public:
            return Proof("a public class of a library, assumed to live long", ASSUMED, at)
        if not makings:
            return Proof("no place that makes it was found", UNKNOWN, at)
        if all(p.state == REFUTED for p in proofs):
            return proofs[0]
        return next(p for p in proofs if p.state != REFUTED)

    def _kept(self, owner: str, making: Making, depth: int) -> Proof:
        name = owner.rpartition(":")[2]
        at = place(making.path, making.line)
        often = self._reach.often(making.function)
        if making.kept == "main":
            return Proof(f"{name} is made where the file runs as a program", UNKNOWN, at)
        if making.kept[:2] == "g:" or making.kept.startswith("o:g:"):
            return Proof(f"{name} is kept by the module", PROVED, at)
        if making.kept[:2] == "c:":
            return Proof(f"{name} is kept by a class", PROVED, at)
        if making.function.endswith(":") and making.kept in _PASSING:
            return Proof(f"{name} is made while the module is loaded", PROVED, at)
        if making.kept[:2] == "s:":
            return self._kept_by_instance(name, making, depth, at)
        if making.kept[:2] == "i:":
            return self._kept_in(name, making, at)
        function = self._program.names.functions.get(making.function)
        if function and any(
            d.rpartition(".")[2] in ("cache", "lru_cache") for d in function.decorators
        ):
            return Proof(f"{name} is made once by a cached function", PROVED, at)
        if making.kept in ("returned", "argument") and often == REPEATS:
            return Proof(f"{name} is made anew for each call", REFUTED, at)
        if making.kept in ("returned", "argument", "item"):
            return Proof(f"{name} {HANDED_ON}", UNKNOWN, at)
        if often == STARTS and not making.repeats:
            return self._of_start(name, making, at)
        if not making.repeats and self._goes_round(owner, making.function):
            told = f"{name} lives as long as the endless loop of its function"
            return Proof(told, PROVED, at)
        return Proof(f"{name} is a local of one call", REFUTED, at)

    def _kept_in(self, name: str, making: Making, at: str) -> Proof:
        """An instance in a container lives as long as its entry, which may be long."""
        program = self._program
        module, _, function = making.function.partition(":")
        key = program.key(program.names.modules[module], function, making.kept[2:])
        held = program.held.get(key)
        if held is not None and self.proof(held).state == PROVED:
            return Proof(f"{name} is kept in {key.rpartition('.')[2]}", UNKNOWN, at)
        return Proof(f"{name} is kept in something that may pass", REFUTED, at)

    def _goes_round(self, owner: str, function: str) -> bool:
        """Whether a function uses an instance in a loop without an end."""
        family = {owner, *self._program.names.children.get(owner, ())}
        return any(
            edge.repeats == "forever" and edge.callee.rpartition(".")[0] in family
            for edge in self._program.edges_of.get(function, ())
        )

    def _of_start(self, name: str, making: Making, at: str) -> Proof:
        """A local of the start function lives long if that function goes round for ever."""
        edges = self._program.edges_of.get(making.function, ())
        if any(edge.repeats in LOOPS for edge in edges):
            return Proof(f"{name} lives as long as the loop of the start function", PROVED, at)
        return Proof(f"{name} lives as long as the start function runs", UNKNOWN, at)

    def _kept_by_instance(self, name: str, making: Making, depth: int, at: str) -> Proof:
        function = self._program.names.functions.get(making.function)
        module = making.function.partition(":")[0]
        above = f"{module}:{function.owner}" if function else ""
        if above in self._program.names.classes:
            outer = self.instance(above, depth + 1)
            if outer.state != UNKNOWN or self._reach.often(making.function) != REPEATS:
                told = f"{name} is kept by {above.rpartition(':')[2]}: {outer.claim}"
                return Proof(told, outer.state, outer.at or at)
        return Proof(f"{name} is kept by an instance", UNKNOWN, at)


def _settled(makings: list[Making]) -> list[Making]:
    """A local that goes somewhere after all (line 0 says so) is not a local of one call."""
    moved = {m.function for m in makings if not m.line and m.kept != "argument"}
    return [m for m in makings if not (m.kept == "local" and m.line and m.function in moved)]


def _endless(held: Held) -> bool:
    """Whether a local container is made before a loop without an end, and grows in it."""
    lines = [made.at.line for made in held.made]
    return any(
        mark[:8] == "forever:" and int(mark[8:]) > max(lines)
        for _, change in held.changes
        if change.verb == "grow" and change.function == held.made[0].function
        for mark in change.marks
    )
