"""Proofs 2 and 3: does it grow on a path that repeats, and is the range of keys open?"""

from __future__ import annotations

from floodline.scan._facts.calls import UNPACKED, Argument
from floodline.scan._facts.circumstances import details
from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.origins import NO_KEY, UNDER, Origin, Step, before_call, parts_of
from floodline.scan._facts.reasons import Reason
from floodline.scan._facts.references import (
    CLASS,
    INSTANCE,
    ITSELF,
    Reference,
    in_module,
    of_instance,
)
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._program.commands import COMMAND_LINE
from floodline.scan._program.edges import Edge
from floodline.scan._program.program import Held, Program
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
from floodline.scan._proofs.grounds import Key, Path
from floodline.scan._proofs.grounds import Origin as Why
from floodline.scan._proofs.growing import fills_empty, unseen
from floodline.scan._proofs.membership import Refusals
from floodline.scan._proofs.reach import Often, Reach

DEEP = 4
NEW = {"task", "lock", "future", "waiter", "weakref", "made"}  # created where it is added
CLOSED_TYPES = {"bool", "Literal", "type", "Type", "None", "Callable"}
OF_MEMBERS = {"name", "value", "_name_", "_value_"}  # of an enum
WHOLE = {"keys", "values", "items"}
TAKES = {"pop", "popleft", "popitem", "get_nowait"}  # each entry comes out once
REUSED = {"id", "hash", "get_ident"}  # as many as exist at a time
Answer = tuple[State, Reason]  # whether the set of values is open, and why


