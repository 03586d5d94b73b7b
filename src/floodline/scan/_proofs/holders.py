"""Proof 1: what holds the container, and does that live as long as the process?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from floodline._python.bounds import CACHES
from floodline.scan._facts.references import INSTANCE, ITSELF, LOCAL, MODULE, OBJECT, Reference
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._program.commands import COMMAND_LINE
from floodline.scan._program.edges import Making
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.events import Events, in_a_loop
from floodline.scan._proofs.evidence import (
    ASSUMED,
    PROVED,
    REFUTED,
    STATES,
    UNKNOWN,
    Evidence,
    place,
)
from floodline.scan._proofs.grounds import Holder
from floodline.scan._proofs.keeping import endless, is_kept, is_of_module, settled
from floodline.scan._proofs.reach import LOOPS, Often, Reach

DEEP = 6
SCRIPTS = {"scripts", "examples", "__main__"}  # what these keep, no server keeps
PLAIN_BASES = {"object", "ABC", "Generic", "Protocol", "dict", "list", "set"}
SHORT_LIVED = {"Exception", "BaseException", "NodeVisitor", "NodeTransformer", "HTMLParser", "Enum",
               "NamedTuple", "TestCase", "TypedDict", "Action"}  # fmt: skip

OF_START = (Holder.START, Holder.MADE_BY_PROGRAM)
_HANDED = ("argument", "item", "member", "default")
_PASSING = (*_HANDED, "local", "dropped")


class Holders:
    """Follows instances from where they are created to where they are kept."""

    def __init__(self, program: Program, reach: Reach, events: Events, *, library: bool) -> None:
        self._program = program
        self._reach = reach
        self._events = events
        handlers = events.handlers - events.servants
        self._handlers = handlers
        # classes with methods that are registered for events
        self._served = frozenset(key.rpartition(".")[0] for key in handlers)
        self._library = library
        self._known: dict[str, Evidence] = {}
        self._returned: dict[tuple[str, str], Evidence] = {}

    def proof(self, held: Held) -> Evidence:
        """Judge whether the holder of a container is long-lived."""
        made = held.made[0]
        at = place(held.file.path, made.at.line)
        if made.ref.kind == MODULE:
            return Evidence(Holder.MODULE(), PROVED, at)
        if made.ref.kind == OBJECT:
            return Evidence(Holder.OBJECT_OF_MODULE(), PROVED, at)
        if made.ref.kind == LOCAL:
            return self._captured(held, at)
        owner = held.key.rpartition(".")[0]
        shared = [
            m
            for m in held.made
            if m.function.endswith(":") and m.fills != "field" and m.ref != ITSELF
        ]
        if shared and len(shared) == len(held.made):
            if "type" in self._program.names.classes[owner].bases:
                return Evidence(Holder.METACLASS(), UNKNOWN, at)
            field = all(m.fills == "annotated" and not m.ref.name.isupper() for m in shared)
            if field and self._has_outer_base(owner) and not self._is_of_class(held):
                kept = self.instance(owner)
                field_of_base = Evidence(Holder.FIELD_OF_BASE(), UNKNOWN, at)
                return kept if kept.state in (PROVED, REFUTED) else field_of_base
            return Evidence(Holder.CLASS(), PROVED, at)
        return self.instance(owner)

    def _is_of_class(self, held: Held) -> bool:
        """Return True if a class method uses a container: it is the class that has it."""
        functions = self._program.names.functions
        users = (functions.get(f"{file.module}:{c.function}") for file, c in held.changes)
        return any(user is not None and "classmethod" in user.decorators for user in users)

    def _has_outer_base(self, owner: str) -> bool:
        """Return True if a base of a class is unknown: it may give each instance its own fields."""
        names = self._program.names
        return any(
            names.is_outside(kind.partition(":")[0], base)
            for kind in names.order(owner)
            for base in names.classes[kind].bases
            if base.rpartition(".")[2] not in PLAIN_BASES
        )

    def _captured(self, held: Held, at: str) -> Evidence:
        function = self._program.names.functions.get(f"{held.file.module}:{held.made[0].function}")
        inner = f"{held.made[0].function}.<locals>."
        if self._is_for_handlers(held, inner):
            return Evidence(Holder.CAPTURED_BY_HANDLER(), PROVED, at)
        if (
            function is None
            or not function.returns_inner
            or not any(c.verb != "shrink" and c.function.startswith(inner) for _, c in held.changes)
        ):
            if endless(held):
                return Evidence(Holder.ENDLESS_LOCAL(), PROVED, at)
            return Evidence(Holder.LOCAL(), REFUTED, at)
        edges = self._program.callers.get(f"{held.file.module}:{function.name}", ())
        if any(is_kept(e.call.kept) or e.caller.endswith(":") for e in edges):
            return Evidence(Holder.CAPTURED_BY_MODULE(), PROVED, at)
        if edges:
            return Evidence(Holder.CAPTURED_BY_CALLER(), UNKNOWN, at)
        return Evidence(Holder.CAPTURED_AND_RETURNED(), PROVED, at)

    def _is_for_handlers(self, held: Held, inner: str) -> bool:
        """Return True if a function that makes handlers at start-up shares a container with them.

        What makes handlers while it handles an event itself makes them for that event.
        """
        module = held.file.module
        maker = f"{module}:{held.made[0].function}"
        if self._events.why(maker) is not None or self._reach.often(maker) is Often.REPEATS:
            return False
        return any(
            change.verb != "shrink"
            and change.function.startswith(inner)
            and f"{file.module}:{change.function}" in self._handlers
            for file, change in held.changes
        )

    def instance(self, owner: str, depth: int = 0) -> Evidence:
        """Judge whether instances of a class are long-lived."""
        if owner not in self._known:
            self._known[owner] = Evidence(Holder.CYCLE(), UNKNOWN, "")
            self._known[owner] = self._judge(owner, depth)
        return self._known[owner]

    def _judge(self, owner: str, depth: int) -> Evidence:
        names = self._program.names
        found = names.classes.get(owner)
        if found is None or depth > DEEP:
            return Evidence(Holder.NOT_KNOWN(), UNKNOWN, "")
        path = names.modules[owner.partition(":")[0]].path
        at = place(path, found.line)
        bases = {b.rpartition(".")[2] for k in names.order(owner) for b in names.classes[k].bases}
        if bases & SHORT_LIVED or any(base.endswith("Error") for base in bases):
            return Evidence(Holder.SHORT_LIVED(), REFUTED, at)
        only = not self._program.singletons.isdisjoint(names.order(owner))
        if only or self._is_kept_by_decorator(owner):
            return Evidence(Holder.SINGLETON(found.name), PROVED, at)
        kinds = [owner, *names.children.get(owner, ())]
        makings = settled([m for kind in kinds for m in self._program.makings.get(kind, ())])
        public = not found.name.startswith("_")
        if not makings and not self._library and any(map(self._is_made_by_others, kinds)):
            return Evidence(Holder.MADE_ANEW(found.name), UNKNOWN, at)
        if not makings and self._program.is_unnamed(owner):
            return Evidence(Holder.NEVER_NAMED(found.name), UNKNOWN, at)
        proofs = [self._kept(owner, making, depth) for making in makings]
        return self._longest([*self._registered(owner, at), *proofs], public, at)

    def _registered(self, owner: str, at: str) -> Iterator[Evidence]:
        """Yield where instances of a class put themselves, if that stays: `known[id] = self`."""
        for held in self._registers.get(owner, ()):
            if self.proof(held).state == PROVED:
                name, table = owner.rpartition(":")[2], held.key.rpartition(".")[2]
                yield Evidence(Holder.KEPT_IN(name, table), UNKNOWN, at)

    @cached_property
    def _registers(self) -> dict[str, list[Held]]:
        """The containers that instances of a class put themselves into, outside constructors."""
        found: dict[str, list[Held]] = defaultdict(list)
        for held in self._program.held.values():
            for file, change in held.changes:
                if change.value == "self" and change.verb == "grow":
                    owner = f"{file.module}:{self._program.owner(file, change.function)}"
                    found[owner].append(held)
        return found

    def _is_made_by_others(self, owner: str) -> bool:
        """Return True if functions that run again and again pass a class on, to be created."""
        above = self._program.lent.get(owner, ())
        return any(self._reach.often(function) is Often.REPEATS for function in above)

    def _longest(self, proofs: list[Evidence], public: bool, at: str) -> Evidence:
        """Judge all instances of a class by each of them: the longest-lived one decides."""
        best = next((p for p in proofs if p.state == PROVED), None)
        passing = [p for p in proofs if p.state == REFUTED]
        if best and not passing:
            return best
        if best:
            both = Holder.KEPT_BUT_OTHERS_PASS(best.reason, passing[0].reason)
            return Evidence(both, UNKNOWN, best.at)
        if self._library and public:
            return Evidence(Holder.LIBRARY(), ASSUMED, at)
        if not proofs:
            return Evidence(Holder.NEVER_MADE(), UNKNOWN, at)
        lasting = [p for p in proofs if p.state != REFUTED]
        if passing and all(p.reason.ground in OF_START for p in lasting):
            return passing[0]  # start-up makes one for itself, as other functions do
        return lasting[0]

    def _is_kept_by_decorator(self, owner: str) -> bool:
        """Return True if a decorator puts a function in place of a class, which keeps instances."""
        names = self._program.names
        module = owner.partition(":")[0]
        for name in names.classes[owner].decorators:
            home, _, function = names.resolve(module, name).partition(":")
            found = names.functions.get(f"{home}:{function}")
            if found is not None and found.returns_inner:
                return any(
                    c.verb == "grow" and c.ref.kind == LOCAL and c.ref.function == function
                    for c in names.modules[home].changes
                )
        return False

    def _kept(self, owner: str, making: Making, depth: int) -> Evidence:
        name = owner.rpartition(":")[2]
        at = place(making.path, making.line)
        kept = making.kept
        if kept.how == "main" or SCRIPTS & set(making.function.partition(":")[0].split(".")):
            return Evidence(Holder.MADE_BY_PROGRAM(name), UNKNOWN, at)
        if kept.in_slot(MODULE) or is_of_module(kept):
            return Evidence(Holder.KEPT_BY_MODULE(name), PROVED, at)
        if kept.how == "body":
            return Evidence(Holder.KEPT_BY_CLASS(name), PROVED, at)
        if making.function.endswith(":") and kept.how in _PASSING:
            return Evidence(Holder.MADE_ON_LOAD(name), PROVED, at)
        if kept.in_slot(INSTANCE):
            return self._kept_by_instance(name, making, depth, at)
        if kept.how == "entry" and kept.ref:
            return self._kept_in(name, making, kept.ref, at)
        if kept.how == "returned":
            return self._given_out(owner, making, depth, at)
        if kept.how in _HANDED:
            return self._handed_on(owner, making, at)
        return self._local(owner, making, at)

    def _handed_on(self, owner: str, making: Making, at: str) -> Evidence:
        """Judge an instance that is given to a call, or put in a container without a name."""
        name = owner.rpartition(":")[2]
        again = self._reach.often(making.function) is Often.REPEATS
        if making.kept.how == "argument" and again and not self._is_start(making.function):
            return Evidence(Holder.MADE_ANEW(name), UNKNOWN, at)
        constant = making.kept.how == "item" and making.kept.ref is not None
        if constant and not making.guarded and self._events.why(making.function):
            return Evidence(Holder.MADE_ANEW(name), UNKNOWN, at)  # it replaces the last one
        if making.kept.how == "argument" and owner in self._served:
            return Evidence(Holder.SERVES(name), ASSUMED, at)
        return Evidence(Holder.HANDED_ON(name), UNKNOWN, at)

    def _local(self, owner: str, making: Making, at: str) -> Evidence:
        """Judge an instance that its function keeps for itself."""
        name = owner.rpartition(":")[2]
        command = COMMAND_LINE & set(making.function.partition(":")[0].split("."))
        starts = command or self._is_start(making.function)
        if starts and (not making.repeats or (command and making.repeats in LOOPS)):
            return self._of_start(name, making, at)
        if not making.repeats and self._goes_round(owner, making.function):
            return Evidence(Holder.ENDLESS_LOOP(name), PROVED, at)
        if not making.repeats and self._serves_itself(owner, making.function):
            return Evidence(Holder.OWN_LOOP(name), UNKNOWN, at)
        return Evidence(Holder.LOCAL_INSTANCE(name), REFUTED, at)

    def _is_start(self, function: str) -> bool:
        """Return True for what start-up runs, or what nothing here names and needs nothing."""
        if self._reach.often(function) is Often.STARTS:
            return True
        names = self._program.names.functions
        return self._reach.is_unnamed(function) and not names[function].parameters

    def _serves_itself(self, owner: str, function: str) -> bool:
        """Return True if a function, not run for an event, calls a method that loops and waits.

        What is run for an event, such as a connection, ends with it; a process is a program.
        """
        passed = self._program.by_reference.get(function, ())
        begins = bool(passed) and all(name.endswith("Process") for name in passed)
        if self._events.why(function) is not None and not begins:
            return False
        return any(
            edge.callee in self._looping and edge.callee.rpartition(".")[0] == owner
            for edge in self._program.edges_of.get(function, ())
        )

    @cached_property
    def _endless(self) -> frozenset[str]:
        """The functions that call something in an endless loop."""
        return frozenset(edge.caller for edge in self._program.edges if edge.repeats == "forever")

    @cached_property
    def _looping(self) -> frozenset[str]:
        """The functions with a loop that waits for more or never ends."""
        calling = {edge.caller for edge in self._program.edges if edge.repeats in LOOPS[1:]}
        changing = (
            f"{file.module}:{change.function}"
            for file in self._program.files
            for change in file.changes
            if in_a_loop(change)
        )
        return frozenset(calling.union(changing))

    def _given_out(self, owner: str, making: Making, depth: int, at: str) -> Evidence:
        """Judge an instance that a function returns: it lives where its callers keep it.

        Functions may return each other's results: each is asked once for a class.
        """
        function = self._program.names.functions.get(making.function)
        if function and any(d.rpartition(".")[2] in CACHES for d in function.decorators):
            return Evidence(Holder.MADE_BY_CACHED(owner.rpartition(":")[2]), PROVED, at)
        asked = (owner, making.function)
        if asked not in self._returned:
            self._returned[asked] = Evidence(
                Holder.HANDED_ON(owner.rpartition(":")[2]), UNKNOWN, at
            )
            self._returned[asked] = self._by_callers(owner, making, depth, at)
        return self._returned[asked]

    def _by_callers(self, owner: str, making: Making, depth: int, at: str) -> Evidence:
        name = owner.rpartition(":")[2]
        files = self._program.names.modules
        proofs = [
            self._kept(owner, Making(e.caller, e.call.kept, e.repeats, e.call.line,
                                     files[e.caller.partition(":")[0]].path), depth + 1)
            for e in self._program.callers.get(making.function, ())
            if e.caller != making.function and not e.guessed
        ]  # fmt: skip
        passed_on = Evidence(Holder.HANDED_ON(name), UNKNOWN, at)
        if making.function in self._handlers:  # the answer to one event
            passed_on = Evidence(Holder.MADE_ANEW(name), REFUTED, at)
        elif self._reach.is_for_start(making.function):
            passed_on = Evidence(Holder.START(name), UNKNOWN, at)
        elif self._reach.answers(making.function):
            passed_on = Evidence(Holder.MADE_ANEW(name), UNKNOWN, at)
        return min(proofs, key=lambda proof: STATES.index(proof.state), default=passed_on)

    def _kept_in(self, name: str, making: Making, ref: Reference, at: str) -> Evidence:
        """Judge an instance in a container: it lives as long as its entry, which may be long."""
        program = self._program
        module, _, function = making.function.partition(":")
        key = program.key(program.names.modules[module], function, ref)
        held = program.held.get(key)
        if held is not None and self.proof(held).state == PROVED:
            return Evidence(Holder.KEPT_IN(name, key.rpartition(".")[2]), UNKNOWN, at)
        if making.again:
            return Evidence(Holder.KEPT_IN_PASSING(name), REFUTED, at)
        return Evidence(Holder.HANDED_ON(name), UNKNOWN, at)

    def _goes_round(self, owner: str, function: str) -> bool:
        """Return True if a function uses an instance in an endless loop."""
        if function not in self._endless:
            return False  # most
        family = {owner, *self._program.names.children.get(owner, ())}
        return any(
            edge.repeats == "forever" and edge.callee.rpartition(".")[0] in family
            for edge in self._program.edges_of.get(function, ())
        )

    def _of_start(self, name: str, making: Making, at: str) -> Evidence:
        """Judge a local of the start-up function: it is long-lived if that loops forever."""
        edges = self._program.edges_of.get(making.function, ())
        if any(edge.repeats in LOOPS for edge in edges):
            return Evidence(Holder.LOOP_OF_START(name), PROVED, at)
        return Evidence(Holder.START(name), UNKNOWN, at)

    def _kept_by_instance(self, name: str, making: Making, depth: int, at: str) -> Evidence:
        function = self._program.names.functions.get(making.function)
        module = making.function.partition(":")[0]
        above = f"{module}:{function.owner}" if function else ""
        last = making.function.rpartition(".")[2]
        again = self._reach.often(making.function) is Often.REPEATS and last not in MAKERS
        if again and not making.guarded:
            return Evidence(Holder.MADE_ANEW(name), UNKNOWN, at)
        if function and "classmethod" in function.decorators:
            return Evidence(Holder.KEPT_BY_CLASS(name), PROVED, at)
        if above in self._program.names.classes:
            outer = self.instance(above, depth + 1)
            told = Holder.KEPT_BY_OWNER(name, above.rpartition(":")[2], outer.reason)
            return Evidence(told, outer.state, outer.at or at)
        return Evidence(Holder.KEPT_BY_INSTANCE(name), UNKNOWN, at)
