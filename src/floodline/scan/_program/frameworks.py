"""Framework objects: apps that call functions for each event, and what carries the event."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import cached_property

from floodline.scan._facts.calls import METHOD
from floodline.scan._facts.model import Call, FileFacts
from floodline.scan._facts.origins import Origin, parameter
from floodline.scan._facts.references import ANSWER, INSTANCE, MODULE, OBJECT, Base, base_in_module
from floodline.scan._facts.vocabulary import subscribes
from floodline.scan._program.names import INSIDE
from floodline.scan._program.program import Program

GIVEN = parameter(0)  # what a decorator decorates
PLAIN_BASES = {"object", "ABC", "Generic", "Protocol", "dict", "list", "set", "type", "str", "int"}


class Outer:
    """Knows the framework objects of a program; `packages` are those that its apps come from."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.packages: set[str] = set()
        self._subscribers: set[str] | None = None
        self._noting: set[str] | None = None
        self._attributes: dict[str, set[str]] = {}

    def is_app(self, key: str, decorator: str) -> bool:
        """Return True if a decorator is a method of an external object: an app, a router, a bot.

        Decorators of modules, functions and classes change a function; objects of the program's
        own classes are registries that may never be read, unless the class has the method from a
        framework.
        """
        head, _, rest = decorator.partition(".")
        names = self._program.names
        module = key.partition(":")[0]
        found = names.resolve(module, head)
        beside = f"{module}:{names.functions[key].owner}.{head}"  # a property, and its setter
        if found in names.classes and rest and "." not in rest:
            return self._inherits(found, rest)  # `@Cog.listener()` of an own `Cog`
        if not rest or found.endswith(":") or found in names.classes:
            return False
        if found in names.functions or beside in names.functions:
            return False
        source, _, name = found.partition(":")
        made = names.globals.get(source, {}).get(name)
        kind = names.type_of(source, made) if made else ""
        if kind:
            return self._inherits(kind, rest.rpartition(".")[2])
        if made and made.kind != ANSWER:
            self._note(source, made.name)
            return True
        return source == module or names.functions[key].waits

    def registers(self, key: str, decorator: str) -> bool:
        """Return True if a decorator of the program gives what it decorates to an external object.

        `@pattern("hello")` may do what `@bot.on("hello")` does: the call is in the decorator. Of
        coroutines it is enough that the decorator subscribes something.
        """
        names = self._program.names
        found = names.resolve(key.partition(":")[0], decorator)
        if found not in names.functions:
            return False
        if found in self._givers:
            return True
        return names.functions[key].waits and found in self._subscribing()

    @cached_property
    def _givers(self) -> set[str]:
        """The functions that, themselves or in an inner one, give their argument to an app."""
        return {
            f"{file.module}:{call.function.partition(INSIDE)[0]}"
            for file in self._program.files
            for call in file.calls
            if call.arguments
            and call.arguments[0].origin == GIVEN
            and call.callee.kind == METHOD
            and self._is_outer_object(file, call.callee.base)
        }

    def _is_outer_object(self, file: FileFacts, base: Base) -> bool:
        """Return True if a name of the module is an object of an external class: `app`."""
        if base.kind != MODULE or "." in base.name:
            return False
        names = self._program.names
        source, _, name = names.resolve(file.module, base.name).partition(":")
        made = names.globals.get(source, {}).get(name)
        return made is not None and made.kind != ANSWER and not names.type_of(source, made)

    def notes(self, key: str, decorator: str) -> bool:
        """Return True if a decorator of the program gives a function back that nothing here calls.

        `@hook.message("*")` changes nothing: it notes what to call later, with what it then gets.
        """
        if self._program.callers.get(key) or self._program.names.functions[key].owner:
            return False  # a method needs an instance, which the decorator does not get
        if self._noting is None:
            self._noting = {
                f"{file.module}:{mark.function.rpartition(INSIDE)[0]}"
                for file in self._program.files
                for mark in file.marks
                if mark.kind == "gives"
            }
        return bool(self._noting) and self._meant(key.partition(":")[0], decorator) in self._noting

    def wrappers(self) -> Iterator[tuple[str, str]]:
        """Yield the functions that decorators of the program wrap, each with what runs instead."""
        names = self._program.names
        inner: dict[str, list[str]] = {}
        marking = {
            f"{file.module}:{mark.function}"
            for file in self._program.files
            for mark in file.marks
            if mark.kind == "gives"
        }
        for key, function in names.functions.items():
            if INSIDE in key and not function.returns_inner and key not in marking:
                inner.setdefault(key.partition(INSIDE)[0], []).append(key)
        for key, function in names.functions.items() if inner else ():
            for decorator in function.decorators:
                for wrapper in inner.get(self._meant(key.partition(":")[0], decorator), ()):
                    yield key, wrapper

    def gets(self, key: str, decorator: str) -> bool:
        """Return True if an external decorator gets a function that nothing here calls.

        `@run_preprocessor` has to keep it for later, or it would never run. Of methods only the
        coroutines of a framework's class count: `@command()` in a cog.
        """
        names, module = self._program.names, key.partition(":")[0]
        if INSIDE in key or "." in decorator or not self._may_be_kept(key):
            return False
        if self._program.callers.get(key) or key in self._program.by_reference:
            return False
        source = names.imports.get(module, {}).get(decorator, "")
        return (
            ":" in source
            and names.is_outside(module, decorator)
            and source.partition(":")[0].partition(".")[0] not in sys.stdlib_module_names
        )

    def _may_be_kept(self, key: str) -> bool:
        function = self._program.names.functions[key]
        kind = f"{key.partition(':')[0]}:{function.owner}"
        known = function.waits and kind in self._program.names.classes
        return bool(known and self._bases(kind)) if function.owner else True

    def _meant(self, module: str, decorator: str) -> str:
        """Return the function or the method of the program that a decorator names."""
        names = self._program.names
        head, _, last = decorator.rpartition(".")
        if not head:
            found = names.resolve(module, last)
            return names.method(found, "__call__") if found in names.classes else found
        source = names.resolve(module, head)
        if source.endswith(":"):
            return names.resolve(source[:-1], last)
        kind = names.base_class(module, "", base_in_module(head))
        return names.method(kind, last) if kind else ""

    def _subscribing(self) -> set[str]:
        """Return the functions in which, or in whose inner ones, an external object subscribes."""
        if self._subscribers is None:
            self._subscribers = {
                f"{file.module}:{call.function.partition(INSIDE)[0]}"
                for file in self._program.files
                for call in file.calls
                if call.callee.kind == METHOD and call.function and self._subscribes(file, call)
            }
        return self._subscribers

    def _subscribes(self, file: FileFacts, call: Call) -> bool:
        if not subscribes(call.callee.name):
            return False
        names, owner = self._program.names, self._program.owner(file, call.function)
        kind = names.base_class(file.module, owner, call.callee.base)
        return not kind or not names.method(kind, call.callee.name)

    def _inherits(self, kind: str, method: str) -> bool:
        """Return True if a class of the program inherits a method from an external class."""
        names = self._program.names
        if names.method(kind, method):
            return False
        outer = self._bases(kind)
        for module, base in outer:
            self._note(module, base)
        return bool(outer)

    def _bases(self, kind: str) -> list[tuple[str, str]]:
        """Return the external bases of a class, with the modules that name them."""
        names = self._program.names
        return [
            (above.partition(":")[0], base)
            for above in names.order(kind)
            for base in names.classes[above].bases
            if base.rpartition(".")[2] not in PLAIN_BASES
            and names.is_outside(above.partition(":")[0], base)
        ]

    def tells(self, key: str, name: str) -> bool:
        """Return True for a coroutine `on_message` of a framework class, which overrides another.

        Others of that name are mostly connected to something, or belong to a window.
        """
        if not name.startswith("on_"):
            return False  # most
        program, function = self._program, self._program.names.functions[key]
        kind = f"{key.partition(':')[0]}:{function.owner}"
        if not (function.waits and len(function.parameters) > 1):
            return False
        known = program.callers.get(key) or function.decorators
        return not known and kind in program.names.classes and bool(self._bases(kind))

    def is_servant(self, key: str, name: str) -> bool:
        """Return True for a method of a framework class whose instance is passed to other code.

        A method that the program itself calls does not count, nor does one with a decorator.
        """
        program = self._program
        kind = f"{key.partition(':')[0]}:{program.names.functions[key].owner}"
        if kind not in program.names.classes or name.startswith("_"):
            return False
        if program.names.functions[key].decorators or program.callers.get(key):
            return False
        handed = any(making.kept.how == "argument" for making in program.makings.get(kind, ()))
        return handed and bool(self._bases(kind))

    def fills(self, key: str, attribute: str) -> bool:
        """Return True if an attribute exists that no class of the program sets."""
        names = self._program.names
        kind = f"{key.partition(':')[0]}:{names.functions[key].owner}"
        if kind not in names.classes or not self._bases(kind):
            return False
        if names.method(kind, "__init__") or names.method(kind, attribute):
            return False
        homes = {above.partition(":")[0] for above in names.order(kind)}
        return not any(attribute in self._set_in(home) for home in homes)

    def _set_in(self, module: str) -> set[str]:
        """Return the attributes that a module sets on any instance."""
        known = self._attributes.get(module)
        if known is None:
            file = self._program.names.modules[module]
            refs = {c.ref for c in file.changes} | {c.ref for c in file.containers}
            known = {ref.name for ref in refs if ref.kind == INSTANCE}
            known |= {name for item in file.classes for name, _ in item.attributes}
            self._attributes[module] = known
        return known

    def _note(self, module: str, text: str) -> None:
        home = self._program.names.resolve(module, text.partition(".")[0]).partition(":")[0]
        if home not in self._program.names.modules:
            self.packages.add(home.partition(".")[0])

    def is_context(self, module: str, name: str) -> bool:
        """Return True if a name is an object in which an app's package keeps the event: `request`.

        A function or a class would be called, and has no attributes that are read.
        """
        source, colon, found = (
            self._program.names.imports.get(module, {}).get(name, "").partition(":")
        )
        return bool(colon) and found.islower() and source.partition(".")[0] in self.packages

    def readers(self) -> set[str]:
        """Return the functions that read from such an object."""
        found: set[str] = set()
        for file in self._program.files if self.packages else ():
            told = {name for name, _ in file.imports if self.is_context(file.module, name)}
            if told:
                found.update(f"{file.module}:{function}" for function in _readers_of(told, file))
        return found


def _readers_of(names: set[str], file: FileFacts) -> Iterator[str]:
    """Yield the functions of a file that use an attribute of one of these names."""
    for call in file.calls:
        base = call.callee.base
        asks = call.callee.kind == METHOD and base.kind == MODULE and _head(base.name) in names
        given = [argument.origin for argument in call.arguments]
        if call.keywords:
            given += [argument.origin for _, argument in call.keywords]
        if asks or (given and _asks(given, names)):
            yield call.function
    for change in file.changes:
        base = change.ref.base
        asks = change.ref.kind == OBJECT and base.kind == MODULE and _head(base.name) in names
        if asks or _asks([change.key, change.source], names):
            yield change.function


def _head(text: str) -> str:
    return text.partition(".")[0]


def _asks(origins: Iterable[Origin], names: set[str]) -> bool:
    """Return True if an origin is an attribute of one of these names of the module."""
    for origin in origins:
        if origin.kind == "dotted":
            if origin.name in names:
                return True
        elif origin.parts and _asks(origin.parts, names):
            return True
    return False
