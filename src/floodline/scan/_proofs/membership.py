"""Checks before a key is added: keys that are rejected, or already exist."""

from __future__ import annotations

from collections import defaultdict

from floodline.scan._facts.model import FILLED, Change, FileFacts
from floodline.scan._facts.origins import Origin
from floodline.scan._facts.reasons import Reason
from floodline.scan._facts.references import LOCAL, Reference
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._program.program import Program
from floodline.scan._proofs.evidence import ASSUMED, REFUTED, State
from floodline.scan._proofs.grounds import Key

# line, table, and whether keys that it lacks are rejected
Asked = list[tuple[int, Reference | None, bool]]


class Refusals:
    """Knows what narrows the keys of a change; each file's checks are looked up once."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[str, dict[tuple[str, Origin], Asked]] = {}

    def of(self, file: FileFacts, change: Change) -> tuple[State, Reason] | None:
        """Return what narrows the keys that reach a change, `None` if nothing is seen to.

        Replacing the item of an existing key makes nothing grow. A key that must be in another
        table, or be known to a call that receives it, comes with the event and may still be one
        of a few. A key of several parts is narrowed if each of them is.
        """
        found = self._narrowed(file, change, change.key)
        if change.key.kind != "all" or (found and found[0] == REFUTED):
            return found
        parts = [p for p in change.key.parts if p.kind not in ("constant", "type")]
        told = [self._narrowed(file, change, part) for part in parts]
        known = [item for item in told if item is not None]
        if not known or len(known) < len(parts):
            return found
        return next((item for item in known if item[0] != REFUTED), known[0])

    def _narrowed(
        self, file: FileFacts, change: Change, key: Origin
    ) -> tuple[State, Reason] | None:
        doubt = None
        for line, table, refuses in self._asked(file).get((change.function, key), ()):
            if line >= change.at.line:
                continue
            if not refuses:
                if table != change.ref and not self._takes_any(file, change, key, table):
                    doubt = doubt or (ASSUMED, Key.IN_ANOTHER_TABLE())
            elif table and self._is_same(file, change, table):
                return REFUTED, Key.THERE_ALREADY()
            elif table and self.is_fixed(file, change.function, table):
                return REFUTED, Key.IN_FIXED_TABLE()
            else:
                doubt = ASSUMED, Key.OTHERS_REFUSED()
        if key == change.key and "answer" in change.marks:
            return doubt or (ASSUMED, Key.MAY_BE_REFUSED())
        return doubt

    def _is_same(self, file: FileFacts, change: Change, table: Reference) -> bool:
        own = self._program.key(file, change.function, change.ref)
        return own == self._program.key(file, change.function, table)

    def _takes_any(
        self, file: FileFacts, change: Change, key: Origin, table: Reference | None
    ) -> bool:
        """Return True if a table lacks no key: a `defaultdict`, or it gets this key right here."""
        held = self._program.held.get(
            self._program.key(file, change.function, table) if table else ""
        )
        return held is not None and (
            any(made.kind == "lookup" for made in held.made)
            or any(
                c.verb == "grow" and not c.depth and c.key == key and c.function == change.function
                for _, c in held.changes
            )
        )

    def is_fixed(self, file: FileFacts, function: str, table: Reference) -> bool:
        """Return True if a table gets its keys while it is created, and from nothing else."""
        key = self._program.key(file, function, table)
        held = self._program.held.get(key)
        if held is None or held.escapes or held.made[0].ref.kind == LOCAL:
            return False
        filled = any(c.verb == "grow" and _is_making(c.function) for _, c in held.changes)
        filled = filled or any(made.fills == FILLED for made in held.made)
        return (filled or table.name.isupper()) and all(
            c.verb in ("lookup", "shrink")
            or c.depth
            or _is_making(c.function)
            or (c.verb == "grow" and self._is_there(where, c))
            for where, c in held.changes
        )

    def _is_there(self, file: FileFacts, change: Change) -> bool:
        """Return True if a change only replaces the item of a key that was checked to exist."""
        return any(
            refuses and table and line < change.at.line and self._is_same(file, change, table)
            for line, table, refuses in self._asked(file).get((change.function, change.key), ())
        )

    def _asked(self, file: FileFacts) -> dict[tuple[str, Origin], Asked]:
        known = self._known.get(file.path)
        if known is None:
            known = self._known[file.path] = defaultdict(list)
            for mark in file.marks:
                if mark.kind == "refused" and mark.origin:
                    for origin in {mark.origin, *mark.origin.parts}:
                        known[mark.function, origin].append((mark.at.line, mark.ref, True))
            for change in file.changes:
                if change.verb == "lookup" and "left" not in change.marks:
                    asked = known[change.function, change.key]
                    asked.append((change.at.line, change.ref, False))
        return known


def _is_making(function: str) -> bool:
    """Return True for the body of a module or a class, and for what creates an instance."""
    return not function or function.endswith(":") or function.rpartition(".")[2] in MAKERS
