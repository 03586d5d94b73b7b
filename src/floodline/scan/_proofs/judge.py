"""Combines the four proofs of each container, for every rule that needs them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from floodline._python.kinds import Kind
from floodline._python.mutations import ONLY_OF_A_STACK
from floodline.scan._facts.circumstances import sizes_of
from floodline.scan._facts.model import Change, FileFacts, Mark, Sign
from floodline.scan._facts.references import INSTANCE, in_module, of_instance
from floodline.scan._program.names import Names
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.events import in_a_loop
from floodline.scan._proofs.evidence import STATES, Evidence
from floodline.scan._proofs.growth import Paths
from floodline.scan._proofs.holders import Holders
from floodline.scan._proofs.reach import Reach
from floodline.scan._proofs.removal import Removals

# where it grows, on which path, with which keys
Grown = tuple[FileFacts, Change, Evidence, Evidence]


class Judge:
    """Judges the containers and functions of a program, with one prover per proof."""

    def __init__(self, program: Program, *, library: bool = False) -> None:
        self.program = program
        self._library = library
        self.reach = Reach(program, library=library)
        self.paths = Paths(program, self.reach)
        events = self.paths.events
        self.holders = Holders(program, self.reach, events, library=library)
        self.removals = Removals(program, self.reach, events, library=library)
        self._tools = frozenset(self._find_tools())
        self._marks: dict[Sign, list[tuple[FileFacts, Mark]]] = defaultdict(list)
        for file in program.files:
            for mark in file.marks:
                self._marks[mark.kind].append((file, mark))
        self._decorating = {  # inner functions that return their argument
            f"{file.module}:{mark.function}" for file, mark in self.marks("gives")
        }
        self._families: dict[str, list[Held]] = defaultdict(list)
        for held in program.held.values():
            if held.made[0].ref.kind == INSTANCE:
                self._families[held.key.rpartition(".")[0]].append(held)

    def marks(self, kind: Sign) -> Sequence[tuple[FileFacts, Mark]]:
        """Return the marks of one kind in all files."""
        return self._marks.get(kind, ())

    def family(self, held: Held) -> Sequence[Held]:
        """Return the containers of the class that owns this one, itself included."""
        return self._families.get(held.key.rpartition(".")[0], ())

    def growth(self, held: Held, kinds: set[Kind]) -> list[Grown]:
        """Return where a container grows, the best proved first."""
        verbs = {"grow", "insert", "lookup"} if "lookup" in kinds else {"grow"}
        found: list[Grown] = []
        filled = all(made.fills == "bounded" for made in held.made)  # with what has a limit
        for file, change in held.changes:
            if change.verb not in verbs or self._is_limited(held, file, change):
                continue
            if change.depth and (kinds == {"set"} or filled):
                continue
            if kinds == {"list"} and change.op == "[]=" and not change.depth:
                continue  # an item of a list is replaced
            if "there" in change.marks and "lookup" not in kinds:
                continue  # a part of what was there takes its place
            if change.op in ONLY_OF_A_STACK and "stack" not in kinds:
                continue  # a method of the same name on another object
            path, key = self.paths.path(held, file, change), self.paths.key(file, change)
            found.append((file, change, path, key))
        found.sort(key=lambda g: (_worst(g[2], g[3]), g[1].verb == "lookup", g[1].depth))
        return found

    def _is_limited(self, held: Held, file: FileFacts, change: Change) -> bool:
        """Return True if a size was compared before: its own, or that of one that never shrinks."""
        sizes = sizes_of(change.marks)
        if change.ref.name in sizes:
            return True
        return "limit" in change.marks and not all(
            self._drains(name, held, file, change.function) for name in sizes
        )

    def _drains(self, name: str, held: Held, file: FileFacts, function: str) -> bool:
        """Return True if entries leave another container, or may, while those of this one stay."""
        keys = (self.program.key(file, function, make(name)) for make in (of_instance, in_module))
        other = next((self.program.held[key] for key in keys if key in self.program.held), None)
        if other is None:
            return True  # nothing is known of it
        shrunk = {c.function for _, c in held.changes if c.verb == "shrink"}
        return any(c.verb == "shrink" and c.function not in shrunk for _, c in other.changes)

    def trusts(self) -> bool:
        """Return True if much is taken on trust, since the program does not show its events."""
        return self._library or not self.paths.events.shown

    def is_seen(self, function: str) -> bool:
        """Return True if a function is seen to run for events, or that is taken on trust."""
        return self.trusts() or bool(self.paths.events.why(function))

    def is_tool(self, file: FileFacts) -> bool:
        """Return True for a command line of its own beside a program that shows its events."""
        return file.module in self._tools

    def _find_tools(self) -> Iterator[str]:
        events = self.paths.events
        alone = self.program.names.places.run
        if not alone or not events.shown:
            return
        used = _imported(self.program.names, {file.module for file in alone})
        busy = {key.partition(":")[0] for key in events.handlers}
        for file in alone:
            if file.module not in used | busy and not any(map(in_a_loop, file.changes)):
                yield file.module

    def decorates(self, function: str) -> bool:
        """Return True if an inner function returns its argument: it runs at definition time."""
        return function in self._decorating


def _imported(names: Names, wanted: set[str]) -> set[str]:
    """Return those of some modules that other modules take, or take something from."""
    last = {module.rpartition(".")[2] for module in wanted}
    found: set[str] = set()
    for module, known in names.imports.items():
        for target in known.values():
            source, _, name = target.partition(":")
            if name in last or source.rpartition(".")[2] in last or source == ".":  # few are
                source = names.absolute(module, source)
                found |= {source, f"{source}.{name}"} - {module}
    return found & wanted


def _worst(*proofs: Evidence) -> int:
    return max(STATES.index(proof.state) for proof in proofs)
