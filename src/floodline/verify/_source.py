"""Finds in one file what a claim speaks of: its containers, and everything that bounds them."""

from __future__ import annotations

import ast
from typing import NamedTuple

from floodline._python.names import last_name
from floodline.scan._facts.calls import NAME, OWN_METHOD, Callee
from floodline.scan._facts.model import At, Change, FileFacts, Limit
from floodline.scan._facts.references import MODULE, Reference
from floodline.scan._frontends.python.expressions import at
from floodline.scan._frontends.python.reader import read
from floodline.verify._claims import Claim
from floodline.verify._numbers import Numbers, class_of, targets
from floodline.verify._removal import ALL, FIRST, REJECT, SOME, taken

HARMLESS_BASES = {"object", "Generic", "Protocol", "ABC", "NamedTuple"}
CONTAINER_BASES = {"dict", "list", "set", "deque", "OrderedDict", "UserDict", "UserList"}
BOUND_KEYWORDS = ("maxlen", "maxsize", "max_items")
FIRST_ARGUMENT = {"Queue", "LifoQueue", "PriorityQueue", "LRUCache", "BoundedMap", "BoundedLog"}
LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
BLOCKS = "block"
RECENT = "recent"


class Bound(NamedTuple):
    """A limit in the source: its number if known, what happens at it, and where it is checked."""

    number: int | None
    takes: frozenset[str]  # kinds of removal; empty if the branch does nothing
    line: int
    function: str
    made_so: bool = False  # the container itself enforces it


class Source:
    """One parsed file with the scan's facts about it."""

    def __init__(self, text: str, claim: Claim) -> None:
        self.tree = ast.parse(text)
        self.facts: FileFacts = read(text, claim.file.as_posix(), claim.file.stem)
        self.owners = {f.name: f.owner for f in self.facts.functions}
        self.numbers = Numbers(self.tree, claim.make)
        self._tests: dict[At, ast.If | ast.While] = {}
        self._nodes: dict[At, ast.AST] = {}
        self._functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        self._index()

    def _index(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.If | ast.While):
                self._tests[at(node.test)] = node
            elif isinstance(node, ast.Call):
                self._nodes[at(node)] = node
            elif isinstance(node, ast.Delete):
                self._nodes.update((at(target), target) for target in node.targets)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                self._nodes.update((at(target), node) for target in targets(node))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._functions.append(node)

    def chain(self, name: str) -> tuple[list[str], bool]:
        """Return a class with its bases in this file, and whether others are unknown."""
        classes = {c.name: c for c in self.facts.classes}
        found, unknown, queue = [name], False, list(classes[name].bases)
        while queue:
            base = queue.pop(0).partition("[")[0].rpartition(".")[2]
            if base in classes and base not in found:
                found.append(base)
                queue += classes[base].bases
            elif base not in classes and base not in HARMLESS_BASES | CONTAINER_BASES:
                unknown = True
        return found, unknown

    def makings(self, ref: Reference, classes: list[str]) -> list[tuple[ast.expr, int]]:
        """Return the expressions that a container is made by, with their lines."""
        name = ref.name
        if ref.kind == MODULE:
            return _assignments(self.tree.body, name)
        found = []
        for each in filter(None, (class_of(self.tree, c) for c in classes)):
            found += _assignments(each.body, name)
            for node in ast.walk(each):
                if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                    heads = [t for t in targets(node) if isinstance(t, ast.Attribute)]
                    if any(h.attr == name and last_name(h.value) == "self" for h in heads):
                        found.append((node.value, node.lineno))
        return found

    def owner_node(self, function: str) -> ast.ClassDef | None:
        """Return the class whose method a function is."""
        owner = self.owners.get(function, "")
        return class_of(self.tree, owner) if owner else None

    def around(self, line: int) -> ast.AST:
        """Return the innermost function around a line, else the module."""
        inside = [f for f in self._functions if f.lineno <= line <= (f.end_lineno or f.lineno)]
        return max(inside, key=lambda f: f.lineno, default=self.tree)

    def made_bounds(self, ref: Reference, classes: list[str]) -> list[Bound]:
        """Return the bounds that a container was made with: `deque(maxlen=100)`."""
        owner = class_of(self.tree, classes[0]) if classes else None
        found = []
        for value, line in self.makings(ref, classes):
            for node in ast.walk(value):
                if isinstance(node, ast.Call) and (given := bound_argument(node)) is not None:
                    number = self.numbers.of(given, owner)
                    found.append(Bound(number, _made_policy(node), line, "", made_so=True))
        return found

    def checked_bound(self, limit: Limit, changes: list[Change]) -> Bound:
        """Return the bound of a comparison: its number, and what its branch takes away."""
        node = self._tests[limit.at]
        compares = [n for n in ast.walk(node.test) if isinstance(n, ast.Compare)]
        compare = next((n for n in compares if len(n.ops) == 1 and _length_of(n) >= 0), None)
        if compare is None or _depends(node.test):  # a range, or bound only on a condition
            takes = frozenset({SOME}) if limit.acts else frozenset()
            return Bound(None, takes, limit.at.line, limit.function)
        size, operator = _length_of(compare), compare.ops[0]
        other = compare.comparators[0] if size == 0 else compare.left
        number = self.numbers.of(other, self.owner_node(limit.function))
        above = ast.Gt if size == 0 else ast.Lt
        below = (ast.Lt, ast.LtE) if size == 0 else (ast.Gt, ast.GtE)
        if isinstance(operator, below):
            kinds = self._takes(node.orelse, limit.function, changes)
            grows = any(_within(c.at.line, node.body) and c.verb == "grow" for c in changes)
            kinds |= {REJECT} if grows and not kinds else set()
        else:
            kinds = self._takes(node.body, limit.function, changes)
            leaves = any(isinstance(n, LEAVING) for s in node.body for n in ast.walk(s))
            if not kinds and limit.acts:
                kinds = {REJECT} if leaves else {SOME}
        if number is not None and isinstance(operator, above) and _precedes(node, limit, changes):
            number += 1  # `len(x) > 10` before the item is added lets eleven in
        return Bound(number, frozenset(kinds), limit.at.line, limit.function)

    def _takes(self, body: list[ast.stmt], function: str, changes: list[Change]) -> set[str]:
        reached = {
            inner
            for call in self.facts.calls
            if call.function == function and _within(call.line, body)
            for inner in self.reached(self.callee(call.function, call.callee))
        }
        return {
            self.takes(change)
            for change in changes
            if change.verb in ("shrink", "replace")
            and (
                (change.function == function and _within(change.at.line, body))
                or change.function in reached
            )
        }

    def takes(self, change: Change) -> str:
        """Return what kind of items a change takes away."""
        node = self._nodes.get(change.at)
        return taken(node, self.around(change.at.line)) if node is not None else SOME

    def slice_bound(self, change: Change) -> Bound | None:
        """Return the bound of `x = x[-100:]` and `del x[:-100]` that stand under no comparison."""
        node = self._nodes.get(change.at)
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else node
        if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Slice):
            return None
        kind = self.takes(change)
        edge = value.slice.lower if isinstance(node, ast.Assign | ast.AnnAssign) else None
        edge = edge or value.slice.upper or value.slice.lower
        number = self.numbers.of(edge, self.owner_node(change.function))
        number = abs(number) if number is not None else None
        return Bound(number, frozenset({kind}), change.at.line, change.function)

    def callee(self, function: str, callee: Callee) -> str:
        """Return the function of this file that a call means, `""` if it is another's."""
        name = callee.name
        if callee.kind == OWN_METHOD and (owner := self.owners.get(function, "")):
            for each in self.chain(owner)[0]:
                if f"{each}.{name}" in self.owners:
                    return f"{each}.{name}"
        return name if callee.kind == NAME and name in self.owners else ""

    def reached(self, start: str) -> set[str]:
        """Return a function and all of this file that it calls."""
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


