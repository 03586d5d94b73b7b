"""Links the facts of all files: which container every change means, and what calls what."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain

from floodline.scan._facts.calls import Argument, named_by
from floodline.scan._facts.model import Call, Change, Container, FileFacts, Limit, Mark, Pair
from floodline.scan._facts.origins import Origin, parameter
from floodline.scan._facts.records import replace
from floodline.scan._facts.references import (
    INSTANCE,
    ITSELF,
    LOCAL,
    MODULE,
    OBJECT,
    OWN,
    Base,
    Reference,
    base_in_module,
    in_module,
    of_instance,
    of_object,
)
from floodline.scan._facts.vocabulary import HARMLESS, LISTED, PERIODIC, UNITS
from floodline.scan._program.edges import Edge, Making, Passed, references
from floodline.scan._program.names import INSIDE, Names
from floodline.scan._program.subscribing import Subscribing
from floodline.scan._program.targets import CANDIDATES, Targets

Reached = tuple[tuple[str, int], ...]
Given = tuple[int | str, Reference]  # the position of an argument, and the reference
DEEP = 2  # calls that a function passes its own parameter on to
SIGNS = {"ttl", "flip", "waits"}


class Held:
    """One container of the program with everything that happens to it."""

    __slots__ = (
        "changes", "escapes", "file", "guesses", "key", "limits", "made", "pairs", "signs",
        "slices",
    )  # fmt: skip

    def __init__(self, key: str, file: FileFacts) -> None:
        self.key = key
        self.file = file
        self.made: list[Container] = []
        self.changes: list[tuple[FileFacts, Change]] = []
        self.guesses: list[tuple[FileFacts, Change]] = []  # of an attribute of this name
        self.limits: list[tuple[FileFacts, Limit]] = []
        self.pairs: list[tuple[FileFacts, Pair]] = []
        self.slices: list[tuple[str, int]] = []
        self.signs: list[tuple[FileFacts, Mark]] = []
        self.escapes = False


class Program:
    """All files together."""

    def __init__(self, files: list[FileFacts]) -> None:
        self.names = Names(files)
        self._targets = Targets(self.names)
        self.subscribing = Subscribing(self.names, self._targets)
        self.files = files
        self.held: dict[str, Held] = {}
        self.same: dict[str, str] = {}
        self.attributes: dict[str, list[str]] = defaultdict(list)
        self.edges: list[Edge] = []
        self.called: set[str] = set()  # names
        self.callers: dict[str, list[Edge]] = defaultdict(list)
        self.edges_of: dict[str, list[Edge]] = defaultdict(list)
        self.related: dict[str, list[Edge]] = defaultdict(list)  # calls of any of a large family
        self.makings: dict[str, list[Making]] = defaultdict(list)
        self.by_reference: dict[str, set[str]] = defaultdict(set)
        self.lent: dict[str, set[str]] = defaultdict(set)  # classes, and who passes them on
        self.handed: dict[str, list[Edge]] = defaultdict(list)  # what is passed to others to call
        self.counters: set[tuple[str, Reference]] = set()  # by module
        self.fresh: dict[str, Origin] = {}  # names of functions, and the new value that they return
        self.singletons: set[str] = set()  # classes that keep their only instance
        self.clocks: dict[str, int] = {}  # functions that compare something with the time: the line
        self._parameters: dict[tuple[str, str], list[tuple[FileFacts, Change]]] = defaultdict(list)
        self._given: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._onward: dict[tuple[str, int], list[tuple[int | str, Reached]]] = {}
        self._passing: dict[str, list[tuple[Call, Passed]]] = {}  # by path
        self._handed: dict[str, list[tuple[Call, list[Given]]]] = {}
        self._kept = self.names.renamed | {made.ref.name for f in files for made in f.containers}
        for alias in chain.from_iterable(file.aliases for file in files):
            self._kept |= {alias.ref.name, alias.other.name}
        for step in (
            self._add_containers, self._add_aliases, self._add_calls, self._follow_arguments,
            self._add_changes, self._follow_arguments,
        ):  # fmt: skip
            for file in files:
                step(file)
        for file in files if self.by_reference else ():
            self.subscribing.run_lent(file)
        for spent in (self._passing, self._handed, self._onward):
            spent.clear()

    def is_unnamed(self, owner: str) -> bool:
        """Return True for a class without bases that none of several files calls or passes on."""
        found, alone = self.names.classes[owner], len(self.files) < 2
        if alone or {*found.bases} - {"object"} or found.decorators or owner in self.lent:
            return False
        return found.name not in self.called and found.name not in self.names.places.names

    def owner(self, file: FileFacts, function: str) -> str:
        """Return the class whose method a function is."""
        return self._targets.owner(file.module, function)

    def key(self, file: FileFacts, function: str, ref: Reference) -> str:
        """Return the key of the container that a reference means, `""` if unknown."""
        kind, name = ref.kind, ref.name
        if kind == MODULE:
            return self._same(self.names.resolve(file.module, name))
        if kind == LOCAL:
            return self._same(f"{file.module}:{ref.function}:{name}")
        if kind == INSTANCE:
            own = f"{file.module}:{self.owner(file, function)}"
            return self._same(self._attribute(own, name) if own in self.names.classes else "")
        return self._same(self._of_other(file, function, ref.base, name))

    def key_of_base(self, file: FileFacts, function: str, base: Base) -> str:
        """Return the key of the object whose method is called, if it has a name."""
        if base.kind == OWN:
            return self.key(file, function, of_instance(base.name))
        if base.kind != MODULE:
            return ""
        head, _, name = base.name.rpartition(".")
        known = of_object(base_in_module(head), name) if head else in_module(name)
        return self.key(file, function, known)

    def _of_other(self, file: FileFacts, function: str, base: Base, attribute: str) -> str:
        owner = self.owner(file, function)
        found = self.names.base_class(file.module, owner, base)
        if found:
            return self._attribute(found, attribute)
        if base.kind == MODULE:
            module = self.names.resolve(file.module, base.name)
            if module.endswith(":"):
                return self.names.resolve(module[:-1], attribute)
            return self._of_global(file, base.name, attribute)
        alike = self.attributes.get(attribute, ())
        return self.names.of_one_family(attribute, alike) if len(attribute) > 3 else ""

    def _of_global(self, file: FileFacts, base: str, attribute: str) -> str:
        """Return the key of what is attached to an external object: `app.state.sessions`."""
        head, _, rest = base.partition(".")
        key = self.names.resolve(file.module, head)
        if key.endswith(":"):
            return ""
        return ".".join(part for part in (key, rest, attribute) if part)

    def _attribute(self, owner: str, attribute: str) -> str:
        for holder in self.names.order(owner):
            if f"{holder}.{attribute}" in self.held:
                return f"{holder}.{attribute}"
        return f"{owner}.{attribute}"

    def _same(self, key: str) -> str:
        while key in self.same:
            key = self.same[key]
        return key

    def _add_containers(self, file: FileFacts) -> None:
        for made in file.containers:
            ref = made.ref
            kind, name, base = ref.kind, ref.name, ref.base
            if kind == OBJECT:
                key = self._of_global(file, base.name, name) if base.kind == MODULE else ""
                if made.function or not key:
                    continue
                self.attributes[name].append(key)
            elif kind == INSTANCE:
                owner = self.owner(file, made.function)
                key = f"{file.module}:{owner}.{name}"
                if key not in self.held and ref != ITSELF:
                    self.attributes[name].append(key)
            else:
                home = f"{file.module}:{ref.function}" if kind == LOCAL else file.module
                key = f"{home}:{name}"
            if key not in self.held:
                self.held[key] = Held(key, file)
            self.held[key].made.append(made)
        self.counters.update((file.module, ref) for ref in file.counters)

    def _add_aliases(self, file: FileFacts) -> None:
        for alias in file.aliases:
            one = self.key(file, alias.function, alias.ref)
            other = self.key(file, alias.function, alias.other)
            if one and other and one != other:
                is_local = alias.other.kind == LOCAL
                if is_local and other not in self.held:
                    home = f"{file.module}:{alias.other.function}"
                    self._given[home, alias.other.name].append(one)
                elif other in self.held and (one in self.held or is_local):
                    self._unite(one, other, alias.ref)
                elif other in self.held and alias.other.kind == MODULE:
                    self._unite(other, one)  # `self.known = KNOWN`: the module keeps it

    def _unite(self, one: str, other: str, ref: Reference | None = None) -> None:
        """Merge two names: `one` lives longer, and takes over what is known about `other`."""
        one, other = self._same(one), self._same(other)
        if one == other:
            return
        gone = self.held.pop(other, None)
        self.same[other] = one
        if gone is not None:
            kept = self.held.setdefault(one, Held(one, gone.file))
            if ref:
                gone.made = [replace(made, ref=ref) for made in gone.made]
            for slot in ("made", "changes", "guesses", "limits", "pairs", "slices", "signs"):
                getattr(kept, slot).extend(getattr(gone, slot))
            kept.escapes = kept.escapes or gone.escapes

    def _add_calls(self, file: FileFacts) -> None:
        function, caller, module = None, "", file.module
        known, find = self.names.callable, self._targets.find
        passing = self._passing[file.path] = []
        for call in file.calls:
            arguments, keywords, named = call.arguments, call.keywords, call.callee
            if (arguments or keywords) and (told := references(arguments, keywords)):
                self._add_references(file, call, told)
                passing.append((call, told))
            name = named.name
            if name not in known:
                continue  # most: what is called is not in the program
            self.called.add(name)
            if call.function != function:
                function, caller = call.function, f"{module}:{call.function}"
            functions, makes, guessed, kin = find(module, call.function, named)
            repeats, again, guarded = call.repeats, call.again, bool(call.guard)
            if makes:
                making = Making(caller, call.kept, repeats, call.line, file.path, again, guarded)
                self.makings[makes].append(making)
            many = kin and len(functions) > CANDIDATES
            for callee, shift in () if again else functions:
                edge = Edge(caller, callee, repeats, call, shift, guessed, kin)
                if many:
                    self.related[callee].append(edge)
                    continue
                self.edges.append(edge)
                self.callers[callee].append(edge)
                self.edges_of[caller].append(edge)

    def _add_references(self, file: FileFacts, call: Call, given: Passed) -> None:
        known = self.names.callable
        for place, argument in given:
            ref = argument.ref
            if ref is not None and ref.name not in known:
                continue  # it means no function
            number = place if isinstance(place, int) else -1
            timed = any(name in UNITS for name, _ in call.keywords)
            if ref is not None and ref.kind == MODULE:
                self.lent[self.names.resolve(file.module, ref.name)].add(
                    f"{file.module}:{call.function}"
                )
            for function in self.functions_in(file, call, argument):
                self.by_reference[function].add(call.callee.name)
                if timed:
                    self.by_reference[function].add(PERIODIC)
                self._hand_function(file, call, function, argument, number)
                self.subscribing.note(file, call, number, function)
                self.subscribing.lend(file, call, number, function)

    def _hand_function(
        self, file: FileFacts, call: Call, function: str, argument: Argument, number: int
    ) -> None:
        """Link indirect calls: `submit(run, job)` calls `run(job)`, as does a `Thread`."""
        if number >= 0:
            rest = call.arguments[number + 1 :]
        else:
            packed = [value for name, value in call.keywords if name == "args"]
            rest = tuple(packed * len(self.names.functions[function].parameters))
        kind = argument.ref.kind if argument.ref else LOCAL
        bound = kind in (INSTANCE, OBJECT) and bool(self.names.functions[function].owner)
        caller = f"{file.module}:{call.function}"
        edge = Edge(caller, function, call.repeats, replace(call, arguments=rest), int(bound))
        self.handed[function].append(edge)

    def functions_in(self, file: FileFacts, call: Call, argument: Argument) -> list[str]:
        """Return the functions that an argument of a call passes on."""
        ref = argument.ref
        if ref is None:
            origin = argument.origin
            return [f"{file.module}:{origin.name}"] if origin.kind == "function" else []
        callee = named_by(ref)
        if callee is None:
            if ref.name not in self.names.inner.get(file.module, ()):
                return []
            key = f"{file.module}:{ref.function}{INSIDE}{ref.name}"
            return [key] if key in self.names.functions else []
        target = self._targets.find(file.module, call.function, callee)
        return [key for key, _ in target.functions if not key.endswith(".__init__")]

    def _add_changes(self, file: FileFacts) -> None:
        for change in file.changes:
            if change.ref.kind != LOCAL and change.ref.name not in self._kept:
                continue  # most: a plain attribute
            key = self.key(file, change.function, change.ref)
            if key in self.held:
                self.held[key].changes.append((file, change))
            elif change.ref.kind == LOCAL:
                home = f"{file.module}:{change.ref.function}"
                self._parameters[home, change.ref.name].append((file, change))
            elif change.verb in ("shrink", "replace") and change.ref.kind == OBJECT:
                for alike in self.attributes.get(change.ref.name, ()):
                    if self._same(alike) in self.held:
                        self.held[self._same(alike)].guesses.append((file, change))
        for limit in file.limits:
            if (key := self.key(file, limit.function, limit.ref)) in self.held:
                self.held[key].limits.append((file, limit))
        for pair in file.pairs:
            if (key := self.key(file, pair.function, pair.ref)) in self.held:
                self.held[key].pairs.append((file, pair))
        self._add_marks(file)
        for ref, function, line in file.slices:
            if (key := self.key(file, function, ref)) in self.held:
                self.held[key].slices.append((file.path, line))
        for ref, function in file.escapes:
            if (key := self.key(file, function, ref)) in self.held:
                self.held[key].escapes = True

    def _add_marks(self, file: FileFacts) -> None:
        for mark in file.marks:
            if mark.kind == "fresh" and mark.origin and self.names.is_alone(mark.name):
                self.fresh[mark.name.rpartition(".")[2]] = mark.origin
            if mark.kind == "singleton":
                self.singletons.add(f"{file.module}:{mark.name}")
            if mark.kind == "by_name":
                owner = f"{file.module}:{self.owner(file, mark.function)}"
                for method in self.names.methods_like(owner, mark.name):
                    self.by_reference[method].add(LISTED)
            if mark.kind == "ttl":
                self.clocks.setdefault(f"{file.module}:{mark.function}", mark.at.line)
            if mark.kind in SIGNS and mark.ref:
                key = self.key(file, mark.function, mark.ref)
                if key in self.held:
                    self.held[key].signs.append((file, mark))

    def _follow_arguments(self, file: FileFacts) -> None:
        for call, given in self._handed.get(file.path) or self._handing(file):
            for place, ref in given:
                key = self.key(file, call.function, ref)
                if key in self.held:
                    target = self._targets.find(file.module, call.function, call.callee)
                    self._hand_on(key, place, target.functions)

    def _handing(self, file: FileFacts) -> list[tuple[Call, list[Given]]]:
        """Return the calls that pass on what may be a container; used twice."""
        found = self._handed[file.path] = []
        for call, told in self._passing[file.path]:
            if call.again or call.callee.name in HARMLESS:
                continue
            given: list[Given] = [
                (place, ref) for place, it in told if (ref := it.ref) and self._may_hold(file, ref)
            ]
            if given:
                found.append((call, given))
        return found

    def _may_hold(self, file: FileFacts, ref: Reference) -> bool:
        """Return True if a reference is, or may become, a container; a plain local never does."""
        if ref.kind != LOCAL:
            return ref.name in self._kept
        key = f"{file.module}:{ref.function}:{ref.name}"
        return key in self.held or key in self.same

    def _hand_on(self, key: str, place: int | str, callees: Reached, depth: int = 0) -> None:
        if not callees:
            self.held[key].escapes = True
        for callee, shift in callees:
            names = self.names.functions[callee].parameters
            name = place if isinstance(place, str) else "".join(names[place + shift :][:1])
            known = self.held.get(self._same(key))
            if known is not None:
                known.changes.extend(self._parameters.get((callee, name), ()))
            for other in self._given.get((callee, name), ()):
                self._unite(key, other)
            if name in names and depth < DEEP:
                for more, reached in self._going_on(callee, names.index(name)):
                    self._hand_on(key, more, reached, depth + 1)

    def _going_on(self, function: str, number: int) -> list[tuple[int | str, Reached]]:
        """Return the calls that a function passes a parameter on to, and in which place."""
        found = self._onward.get((function, number))
        if found is None:
            found, own = [], parameter(number)
            for edge in self.edges_of.get(function, ()):
                if edge.guessed:
                    continue
                told: Passed = [*enumerate(edge.call.arguments), *edge.call.keywords]
                reached = ((edge.callee, edge.shift),)
                found += [(place, reached) for place, passed in told if passed.origin == own]
            self._onward[function, number] = found
        return found
