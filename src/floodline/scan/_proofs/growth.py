"""Proofs 2 and 3: does it grow on a path that repeats, and is the range of keys open?"""

from __future__ import annotations

from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.origins import parts_of
from floodline.scan._facts.reasons import Reason
from floodline.scan._facts.references import INSTANCE, ITSELF, Reference, in_module, of_instance
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._program.program import Edge, Held, Program
from floodline.scan._proofs.events import Events, in_a_loop
from floodline.scan._proofs.evidence import (
    ASSUMED,
    PROVED,
    REFUTED,
    STATES,
    UNKNOWN,
    Evidence,
    State,
    place,
)
from floodline.scan._proofs.grounds import Key, Origin, Path
from floodline.scan._proofs.membership import Refusals
from floodline.scan._proofs.reach import Often, Reach

DEEP = 4
NEW = {"task", "lock", "future", "waiter", "weakref", "made"}  # made where it is put in
COMMAND_LINE = {"cli", "scripts", "commands", "__main__", "management"}
CLOSED_TYPES = {"bool", "Literal", "type", "Type", "None", "Callable"}
REUSED = {"id()", "hash()", "get_ident()"}  # as many as there are things at a time
Answer = tuple[State, Reason]  # whether values have no end, and why


class Paths:
    """Judges where a container grows."""

    def __init__(self, program: Program, reach: Reach) -> None:
        self._program = program
        self._reach = reach
        self.events = Events(program, reach)
        self._refusals = Refusals(program)
        self._known: dict[tuple[str, int, int], Answer] = {}  # of parameters

    def path(self, held: Held, file: FileFacts, change: Change) -> Evidence:
        """Say whether the function that grows a container runs again and again."""
        function = f"{file.module}:{change.function}"
        at = place(file.path, change.at.line)
        name = change.function.rpartition(".")[2] or "the module"
        if not change.function or change.function.endswith(":"):
            return Evidence(Path.ON_LOAD(), REFUTED, at)
        if "once" in change.marks:
            return Evidence(Path.BEHIND_A_FLAG(), REFUTED, at)
        ref = held.made[0].ref
        own = ref.kind == INSTANCE and any(not m.function.endswith(":") for m in held.made)
        if (own or ref == ITSELF) and self._only_makes(function, 0):
            return Evidence(Path.WHILE_MADE(), REFUTED, at)
        if in_a_loop(change):
            return Evidence(Path.WAITING_LOOP(name), PROVED, at)
        if self._reach.is_definition(function):
            return Evidence(Path.DEFINITION(name), REFUTED, at)
        why = self.events.why(function)
        if why and (own or function not in self.events.servants):
            return Evidence(Path.SEEN(name, why), PROVED, at)
        if self._makes_for_others(function, change):
            return Evidence(Path.FOR_CALLERS(name), PROVED, at)
        if any(self._reach.is_stream(file.module, mark) for mark in change.marks):
            return Evidence(Path.STREAM(name), ASSUMED, at)
        often = self._reach.often(function)
        if change.marks & {"while"} and often is not Often.UNKNOWN:
            return Evidence(Path.LOOP(name), ASSUMED, at)
        if often is Often.REPEATS and COMMAND_LINE & set(file.module.split(".")):
            return Evidence(Path.COMMAND_LINE(name), UNKNOWN, at)
        if often is Often.REPEATS:
            return Evidence(Path.UNSEEN(name), ASSUMED, at)
        if often is Often.STARTS:
            return Evidence(Path.START(name), REFUTED, at)
        return Evidence(Path.NOT_KNOWN(name), UNKNOWN, at)

    def seen(self, function: str) -> State:
        """Return how sure it is that a function runs again and again, if nothing speaks against."""
        return PROVED if self.events.why(function) else ASSUMED

    def _only_makes(self, function: str, depth: int) -> bool:
        found = self._program.names.functions.get(function)
        if found is None or depth > DEEP:
            return False
        if found.name.rpartition(".")[2] in MAKERS:
            return True
        callers = {e.caller for e in self._program.callers.get(function, ())} - {function}
        private = found.name.rpartition(".")[2].startswith("_")
        return private and bool(callers) and all(self._only_makes(c, depth + 1) for c in callers)

    def key(self, file: FileFacts, change: Change) -> Evidence:
        """Say whether the keys that are put in have no end."""
        at = place(file.path, change.at.line)
        if change.key == "append":
            return Evidence(Key.EVERY_CALL(), self._adds(file, change), at)
        state, why = self.origin(file.module, change.function, change.key)
        turns = "()" in change.key or "turn:" in change.key
        if state == ASSUMED and turns and in_a_loop(change):
            state, why = PROVED, Origin.RECEIVED()
        if state == ASSUMED and self._makes_for_others(f"{file.module}:{change.function}", change):
            state = PROVED
        if state == PROVED and (change.value == "sum" or change.op == "update"):
            state = ASSUMED  # what is counted comes again; what else a map has for keys is not seen
        if state in (PROVED, ASSUMED) and (told := self._refusals.of(file, change)):
            state, why = told[0], Key.NARROWED(why, told[1])
        named = Key.NAMED(change.key_text, why) if change.key_text else Key.OF_LOOKUP(why)
        return Evidence(Key.KEY(named), state, at)

    def _makes_for_others(self, function: str, change: Change) -> bool:
        """Whether nothing here shows an event, and this is not a mere register of what is given."""
        return function in self.events.open and (change.value in NEW or change.value == "key")

    def _adds(self, file: FileFacts, change: Change) -> State:
        """Whether each call adds a thing of its own, and not one that was there before."""
        function = f"{file.module}:{change.function}"
        if "none" in change.marks:
            return ASSUMED  # `if known is None: add`: one for each that is not known yet
        if change.value in NEW or self.events.is_near(function, change):
            return PROVED
        if change.value == "self":
            maker = change.function.rpartition(".")[2] in MAKERS
            return PROVED if maker and self.events.makes(function) else ASSUMED
        state, _ = self.origin(file.module, change.function, change.value)
        return PROVED if state == PROVED else ASSUMED

    def passing(self, file: FileFacts, change: Change) -> Evidence:
        """The same for what is taken out again after each use: whatever it is, it is not fixed."""
        proof = self.key(file, change)
        if proof.state != UNKNOWN:
            return proof
        return proof._replace(reason=Key.COMES_AND_GOES(proof.reason), state=ASSUMED)

    def origin(self, module: str, function: str, origin: str, depth: int = 0) -> Answer:
        """Say whether values of an origin have no end, and why."""
        kind, _, detail = origin.partition(":")
        if kind == "all":
            return self._widest(module, function, origin, depth)
        if kind == "in":
            outer, _, rest = detail.partition("|")
            return self.origin(module, outer, rest, depth)
        if kind in ("const", "type"):
            return REFUTED, Origin.A_CONSTANT() if kind == "const" else Origin.A_TYPE()
        maker = function.rpartition(".")[2] in MAKERS
        if kind == "fresh" and (detail in REUSED or (detail == "self" and not maker)):
            return UNKNOWN, Origin.REUSED(detail)
        if kind == "fresh":
            return PROVED, Origin.NEW_EACH_TIME(detail)
        if kind == "turn" and "(*)" not in detail:
            own = self._program.names.class_of(module, detail.partition(".")[0])
            return (UNKNOWN if own else ASSUMED), Origin.TURN()
        if "(*)" in detail:
            return self._through(module, function, origin, depth)
        if kind == "param":
            return self._parameter(module, function, detail, depth)
        called = detail.rpartition(".")[2].removesuffix("()")
        if called in self._program.fresh and (kind == "call" or detail.endswith("()")):
            return self.origin(module, function, f"fresh:{self._program.fresh[called]}")
        if kind == "enum":
            # to go over all of it is to read a table, not what one event brings
            told = not any(part in detail for part in (".keys()", ".values()", ".items()"))
            if told and self.events.brings(f"{module}:{function}", detail):
                return PROVED, Origin.WITH_EVENT(detail)
            return self._dotted(module, detail)
        if kind == "self":
            if self.events.tells(f"{module}:{function}", detail.partition(".")[0]):
                return PROVED, Origin.WITH_EVENT(detail)
            return self._counted((module, of_instance(detail)), detail)
        if kind == "global":
            if self._is_definition(module, detail):
                return REFUTED, Origin.FIXED(detail)
            return self._counted((module, in_module(detail)), detail)
        return UNKNOWN, Origin.ELSEWHERE(detail) if detail else Origin.NOT_KNOWN()

    def _through(self, module: str, function: str, origin: str, depth: int) -> Answer:
        """A call that is given an open value may return one of a few."""
        given = origin.partition("(*)")[0].rpartition(".")[0]
        state, why = self.origin(module, function, given, depth)
        less = {PROVED: ASSUMED, ASSUMED: UNKNOWN}.get(state, state)
        return less, Origin.MADE_OF(why)

    def _widest(self, module: str, function: str, origin: str, depth: int) -> Answer:
        """Of the parts of a key the one that is most open decides."""
        answers = [self.origin(module, function, part, depth) for part in parts_of(origin)]
        return min(answers, key=lambda answer: STATES.index(answer[0]))

    def _is_definition(self, module: str, name: str) -> bool:
        key = self._program.names.resolve(module, name)
        names = self._program.names
        return key in names.classes or key in names.functions or name.isupper()

    def _counted(self, counter: tuple[str, Reference], name: str) -> Answer:
        if counter in self._program.counters:
            return PROVED, Origin.COUNTS_UP(name)
        if name.isupper():
            return REFUTED, Origin.CONSTANT(name)
        return UNKNOWN, Origin.ELSEWHERE(name)

    def _dotted(self, module: str, text: str) -> Answer:
        base, _, rest = text.partition(".")
        attribute = rest.partition(".")[0]
        key = self._program.names.resolve(module, base)
        asks = rest.endswith(")")
        if not asks and (attribute.isupper() or key in self._program.names.classes):
            return REFUTED, Origin.CONSTANT(text)
        return UNKNOWN, Origin.ELSEWHERE(text)

    def _parameter(self, module: str, function: str, detail: str, depth: int) -> Answer:
        number, _, attribute = detail.partition(".")
        key = f"{module}:{function}"
        found = self._program.names.functions.get(key)
        if found is None or depth > DEEP or int(number) >= len(found.parameters):
            return UNKNOWN, Origin.PARAMETER()
        name = found.parameters[int(number)]
        annotation = found.annotations[int(number)] if found.annotations else ""
        if not attribute and self._is_closed(module, annotation):
            return REFUTED, Origin.ONE_OF_FIXED_SET(name, annotation)
        if attribute.isupper():
            return REFUTED, Origin.CONSTANT(attribute)
        asked = (key, int(number), depth)
        if asked not in self._known:
            self._known[asked] = self._given(key, int(number), name, depth)
        return self._known[asked]

    def _given(self, key: str, number: int, name: str, depth: int) -> Answer:
        if key in self.events.handlers:
            return PROVED, Origin.WITH_EVENT(name)
        program = self._program
        edges = [*program.callers.get(key, ()), *program.related.get(key, ())]
        answers = [self._at_call(e, number, name, depth) for e in edges if e.kin or not e.guessed]
        answers += self._handed(key, number, name, depth)
        if {PROVED, REFUTED} <= {state for state, _ in answers}:
            return ASSUMED, Origin.FIXED_FOR_SOME(name)
        for wanted in STATES:
            for state, why in answers:
                if state == wanted:
                    return state, why
        return (UNKNOWN if edges else ASSUMED), Origin.BY_CALLER(name)

    def _handed(self, key: str, number: int, name: str, depth: int) -> list[Answer]:
        """What a function is given by those that were handed it: what came along, or the event."""
        answers = []
        for edge in self._program.handed.get(key, ()) if self.events.why(key) else ():
            if number - edge.shift < len(edge.call.arguments):
                answers.append(self._at_call(edge, number, name, depth))
            elif edge.caller in self.events.handlers:
                answers.append((PROVED, Origin.GIVEN_FOR_EVENT(name)))
        return answers

    def _is_closed(self, module: str, annotation: str) -> bool:
        if annotation in CLOSED_TYPES:
            return True
        key = self._program.names.class_of(module, annotation) if annotation else ""
        if not key:
            return False
        names = self._program.names
        return any("Enum" in b for k in names.order(key) for b in names.classes[k].bases)

    def _at_call(self, edge: Edge, number: int, name: str, depth: int) -> Answer:
        index = number - edge.shift
        given = None
        if 0 <= index < len(edge.call.arguments):
            given = edge.call.arguments[index]
        for keyword, value in edge.call.keywords:
            if keyword == name:
                given = value
        if given is None:
            return REFUTED, Origin.DEFAULT(name)
        if given.origin[:9] == "function:":
            return UNKNOWN, Origin.A_FUNCTION()
        caller_module, _, caller = edge.caller.partition(":")
        return self.origin(caller_module, caller, given.origin, depth + 1)
