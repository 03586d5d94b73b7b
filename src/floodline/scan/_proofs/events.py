"""Which functions are seen to run again and again: for each event, or in a loop that waits."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from floodline.scan._facts.circumstances import is_endless
from floodline.scan._facts.model import Change
from floodline.scan._facts.origins import Origin, call_step
from floodline.scan._facts.reasons import Reason
from floodline.scan._facts.references import in_module, of_instance
from floodline.scan._facts.vocabulary import PERIODIC
from floodline.scan._program.frameworks import Outer
from floodline.scan._program.names import INSIDE
from floodline.scan._program.program import Program
from floodline.scan._proofs.grounds import Run
from floodline.scan._proofs.reach import ENDING, TIMED, Often, Reach

DEEP = 5  # calls below a handler; further down much is done once and kept
BELOW_LOOPS = 2  # calls below what a loop that waits calls: it often prepares more than it handles
BY_HAND = {"cli", "scripts", "__main__"}  # parts of the names of modules; `commands` may be a bot's
TAKEN = call_step("get")  # of a queue
# classes of the standard library, and what it calls on them for each request, packet or record
CALLED = {
    "BaseHTTPRequestHandler": "do_",
    "SimpleHTTPRequestHandler": "do_",
    "BaseRequestHandler": "handle",
    "StreamRequestHandler": "handle",
    "DatagramRequestHandler": "handle",
    "Protocol": "data_received",
    "BufferedProtocol": "buffer_updated",
    "DatagramProtocol": "datagram_received",
    "SubprocessProtocol": "pipe_data_received",
    "Handler": "emit",
    "StreamHandler": "emit",
}
_CALLED = tuple(set(CALLED.values()))


class Events:
    """Answers for every function of a program; `handlers` have the event in their parameters.

    `open` are those that outside code calls, if the program shows no event at all.
    """

    def __init__(self, program: Program, reach: Reach) -> None:
        self._program = program
        self._reach = reach
        self._outer = Outer(program)
        self._runs: dict[str, Reason] = {}
        self.servants: set[str] = set()  # methods for others to call, which may never run
        self._silent: dict[str, Reason] = {}  # what an app calls without any argument
        for key in program.names.functions:
            if told := self._handled(key):
                self._runs[key] = told
        for key in self._outer.readers() & self._silent.keys():
            self._runs[key] = self._silent[key]
        self._wrappers = list(self._outer.wrappers())
        for key, wrapper in self._wrappers:
            if key in self._runs:
                self._runs[wrapper] = self._runs[key]
        self.shown = bool(self._runs) or self._loops()
        self.open = frozenset(() if self.shown else filter(self._is_open, program.names.functions))
        self.handlers = frozenset(self._runs)
        self._runs |= self._rearmed()
        self._spread()

    def why(self, function: str) -> Reason | None:
        """Return why a function runs again and again, `None` if nothing shows it."""
        return self._runs.get(function)

    def is_near(self, function: str, change: Change) -> bool:
        """Return True if a change is in a handler itself, or in a loop that waits."""
        return function in self.handlers or in_a_loop(change)

    def makes(self, maker: str) -> bool:
        """Return True if a handler itself creates what a constructor creates."""
        return any(edge.caller in self.handlers for edge in self._program.callers.get(maker, ()))

    def _rearmed(self) -> dict[str, Reason]:
        """Return what hands itself to a timer each time it runs, or has an interval."""
        return {
            key: Run.TIMER(key.rpartition(":")[2].rpartition(".")[2])
            for key, edges in self._program.handed.items()
            if key not in self._runs
            and (
                PERIODIC in self._program.by_reference[key]
                or any(e.caller == key and e.call.callee.name in TIMED for e in edges)
            )
        }

    def _loops(self) -> bool:
        """Return True if there is a loop that waits or never ends."""
        files = self._program.names.files
        return any(edge.repeats == "forever" for edge in self._program.edges) or any(
            in_a_loop(change) for file in files for change in file.changes
        )

    def _is_open(self, key: str) -> bool:
        """Return True if a function is meant for outside callers, since nothing here calls it.

        Used only if the program does not show where its events come in.
        """
        function = self._program.names.functions[key]
        name = function.name.rpartition(".")[2]
        own = bool(function.owner) and "<" not in function.name
        if name.startswith("_") or len(function.parameters) == own:
            return False
        known = any(edge.kin or not edge.guessed for edge in self._program.callers.get(key, ()))
        if known or self._reach.is_definition(key):
            return False
        return self._reach.often(key) is Often.REPEATS

    def _spread(self) -> None:
        below: dict[str, list[str]] = defaultdict(list)
        definitions = self._reach.definitions
        for edge in self._program.edges:
            caller, callee, repeats = edge.caller, edge.callee, edge.repeats
            if repeats == "once" or (edge.guessed and not edge.kin) or callee in definitions:
                continue
            below[caller].append(callee)
            if repeats in ("forever", "serves"):
                name = caller.rpartition(":")[2].rpartition(".")[2]
                self._runs.setdefault(callee, Run.LOOP_WAITS(name))
        for edges in (*self._program.handed.values(), *self._program.related.values()):
            for edge in edges:
                if edge.repeats != "once" and not self._reach.is_seldom(edge.callee):
                    below[edge.caller].append(edge.callee)
        for key, wrapper in self._wrappers:
            below[key].append(wrapper)
        for key in self._program.names.functions:
            if key.endswith(">"):  # a lambda: in a table of what to do, as often as not
                below[key.rpartition(INSIDE)[0]].append(key)
        looped = sorted(set(filter(self._goes_on, self._runs)) - self.handlers)
        self._go_down(sorted(self.handlers - self.servants), below, DEEP)
        self._go_down(looped, below, BELOW_LOOPS)

    def _goes_on(self, function: str) -> bool:
        """Return True unless only loops at an end call a function: they wait for what is left."""
        callers = self._program.callers.get(function, ())
        loops = {e.caller for e in callers if e.repeats in ("forever", "serves")}
        return not loops or not all(self._is_at_an_end(loop) for loop in loops)

    def _is_at_an_end(self, function: str) -> bool:
        """Return True if a function ends something, or something that ends calls it."""
        above = (edge.caller for edge in self._program.callers.get(function, ()))
        names = (key.rpartition(":")[2].rpartition(".")[2] for key in (function, *above))
        return any(name in ENDING for name in names)

    def _go_down(self, functions: list[str], below: dict[str, list[str]], deep: int) -> None:
        """Note that what some functions call runs as often as they do, so many calls deep."""
        reached = {key: self._runs[key] for key in functions}
        for _ in range(deep):
            reached = {
                callee: why
                for here, why in reached.items()
                for callee in below.get(here, ())
                if callee not in self._runs
            }
            self._runs.update(reached)

    def _handled(self, key: str) -> Reason | None:
        """Return what passes events to a function, `None` if nothing is seen to."""
        function = self._program.names.functions[key]
        own = bool(function.owner) and "<" not in function.name
        name = function.name.rpartition(".")[2]
        if name.startswith("__") or key in self._reach.commands:
            return None
        if own and (self._overrides(key, name) or self._outer.tells(key, name)):
            return Run.CALLED_FOR_EVENTS(name)
        if own and len(function.parameters) > 1 and self._outer.is_servant(key, name):
            self.servants.add(key)
            return Run.SERVES_ITS_OWNER(name, function.owner)
        by = next((text for text in function.decorators if self._is_app(key, text)), "")
        if by and len(function.parameters) == own:
            self._silent[key] = Run.DECORATED(by, name)
            return None
        if by:
            return Run.DECORATED(by, name)
        if len(function.parameters) == own:
            return None
        known = self._program.subscribing
        if key in known.functions and (own or function.waits or key in known.later):
            return Run.REGISTERED(name)
        return None

    def _is_app(self, key: str, decorator: str) -> bool:
        outer, by_hand = self._outer, BY_HAND & {*key.partition(":")[0].split(".")}
        if by_hand and not self._program.names.functions[key].waits:
            return False  # as likely a part of what a command line calls
        return (
            outer.is_app(key, decorator)
            or outer.registers(key, decorator)
            or outer.notes(key, decorator)
            or outer.gets(key, decorator)
        )

    def brings(self, function: str, origin: Origin) -> bool:
        """Return True if a function that runs for an event reads it from a framework's object."""
        module = function.partition(":")[0]
        read = bool(origin.steps) and not origin.steps[0].name.isupper()
        return read and bool(self.why(function)) and self._outer.is_context(module, origin.name)

    def tells(self, function: str, attribute: str) -> bool:
        """Return True if the framework that calls a method has set this attribute."""
        return function in self.handlers and self._outer.fills(function, attribute)

    def queued(self, module: str, function: str, origin: Origin) -> bool:
        """Return True if a value is what something puts in a queue: each of them comes out once."""
        if not origin.steps or origin.steps[0] != TAKEN:
            return False
        file, program = self._program.names.modules.get(module), self._program
        held = of_instance(origin.name) if origin.kind == "own" else in_module(origin.name)
        return file is not None and program.key(file, function, held) in self._queues

    @cached_property
    def _queues(self) -> set[str]:
        return {
            self._program.key(file, mark.function, mark.ref)
            for file in self._program.files
            for mark in file.marks
            if mark.kind == "queue" and mark.ref is not None
        }

    def _overrides(self, key: str, name: str) -> bool:
        """Return True if a class of the standard library calls a method for each event."""
        if not name.startswith(_CALLED):
            return False  # most
        names = self._program.names
        owner = f"{key.partition(':')[0]}:{names.functions[key].owner}"
        return owner in names.classes and any(
            name.startswith(CALLED.get(base.rpartition(".")[2], " "))
            and names.is_outside(kind.partition(":")[0], base)
            for kind in names.order(owner)
            for base in names.classes[kind].bases
        )


def in_a_loop(change: Change) -> bool:
    """Return True if a change is in an endless loop, or in one that waits on each iteration."""
    return "serves" in change.marks or is_endless(change.marks)
