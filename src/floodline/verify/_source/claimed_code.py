"""Finds what a claim is about in one file: its containers, and everything that bounds them."""

from __future__ import annotations

import ast
from typing import NamedTuple

from floodline._python.assignments import (
    Assignment,
    assigned,
    assigned_on_self,
    class_of,
    targets,
    value_of,
)
from floodline._python.at_limit import AtLimit, taken
from floodline._python.bounds import at_bound, bound_argument
from floodline._python.comparisons import ROOM, Relation, size_comparisons
from floodline._python.constants import Constants
from floodline._python.kinds import BASES
from floodline._python.names import written
from floodline._python.removals import is_harmless
from floodline._python.selection import selected
from floodline.scan._facts.calls import NAME, OWN_METHOD, Callee
from floodline.scan._facts.model import At, Change, FileFacts, Limit
from floodline.scan._facts.references import INSTANCE, MODULE, Reference
from floodline.scan._frontends.python.expressions import at
from floodline.scan._frontends.python.reader import read_tree
from floodline.verify._claims import Claim
from floodline.verify._source.modules import others
from floodline.verify._source.sizes import write_out_sizes

HARMLESS_BASES = {"object", "Generic", "Protocol", "ABC", "NamedTuple"}
LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Bound(NamedTuple):
    """A limit in the source: its number if known, what happens at it, and where it is checked."""

    number: int | None
    takes: frozenset[AtLimit]  # kinds of removal; empty if the branch does nothing
    line: int
    function: str
    made_so: bool = False  # the container itself enforces it
    shown: str = ""  # how the source writes the number, if not as a number
    by: str = ""  # how the source selects what leaves


