"""Checks before a key is added: keys that are rejected, or already exist."""

from __future__ import annotations

from collections import defaultdict

from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.origins import Origin
from floodline.scan._facts.reasons import Reason
from floodline.scan._facts.references import Reference
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
        of a few.
        """
        doubt = None
        for line, table, refuses in self._asked(file).get((change.function, change.key), ()):
            if line >= change.at.line:
                continue
            if not refuses:
                if table != change.ref:
                    doubt = doubt or (ASSUMED, Key.IN_ANOTHER_TABLE())
            elif table and self._is_same(file, change, table):
                return REFUTED, Key.THERE_ALREADY()
            else:
                doubt = ASSUMED, Key.OTHERS_REFUSED()
        if "answer" in change.marks:
            return doubt or (ASSUMED, Key.MAY_BE_REFUSED())
        return doubt

    def _is_same(self, file: FileFacts, change: Change, table: Reference) -> bool:
        own = self._program.key(file, change.function, change.ref)
        return own == self._program.key(file, change.function, table)

    def _asked(self, file: FileFacts) -> dict[tuple[str, Origin], Asked]:
        known = self._known.get(file.path)
        if known is None:
            known = self._known[file.path] = defaultdict(list)
            for mark in file.marks:
                if mark.kind == "refused" and mark.origin:
                    known[mark.function, mark.origin].append((mark.at.line, mark.ref, True))
            for change in file.changes:
                if change.verb == "lookup":
                    asked = known[change.function, change.key]
                    asked.append((change.at.line, change.ref, False))
        return known
