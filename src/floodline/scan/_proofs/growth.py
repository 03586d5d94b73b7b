"""Proofs 2 and 3: does it grow on a path that repeats, and is the range of keys open?"""

from __future__ import annotations

from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.origins import parts_of
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._program.program import Edge, Held, Program
from floodline.scan._proofs.events import Events, in_a_loop
from floodline.scan._proofs.membership import Refusals
from floodline.scan._proofs.proof import ASSUMED, PROVED, REFUTED, UNKNOWN, Proof, place
from floodline.scan._proofs.reach import REPEATS, STARTS, Reach

DEEP = 4
STATES = (PROVED, ASSUMED, UNKNOWN, REFUTED)
NEW = {"task", "lock", "future", "waiter", "weakref", "made"}  # made where it is put in
COMMAND_LINE = {"cli", "scripts", "commands", "__main__", "management"}
CLOSED_TYPES = {"bool", "Literal", "type", "Type", "None", "Callable"}
REUSED = {"id()", "hash()", "get_ident()"}  # as many as there are things at a time


class Paths:
    """Judges where a container grows."""

    def __init__(self, program: Program, reach: Reach) -> None:
        self._program = program
        self._reach = reach
        self.events = Events(program, reach)
        self._refusals = Refusals(program)
        self._known: dict[tuple[str, int, int], tuple[str, str]] = {}  # of parameters

    def path(self, held: Held, file: FileFacts, change: Change) -> Proof:
        """Say whether the function that grows a container runs again and again."""
        function = f"{file.module}:{change.function}"
        at = place(file.path, change.at.line)
        name = change.function.rpartition(".")[2] or "the module"
        if not change.function or change.function.endswith(":"):
            return Proof("grows while the module is loaded", REFUTED, at)
        if "once" in change.marks:
            return Proof("grows once, behind a flag", REFUTED, at)
        own = held.made[0].ref[:2] == "s:" and any(not m.function.endswith(":") for m in held.made)
        if (own or held.made[0].ref == "s:") and self._only_makes(function, 0):
            return Proof("grows while the instance is made", REFUTED, at)
        if in_a_loop(change):
            return Proof(f"grows in a loop of {name}() that waits for more", PROVED, at)
        if self._reach.is_definition(function):
            return Proof(f"{name}() runs where things are defined", REFUTED, at)
        why = self.events.why(function)
        if why and (own or function not in self.events.servants):
            return Proof(f"grows each time {name}() runs: {why}", PROVED, at)
        if self._makes_for_others(function, change):
            return Proof(f"{name}() makes one more for whoever calls it", PROVED, at)
        if any(self._reach.is_stream(file.module, mark) for mark in change.marks):
            return Proof(f"grows in a loop of {name}() that may go on", ASSUMED, at)
        often = self._reach.often(function)
        if change.marks & {"while"} and often != UNKNOWN:
            return Proof(f"grows in a loop of {name}()", ASSUMED, at)
        if often == REPEATS and COMMAND_LINE & set(file.module.split(".")):
            return Proof(f"{name}() belongs to a command line, which runs once", UNKNOWN, at)
        if often == REPEATS:
            return Proof(f"grows each time {name}() runs; nobody is seen to run it", ASSUMED, at)
        if often == STARTS:
            return Proof(f"{name}() runs at start-up only", REFUTED, at)
        return Proof(f"grows in {name}(); how often that runs is not known", UNKNOWN, at)

    def seen(self, function: str) -> str:
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

    def key(self, file: FileFacts, change: Change) -> Proof:
        """Say whether the keys that are put in have no end."""
        at = place(file.path, change.at.line)
        if change.key == "append":
            return Proof("every call adds one more", self._adds(file, change), at)
        state, why = self.origin(file.module, change.function, change.key)
        turns = "()" in change.key or "turn:" in change.key
        if state == ASSUMED and turns and in_a_loop(change):
            state, why = PROVED, "received in each turn of the loop"
        if state == ASSUMED and self._makes_for_others(f"{file.module}:{change.function}", change):
            state = PROVED
        if state == PROVED and (change.value == "sum" or change.op == "update"):
            state = ASSUMED  # what is counted comes again; what else a map has for keys is not seen
        if state in (PROVED, ASSUMED) and (told := self._refusals.of(file, change)):
            state, why = told[0], f"{why}, {told[1]}"
        return Proof(f"key {change.key_text or 'of the look-up'}: {why}", state, at)

    def _makes_for_others(self, function: str, change: Change) -> bool:
        """Whether nothing here shows an event, and this is not a mere register of what is given."""
        return function in self.events.open and (change.value in NEW or change.value == "key")

    def _adds(self, file: FileFacts, change: Change) -> str:
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

    def passing(self, file: FileFacts, change: Change) -> Proof:
        """The same for what is taken out again after each use: whatever it is, it is not fixed."""
        proof = self.key(file, change)
        if proof.state != UNKNOWN:
            return proof
        return proof._replace(claim=f"{proof.claim}; it comes and goes", state=ASSUMED)

    def origin(self, module: str, function: str, origin: str, depth: int = 0) -> tuple[str, str]:
        """Say whether values of an origin have no end, and why."""
        kind, _, detail = origin.partition(":")
        if kind == "all":
            return self._widest(module, function, origin, depth)
        if kind == "in":
            outer, _, rest = detail.partition("|")
            return self.origin(module, outer, rest, depth)
        if kind in ("const", "type"):
            return REFUTED, "a constant" if kind == "const" else "a type"
        maker = function.rpartition(".")[2] in MAKERS
        if kind == "fresh" and (detail in REUSED or (detail == "self" and not maker)):
            return UNKNOWN, f"as many as there are things at a time ({detail})"
        if kind == "fresh":
            return PROVED, f"a new value each time ({detail})"
        if kind == "turn" and "(*)" not in detail:
            own = self._program.names.class_of(module, detail.partition(".")[0])
            return (UNKNOWN if own else ASSUMED), "what a loop gets turn by turn"
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
                return PROVED, f"{detail} comes with each event"
            return self._dotted(module, detail)
        if kind == "self":
            if self.events.tells(f"{module}:{function}", detail.partition(".")[0]):
                return PROVED, f"{detail} comes with each event"
            return self._counted(f"{module}:s:{detail}", detail)
        if kind == "global":
            if self._is_definition(module, detail):
                return REFUTED, f"{detail} is one fixed thing"
            return self._counted(f"{module}:g:{detail}", detail)
        return UNKNOWN, f"comes from {detail}" if detail else "where it comes from is not known"

    def _through(self, module: str, function: str, origin: str, depth: int) -> tuple[str, str]:
        """A call that is given an open value may return one of a few."""
        given = origin.partition("(*)")[0].rpartition(".")[0]
        state, why = self.origin(module, function, given, depth)
        less = {PROVED: ASSUMED, ASSUMED: UNKNOWN}.get(state, state)
        return less, f"made of what comes from elsewhere: {why}"

    def _widest(self, module: str, function: str, origin: str, depth: int) -> tuple[str, str]:
        """Of the parts of a key the one that is most open decides."""
        answers = [self.origin(module, function, part, depth) for part in parts_of(origin)]
        return min(answers, key=lambda answer: STATES.index(answer[0]))

    def _is_definition(self, module: str, name: str) -> bool:
        key = self._program.names.resolve(module, name)
        names = self._program.names
        return key in names.classes or key in names.functions or name.isupper()

    def _counted(self, counter: str, name: str) -> tuple[str, str]:
        if counter in self._program.counters:
            return PROVED, f"{name} counts up"
        if name.isupper():
            return REFUTED, f"{name} is a constant"
        return UNKNOWN, f"comes from {name}"

    def _dotted(self, module: str, text: str) -> tuple[str, str]:
        base, _, rest = text.partition(".")
        attribute = rest.partition(".")[0]
        key = self._program.names.resolve(module, base)
        asks = rest.endswith(")")
        if not asks and (attribute.isupper() or key in self._program.names.classes):
            return REFUTED, f"{text} is a constant"
        return UNKNOWN, f"comes from {text}"

    def _parameter(self, module: str, function: str, detail: str, depth: int) -> tuple[str, str]:
        number, _, attribute = detail.partition(".")
        key = f"{module}:{function}"
        found = self._program.names.functions.get(key)
        if found is None or depth > DEEP or int(number) >= len(found.parameters):
            return UNKNOWN, "a parameter"
        name = found.parameters[int(number)]
        annotation = found.annotations[int(number)] if found.annotations else ""
        if not attribute and self._is_closed(module, annotation):
            return REFUTED, f"{name} is one of a fixed set ({annotation})"
        if attribute.isupper():
            return REFUTED, f"{attribute} is a constant"
        asked = (key, int(number), depth)
        if asked not in self._known:
            self._known[asked] = self._given(key, int(number), name, depth)
        return self._known[asked]

    def _given(self, key: str, number: int, name: str, depth: int) -> tuple[str, str]:
        if key in self.events.handlers:
            return PROVED, f"{name} comes with each event"
        program = self._program
        edges = [*program.callers.get(key, ()), *program.related.get(key, ())]
        answers = [self._at_call(e, number, name, depth) for e in edges if e.kin or not e.guessed]
        answers += self._handed(key, number, name, depth)
        if {PROVED, REFUTED} <= {state for state, _ in answers}:
            return ASSUMED, f"{name} is fixed for some who call, and comes with events for others"
        for wanted in (PROVED, ASSUMED, UNKNOWN, REFUTED):
            for state, why in answers:
                if state == wanted:
                    return state, why
        return (UNKNOWN if edges else ASSUMED), f"{name} is given by whoever calls"

    def _handed(self, key: str, number: int, name: str, depth: int) -> list[tuple[str, str]]:
        """What a function is given by those that were handed it: what came along, or the event."""
        answers = []
        for edge in self._program.handed.get(key, ()) if self.events.why(key) else ():
            if number - edge.shift < len(edge.call.arguments):
                answers.append(self._at_call(edge, number, name, depth))
            elif edge.caller in self.events.handlers:
                answers.append((PROVED, f"{name} is given for each event"))
        return answers

    def _is_closed(self, module: str, annotation: str) -> bool:
        if annotation in CLOSED_TYPES:
            return True
        key = self._program.names.class_of(module, annotation) if annotation else ""
        if not key:
            return False
        names = self._program.names
        return any("Enum" in b for k in names.order(key) for b in names.classes[k].bases)

    def _at_call(self, edge: Edge, number: int, name: str, depth: int) -> tuple[str, str]:
        index = number - edge.shift
        given = ""
        if 0 <= index < len(edge.call.arguments):
            given = edge.call.arguments[index]
        for keyword in edge.call.keywords:
            if keyword.startswith(f"{name}="):
                given = keyword.partition("=")[2]
        if not given:
            return REFUTED, f"{name} has its default"
        origin = given.rpartition("=")[2] if given[:2] == "r:" else given
        if origin[:2] == "f:":
            return UNKNOWN, "a function"
        caller_module, _, caller = edge.caller.partition(":")
        return self.origin(caller_module, caller, origin, depth + 1)