class Source:
    """One parsed file with the scan's facts about it."""

    def __init__(self, text: str, claim: Claim) -> None:
        self.tree = ast.parse(text)
        write_out_sizes(self.tree)
        self.facts: FileFacts = read_tree(
            self.tree, claim.file.as_posix(), claim.file.stem, text.count("\n")
        )
        self.owners = {f.name: f.owner for f in self.facts.functions}
        self.constants = Constants(self.tree, _call(claim.make), others(claim.file))
        named = claim.symbol.replace(":", ".").split(".")
        self._claimed = next((c.name for c in self.facts.classes if c.name in named), "")
        self._tests: dict[At, ast.If | ast.While] = {}
        self._nodes: dict[At, ast.AST] = {}
        self._rest: dict[ast.stmt, list[ast.stmt]] = {}  # what follows a test that leaves
        self._functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        self._index()

    def _index(self) -> None:
        for node in ast.walk(self.tree):
            self._index_rest(node)
            if isinstance(node, ast.If | ast.While):
                self._tests[at(node.test)] = node
            elif isinstance(node, ast.Call):
                self._nodes[at(node)] = node
            elif isinstance(node, ast.Delete):
                self._nodes.update((at(target), target) for target in node.targets)
            elif isinstance(node, Assignment):
                self._nodes.update((at(target), node) for target in targets(node))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._functions.append(node)

    def _index_rest(self, node: ast.AST) -> None:
        """Remember what is only reached if `if len(x) <= limit: return` does not return."""
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            body = body if isinstance(body, list) else []
            for place, inner in enumerate(body):
                if isinstance(inner, ast.If) and isinstance(inner.body[-1], LEAVING):
                    self._rest[inner] = inner.orelse or body[place + 1 :]

    def chain(self, name: str) -> tuple[list[str], bool]:
        """Return a class with its bases in this file, and True if it has others."""
        classes = {c.name: c for c in self.facts.classes}
        found, unknown, queue = [name], False, list(classes[name].bases)
        while queue:
            base = base_name(queue.pop(0))
            if base in classes and base not in found:
                found.append(base)
                queue += classes[base].bases
            elif base not in classes and base not in HARMLESS_BASES | BASES:
                unknown = True
        return found, unknown

    def makings(self, ref: Reference, classes: list[str]) -> list[Assignment]:
        """Return the statements that create a container."""
        if ref.kind == MODULE:
            return assigned(self.tree.body, ref.name)
        found: list[Assignment] = []
        for each in filter(None, (class_of(self.tree, c) for c in classes)):
            found += assigned(each.body, ref.name)
            found += assigned_on_self(each, ref.name)
        return found

    def owner_node(self, function: str) -> ast.ClassDef | None:
        """Return the class whose method a function is."""
        owner = self.owners.get(function, "")
        return class_of(self.tree, owner) if owner else None

    def _number(self, node: ast.expr | None, function: str) -> int | None:
        """Return the number that an expression in a method is for the class that is claimed."""
        owner = self.owner_node(function)
        if owner is not None and self._claimed and owner.name in self.chain(self._claimed)[0]:
            number = self.constants.of(node, class_of(self.tree, self._claimed))
            if number is not None:
                return number
        return self.constants.of(node, owner)

    def around(self, line: int) -> ast.AST:
        """Return the innermost function around a line, else the module."""
        inside = [f for f in self._functions if f.lineno <= line <= (f.end_lineno or f.lineno)]
        return max(inside, key=lambda f: f.lineno, default=self.tree)

    def made_bounds(self, ref: Reference, classes: list[str]) -> list[Bound]:
        """Return the bounds that a container was created with: `deque(maxlen=100)`."""
        owner = class_of(self.tree, classes[0]) if classes else None
        found = []
        for making in self.makings(ref, classes):
            for node in ast.walk(value_of(making)):
                if isinstance(node, ast.Call) and (given := bound_argument(node)) is not None:
                    number = self.constants.of(given, owner)
                    found.append(Bound(number, at_bound(node), making.lineno, "", made_so=True))
        return found

    def checked_bound(self, limit: Limit, changes: list[Change]) -> Bound:
        """Return the bound of a comparison: its number, and what its branch removes."""
        node = self._tests[limit.at]
        acts = limit.acts and not self._does_nothing(node, limit)
        compared = next((c for c in size_comparisons(node.test) if not c.is_range), None)
        alone = compared is not None and (
            not compared.depends or _asks_for(node.test, compared.limit)
        )
        if compared is None or not alone:  # a range, or one that depends on another condition
            takes = frozenset({AtLimit.SOME} if acts else ())
            return Bound(None, takes, limit.at.line, limit.function)
        number = self._number(compared.limit, limit.function)
        branch = node.body
        if compared.relation in ROOM:
            branch = node.orelse or self._rest.get(node, [])
        kinds = self._takes(branch, limit.function, changes)
        if not kinds:
            kinds = _takes_nothing(node, compared.relation, acts, changes)
        tested = node.lineno - 1 if compared.relation is Relation.AT_MOST else node.end_lineno or 0
        above = compared.relation in (Relation.ABOVE, Relation.AT_MOST)
        if number is not None and above and self._precedes(tested, limit, changes):
            number += 1  # `len(x) > 10` before the item is added lets eleven in
        shown = "" if isinstance(compared.limit, ast.Constant) else written(compared.limit)
        by = self._selections(branch, limit.function, changes)
        return Bound(number, frozenset(kinds), limit.at.line, limit.function, shown=shown, by=by)

    def _precedes(self, tested: int, limit: Limit, changes: list[Change]) -> bool:
        """Return True if items are added only after the check, here or by what calls it."""
        grows = [c for c in changes if c.verb == "grow"]
        lines = [c.at.line for c in grows if c.function == limit.function]
        if lines:
            return min(lines) > tested
        checks = [
            c for c in self.facts.calls if self.callee(c.function, c.callee) == limit.function
        ]
        adding = {c.function: c.at.line for c in reversed(grows)}
        around = [c for c in checks if c.function in adding]
        return bool(around) and all(c.line < adding[c.function] for c in around)

    def _does_nothing(self, node: ast.If | ast.While, limit: Limit) -> bool:
        """Return True if nothing in the branch can reach the container: it logs or counts."""
        if not isinstance(node, ast.If) or limit.ref.kind != INSTANCE:
            return False
        inside = [c for c in self.facts.calls if c.function == limit.function]
        own = [self.callee(c.function, c.callee) for c in inside if _within(c.line, node.body)]
        called = {name for each in own for name in self.reached(each)}
        bodies = [
            f.body for f in self._functions if f.name in {n.rpartition(".")[2] for n in called}
        ]
        known = frozenset(name.rpartition(".")[2] for name in called)
        return all(is_harmless(body, known) for body in [node.body, *bodies])

    def _takes(self, body: list[ast.stmt], function: str, changes: list[Change]) -> set[AtLimit]:
        return {self.takes(change) for change in self._removals(body, function, changes)}

    def _removals(self, body: list[ast.stmt], function: str, changes: list[Change]) -> list[Change]:
        """Return what a branch takes from a container, itself or by calls."""
        reached = {
            inner
            for call in self.facts.calls
            if call.function == function and _within(call.line, body)
            for inner in self.reached(self.callee(call.function, call.callee))
        }
        return [
            change
            for change in changes
            if change.verb in ("shrink", "replace")
            and (
                (change.function == function and _within(change.at.line, body))
                or change.function in reached
            )
        ]

    def takes(self, change: Change) -> AtLimit:
        """Return which kind of items a change removes."""
        node = self._nodes.get(change.at)
        if node is None:
            return AtLimit.SOME
        kind = taken(node, self.around(change.at.line))
        by = self._selection(change)
        least_used = kind is AtLimit.LEAST and by is not None and self._counts(by)
        return AtLimit.SOME if least_used else kind

    def _selection(self, change: Change) -> ast.expr | None:
        """Return the expression that selects what a change removes."""
        node = self._nodes.get(change.at)
        index = node.slice if isinstance(node, ast.Subscript) else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            index = next(iter(node.args), None)
        if index is None or isinstance(index, ast.Slice):
            return None
        found = selected(index, self.around(change.at.line))
        return (found.order.by_key or found.node) if found is not None else None

    def _counts(self, by: ast.expr) -> bool:
        """Return True if what sorts the items counts uses: the least used is not the oldest."""
        read: set[object] = {n.attr for n in ast.walk(by) if isinstance(n, ast.Attribute)}
        read |= {n.value for n in ast.walk(by) if isinstance(n, ast.Constant)} - {None}
        added = (n.target for n in ast.walk(self.tree) if isinstance(n, ast.AugAssign))
        counted = {n for target in added for n in _last_parts(target)}
        return bool(read & counted)

    def _selections(self, body: list[ast.stmt], function: str, changes: list[Change]) -> str:
        """Return how the branch selects what leaves, as it is written."""
        for change in self._removals(body, function, changes):
            by = self._selection(change)
            if by is not None:
                return written(by)
        return ""

    def slice_bound(self, change: Change) -> Bound | None:
        """Return the bound of an unconditional `x = x[-100:]` or `del x[:-100]`."""
        node = self._nodes.get(change.at)
        value = node.value if isinstance(node, Assignment) else node
        if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Slice):
            return None
        kind = self.takes(change)
        edge = value.slice.lower if isinstance(node, Assignment) else None
        edge = edge or value.slice.upper or value.slice.lower
        number = self._number(edge, change.function)
        number = abs(number) if number is not None else None
        return Bound(number, frozenset({kind}), change.at.line, change.function)

    def callee(self, function: str, callee: Callee) -> str:
        """Return the function of this file that a call means, `""` if it is elsewhere."""
        name = callee.name
        if callee.kind == OWN_METHOD and (owner := self.owners.get(function, "")):
            for each in self.chain(owner)[0]:
                if f"{each}.{name}" in self.owners:
                    return f"{each}.{name}"
        return name if callee.kind == NAME and name in self.owners else ""

    def reached(self, start: str) -> set[str]:
        """Return a function and everything in this file that it calls."""
        seen: set[str] = set()
        queue = [start] if start else []
        while queue:
            here = queue.pop()
            if here not in seen:
                seen.add(here)
                called = (c.callee for c in self.facts.calls if c.function == here)
                queue += [each for name in called if (each := self.callee(here, name))]
        return seen

    def callers(self, function: str) -> set[str]:
        """Return the functions of this file that call a function."""
        calls = self.facts.calls
        return {c.function for c in calls if self.callee(c.function, c.callee) == function}


