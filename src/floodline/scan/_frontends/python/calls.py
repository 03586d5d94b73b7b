"""Walks Python expressions: calls, what they pass on, and what they grow or shrink."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from floodline._python.comparisons import ORDERS, asks_whether_any, measured, outer_size_comparison
from floodline._python.mutations import (
    GROWS_BY_ITEM,
    GROWS_BY_KEY,
    HEAP_GROWS,
    HEAP_SHRINKS,
    SHRINKS,
)
from floodline._python.names import dotted, last_name, written
from floodline._python.removals import QUIET
from floodline.scan._facts.calls import (
    ADDED,
    DEFAULT,
    DROPPED,
    FIXED,
    GIVEN,
    HERE,
    IN_MAIN,
    Argument,
    Callee,
    Kept,
    argument,
    by_name,
    in_entry,
)
from floodline.scan._facts.circumstances import Arms, Circumstance, Guard, Marks, Repeats, standing
from floodline.scan._facts.model import Call, Function, Mark, Verb
from floodline.scan._facts.origins import CONSTANT, NO_KEY, UNKNOWN, Origin, parameter, turn_of
from floodline.scan._facts.references import LOCAL, of_instance
from floodline.scan._facts.vocabulary import HARMLESS, LISTED, OPPOSITES, opposites_of
from floodline.scan._frontends.python.arguments import Arguments, add_given, idle, lambda_name
from floodline.scan._frontends.python.expressions import at
from floodline.scan._frontends.python.nodes import BELOW, LEAVES, names_in
from floodline.scan._frontends.python.scope import Found, Scope
from floodline.scan._frontends.python.signs import (
    BLOCKS,
    CLOSES,
    METERS,
    TIMERS,
    ages,
    asks_by_name,
    awaits,
    blocks,
    closes,
    finalizers,
    inline_client,
    labels,
)

# these keep nothing and call nothing in the program: not worth an edge each
ASKING = {
    "len", "isinstance", "issubclass", "str", "int", "float", "bool", "bytes", "repr", "print",
    "range", "hasattr", "id", "type", "hash", "ord", "chr", "abs", "round", "super", "callable",
}  # fmt: skip

TOLD = {"set", "labels", *CLOSES, *METERS, *BLOCKS, *OPPOSITES}  # names that signs look for
CALM = QUIET | HARMLESS
HEAPS = HEAP_GROWS | HEAP_SHRINKS
RARE = {"addHandler", "finalize", *HEAPS, *TIMERS}
MOVING = GROWS_BY_ITEM | GROWS_BY_KEY | SHRINKS
IN_TABLE = by_name(LISTED)
THROUGH = {ast.BoolOp, ast.IfExp, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom}
_Stands = tuple[Repeats, str, Arms, Guard, bool]  # a plain one: its parts are told apart faster
_GATHERS = {ast.List, ast.Tuple, ast.Dict, ast.Set}


class Calls(Arguments):
    """Reads expressions into facts."""

    def __init__(self) -> None:
        super().__init__()
        self._standing: dict[Marks, _Stands] = {}
        # equal arguments are mostly the same objects, and hashing what they are made of is slow
        self._passed: dict[tuple[int, ...], tuple[Argument, ...]] = {}

    def expression(
        self, node: ast.expr, marks: Marks, *, kept: Kept = HERE, stored: bool = False
    ) -> None:
        """Read an expression and everything below it."""
        here: Any = node
        goes = kept
        unread = node if stored and type(node) is ast.Subscript else None
        stack: list[tuple[Any, Kept]] = []
        while True:
            kind = type(here)
            while kind is ast.Attribute:
                here, goes = here.value, HERE
                kind = type(here)
            if kind is ast.Call:
                function, items, named = here.func, here.args, here.keywords
                name = self.call(here, function, items, named, goes, marks)
                add_given(function, name, items, named, stack)
            elif kind not in LEAVES:  # most are a name and its attributes
                told = _TOLD.get(kind)
                if told is not None and here is not unread:
                    told(self, here, marks)
                if kind not in THROUGH:
                    goes = GIVEN if kind in _GATHERS else HERE
                elif kind is ast.BoolOp and goes is HERE:
                    goes = DEFAULT  # `given or Default()`: what is given lives elsewhere
                if kind is not ast.Lambda:  # it has been read as a function of its own
                    for item in BELOW[kind](here):
                        if type(item) not in LEAVES:
                            stack.append((item, goes))  # noqa: PERF401 -- a call of its own on 3.11
            if not stack:
                return
            here, goes = stack.pop()

    @abstractmethod
    def bind(self, target: ast.expr, value: ast.expr, marks: Marks) -> None:
        """Read what a name or an attribute holds from now on."""

    def _walrus(self, node: ast.NamedExpr, marks: Marks) -> None:
        self.bind(node.target, node.value, marks)

    def _turns(self, node: ast.comprehension, _: Marks) -> None:
        """Bind the names of a comprehension, unless the function has a use of its own for them."""
        scope = self.scope
        for name in names_in(node.target):
            if name not in scope.turning and scope.holder_of(name) is not None:
                return
            scope.turning.add(name)
        self.loop_target(node.target, node.iter)

    def _compare(self, node: ast.Compare, _: Marks) -> None:
        if type(node.ops[0]) in ORDERS:
            self.marks += ages(self.scope, node)

    def _list_methods(self, node: ast.Dict, _: Marks) -> None:
        """Read a table of methods: `{"join": self.join}`."""
        for value in node.values:
            if type(value) is not ast.Attribute or type(value.value) is not ast.Name:
                continue
            if value.value.id == "self" and self.scope.owner:
                given = argument(UNKNOWN, of_instance(value.attr))
                listed = Call(self.scope.name, IN_TABLE, value.lineno, "", (given,), (), HERE)
                self.calls.append(listed)

    def _pause(self, node: ast.Await | ast.Yield | ast.YieldFrom, _: Marks) -> None:
        waits = type(node) is ast.Await
        self.risks.append((self.scope.name, node.lineno, "await" if waits else "yield"))
        if self.scope.waiters and type(node) is ast.Await:
            self.marks += awaits(self.scope, node)

    def lambda_(self, node: ast.Lambda, _: Marks) -> None:
        """Read a lambda: a function of its own that is passed on where it is written."""
        outer = self.scope
        name = lambda_name(outer, node)
        scope = Scope(name, outer.owner, outer if not outer.name.endswith(":") else None)
        for index, one in enumerate([*node.args.posonlyargs, *node.args.args]):
            scope.parameters[one.arg] = parameter(index)
        self.functions.append(
            Function(name, outer.owner, node.lineno, tuple(scope.parameters), (), (), False)
        )
        self.scope = scope
        self.expression(node.body, frozenset())
        self.scope = outer

    def lookup(self, node: ast.Subscript, marks: Marks) -> None:
        """Read a subscript: reading an item may insert it; a slice copies a part."""
        if type(node.ctx) is not ast.Load:
            return
        found = self.scope.reference(node.value)
        if found is None or found[0].kind == LOCAL:
            return
        if isinstance(node.slice, ast.Slice):
            self.slices.append((found[0], self.scope.name, node.lineno))
        elif not found[1]:
            origin = self.scope.origin(node.slice)
            if origin is not CONSTANT:
                self.change("lookup", found, "[]", node, origin, "", None, marks)

    def call(
        self,
        node: ast.Call,
        function: ast.expr,
        items: list[ast.expr],
        named: list[ast.keyword],
        kept: Kept,
        marks: Marks,
    ) -> str:
        """Read one call: as growth, as removal, and as an edge of the call graph.

        Return the name of what is called. The parts of the node are given, as reading an attribute
        of a node takes as long as calling a function.
        """
        callee: Callee | None = None
        if type(function) is ast.Name:
            name = function.id
            if name in ASKING:
                return name
            if name == "getattr" and (asked := asks_by_name(self.scope, node)):
                self.marks.append(asked)
            callee = by_name(name)
        elif type(function) is ast.Attribute:
            name = function.attr
            value = function.value
            if name in MOVING:
                self.method(node, function, marks)
            if name in TOLD or type(value) is ast.Call or name.startswith("add_"):
                self._signs(node, function, name, kept)
            callee = self.callee_of(value, name)
        else:
            name = last_name(function)
            if type(function) is ast.Call and (told := self.handed(node, function)):
                self.calls.append(
                    Call(self.scope.name, told[0], node.lineno, "", told[1], (), HERE)
                )
        line = node.lineno
        if name not in CALM:
            self.risks.append((self.scope.name, line, "call"))
        if name in RARE:
            self._rare(node, name, callee, marks)
        if callee is not None:
            given = self._given(items, name) if items else ()
            keyed = self.keywords(named, name) if named else ()
            if idle(callee, given, keyed):
                return name
            stands = self._standing.get(marks) or self._stands(marks)
            repeats, over, arms, guard, is_main = stands
            self.calls.append(
                Call(
                    self.scope.name, callee, line, repeats, given, keyed,
                    IN_MAIN if is_main else kept, over, arms, guard,
                )
            )  # fmt: skip
        return name

    def _given(self, items: list[ast.expr], name: str) -> tuple[Argument, ...]:
        """Return what a call passes on by position."""
        given = []
        for item in items:
            given.append(FIXED if type(item) is ast.Constant else self.argument(item, name))  # noqa: PERF401 -- a call of its own on 3.11
        return self._passed.setdefault(tuple(map(id, given)), tuple(given))

    def _stands(self, marks: Marks) -> _Stands:
        """Return the circumstances of the marks; many calls share the same ones."""
        found = self._standing[marks] = (*standing(marks), "main" in marks)
        return found

    def _rare(self, node: ast.Call, name: str, callee: Callee | None, marks: Marks) -> None:
        """Note calls of a few names that mean something on their own."""
        if name in HEAPS:
            if name not in HEAP_SHRINKS or type(node.func) is ast.Attribute:
                self._grown_by_function(node, marks)
        elif name == "addHandler":
            if self.scope.name:
                guarded = "guarded" if marks & {"branch", "absent", "none"} else ""
                said = Mark("handler", dotted(node.func), at(node), self.scope.name, guarded)
                self.marks.append(said)
        elif name in TIMERS:
            left = any(f == self.scope.name and kind == "return" for f, _, kind in self.risks)
            guarded = "guarded" if left or "branch" in marks else ""
            self.marks.append(Mark("timer", "", at(node), self.scope.name, guarded, None, callee))
        elif node.args and not marks & {"none", "absent", "once"}:
            self.marks += finalizers(self.scope, node)

    def _signs(self, node: ast.Call, function: ast.Attribute, name: str, kept: Kept) -> None:
        """Note what single rules look for in a method call."""
        if name == "set" and node.args:
            callee = self.callee(function)
            self.marks.append(Mark("set", "", at(node), self.scope.name, "", None, callee))
        elif kept is DROPPED and opposites_of(name):
            callee = self.callee(function)
            self.marks.append(Mark("listener", "", at(node), self.scope.name, name, None, callee))
        if name in CLOSES:
            self.marks += closes(self.scope, function)
        elif name == "labels" or (name in METERS and len(node.args) + len(node.keywords) > 1):
            self.marks += labels(self.scope, node, name)
        if self.scope.waiters and name in BLOCKS:
            self.marks += blocks(self.scope, node, function)
        if type(function.value) is ast.Call:
            self.marks += inline_client(self.scope, function)

    def _grown_by_function(self, node: ast.Call, marks: Marks) -> None:
        found = self.scope.reference(node.args[0]) if node.args else None
        if found:
            verb: Verb = "shrink" if last_name(node.func) in HEAP_SHRINKS else "grow"
            self.change(verb, found, last_name(node.func), node, NO_KEY, "", None, marks)

    def method(self, node: ast.Call, function: ast.Attribute, marks: Marks) -> None:
        name = function.attr
        found = self.scope.reference(function.value)
        if found is None:
            return
        first = node.args[0] if node.args else None
        text = written(first) if first is not None else ""
        if name in SHRINKS:
            self.change("shrink", found, name, node, CONSTANT, text, first, marks)
            return
        value = node.args[-1] if node.args else None
        if marks and Circumstance("empty", written(function.value)) in marks:
            marks = marks | {"once"}  # only while it is empty
        if name == "append" and "absent" in marks:
            # what is checked first is added once: the list acts as a set
            self.change("grow", found, name, node, self.scope.origin(first), text, value, marks)
            return
        goes = in_entry(found[0]) if found[0].kind != LOCAL else ADDED
        for one in first.values if type(first) is ast.Dict else node.args[-1:]:
            if type(one) is ast.Name:  # `append(one)`, `update({key: one})`
                self.keep_local(one, goes)
        if name in GROWS_BY_ITEM:
            self.change("grow", found, name, node, NO_KEY, text, value, marks)
            return
        origin = self.scope.origin(first)
        if name == "update":
            origin = self.origin_of_update(first)
            if type(first) is ast.Dict and first.keys and first.keys[0] is not None:
                text = written(first.keys[0])
        self.change("grow", found, name, node, origin, text, value, marks)
        self.inserts(function.value, marks)

    def inserts(self, node: ast.expr, marks: Marks) -> None:
        """Read `map[key].add(x)`: it adds the key too, if the map inserts on reading."""
        if type(node) is ast.Subscript and type(node.slice) is not ast.Slice:
            found = self.scope.reference(node.value)
            if found and not found[1]:
                origin, text = self.scope.origin(node.slice), written(node.slice)
                self.change("insert", found, "[]", node, origin, text, None, marks)

    def origin_of_update(self, first: ast.expr | None) -> Origin:
        """Return where the keys that a map takes over come from."""
        if first is None:
            return CONSTANT
        if isinstance(first, ast.Dict):
            origins = [self.scope.origin(key) for key in first.keys if key is not None]
            return next((o for o in origins if o is not CONSTANT), CONSTANT)
        if type(first) is ast.Name and first.id in self.scope.filled:
            return self.scope.filled[first.id]
        return self.scope.origin(first)

    def sized(self, test: ast.expr) -> Found | None:
        """Return the container whose `len` a test compares, if it does."""
        found = outer_size_comparison(test)
        if found is None or asks_whether_any(found.test):
            return None
        if type(found.limit) is ast.Name and (known := self.scope.asked.get(found.limit.id)):
            before = measured(known)  # its own size, some time ago: has it changed?
            if before is not None and written(before) == written(found.container):
                return None
        return self.scope.reference(found.container)

    def loop_target(self, target: ast.expr, iterable: ast.expr) -> str:
        """Bind the names of a loop to the values inside what it iterates over.

        Return the class of an object that was created in the function and yields them.
        """
        found = self.scope.reference(iterable)
        origin = self.scope.origin(iterable)
        made = self._made(iterable)
        if made:
            origin = turn_of(made)
        first = origin
        if isinstance(iterable, ast.Call):
            name, given = last_name(iterable.func), iterable.args
            if name == "range":
                fixed = all(type(item) is ast.Constant for item in given)
                first = origin = CONSTANT if fixed else UNKNOWN
            elif name == "enumerate" and given:
                first, origin = UNKNOWN, self.scope.origin(given[0])
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        for part in parts:
            for name in names_in(part):
                self.scope.refs.pop(name, None)
                self.scope.types.pop(name, None)
                self.scope.origins[name] = first if part is parts[0] else origin
        last = parts[-1]
        if found and isinstance(last, ast.Name):
            called = isinstance(iterable, ast.Call)
            self.scope.refs[last.id] = found if called else (found[0], found[1] + 1)
        return made

    def _made(self, node: ast.expr) -> str:
        holder = self.scope.holder_of(node.id) if type(node) is ast.Name else None
        return holder.types.get(node.id, "") if holder and type(node) is ast.Name else ""


# what expressions say, besides calls
_TOLD: dict[type, Callable[[Calls, Any, Marks], None]] = {
    ast.Subscript: Calls.lookup,
    ast.Compare: Calls._compare,
    ast.NamedExpr: Calls._walrus,
    ast.comprehension: Calls._turns,
    ast.Lambda: Calls.lambda_,
    ast.Dict: Calls._list_methods,
    ast.Await: Calls._pause,
    ast.Yield: Calls._pause,
    ast.YieldFrom: Calls._pause,
}
