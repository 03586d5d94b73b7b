"""Reads what the test of a branch says of the keys and the sizes in it, and behind it."""

from __future__ import annotations

import ast

from floodline._python.names import written
from floodline._python.removals import only_logs
from floodline.scan._facts.circumstances import Circumstance, Marks
from floodline.scan._facts.model import Limit, Mark
from floodline.scan._facts.records import replace
from floodline.scan._facts.references import INSTANCE, LOCAL, MODULE, Reference
from floodline.scan._frontends.python.bindings import Bindings
from floodline.scan._frontends.python.conditions import flag_set, flags_reset, outsiders, rebinds
from floodline.scan._frontends.python.expressions import at

NONE: Marks = frozenset()
LASTING = (INSTANCE, MODULE)


class Branches(Bindings):
    """Notes which keys are refused or known, and which sizes are compared."""

    def __init__(self) -> None:
        super().__init__()
        self.limits: list[Limit] = []
        self.tree: ast.AST = ast.Module([], [])
        self._reset: set[str] | None = None  # flags, asked only if there are any

    def done(self, node: ast.If) -> Marks:
        """Return a mark for a branch that runs once: it sets its flag, which nothing resets."""
        flag = flag_set(node)
        if not flag or ("." not in flag and flag not in self.scope.globals):
            return NONE  # a local flag is set anew in each call
        if self._reset is None:
            self._reset = flags_reset(self.tree)
        return NONE if flag in self._reset else frozenset({"once"})

    def refuse(self, node: ast.If) -> None:
        """Read `if key not in known: raise`: what follows has only known keys."""
        for key, table in outsiders(self.scope, node.test):
            found = self.scope.reference(table) if table is not None else None
            ref = found[0] if found else None
            origin = self.scope.origin(key)
            told = Mark("refused", "", at(node.body[-1]), self.scope.name, "", ref, None, origin)
            self.marks.append(told)

    def leave(self, before: int) -> None:
        """Mark what was read in a branch that ends here: it tells nothing of the keys below it."""
        for number in range(before, len(self.changes)):
            change = self.changes[number]
            if change.verb == "lookup":
                self.changes[number] = replace(change, marks=change.marks | {"left"})

    def replaces(
        self, known: list[tuple[ast.expr, ast.expr | None]], body: list[ast.stmt], before: int
    ) -> None:
        """Drop what a branch puts under a key that its test has found: nothing grows by that."""
        for key, table in known:
            text, found = written(key), self.scope.reference(table) if table is not None else None
            there = [
                number
                for number, change in enumerate(self.changes[before:], before)
                if change.key_text == text
                and change.verb in ("grow", "insert")
                and (change.ref, change.depth) == found
            ]
            if there and not rebinds(body, key):
                for number in reversed(there):
                    del self.changes[number]

    def compare_sizes(self, test: ast.expr, body: list[ast.stmt]) -> Marks:
        found = self.sized(test)
        if found is None:
            return NONE
        acts = not only_logs(body)
        if found[0].kind != LOCAL:
            self.limits.append(Limit(*found, at(test), self.scope.name, acts))
        return limited(found[0]) if acts else NONE

    def past_sizes(self, test: ast.expr) -> Marks:
        """Return what follows if no part of a test holds: each of an `or` may limit another."""
        parts = test.values if type(test) is ast.BoolOp and type(test.op) is ast.Or else [test]
        sizes = [found[0] for part in parts if (found := self.sized(part))]
        return NONE.union(*map(limited, sizes)) if sizes else NONE


def limited(sized: Reference) -> Marks:
    """Return what follows from a comparison of a size: the length of a text bounds nothing else."""
    size = Circumstance("size", sized.name)
    return frozenset({"limit", size} if sized.kind in LASTING else {size})
