"""How often a function runs: again and again, only at start-up, at the end, or unknown."""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from enum import StrEnum

from floodline.scan._facts.model import Call
from floodline.scan._facts.vocabulary import ASSIGNED, LISTED, PERIODIC, subscribes
from floodline.scan._program.commands import commands_of
from floodline.scan._program.program import Program

LOOPS = ("while", "serves", "forever")

DEFINING = {"__init_subclass__", "__set_name__", "__class_getitem__", "__prepare__"}
ENDING = {
    "__exit__", "__aexit__", "__del__", "close", "aclose", "shutdown", "stop", "dispose", "destroy",
    "teardown", "terminate", "cleanup", "disconnect", "quit", "exit", "finalize", "on_shutdown",
    "shutdown_event", "tearDown", "reset", "clear_all", "reset_all", "on_exit", "aexit", "join",
}  # fmt: skip
ALL_END = {
    f"{end}_{whom}"
    for end in ("shutdown", "close", "stop", "dispose", "destroy", "terminate")
    for whom in ("all", "everything")
}
# verbs for preparing a program; a loop that calls such a function would be seen
PREPARING = (
    "configure", "setup", "set_up", "install", "define", "declare", "init", "load", "import_",
    "build", "create_app", "enable", "setUp",
)  # fmt: skip
REGISTERING = (
    "register", "add_", "set_", "include", "subscribe", "use", "mount", "connect", "bind",
    "attach", "provide", "override", "with_", "start", "listen",
)  # fmt: skip
_PREPARING_OR_REGISTERING = (*PREPARING, *REGISTERING)
RUN_BY_ITSELF = {
    "add_done_callback", "call_later", "call_soon", "call_at", "call_soon_threadsafe", "Thread",
    "Timer", "create_task", "ensure_future", "finalize", "ref", "submit", "run_in_executor",
    "start_soon", "to_thread", "spawn", "partial", "callback", "push", "set_timer", "map",
    "run_forever", "weakref", "proxy", "schedule", PERIODIC, "add_job", "Process",
}  # fmt: skip
# what runs a function later: once, or each time that it asks for it again
TIMED = {"Timer", "call_later", "call_at", "set_timer", "enter", "enterabs"}
WORKERS = {"Thread", "Process"}
BY_EVENT = {LISTED, ASSIGNED}  # what is looked up, or read from an attribute, when it is needed
SELDOM = {"register_at_fork", "add_signal_handler", "signal", "on_shutdown", "atexit", "excepthook"}


class Often(StrEnum):
    """How often a function runs."""

    REPEATS = "repeats"
    STARTS = "starts"  # only at start-up
    UNKNOWN = "unknown"


