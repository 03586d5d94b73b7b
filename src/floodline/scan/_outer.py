"""Objects of frameworks: apps that call functions for each event, and what they tell of it."""

from __future__ import annotations

from floodline.scan._link import Program

PLAIN_BASES = {"object", "ABC", "Generic", "Protocol", "dict", "list", "set", "type", "str", "int"}


class Outer:
    """Answers for the names of a program; `packages` are those that its apps come from."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.packages: set[str] = set()

    def is_app(self, key: str, decorator: str) -> bool:
        """Whether a decorator is a method of an object from outside: an app, a router, a bot.

        Modules, functions and classes have decorators that change a function; objects of a class
        of the program are registers of its own, which nobody may ever ask, unless the class has
        the method from a framework.
        """
        head, _, rest = decorator.partition(".")
        names = self._program.names
        module = key.partition(":")[0]
        found = names.resolve(module, head)
        beside = f"{module}:{names.functions[key].owner}.{head}"  # a property, and its setter
        if not rest or found.endswith(":") or found in names.classes:
            return False
        if found in names.functions or beside in names.functions:
            return False
        source, _, name = found.partition(":")
        made = names.globals.get(source, {}).get(name, "")
        kind = names.type_of(source, made) if made else ""
        if kind:
            return self._inherits(kind, rest.rpartition(".")[2])
        if made[:2] not in ("", "C:"):
            self._note(source, made)
            return True
        return source == module or names.functions[key].waits

    def _inherits(self, kind: str, method: str) -> bool:
        """Whether a class of the program has a method from a class outside."""
        names = self._program.names
        if names.method(kind, method):
            return False
        outer = [
            (above.partition(":")[0], base)
            for above in names.order(kind)
            for base in names.classes[above].bases
            if base.rpartition(".")[2] not in PLAIN_BASES
            and names.is_outside(above.partition(":")[0], base)
        ]
        for module, base in outer:
            self._note(module, base)
        return bool(outer)

    def _note(self, module: str, text: str) -> None:
        home = self._program.names.resolve(module, text.partition(".")[0]).partition(":")[0]
        if home not in self._program.names.modules:
            self.packages.add(home.partition(".")[0])

    def is_context(self, module: str, name: str) -> bool:
        """Whether a name is an object that the package of an app keeps for the event: `request`.

        A function or a class of it would be called, and has no attributes that are read.
        """
        source, colon, found = (
            self._program.names.imports.get(module, {}).get(name, "").partition(":")
        )
        return bool(colon) and found.islower() and source.partition(".")[0] in self.packages

    def readers(self) -> set[str]:
        """Return the functions that ask such an object for something."""
        found: set[str] = set()
        for file in self._program.files if self.packages else ():
            told = {name for name, _ in file.imports if self.is_context(file.module, name)}
            if not told:
                continue
            asked = [(c.function, c.callee) for c in file.calls if c.callee[:4] == "o:g:"]
            asked += [(c.function, c.ref) for c in file.changes if c.ref[:4] == "o:g:"]
            for function, text in asked:
                if text[4:].partition("|")[0].partition(".")[0] in told:
                    found.add(f"{file.module}:{function}")
        return found
