"""Which functions something external gets, to call them for its events."""

from __future__ import annotations

import sys
from collections import defaultdict

from floodline.scan._facts.calls import FIXED, INHERITED, METHOD, NAME, OWN_METHOD, Argument
from floodline.scan._facts.model import Call, FileFacts
from floodline.scan._facts.references import ANSWER, CLASS, MODULE
from floodline.scan._facts.vocabulary import ASSIGNED, subscribes
from floodline.scan._program.names import Names
from floodline.scan._program.targets import Targets


class Subscribing:
    """Collects functions that are registered with external objects."""

    def __init__(self, names: Names, targets: Targets) -> None:
        self._names = names
        self._targets = targets
        self.functions: set[str] = set()
        self._lent: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.later: set[str] = set()  # those that nothing can call where they are registered

    def note(self, file: FileFacts, call: Call, number: int, function: str) -> None:
        """Note a function that a call gets, if the call registers it."""
        filled = any(more != FIXED for more in call.arguments[number + 1 :])
        if number < 0 or filled:
            return
        later = self._routes(file, call)
        if not later and not self._subscribes(file, call, call.arguments[number], function):
            return
        self.functions.add(function)
        name = call.callee.name
        if later or name == ASSIGNED or subscribes(name):
            self.later.add(function)

    def lend(self, file: FileFacts, call: Call, number: int, function: str) -> None:
        """Note a function that a function of the program gets as a parameter."""
        for callee, shift in self._targets.find(file.module, call.function, call.callee).functions:
            taken = self._names.functions[callee].parameters
            if number >= 0 and number + shift < len(taken):
                self._lent[callee, taken[number + shift]].append(function)

    def run_lent(self, file: FileFacts) -> None:
        """Note what functions got as a parameter and call with each thing that they wait for."""
        for call in file.calls:
            waiting = call.repeats in ("serves", "forever") and call.arguments
            if waiting and call.callee.kind == NAME:
                lent = self._lent.get((f"{file.module}:{call.function}", call.callee.name), ())
                self.functions.update(lent)
                self.later.update(lent)

    def _subscribes(self, file: FileFacts, call: Call, handed: Argument, function: str) -> bool:
        """Return True if a function is registered under a name with something external.

        With a class or a module's function only coroutines count: others may be called at once.
        """
        callee = call.callee
        kind, name, base = callee.kind, callee.name, callee.base
        waits = self._names.functions[function].waits
        if kind == NAME:
            return waits and name[:1].isupper() and self._names.is_outside(file.module, name)
        told = FIXED in call.arguments or (call.arguments[0] != handed and subscribes(name))
        if not told or kind == INHERITED:
            return False
        owner = self._targets.owner(file.module, call.function)
        if name == ASSIGNED and base.kind in (ANSWER, CLASS):
            head = self._names.resolve(file.module, base.name.partition(".")[0])
            if head.partition(":")[0].partition(".")[0] in sys.stdlib_module_names:
                return False  # a module or a namespace that is being filled
        if kind == OWN_METHOD:  # by a method that the class inherits from outside
            target = self._targets.find(file.module, call.function, call.callee)
            return not target.functions and bool(owner)
        source = self._names.resolve(file.module, base.name.partition(".")[0])
        if base.kind == MODULE and source.endswith(":"):
            return waits and source[:-1] not in self._names.modules
        return not self._names.base_class(file.module, owner, base)

    def _routes(self, file: FileFacts, call: Call) -> bool:
        """Return True if something external gets a text and a function when a module is loaded.

        `path("videos/", show)` calls nothing yet.
        """
        callee = call.callee
        kind, name, base = callee.kind, callee.name, callee.base
        if call.function or call.arguments[0] != FIXED:
            return False
        if kind == METHOD and base.kind == MODULE:
            return self._names.is_outside(file.module, base.name)
        return kind == NAME and self._names.is_outside(file.module, name)