class Paths:
    """Judges where a container grows."""

    def __init__(self, program: Program, reach: Reach) -> None:
        self._program = program
        self._reach = reach
        self.events = Events(program, reach)
        self._refusals = Refusals(program)
        self._known: dict[tuple[str, int, int], Answer] = {}  # of parameters

    def path(self, held: Held, file: FileFacts, change: Change) -> Evidence:
        """Judge whether the function that grows a container runs again and again."""
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
        if fills_empty(self._program, self._reach, held, function):
            return Evidence(Path.WHILE_EMPTY(name), REFUTED, at)
        if self._reach.is_definition(function):
            return Evidence(Path.DEFINITION(name), REFUTED, at)
        why = self.events.why(function)
        if why and (own or function not in self.events.servants):
            return Evidence(Path.SEEN(name, why), PROVED, at)
        if self._makes_for_others(function, change):
            return Evidence(Path.FOR_CALLERS(name), ASSUMED, at)
        over = [mark.text for mark in details(change.marks, "over")]
        if any(self._reach.is_stream(file.module, kind) for kind in over):
            return Evidence(Path.STREAM(name), ASSUMED, at)
        return self._unseen(file, change, function, name)

    def _unseen(self, file: FileFacts, change: Change, function: str, name: str) -> Evidence:
        """Judge a function without a known event by how often its callers run."""
        at = place(file.path, change.at.line)
        often = self._reach.often(function)
        if "while" in change.marks and often is not Often.UNKNOWN:
            return Evidence(Path.LOOP(name), ASSUMED, at)
        if often is Often.REPEATS and COMMAND_LINE & set(file.module.split(".")):
            return Evidence(Path.COMMAND_LINE(name), UNKNOWN, at)
        if often is Often.REPEATS and self._reach.starts_once(function):
            return Evidence(Path.START(name), REFUTED, at)
        if often is Often.REPEATS:
            return Evidence(unseen(self._program, self._reach, self.events, function), ASSUMED, at)
        if often is Often.STARTS:
            return Evidence(Path.START(name), REFUTED, at)
        return Evidence(Path.NOT_KNOWN(name), UNKNOWN, at)

    def seen(self, function: str) -> State:
        """Return how sure it is that a function runs repeatedly, if nothing contradicts it."""
        return PROVED if self.events.why(function) else ASSUMED

    def _only_makes(self, function: str, depth: int) -> bool:
        found = self._program.names.functions.get(function)
        if found is None or depth > DEEP:
            return False
        if found.name.rpartition(".")[2] in MAKERS:
            return True
        callers = {e.caller for e in self._program.callers.get(function, ())} - {function}
        own = self._reach.is_own(function)
        return own and bool(callers) and all(self._only_makes(c, depth + 1) for c in callers)

    def key(self, file: FileFacts, change: Change) -> Evidence:
        """Judge whether the set of keys is open."""
        at = place(file.path, change.at.line)
        if change.key == NO_KEY:
            return Evidence(Key.EVERY_CALL(), self._adds(file, change), at)
        state, why = self.origin(file.module, change.function, change.key)
        if state == ASSUMED and _is_received(change.key) and in_a_loop(change):
            state, why = PROVED, Why.RECEIVED()
        if state == PROVED and (change.value == "sum" or change.op == "update"):
            state = ASSUMED  # what is counted recurs; which keys another map has is unknown
        if state in (PROVED, ASSUMED) and (told := self._refusals.of(file, change)):
            state, why = told[0], Key.NARROWED(why, told[1])
        named = Key.NAMED(change.key_text, why) if change.key_text else Key.OF_LOOKUP(why)
        return Evidence(Key.KEY(named), state, at)

    def _makes_for_others(self, function: str, change: Change) -> bool:
        """Return True if nothing here shows an event, and this does not just store its argument."""
        return function in self.events.open and (change.value in NEW or change.value == "key")

    def _adds(self, file: FileFacts, change: Change) -> State:
        """Judge whether each call adds something new, not something that was there before."""
        function = f"{file.module}:{change.function}"
        if "none" in change.marks:
            return ASSUMED  # `if known is None: add`: one for each that is not yet known
        if change.value in NEW or self.events.is_near(function, change):
            return PROVED
        if change.value == "self":
            maker = change.function.rpartition(".")[2] in MAKERS
            return PROVED if maker and self.events.makes(function) else ASSUMED
        state, _ = self.origin(file.module, change.function, change.source)
        return PROVED if state == PROVED else ASSUMED

    def passing(self, file: FileFacts, change: Change) -> Evidence:
        """Judge the key of what is removed again after each use: at least it is not fixed."""
        proof = self.key(file, change)
        if proof.state != UNKNOWN:
            return proof
        return proof._replace(reason=Key.COMES_AND_GOES(proof.reason), state=ASSUMED)

    def origin(self, module: str, function: str, origin: Origin, depth: int = 0) -> Answer:
        """Judge whether the values of an origin are an open set, and why."""
        if origin.parts:
            return self._widest(module, function, origin, depth)
        kind, name, steps = origin.kind, origin.name, origin.steps
        if kind == "constant" or kind == "type":
            return REFUTED, Why.A_CONSTANT() if kind == "constant" else Why.A_TYPE()
        if kind == "fresh":
            return _new(name, maker=function.rpartition(".")[2] in MAKERS)
        if (steps or kind == "call") and (member := self._member_of(module, origin)):
            return REFUTED, Why.ONE_OF_FIXED_SET(f"{member}()", member)
        function = origin.function or function
        if (given := before_call(origin)) is not None:
            return self._through(module, function, given, depth)
        if kind == "turn":
            own = self._program.names.class_of(module, name.partition(".")[0])
            return (UNKNOWN if own else ASSUMED), Why.TURN()
        if kind == "parameter":
            return self._parameter(module, function, origin, depth)
        called = steps[-1].name if steps and steps[-1].how == "called" else ""
        made = self._program.fresh.get(name if kind == "call" else called)
        if made is not None:
            return self.origin(module, function, made)
        return self._named(module, function, origin)

    def _named(self, module: str, function: str, origin: Origin) -> Answer:
        """Judge what a name of the module or of the instance holds."""
        kind, name, steps = origin.kind, origin.name, origin.steps
        called = {step.name for step in steps if step.how == "called"}
        if kind == "dotted":
            # iterating over all of it reads a table, not what one event brings
            if not called & WHOLE and self.events.brings(f"{module}:{function}", origin):
                return PROVED, Why.WITH_EVENT(origin.text)
            return self._dotted(module, origin)
        if kind in ("own", "global") and called & TAKES:
            return ASSUMED, Why.TAKEN(name)
        if self.events.queued(module, function, origin):
            return PROVED, Why.TAKEN(name)
        if kind in ("own", "global") and self._is_in_table(module, function, origin):
            return REFUTED, Why.ONE_OF_FIXED_SET(origin.text, "a table")
        if kind == "own":
            if self.events.tells(f"{module}:{function}", name):
                return PROVED, Why.WITH_EVENT(origin.text)
            return self._counted(module, None if steps else of_instance(name), origin.text)
        if kind == "global":
            if self._is_definition(module, name):
                return REFUTED, Why.FIXED(name)
            return self._counted(module, in_module(name), name)
        return UNKNOWN, Why.ELSEWHERE(name) if name else Why.NOT_KNOWN()

    def _is_in_table(self, module: str, function: str, origin: Origin) -> bool:
        """Return True if a value is in a table that gets its keys while it is created."""
        if not all(step.how == "called" and step.name in WHOLE for step in origin.steps):
            return False
        table = of_instance(origin.name) if origin.kind == "own" else in_module(origin.name)
        file = self._program.names.modules.get(module)
        return file is not None and self._refusals.is_fixed(file, function, table)

    def _through(self, module: str, function: str, given: Origin, depth: int) -> Answer:
        """Judge the result of a call: given an open value, it may still return one of a few."""
        state, why = self.origin(module, function, given, depth)
        less = ASSUMED if state == PROVED else state
        if why.rests_on(Why.COUNTS_UP):
            less = UNKNOWN  # what is looked up for a number need not be new
        return less, Why.MADE_OF(why)

    def _widest(self, module: str, function: str, origin: Origin, depth: int) -> Answer:
        """Judge a key by its most open part."""
        answers = [self.origin(module, function, part, depth) for part in parts_of(origin)]
        return min(answers, key=lambda answer: STATES.index(answer[0]))

    def _is_definition(self, module: str, name: str) -> bool:
        key = self._program.names.resolve(module, name)
        names = self._program.names
        return key in names.classes or key in names.functions or name.isupper()

    def _counted(self, module: str, counter: Reference | None, name: str) -> Answer:
        if counter and (module, counter) in self._program.counters:
            return PROVED, Why.COUNTS_UP(name)
        if name.isupper():
            return REFUTED, Why.CONSTANT(name)
        return UNKNOWN, Why.ELSEWHERE(name)

    def _dotted(self, module: str, origin: Origin) -> Answer:
        key = self._program.names.resolve(module, origin.name)
        constant = origin.steps[0].name.isupper() or key in self._program.names.classes
        if constant and origin.steps[-1].how == "asked":
            return REFUTED, Why.CONSTANT(origin.text)
        return UNKNOWN, Why.ELSEWHERE(origin.text)

    def _parameter(self, module: str, function: str, origin: Origin, depth: int) -> Answer:
        number = origin.number
        key = f"{module}:{function}"
        found = self._program.names.functions.get(key)
        if found is None or depth > DEEP or number >= len(found.parameters):
            return UNKNOWN, Why.PARAMETER()
        name = found.parameters[number]
        annotation = found.annotations[number] if found.annotations else ""
        if {s.name for s in origin.steps} <= OF_MEMBERS and self._is_closed(module, annotation):
            return REFUTED, Why.ONE_OF_FIXED_SET(name, annotation)
        if origin.steps and (said := self._closed_field(module, annotation, origin.steps)):
            return REFUTED, Why.ONE_OF_FIXED_SET(f"{name}.{origin.steps[0].name}", said)
        attribute = "".join(step.text for step in origin.steps if step.how != UNDER)
        if attribute.isupper():
            return REFUTED, Why.CONSTANT(attribute[1:])
        asked = (key, number, depth)
        if asked not in self._known:
            self._known[asked] = self._given(key, number, name, depth)
        if self._known[asked][0] == UNKNOWN and origin.steps and origin.steps[0].how == "asked":
            kinds = self._kinds_of(module, annotation, key, number, name)
            told = self._field(kinds, origin.steps[0].name, depth)
            return told or self._known[asked]
        return self._known[asked]

    def _kinds_of(
        self, module: str, annotation: str, key: str, number: int, name: str
    ) -> list[str]:
        """Return the classes of the program whose instances a parameter gets."""
        names = self._program.names
        if annotation:
            return [kind for kind in (names.class_of(module, annotation),) if kind]
        found = []
        for edge in self._program.callers.get(key, ()):
            given = _passed(edge, number, name)
            if given and given.origin.kind == "call":
                found.append(names.class_of(edge.caller.partition(":")[0], given.origin.name))
        return [kind for kind in dict.fromkeys(found) if kind]

    def _field(self, kinds: list[str], attribute: str, depth: int) -> Answer | None:
        """Judge an attribute that instances get from the argument of this name."""
        names = self._program.names
        for kind in kinds if depth < DEEP else ():
            maker = names.method(kind, "__init__")
            taken = names.functions[maker].parameters if maker else ()
            if attribute in taken:
                return self._given(maker, taken.index(attribute), attribute, depth + 1)
        return None

    def _given(self, key: str, number: int, name: str, depth: int) -> Answer:
        if key in self.events.handlers:
            return PROVED, Why.WITH_EVENT(name)
        program = self._program
        edges = [*program.callers.get(key, ()), *program.related.get(key, ())]
        edges = [edge for edge in edges if edge.caller != key or not edge.guessed]
        answers = self._sure(edges, number, name, depth) + self._handed(key, number, name, depth)
        if not answers:  # a caller that is guessed proves nothing, and refutes nothing
            guesses = (self._at_call(edge, number, name, depth) for edge in edges)
            answers = [(ASSUMED, why) for state, why in guesses if state in (PROVED, ASSUMED)]
        if {PROVED, REFUTED} <= {state for state, _ in answers}:
            return ASSUMED, Why.FIXED_FOR_SOME(name)
        if answers:
            return min(answers, key=lambda answer: STATES.index(answer[0]))
        return (UNKNOWN if edges else ASSUMED), Why.BY_CALLER(name)

    def _handed(self, key: str, number: int, name: str, depth: int) -> list[Answer]:
        """Judge what a function gets from code it was passed to: its arguments, or the event."""
        answers = []
        for edge in self._program.handed.get(key, ()) if self.events.why(key) else ():
            if number - edge.shift < len(edge.call.arguments):
                answers.append(self._at_call(edge, number, name, depth))
            elif edge.caller in self.events.handlers:
                answers.append((PROVED, Why.GIVEN_FOR_EVENT(name)))
        return answers

    def _is_closed(self, module: str, annotation: str) -> bool:
        return annotation in CLOSED_TYPES or self._is_enum(module, annotation)

    def _member_of(self, module: str, origin: Origin) -> str:
        """Return the enum that a value was looked up in: `Mode(number)`, `Mode(number).name`."""
        made = [step.name for step in origin.steps if step.how == "called"]
        last = made[-1] if made else origin.name if origin.kind == "call" else ""
        after = origin.steps[-1:] if origin.steps and origin.steps[-1].how == "asked" else ()
        known = not after or after[0].name in OF_MEMBERS
        return last if known and last[:1].isupper() and self._is_enum(module, last) else ""

    def _is_enum(self, module: str, name: str) -> bool:
        names = self._program.names
        key = names.class_of(module, name) if name else ""
        return bool(key) and any(
            "Enum" in base for kind in names.order(key) for base in names.classes[kind].bases
        )

    def _closed_field(self, module: str, annotation: str, steps: tuple[Step, ...]) -> str:
        """Return the annotation of a field with a fixed set of values, else `""`."""
        names = self._program.names
        key = names.class_of(module, annotation) if annotation else ""
        if not key or not {step.name for step in steps[1:]} <= OF_MEMBERS:
            return ""
        for kind in names.order(key):
            said = dict(names.classes[kind].attributes).get(steps[0].name)
            if said is not None:
                closed = self._is_closed(kind.partition(":")[0], said.name)
                return said.name if closed and said.kind == CLASS else ""
        return ""

    def _sure(self, edges: list[Edge], number: int, name: str, depth: int) -> list[Answer]:
        """Judge what callers give a parameter, until one proves what another refutes."""
        answers: list[Answer] = []
        told = set()
        for edge in edges:
            if edge.kin or not edge.guessed:
                answers.append(self._at_call(edge, number, name, depth))
                told.add(answers[-1][0])
                if len(told) > 1 and {PROVED, REFUTED} <= told:
                    break
        return answers

    def _at_call(self, edge: Edge, number: int, name: str, depth: int) -> Answer:
        given = _passed(edge, number, name)
        if given is None:
            return REFUTED, Why.DEFAULT(name)
        if given.origin.kind == "function":
            return UNKNOWN, Why.A_FUNCTION()
        caller_module, _, caller = edge.caller.partition(":")
        return self.origin(caller_module, caller, given.origin, depth + 1)


def _passed(edge: Edge, number: int, name: str) -> Argument | None:
    """Return what a call gives a parameter, `None` for its default."""
    index, call = number - edge.shift, edge.call
    given = call.arguments[index] if 0 <= index < len(call.arguments) else None
    named = dict(call.keywords)
    return named.get(name) or given or named.get(UNPACKED)


def _new(name: str, *, maker: bool) -> Answer:
    """Judge a new value: some are reused, and the instance itself is not new."""
    what = name if name == "self" else f"{name}()"
    if name in REUSED or (name == "self" and not maker):
        return UNKNOWN, Why.REUSED(what)
    return PROVED, Why.NEW_EACH_TIME(what)


def _is_received(key: Origin) -> bool:
    """Return True if a key is what a loop gets, or what a method returns."""
    return any(
        part.kind == "turn" or any(step.how == "called" for step in part.steps)
        for part in parts_of(key)
    )
