"""Links the facts of all files: which container every change means, and who calls whom."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from floodline.scan._facts.model import Call, Change, Container, FileFacts, Limit, Mark, Pair
from floodline.scan._facts.vocabulary import HARMLESS
from floodline.scan._program.names import INSIDE, Names
from floodline.scan._program.targets import CANDIDATES, Targets

Reached = tuple[tuple[str, int], ...]
Given = tuple[int | str, str]  # the place of an argument, and the reference
SIGNS = {"ttl", "flip", "waits"}


class Edge(NamedTuple):
    """One call from a function to a function."""

    caller: str
    callee: str
    repeats: str
    call: Call
    shift: int  # parameters before the first argument: 1 for a bound method
    guessed: bool = False  # one of several methods of that name
    kin: bool = False  # of one family: the event of one is an event of all


class Making(NamedTuple):
    """One place where a class is instantiated, and where the instance goes."""

    function: str
    kept: str
    repeats: str
    line: int
    path: str


class Held:
    """One container of the program with everything that happens to it."""

    __slots__ = ("changes", "escapes", "file", "key", "limits", "made", "pairs", "signs", "slices")

    def __init__(self, key: str, file: FileFacts) -> None:
        self.key = key
        self.file = file
        self.made: list[Container] = []
        self.changes: list[tuple[FileFacts, Change]] = []
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
        self.files = files
        self.held: dict[str, Held] = {}
        self.same: dict[str, str] = {}
        self.attributes: dict[str, list[str]] = defaultdict(list)
        self.edges: list[Edge] = []
        self.callers: dict[str, list[Edge]] = defaultdict(list)
        self.edges_of: dict[str, list[Edge]] = defaultdict(list)
        self.related: dict[str, list[Edge]] = defaultdict(list)  # calls of any of a large family
        self.makings: dict[str, list[Making]] = defaultdict(list)
        self.by_reference: dict[str, set[str]] = defaultdict(set)
        self.handed: dict[str, list[Edge]] = defaultdict(list)  # what is given to others to call
        self.counters: set[str] = set()
        self.subscribed: set[str] = set()  # functions that get the events of an outer object
        self.fresh: dict[str, str] = {}  # names of functions, and the new value that they return
        self.singletons: set[str] = set()  # classes that keep their one instance
        self.clocks: set[str] = set()  # functions that compare something with the time
        self._parameters: dict[tuple[str, str], list[tuple[FileFacts, Change]]] = defaultdict(list)
        self._given: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._handed: dict[str, list[tuple[Call, list[Given]]]] = {}
        for step in (
            self._add_containers, self._add_aliases, self._add_calls, self._follow_arguments,
            self._add_changes, self._follow_arguments,
        ):  # fmt: skip
            for file in files:
                step(file)
        self._handed.clear()

    def owner(self, file: FileFacts, function: str) -> str:
        """Return the class whose method a function is."""
        return self._targets.owner(file.module, function)

    def key(self, file: FileFacts, function: str, ref: str) -> str:
        """Return the key of the container that a reference means, `""` if it is not known."""
        kind, _, rest = ref.partition(":")
        if kind == "g":
            return self._same(self.names.resolve(file.module, rest))
        if kind == "l":
            return self._same(f"{file.module}:{rest}")
        if kind == "s":
            own = f"{file.module}:{self.owner(file, function)}"
            return self._same(self._attribute(own, rest) if own in self.names.classes else "")
        base, _, attribute = rest.rpartition("|")
        return self._same(self._of_other(file, function, base, attribute))

    def key_of_base(self, file: FileFacts, function: str, base: str) -> str:
        """Return the key of the object whose method is called: `self.attr` or `g:module.NAME`."""
        if base.startswith("self."):
            return self.key(file, function, f"s:{base[5:]}")
        if not base.startswith("g:"):
            return ""
        head, _, name = base[2:].rpartition(".")
        return self.key(file, function, f"o:g:{head}|{name}" if head else base)

    def _of_other(self, file: FileFacts, function: str, base: str, attribute: str) -> str:
        owner = self.owner(file, function)
        found = self.names.base_class(file.module, owner, base)
        if found:
            return self._attribute(found, attribute)
        if base.startswith("g:"):
            module = self.names.resolve(file.module, base[2:])
            if module.endswith(":"):
                return self.names.resolve(module[:-1], attribute)
            return self._of_global(file, base, attribute)
        alike = self.attributes.get(attribute, ())
        return alike[0] if len(alike) == 1 and len(attribute) > 3 else ""

    def _of_global(self, file: FileFacts, base: str, attribute: str) -> str:
        """Return the key of what hangs on an object of another package: `app.state.sessions`."""
        head, _, rest = base[2:].partition(".")
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
            if made.ref[:2] == "o:" and not made.ref.startswith("o:g:"):
                continue
            if made.ref[:2] == "o:":
                base, _, attribute = made.ref[2:].rpartition("|")
                key = self._of_global(file, base, attribute)
                if made.function or not key:
                    continue
                self.attributes[attribute].append(key)
            elif made.ref[:2] == "s:":
                owner = self.owner(file, made.function)
                key = f"{file.module}:{owner}.{made.ref[2:]}"
                if key not in self.held and made.ref != "s:":
                    self.attributes[made.ref[2:]].append(key)
            else:
                key = f"{file.module}:{made.ref[2:]}"
            if key not in self.held:
                self.held[key] = Held(key, file)
            self.held[key].made.append(made)
        self.counters.update(f"{file.module}:{name}" for name in file.counters)

    def _add_aliases(self, file: FileFacts) -> None:
        for alias in file.aliases:
            one = self.key(file, alias.function, alias.ref)
            other = self.key(file, alias.function, alias.other)
            if one and other and one != other:
                if alias.other[:2] == "l:" and other not in self.held:
                    function, _, name = alias.other[2:].rpartition(":")
                    self._given[f"{file.module}:{function}", name].append(one)
                elif other in self.held and (one in self.held or alias.other[:2] == "l:"):
                    self._unite(one, other, alias.ref)

    def _unite(self, one: str, other: str, ref: str = "") -> None:
        """`one` is the name that lives longer; what is known of `other` moves there."""
        one, other = self._same(one), self._same(other)
        if one == other:
            return
        gone = self.held.pop(other, None)
        self.same[other] = one
        if gone is not None:
            kept = self.held.setdefault(one, Held(one, gone.file))
            if ref:
                gone.made = [made._replace(ref=ref) for made in gone.made]
            for slot in ("made", "changes", "limits", "pairs", "slices", "signs"):
                getattr(kept, slot).extend(getattr(gone, slot))
            kept.escapes = kept.escapes or gone.escapes

    def _add_calls(self, file: FileFacts) -> None:
        function, caller = None, ""
        for call in file.calls:
            if call.function != function:
                function, caller = call.function, f"{file.module}:{call.function}"
            target = self._targets.find(file.module, call.function, call.callee)
            if target.makes:
                making = Making(caller, call.kept, call.repeats, call.line, file.path)
                self.makings[target.makes].append(making)
            many = target.kin and len(target.functions) > CANDIDATES
            for callee, shift in target.functions if call.line else ():
                edge = Edge(caller, callee, call.repeats, call, shift, target.guessed, target.kin)
                if many:
                    self.related[callee].append(edge)
                    continue
                self.edges.append(edge)
                self.callers[callee].append(edge)
                self.edges_of[caller].append(edge)
            if call.arguments or call.keywords:
                self._add_references(file, call)

    def _add_references(self, file: FileFacts, call: Call) -> None:
        given = [(n, text) for n, text in enumerate(call.arguments) if text[:2] in ("f:", "r:")]
        given += [(-1, k.partition("=")[2]) for k in call.keywords if "=f:" in k or "=r:" in k]
        for number, argument in given:
            for function in self.functions_in(file, call, argument):
                into = call.callee.rpartition("|")[2].rpartition(":")[2]
                self.by_reference[function].add(into)
                self._hand_function(file, call, function, argument, number)
                filled = any(text != "const" for text in call.arguments[number + 1 :])
                if number >= 0 and not filled and self._subscribes(file, call, function):
                    self.subscribed.add(function)

    def _hand_function(
        self, file: FileFacts, call: Call, function: str, argument: str, number: int
    ) -> None:
        """`submit(run, job)` calls `run(job)`, and so does `Thread(target=run, args=(job,))`."""
        if number >= 0:
            rest = call.arguments[number + 1 :]
        else:
            packed = [text[5:] for text in call.keywords if text[:5] == "args="]
            rest = tuple(packed * len(self.names.functions[function].parameters))
        bound = argument[2:4] in ("s:", "o:") and bool(self.names.functions[function].owner)
        caller = f"{file.module}:{call.function}"
        edge = Edge(caller, function, call.repeats, call._replace(arguments=rest), int(bound))
        self.handed[function].append(edge)

    def _subscribes(self, file: FileFacts, call: Call, function: str) -> bool:
        """Whether a function is registered under a name with something from outside.

        A module's function gets coroutines alone: others it may call at once, or never.
        """
        base = call.callee[2:].rpartition("|")[0]
        if "const" not in call.arguments:
            return False
        if call.callee[:2] == "s:":  # by a method that the class has from outside
            target = self._targets.find(file.module, call.function, call.callee)
            return not target.functions and bool(self.owner(file, call.function))
        if call.callee[:2] != "o:":
            return False
        head = base[2:].partition(".")[0]
        if base[:2] == "g:" and self.names.resolve(file.module, head).endswith(":"):
            outer = self.names.resolve(file.module, head)[:-1] not in self.names.modules
            return outer and self.names.functions[function].waits
        return not self.names.base_class(file.module, self.owner(file, call.function), base)

    def functions_in(self, file: FileFacts, call: Call, argument: str) -> list[str]:
        """Return the functions that an argument of a call hands on."""
        if argument[:2] == "f:":
            return [f"{file.module}:{argument[2:]}"]
        if argument[:2] != "r:":
            return []
        ref = argument[2:].partition("=")[0]
        if ref[:2] == "l:":
            function, _, name = ref[2:].rpartition(":")
            if name not in self.names.inner.get(file.module, ()):
                return []
            key = f"{file.module}:{function}{INSIDE}{name}"
            return [key] if key in self.names.functions else []
        kind = f"n:{ref[2:]}" if ref[0] == "g" else ref
        target = self._targets.find(file.module, call.function, kind)
        return [key for key, _ in target.functions if not key.endswith(".__init__")]

    def _add_changes(self, file: FileFacts) -> None:
        for change in file.changes:
            key = self.key(file, change.function, change.ref)
            if key in self.held:
                self.held[key].changes.append((file, change))
            elif change.ref[:2] == "l:":
                function, _, name = change.ref[2:].rpartition(":")
                self._parameters[f"{file.module}:{function}", name].append((file, change))
            elif change.verb in ("shrink", "replace") and change.ref.startswith("o:"):
                for alike in self.attributes.get(change.ref.rpartition("|")[2], ()):
                    if self._same(alike) in self.held:
                        self.held[self._same(alike)].changes.append((file, change))
        for limit in file.limits:
            if (key := self.key(file, limit.function, limit.ref)) in self.held:
                self.held[key].limits.append((file, limit))
        for pair in file.pairs:
            if (key := self.key(file, pair.function, pair.ref)) in self.held:
                self.held[key].pairs.append((file, pair))
        for mark in file.marks:
            if mark.kind == "fresh":
                self.fresh[mark.name.rpartition(".")[2]] = mark.detail
            if mark.kind == "singleton":
                self.singletons.add(f"{file.module}:{mark.name}")
            if mark.kind == "ttl":
                self.clocks.add(f"{file.module}:{mark.function}")
            if mark.kind in SIGNS and mark.name:
                key = self.key(file, mark.function, mark.name)
                if key in self.held:
                    self.held[key].signs.append((file, mark))
        for ref, function, line in file.slices:
            if (key := self.key(file, function, ref)) in self.held:
                self.held[key].slices.append((file.path, line))
        for ref, function in file.escapes:
            if (key := self.key(file, function, ref)) in self.held:
                self.held[key].escapes = True

    def _follow_arguments(self, file: FileFacts) -> None:
        for call, given in self._handed.get(file.path) or self._handing(file):
            for place, ref in given:
                key = self.key(file, call.function, ref)
                if key in self.held:
                    target = self._targets.find(file.module, call.function, call.callee)
                    self._hand_on(key, place, target.functions)

    def _handing(self, file: FileFacts) -> list[tuple[Call, list[Given]]]:
        """Return the calls that hand on something which may be a container; asked for twice."""
        found = self._handed[file.path] = []
        for call in file.calls:
            if not call.line or not (call.arguments or call.keywords):
                continue
            given: list[Given] = [
                (n, ref)
                for n, text in enumerate(call.arguments)
                if text[:2] == "r:" and self._may_hold(file, ref := text[2:].partition("=")[0])
            ]
            for text in call.keywords:
                name, _, value = text.partition("=")
                ref = value[2:].partition("=")[0]
                if value[:2] == "r:" and self._may_hold(file, ref):
                    given.append((name, ref))
            if given and call.callee.rpartition("|")[2].rpartition(":")[2] not in HARMLESS:
                found.append((call, given))
        return found

    def _may_hold(self, file: FileFacts, ref: str) -> bool:
        """Whether a reference is, or may become, a container; a local that is none stays none."""
        if ref[:2] != "l:":
            return True
        key = f"{file.module}:{ref[2:]}"
        return key in self.held or key in self.same

    def _hand_on(self, key: str, place: int | str, callees: Reached) -> None:
        if not callees:
            self.held[key].escapes = True
        for callee, shift in callees:
            names = self.names.functions[callee].parameters
            if isinstance(place, int):
                place = names[place + shift] if place + shift < len(names) else ""
            known = self.held.get(self._same(key))
            if known is not None:
                known.changes.extend(self._parameters.get((callee, place), ()))
            for other in self._given.get((callee, place), ()):
                self._unite(key, other)
