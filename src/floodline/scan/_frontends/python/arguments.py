"""What a Python call names and passes on, and the lists that collect all facts."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from floodline._python.mutations import GROWS_BY_ITEM, SHRINKS
from floodline._python.names import last_name
from floodline.scan._facts.calls import (
    ADDED,
    FIXED,
    GIVEN,
    HERE,
    METHOD,
    NAME,
    UNPACKED,
    UNSEEN,
    Argument,
    Callee,
    Kept,
    argument,
    by_dotted,
    by_name,
    inherited,
    method_of,
    own_method,
)
from floodline.scan._facts.circumstances import Marks
from floodline.scan._facts.model import (
    Alias,
    Call,
    Change,
    Container,
    Function,
    Mark,
    Pair,
    Risk,
    Verb,
)
from floodline.scan._facts.origins import (
    CONSTANT,
    FRESH_SELF,
    FUNCTION,
    NO_KEY,
    UNKNOWN,
    Origin,
    extends,
    function_called,
    global_name,
    parts_of,
)
from floodline.scan._facts.references import CLASS, MANY, SELF, Reference, in_module
from floodline.scan._facts.vocabulary import ASSIGNED
from floodline.scan._frontends.python.expressions import at, stored_value
from floodline.scan._frontends.python.nodes import LEAVES
from floodline.scan._frontends.python.scope import NAMING, OWNERS, Found, Scope
from floodline.scan._frontends.python.signs import CLOSES, closes, refers

PLAIN = {"other", "made", "sum"}
COLLECTIONS = {"dict", "list", "set", "frozenset", "tuple", "str", "bytes"}
BUILT_IN = {
    "all", "any", "classmethod", "enumerate", "max", "min", "property", "reversed", "sorted",
    "staticmethod", "sum", "zip", *COLLECTIONS,
    *(name for name in dir(builtins) if name.endswith(("Error", "Exception"))),
}  # fmt: skip
ANSWERED = {ast.Name, ast.Call, ast.Await}
PASSED_ON = {"partial", "ref", "WeakMethod"}


class Arguments:
    """Holds the lists of facts, and finds out what a call calls and what it is given."""

    def __init__(self) -> None:
        self.scope = Scope("", "", None)
        self.containers: list[Container] = []
        self.changes: list[Change] = []
        self.calls: list[Call] = []
        self.aliases: list[Alias] = []
        self.marks: list[Mark] = []
        self.functions: list[Function] = []
        self.pairs: list[Pair] = []
        self.escapes: list[tuple[Reference, str]] = []
        self.slices: list[tuple[Reference, str, int]] = []
        self.risks: list[tuple[str, int, Risk]] = []
        # facts repeat: `shared(x, x)` is the first equal one of the file
        self.shared: Callable[[Any, Any], Any] = {}.setdefault

    def change(
        self,
        verb: Verb,
        found: Found,
        op: str,
        node: ast.expr,
        key: Origin,
        text: str,
        value: ast.expr | None,
        marks: Marks,
    ) -> None:
        """Note that something grows or shrinks, even if only a local name holds it."""
        stored = stored_value(value)
        if type(value) is ast.Name:
            stored = self.scope.stored.get(value.id, stored)
        elif stored in PLAIN and verb == "grow" and value is not None and refers(value, text):
            stored = "key"
        source = UNKNOWN
        if key is NO_KEY and (stored == "other" or stored == "sum"):
            source = self.scope.origin(value)
        shared = self.shared
        if verb == "grow" and key is not NO_KEY and type(value) in ANSWERED:
            marks = marks | {"answer"} if self._is_answer(value, key) else marks
        self.changes.append(
            Change(
                found[0], found[1], verb, op, shared(key, key), shared(text, text), stored,
                source, at(node), self.scope.name, shared(marks, marks),
            )
        )  # fmt: skip

    def handed(self, node: ast.Call, maker: ast.Call) -> tuple[Callee, tuple[Argument, ...]] | None:
        """Read `app.get("/")(show)`: another object gets a function, as from a decorator."""
        given, method = node.args, maker.func
        if type(method) is not ast.Attribute or len(given) != 1 or type(given[0]) not in NAMING:
            return None
        base = self.scope.base(method.value)
        callee = own_method(method.attr) if base is SELF else method_of(base, ASSIGNED)
        return callee, (FIXED, self.argument(given[0], ASSIGNED))

    def _is_answer(self, value: ast.expr | None, key: Origin) -> bool:
        """Return True if a value is the result of a call that got the key: it may reject it."""
        return any(
            part.steps and part.steps[-1].how == "given" and extends(part, own)
            for part in parts_of(self.scope.origin(value))
            for own in parts_of(key)
        )

    def keep_local(self, node: ast.Name, kept: Kept) -> None:
        """Note again where a local instance is created, since it goes somewhere after all."""
        holder = self.scope.holder_of(node.id)
        made = holder.types.get(node.id) if holder else None
        if made:
            self._note_again(made, node, kept)

    def _note_again(self, made: str, node: ast.Name, kept: Kept) -> None:
        where, callee = self.scope.name, by_dotted(made)
        self.calls.append(Call(where, callee, node.lineno, "", (), (), kept, again=True))

    def callee(self, node: ast.expr) -> Callee | None:
        if type(node) is ast.Name:
            return by_name(node.id)
        if type(node) is not ast.Attribute:
            return None
        return self.callee_of(node.value, node.attr)

    def callee_of(self, value: ast.expr, name: str) -> Callee:
        """Return which method of a value is called."""
        if type(value) is ast.Call and last_name(value.func) == "super":
            return inherited(name)
        base = self.scope.base(value)
        return own_method(name) if base is SELF else method_of(base, name)

    def argument(self, node: ast.expr, into: str) -> Argument:
        """Return what an argument is: a function, a container or the origin of a value."""
        if type(node) is ast.Constant:
            return FIXED
        if type(node) is ast.Name:
            return self._named_argument(node)
        if type(node) is ast.Attribute:
            return self._attribute_argument(node)
        if type(node) is ast.Lambda:
            return Argument(function_called(lambda_name(self.scope, node)))
        if type(node) is ast.Call and last_name(node.func) in PASSED_ON:
            return self.argument(node.args[0], into) if node.args else UNSEEN
        return argument(self.scope.origin(node), None)

    def keywords(self, named: list[ast.keyword], into: str) -> tuple[tuple[str, Argument], ...]:
        """Return the keywords of a call; what `**options` brings has no name of its own."""
        found = []
        for k in named:
            name, value = k.arg, k.value
            if not name:
                found.append((UNPACKED, argument(self.scope.origin(value), None)))
            elif type(value) is ast.Constant:
                found.append(_fixed(name))
            else:
                found.append((name, self.argument(value, into)))
        keywords = tuple(found)
        same: tuple[tuple[str, Argument], ...] = self.shared(keywords, keywords)
        return same

    def _named_argument(self, node: ast.Name) -> Argument:
        scope, name = self.scope, node.id
        holder = scope.holder_of(name)
        if holder is None and name not in OWNERS:
            return argument(global_name(name), in_module(name))
        if holder is not None and (made := holder.types.get(name)):
            self._note_again(made, node, GIVEN)
        origin = scope.origin_of(name, holder)
        if holder is None or origin is CONSTANT or name in holder.refs or name in holder.holding:
            ref, depth = scope.named(name, holder)
            return argument(origin, None if depth else ref)
        if origin is FRESH_SELF or name == "cls":
            return argument(origin, scope.named(name, holder)[0])
        known = holder.passed.get(name)  # a plain local: it matters only where its value is from
        if known is None or known.origin is not origin:
            known = holder.passed[name] = argument(origin, None)
        return known

    def _attribute_argument(self, node: ast.Attribute) -> Argument:
        name = node.attr
        if name in CLOSES:
            self.marks += closes(self.scope, node)
        elif name in SHRINKS:
            below = self.scope.reference(node.value)
            if below:
                self.change("shrink", below, name, node, CONSTANT, "", None, frozenset())
        found = self.scope.reference(node)
        origin = self.scope.origin(node)
        return argument(origin, found[0] if found and not found[1] else None)


def lambda_name(scope: Scope, node: ast.Lambda) -> str:
    """Return the name under which a lambda is known."""
    inner = f"<lambda:{node.lineno}:{node.col_offset}>"
    if not scope.name:
        return inner
    if scope.name.endswith(":"):
        return f"{scope.owner}.{inner}"
    return f"{scope.name}.<locals>.{inner}"


def add_given(
    function: ast.expr,
    name: str,
    items: list[ast.expr],
    named: list[ast.keyword],
    found: list[tuple[Any, Kept]],
) -> None:
    """Add what is below a call, and where the instances that it creates go."""
    given = GIVEN
    if type(function) is not ast.Name:
        if type(function) is not ast.Attribute or type(function.value) not in LEAVES:
            found.append((function, GIVEN))
        if name in GROWS_BY_ITEM:
            given = ADDED
    for item in items:
        if type(item) not in LEAVES:
            found.append((item, given))  # noqa: PERF401 -- a call of its own on 3.11
    for keyword in named:
        value = keyword.value
        if type(value) not in LEAVES:
            found.append((value, HERE))


@lru_cache(MANY)
def _fixed(name: str) -> tuple[str, Argument]:
    return name, FIXED  # most values of keywords, and the same few names


def idle(
    callee: Callee, given: tuple[Argument, ...], told: tuple[tuple[str, Argument], ...]
) -> bool:
    """Return True if a call is to something built in, and no container or function goes there."""
    kind = callee.kind
    if kind == NAME:
        known = callee.name in BUILT_IN
    else:
        known = kind == METHOD and callee.base.kind == CLASS and callee.base.name in COLLECTIONS
    return known and not any(
        argument.ref is not None or argument.origin.kind == FUNCTION
        for argument in (*given, *(argument for _, argument in told))
    )