def bound_argument(node: ast.Call) -> ast.expr | None:
    """Return the expression of the bound that a container is made with, None if it has none."""
    for keyword in node.keywords:
        if keyword.arg in BOUND_KEYWORDS:
            empty = isinstance(keyword.value, ast.Constant) and keyword.value.value is None
            return None if empty else keyword.value
    name = last_name(node.func)
    if name == "deque" and len(node.args) > 1:
        return node.args[1]
    return node.args[0] if name in FIRST_ARGUMENT and node.args else None


def _made_policy(node: ast.Call) -> frozenset[str]:
    """What a container does at the bound it was made with, as far as its class is known."""
    name = last_name(node.func)
    order = next((k.value for k in node.keywords if k.arg == "order"), None)
    if name in ("deque", "BoundedLog"):
        return frozenset({FIRST})
    if name in ("LRUCache", "lru_cache") or (name == "BoundedMap" and order is None):
        return frozenset({FIRST, RECENT})
    if name == "BoundedMap" and isinstance(order, ast.Constant):
        return frozenset({FIRST, RECENT} if order.value == "lru" else {FIRST})
    if name == "Batch":
        return frozenset({ALL})
    return frozenset({BLOCKS if name.endswith("Queue") else SOME})


def _assignments(body: list[ast.stmt], name: str) -> list[tuple[ast.expr, int]]:
    return [
        (node.value, node.lineno)
        for node in body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        if any(isinstance(t, ast.Name) and t.id == name for t in targets(node))
    ]


def _length_of(compare: ast.Compare) -> int:
    """On which side `len(x)` stands: 0 left, 1 right, -1 nowhere."""
    for side, node in enumerate((compare.left, compare.comparators[0])):
        if isinstance(node, ast.Call) and last_name(node.func) in ("len", "qsize"):
            return side
    return -1


def _depends(test: ast.expr) -> bool:
    return isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)


def _precedes(node: ast.stmt, limit: Limit, changes: list[Change]) -> bool:
    """Whether all that the function adds, it adds after the check."""
    lines = [c.at.line for c in changes if c.verb == "grow" and c.function == limit.function]
    return bool(lines) and min(lines) > (node.end_lineno or node.lineno)


def _within(line: int, body: list[ast.stmt]) -> bool:
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or body[-1].lineno)