def base_name(base: str) -> str:
    """Return `B` for a base that is written as `mod.B` or `B[int]`."""
    return base.partition("[")[0].rpartition(".")[2]


def _call(make: str | None) -> ast.Call | None:
    node = ast.parse(make.strip(), mode="eval").body if make else None
    return node if isinstance(node, ast.Call) else None


def _asks_for(test: ast.expr, limit: ast.expr) -> bool:
    """Return True for `self.limit and len(x) > self.limit`: whether there is a limit at all."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else []
    asked = [
        p.left if isinstance(p, ast.Compare) else p for p in parts if not [*size_comparisons(p)]
    ]
    return bool(asked) and all(ast.dump(part) == ast.dump(limit) for part in asked)


def _within(line: int, body: list[ast.stmt]) -> bool:
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or body[-1].lineno)


def _takes_nothing(
    node: ast.If | ast.While, relation: Relation, acts: bool, changes: list[Change]
) -> set[AtLimit]:
    """Return what a check does whose branch takes nothing out: at best it lets nothing in."""
    if relation in ROOM:
        grows = any(_within(c.at.line, node.body) and c.verb == "grow" for c in changes)
        return {AtLimit.REJECT} if grows else set()
    if not acts:
        return set()
    leaves = any(isinstance(n, LEAVING) for s in node.body for n in ast.walk(s))
    return {AtLimit.REJECT} if leaves else {AtLimit.SOME}


def _last_parts(target: ast.expr) -> set[object]:
    """Return the names and keys that `self.hits[key] += 1` or `entry["hits"] += 1` counts."""
    found: set[object] = set()
    while isinstance(target, ast.Subscript):
        if isinstance(target.slice, ast.Constant):
            found.add(target.slice.value)
        target = target.value
    if isinstance(target, ast.Attribute):
        found.add(target.attr)
    return found