class Reach:
    """Answers for every function of a program."""

    def __init__(self, program: Program, *, library: bool = False) -> None:
        self._program = program
        self._library = library
        self._often: dict[str, Often] = {}
        self._ancestors: dict[tuple[str, str], frozenset[str]] = {}
        self._callers: dict[str, set[str]] = {}
        # asked for every call and for every function above another
        self.definitions = frozenset(filter(self._defines, program.names.functions))
        self.commands = commands_of(program)
        self._ends = frozenset(filter(self._is_end, program.names.functions))
        # what `@factory(...)` returns runs when a function is defined, not when it is called
        self._factories = {e.callee for e in program.edges if e.call.kept.how == "decorator"}
        self._spread()

    def often(self, function: str) -> Often:
        """Return how often a function runs; the body of a module runs at start-up."""
        known = self._often.get(function)
        if known is None:
            known = Often.STARTS if function.endswith(":") else Often.UNKNOWN
        return known

    def _spread(self) -> None:
        functions = self._program.names.functions
        queue: deque[str] = deque()
        for key in functions:
            if self._is_root(key):
                self._often[key] = Often.REPEATS
                queue.append(key)
        below: dict[str, set[str]] = defaultdict(set)
        for edge in self._program.edges:
            caller, callee, repeats = edge.caller, edge.callee, edge.repeats
            if edge.guessed or repeats == "once":
                continue
            below[caller].add(callee)
            if repeats and self._goes_on(caller, edge.call) and not self._is_known(callee):
                self._often[callee] = Often.REPEATS
                queue.append(callee)
        while queue:
            for callee in below.get(queue.popleft(), ()):
                if not self._is_known(callee):
                    self._often[callee] = Often.REPEATS
                    queue.append(callee)
        self._assume(below)
        self._spread_starts(below)

    def _goes_on(self, caller: str, call: Call) -> bool:
        """Return True if a call is in a loop that may never end."""
        if call.repeats in LOOPS:
            return True
        return bool(call.over) and self.is_stream(caller.partition(":")[0], call.over)

    def _is_known(self, key: str) -> bool:
        """Return True if it is known how often a function runs, or that it only defines."""
        return self._often.get(key) is Often.REPEATS or key in self.definitions

    def _assume(self, below: dict[str, set[str]]) -> None:
        """Follow calls that may mean any of several methods with the same name and parameters."""
        names = self._program.names
        queue: deque[str] = deque()
        for edge in self._program.edges:
            if edge.guessed and self._often.get(edge.caller) is Often.REPEATS:
                last = edge.callee.rpartition(".")[2]
                given = len(edge.call.arguments) + len(edge.call.keywords)
                alike = {names.functions[key].parameters for key in names.methods[last]}
                taking = {taken for taken in alike if len(taken) > given}  # the instance, and these
                known = names.functions[edge.callee].parameters in taking
                if known and len(taking) == 1 and edge.callee not in self._often:
                    queue.append(edge.callee)
        while queue:
            here = queue.popleft()
            if here not in self._often and not self.is_definition(here):
                self._often[here] = Often.REPEATS
                queue.extend(below.get(here, ()))

    def _spread_starts(self, below: dict[str, set[str]]) -> None:
        """Spread start-up: what only start-up reaches is start-up; unreached stays unknown."""
        queue = deque(f"{file.module}:" for file in self._program.files)
        for file in self._program.files:
            queue.extend(f"{file.module}:{item.name}:" for item in file.classes)
        for key, function in self._program.names.functions.items():
            if key in self._often or self._program.callers.get(key):
                continue
            name = function.name.rpartition(".")[2]
            defines = key.rpartition(".<locals>.")[0] in self._factories
            if defines or name.startswith(PREPARING) or key in self.commands:
                self._often[key] = Often.STARTS
                queue.append(key)
        for key in self._program.by_reference:
            if self.is_seldom(key) and key not in self._often:
                self._often[key] = Often.STARTS
                queue.append(key)
        while queue:
            for callee in below.get(queue.popleft(), ()):
                if callee not in self._often:
                    self._often[callee] = Often.STARTS
                    queue.append(callee)

    def is_stream(self, module: str, over: str) -> bool:
        """Return True if a loop iterates over an external object, which may never end."""
        return bool(over) and self._program.names.is_outside(module, over)

    def is_definition(self, key: str) -> bool:
        """Return True if a function runs only where classes and functions are defined."""
        return key in self.definitions

    def _defines(self, key: str) -> bool:
        function = self._program.names.functions[key]
        name = function.name.rpartition(".")[2]
        if name == "__class_getitem__" and self._library:
            return False  # users of a library may pass classes that they create at run time
        if name == "__call__" and self._decorates(f"{key.partition(':')[0]}:{function.owner}"):
            return True
        return name in DEFINING or (name in ("__new__", "__init__") and self._is_metaclass(key))

    def _decorates(self, owner: str) -> bool:
        """Return True if instances are made to decorate: `@Remembered(60)` gets a function once."""
        makings = self._program.makings.get(owner, ())
        return bool(makings) and all(making.kept.how == "decorator" for making in makings)

    def _is_metaclass(self, key: str) -> bool:
        module = key.partition(":")[0]
        owner = self._program.names.functions[key].owner
        found = self._program.names.classes.get(f"{module}:{owner}")
        return found is not None and any(b in ("type", "ABCMeta", "EnumMeta") for b in found.bases)

    def _is_root(self, key: str) -> bool:
        function = self._program.names.functions[key]
        name = function.name.rpartition(".")[2]
        if self.is_definition(key) or key in self.commands:
            return False
        if name in ("__init__", "__new__", "__post_init__"):
            return self._library and not function.owner.startswith("_") and bool(function.owner)
        if self.is_handler(key):
            return True
        passed = self._program.by_reference.get(key)
        if passed:
            return not passed <= SELDOM
        if name.startswith("__") and name.endswith("__"):
            return name not in ENDING
        if "<" in function.name:
            above = key.rpartition(".<locals>.")[0]
            outer = self._program.names.functions.get(above)
            return outer is not None and outer.returns_inner and above not in self._factories
        if name.startswith("_") or name in ENDING:
            return False
        if function.returns_inner or name.startswith(_PREPARING_OR_REGISTERING):
            return False
        callers = self._program.callers.get(key, ())
        return self._library or all(edge.caller == key for edge in callers)

    def is_handler(self, key: str) -> bool:
        """Return True if a decorator passes the function to a framework: `@app.get(...)`."""
        given = self._program.names.functions[key].decorators
        return bool(given) and any(self._passes_on(key, name) for name in given)

    def _passes_on(self, key: str, decorator: str) -> bool:
        """Return True if a decorator is a method, or has to keep what nothing here calls."""
        head, _, method = decorator.partition(".")
        if (method or head).rpartition(".")[2] in _PLAIN or head in _PLAIN_MODULES:
            return False
        if method:
            return True
        names, module = self._program.names, key.partition(":")[0]
        source = names.imports.get(module, {}).get(head, "")
        taken = source or names.resolve(module, head) in names.functions
        known = source.partition(":")[0].partition(".")[0] in sys.stdlib_module_names
        return bool(taken) and not known and not self._program.callers.get(key)

    def ancestors(self, function: str, owner: str = "") -> frozenset[str]:
        """Return all functions from which this one can be reached, itself included.

        With an owner, the search stops where that owner itself ends: what closes it is ignored.
        """
        known = self._ancestors.get((function, owner))
        if known is not None:
            return known
        found, new = {function}, {function}
        while new:
            ends = new & self._ends if owner else ()
            above = new.difference(end for end in ends if self.ends(end, owner))
            new = set[str]().union(*map(self._callers_of, above)) - found
            found |= new
        self._ancestors[function, owner] = frozenset(found)
        return self._ancestors[function, owner]

    def _callers_of(self, function: str) -> set[str]:
        """Return the functions that call this one for sure, or one of its family."""
        known = self._callers.get(function)
        if known is None:
            edges = self._program.callers.get(function, ())
            known = {edge.caller for edge in edges if edge.kin or not edge.guessed}
            self._callers[function] = known
        return known

    def descendants(self, function: str) -> frozenset[str]:
        """Return all functions that this one can reach."""
        found = {function}
        queue = [function]
        while queue:
            for edge in self._program.edges_of.get(queue.pop(), ()):
                if edge.callee not in found:
                    found.add(edge.callee)
                    queue.append(edge.callee)
        return frozenset(found)

    def is_end(self, function: str) -> bool:
        """Return True if a function ends something; with an argument it ends only one item."""
        return function in self._ends

    def _is_end(self, key: str) -> bool:
        found = self._program.names.functions[key]
        name = found.name.rpartition(".")[2]
        if name not in ENDING and name not in ALL_END:
            return False
        return name.startswith("__") or len(found.parameters) <= bool(found.owner)

    def ends(self, function: str, owner: str) -> bool:
        """Return True if a function ends its owner, such as its `close`."""
        if not self.is_end(function):
            return False
        module, _, name = function.partition(":")
        kind = name.rpartition(".")[0]
        names = self._program.names
        family = (
            [*names.order(owner), *names.children.get(owner, ())] if owner in names.classes else []
        )
        return f"{module}:{kind}" in family

    def is_called(self, function: str) -> bool:
        """Return True if anything in the program calls a function or passes it on."""
        edges = self._program.callers.get(function, ())
        known = any(e.caller != function and (e.kin or not e.guessed) for e in edges)
        return known or self.is_passed(function)

    def is_passed(self, function: str) -> bool:
        """Return True if a function is passed on by reference or by a decorator."""
        return bool(self._program.by_reference.get(function)) or (
            function in self._program.names.functions and self.is_handler(function)
        )

    def is_unnamed(self, function: str) -> bool:
        """Return True for a plain function that nothing calls, passes on or decorates."""
        found = self._program.names.functions.get(function)
        if found is None or found.owner or found.decorators or "<" in found.name:
            return False
        alone = self._library or len(self._program.files) < 2
        return not alone and found.name not in self._program.called

    def runs_by_itself(self, function: str, *, named: bool = False) -> bool:
        """Return True if it is passed to something that runs it without waiting for one event.

        What takes out a `named` entry has to be seen to run by itself: a function with parameters
        that goes to something unknown may be a handler like any other.
        """
        passed = self._program.by_reference.get(function)
        if not passed:
            return self.is_work(function)
        if named and self._takes_more(function):
            return bool(passed & RUN_BY_ITSELF)
        return any(
            name in RUN_BY_ITSELF or not (name in SELDOM or name in BY_EVENT or subscribes(name))
            for name in passed
        )

    def is_work(self, function: str) -> bool:
        """Return True for what a thread or a process of the standard library runs: its `run`."""
        found = self._program.names.functions.get(function)
        if found is None or not found.owner or function.rpartition(".")[2] != "run":
            return False
        names, owner = self._program.names, f"{function.partition(':')[0]}:{found.owner}"
        return owner in names.classes and any(
            base.rpartition(".")[2] in WORKERS and names.is_outside(kind.partition(":")[0], base)
            for kind in names.order(owner)
            for base in names.classes[kind].bases
        )

    def answers(self, function: str) -> bool:
        """Return True if only others call a method, which they were given, and get what it returns.

        A plain function that is passed on may be a factory: what it makes may stay.
        """
        found = self._program.names.functions.get(function)
        if found is None or not found.owner or "<" in found.name:
            return False
        passed = self._program.by_reference.get(function, set())
        callers = self._program.callers.get(function, ())
        return bool(passed - BY_EVENT) and all(edge.guessed for edge in callers)

    def _takes_more(self, function: str) -> bool:
        found = self._program.names.functions.get(function)
        return found is not None and len(found.parameters) > bool(found.owner)

    def is_timed(self, function: str) -> bool:
        """Return True if it is passed to a timer."""
        return bool(self._program.by_reference.get(function, set()) & TIMED)

    def is_own(self, function: str) -> bool:
        """Return True if only the program calls a function: in a library, if its name says so."""
        private = function.rpartition(".")[2].startswith("_")
        return private or not (self._library or self.is_passed(function))

    def starts_once(self, function: str) -> bool:
        """Return True if only start-up passes a function to a thread or process, each time once."""
        passed = self._program.by_reference.get(function, set())
        return passed <= WORKERS and self.is_for_start(function)

    def is_for_start(self, function: str) -> bool:
        """Return True if nothing calls a function, and only start-up passes it on, each time once.

        It is then run where it is passed: `run(App.create)`.
        """
        edges = self._program.handed.get(function, ())
        return (
            bool(edges)
            and not self._program.callers.get(function)
            and all(not e.repeats and self.often(e.caller) is Often.STARTS for e in edges)
        )

    def is_seldom(self, function: str) -> bool:
        """Return True if it is passed only to what runs it at a fork, a signal or the end."""
        passed = self._program.by_reference.get(function, set())
        return bool(passed) and passed <= SELDOM


_PLAIN = {
    "setter", "getter", "deleter", "wraps", "lru_cache", "cache", "cached_property",
    "contextmanager", "asynccontextmanager", "abstractmethod", "overload", "override",
    "dataclass", "property", "singledispatch", "total_ordering", "register", "command", "group",
    "option", "argument", "fixture", "parametrize", "deprecated", "final", "coroutine",
    "define", "frozen", "s", "pass_context", "pass_obj", "validator", "field_validator", "jit",
    "njit", "memoize",
}  # fmt: skip
_PLAIN_MODULES = {"functools", "contextlib", "typing", "abc", "dataclasses", "pytest", "click", "t"}
