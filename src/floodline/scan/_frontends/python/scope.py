"""The names of one Python function: what each local refers to, and where its value comes from."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import NoneType
from typing import Any

from floodline._python.names import dotted, last_name, written
from floodline.scan._facts.calls import Argument
from floodline.scan._facts.model import Stored
from floodline.scan._facts.origins import (
    CONSTANT,
    FRESH_SELF,
    TYPE,
    UNKNOWN,
    Origin,
    answered,
    asked,
    attribute,
    attribute_step,
    call_of,
    call_step,
    dotted_name,
    fresh,
    given_step,
    global_name,
    item_step,
    most_open,
    own,
    parameter,
    within,
)
from floodline.scan._facts.references import (
    INSTANCE,
    ITSELF,
    OBJECT,
    SELF,
    UNKNOWN_BASE,
    Base,
    Reference,
    base_in_module,
    base_inside,
    base_of_answer,
    base_of_class,
    base_of_instance,
    in_module,
    of_function,
    of_instance,
    of_object,
)
from floodline.scan._frontends.python.expressions import FRESH, THROUGH, drawn
from floodline.scan._frontends.python.nodes import names_in

INSIDE = {"get", "setdefault", "pop", "values", "items", "__getitem__", "popitem"}
OF_TYPES = {"__class__", "__name__", "__qualname__", "__module__", "__doc__"}
TELLING = {"type", "bool", "isinstance", "len", "getpid"}
SPECIAL = TELLING | FRESH | THROUGH
NAMING = {ast.Name, ast.Attribute}
OWNERS = {"self", "cls"}
ITEM = attribute("item")
GIVEN = {"parameter", "turn"}  # what a caller or a loop gives: its items have little in common
Found = tuple[Reference, int]
UNNAMED: Found = (ITSELF, 1)  # of a local that is not an alias


def under(node: ast.Subscript) -> str:
    """Return the constant name that an item is kept under, in brackets, else `""`."""
    key = node.slice
    return f"[{key.value}]" if type(key) is ast.Constant and type(key.value) is str else ""


class Scope:
    """A function (or the module, or the body of a class) while it is read."""

    __slots__ = (
        "again", "annotations", "answers", "asked", "clients", "filled", "globals", "holding",
        "items", "kinds", "locals", "meant", "name", "origins", "outer", "owner", "packed",
        "parameters", "passed", "refs", "selves", "states", "stored", "turning", "types", "waiters",
    )  # fmt: skip

    def __init__(self, name: str, owner: str, outer: Scope | None) -> None:
        self.name = name
        self.owner = owner
        self.outer = outer
        self.parameters: dict[str, Origin] = {}
        self.packed: dict[str, dict[object, int]] = {}  # what is read of `**options`, by its name
        self.annotations: dict[str, str] = {}
        self.globals: set[str] = set()
        self.refs: dict[str, Found] = {}
        self.locals: dict[str, Found] = {}  # what a name means that is not an alias
        self.origins: dict[str, Origin] = {}
        self.types: dict[str, str] = {}
        self.answers: dict[str, str] = {}  # a local, and the function whose result it is
        self.items: dict[str, Base] = {}  # a local, and the constant key that it was read under
        self.asked: dict[str, ast.Call] = {}  # a local, and the call that it is the answer of
        self.meant: dict[str, ast.expr] = {}  # a local, and the difference or test that it is
        self.stored: dict[str, Stored] = {}
        self.clients: dict[str, ast.expr] = {}
        self.again: set[str] = set()  # locals that are bound more than once
        self.filled: dict[str, Origin] = {}  # local maps, and where their keys come from
        self.states: set[str] = set()  # attributes of the instance that are set here
        self.selves: set[str] = set()  # other names of the instance, in `__new__`
        self.waiters: dict[str, Reference] = {}  # locals that are awaited, and their containers
        self.kinds: set[str] = set()  # locals that are containers created here
        self.holding: set[str] = set()  # locals that are containers or functions at any time
        self.turning: set[str] = set()  # names that nothing but comprehensions binds
        self.passed: dict[str, Argument] = {}  # the last argument that each other local was

    def holder_of(self, name: str) -> Scope | None:
        """Return the scope that has this name as a local, `None` for a global."""
        scope: Scope | None = self
        while scope is not None and scope.name:
            if name in scope.globals:
                return None
            if name in scope.parameters or name in scope.origins:
                return scope
            scope = scope.outer
        return None

    def reference(self, node: ast.expr) -> Found | None:
        """Return which container an expression means and how deep inside it, if known."""
        if type(node) is ast.Name:
            name = node.id
            return self.named(name, self.holder_of(name))
        find = _REFERENCES.get(type(node))
        return find(self, node) if find else None

    def named(self, name: str, holder: Scope | None) -> Found:
        """Return which container a name of a scope means."""
        if (name == "self" or name == "cls") and self.owner:
            return ITSELF, 0
        if holder is None:
            return in_module(name), 0
        found = holder.refs.get(name) or holder.locals.get(name)
        if found is None:
            found = holder.locals[name] = (of_function(holder.name, name), 0)
        return found

    def _attribute(self, node: ast.Attribute) -> Found | None:
        base, name = self.base(node.value), node.attr
        return (of_instance(name) if base is SELF else of_object(base, name), 0)

    def _item(self, node: ast.Subscript) -> Found | None:
        if type(node.slice) is ast.Slice:
            return None  # a copy
        below = self.reference(node.value)
        return (below[0], below[1] + 1) if below else None

    def _answer(self, node: ast.Call) -> Found | None:
        function = node.func
        if type(function) is not ast.Attribute or function.attr not in INSIDE:
            return None
        below = self.reference(function.value)
        return (below[0], below[1] + 1) if below else None

    def _walrus(self, node: ast.NamedExpr) -> Found | None:
        return self.reference(node.value)

    def base(self, node: ast.expr) -> Base:
        """Return whose attribute is meant."""
        if self.selves and written(node) in self.selves:
            return SELF
        find = _BASES.get(type(node))
        return find(self, node) if find else UNKNOWN_BASE

    def _base_of_name(self, node: ast.Name) -> Base:
        name = node.id
        if name in OWNERS and self.owner:
            return SELF
        holder = self.holder_of(name)
        if holder is None:
            return base_in_module(name)
        known = holder.types.get(name) or holder.annotations.get(name)
        if known:
            return base_of_class(known)
        if name in holder.answers:
            return base_of_answer(holder.answers[name])
        if name in holder.items:
            return holder.items[name]
        ref, depth = holder.refs.get(name) or UNNAMED
        if depth:
            return UNKNOWN_BASE
        if ref.kind == INSTANCE:
            return base_of_instance(ref.name)
        return base_inside(ref.base, ref.name) if ref.kind == OBJECT else UNKNOWN_BASE

    def _base_of_attribute(self, node: ast.Attribute) -> Base:
        if node.attr == "__class__" and self.base(node.value) is SELF:
            return SELF
        text = dotted(node)
        head, _, rest = text.partition(".")
        if (head == "self" or head == "cls") and self.owner and "." not in rest:
            return base_of_instance(node.attr)
        if text and self.holder_of(head) is None:
            return base_in_module(text)
        inner = self.base(node.value)
        return inner if inner is UNKNOWN_BASE else base_inside(inner, node.attr)

    def _base_of_item(self, node: ast.Subscript) -> Base:
        key = under(node)
        return base_inside(self.base(node.value), key) if key else UNKNOWN_BASE

    def _base_of_call(self, node: ast.Call) -> Base:
        name = last_name(node.func)
        if name == "type" and len(node.args) == 1:
            return self.base(node.args[0])
        return base_of_answer(dotted(node.func) or name)

    def origin(self, node: ast.expr | None) -> Origin:
        """Return where the value of an expression comes from."""
        if type(node) is ast.Name:  # most
            name = node.id
            known = self.origins.get(name) or self.parameters.get(name)
            if known is None and self.outer is None and name not in OWNERS:
                return global_name(name)
            if known is None or name in self.globals or name in OWNERS or not self.name:
                return self.origin_of(name, self.holder_of(name))
            return known
        find = _ORIGINS.get(type(node))
        return find(self, node) if find else UNKNOWN

    def _constant(self, _: object) -> Origin:
        return CONSTANT

    def origin_of(self, name: str, holder: Scope | None) -> Origin:
        """Return where the value of a name of a scope comes from."""
        if name == "self":
            return FRESH_SELF
        if name == "cls":
            return TYPE
        if holder is None:
            return global_name(name)
        known = holder.origins.get(name) or holder.parameters.get(name, UNKNOWN)
        return known if holder is self else within(known, holder.name)

    def _origin_of_attribute(self, node: ast.Attribute) -> Origin:
        name, value = node.attr, node.value
        if name in OF_TYPES:
            return TYPE
        if type(value) is ast.Name:
            base = value.id
            if (base == "self" or base == "cls") and self.owner:
                return own(name)
            holder = self.holder_of(base)
            if holder is None:
                return dotted_name(base, name)
            inner = self.origin_of(base, holder)
        else:
            inner = self.origin(value)
        kind = inner.kind
        if kind == "type" or kind == "fresh":
            return inner
        if kind == "global" and inner.name.isupper():
            return inner  # an attribute of a constant
        return asked(inner, attribute_step(name)) or attribute(name)

    def _origin_of_call(self, node: ast.Call) -> Origin:
        function = node.func
        name = function.attr if type(function) is ast.Attribute else last_name(function)
        if name in SPECIAL:
            return self._origin_through(node, name)
        if self.packed and (packed := self._read_packed(node, name)):
            return packed
        inner = self._asked_by(function.value, name) if type(function) is ast.Attribute else None
        if inner and name in INSIDE:
            return inner
        given = self._given_to(node.args, node.keywords)
        if not inner and (name == "cls" or name.lstrip("_")[:1].isupper()):
            return asked(given, call_step(name)) or call_of(name)
        through = asked(given, given_step(name)) if given is not CONSTANT else None
        if through is None or through is CONSTANT:
            return inner or call_of(name)
        return most_open([inner, through]) if inner else answered(call_of(name), through)

    def _origin_through(self, node: ast.Call, name: str) -> Origin:
        """Return where a value comes from that a call makes, or only puts into another form."""
        if name in TELLING:
            return TYPE
        if name == "next" and not (node.args and type(node.args[0]) in NAMING):
            return UNKNOWN
        if name in FRESH:
            return fresh(name)
        if name == "join" and (draws := drawn(node)):
            return fresh(draws)
        parts = [self.origin(item) for item in node.args]
        if type(node.func) is ast.Attribute:
            parts.append(self.origin(node.func.value))
        return most_open(parts)

    def _read_packed(self, call: ast.Call, method: str) -> Origin | None:
        """Return the origin of `options.get("key")`, if `options` are keyword arguments."""
        function = call.func
        if type(function) is not ast.Attribute or method not in ("get", "pop") or not call.args:
            return None
        return self._packed(function.value, call.args[0])

    def _asked_by(self, value: ast.expr, method: str) -> Origin | None:
        """Return the origin of a method's result, if the object is known."""
        name = value.id if type(value) is ast.Name else ""
        if (name in OWNERS and self.owner) or name in self.selves:
            return None
        found = self.origin(value)
        return found if found.kind == "fresh" else asked(found, call_step(method))

    def _given_to(self, items: list[ast.expr], named: list[ast.keyword]) -> Origin:
        """Return the origin of what a call is given."""
        if not (items or named):
            return CONSTANT
        parts = [self.origin(part) for part in items if type(part) is not ast.Constant]
        if named:
            parts += [self.origin(keyword.value) for keyword in named]
        return most_open(parts) if parts else CONSTANT

    def _origin_of_item(self, node: ast.Subscript) -> Origin:
        if self.packed and (packed := self._packed(node.value, node.slice)):
            return packed
        below, key = self.origin(node.value), node.slice
        if below.kind in GIVEN and type(key) is ast.Constant and type(key.value) is str:
            return asked(below, item_step(key.value)) or below
        return ITEM if below is UNKNOWN else below

    def _packed(self, owner: ast.expr, key: ast.expr) -> Origin | None:
        """Return the parameter that is read under a key of `**options`."""
        known = self.packed.get(owner.id) if type(owner) is ast.Name else None
        number = known.get(key.value) if known and type(key) is ast.Constant else None
        return None if number is None else parameter(number)

    def _origin_inside(self, node: ast.Await | ast.Starred) -> Origin:
        return self.origin(node.value)

    def _origin_of_values(self, node: ast.JoinedStr | ast.BoolOp) -> Origin:
        return most_open([self.origin(part) for part in node.values])

    def _origin_of_elements(self, node: ast.Tuple | ast.List | ast.Set) -> Origin:
        return most_open([self.origin(part) for part in node.elts])

    def _origin_of_map(self, node: ast.Dict) -> Origin:
        """Return where a map comes from: mostly its values. One of constants is filled later."""
        found = most_open([self.origin(part) for part in (*node.keys, *node.values) if part])
        return UNKNOWN if found is CONSTANT else found

    def _origin_of_turns(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> Origin:
        """Return where the items or keys of a comprehension come from, whose names are its own."""
        before = dict(self.origins)
        for turn in node.generators:
            inside = self.origin(turn.iter)
            self.origins.update(dict.fromkeys(names_in(turn.target), inside))
        found = self.origin(node.key if isinstance(node, ast.DictComp) else node.elt)
        self.origins = before
        return found

    def _origin_of_both(self, node: ast.BinOp) -> Origin:
        return most_open([self.origin(node.left), self.origin(node.right)])

    def _origin_of_either(self, node: ast.IfExp) -> Origin:
        return most_open([self.origin(node.body), self.origin(node.orelse)])


_REFERENCES: dict[type, Callable[[Scope, Any], Found | None]] = {
    ast.Attribute: Scope._attribute,
    ast.Subscript: Scope._item,
    ast.Call: Scope._answer,
    ast.NamedExpr: Scope._walrus,
}
_BASES: dict[type, Callable[[Scope, Any], Base]] = {
    ast.Name: Scope._base_of_name,
    ast.Attribute: Scope._base_of_attribute,
    ast.Call: Scope._base_of_call,
    ast.Subscript: Scope._base_of_item,
}
_ORIGINS: dict[type, Callable[[Scope, Any], Origin]] = {
    NoneType: Scope._constant,
    ast.Constant: Scope._constant,
    ast.Compare: Scope._constant,
    ast.Attribute: Scope._origin_of_attribute,
    ast.Call: Scope._origin_of_call,
    ast.Subscript: Scope._origin_of_item,
    ast.Await: Scope._origin_inside,
    ast.Starred: Scope._origin_inside,
    ast.NamedExpr: Scope._origin_inside,
    ast.FormattedValue: Scope._origin_inside,
    ast.JoinedStr: Scope._origin_of_values,
    ast.BoolOp: Scope._origin_of_values,
    ast.Tuple: Scope._origin_of_elements,
    ast.List: Scope._origin_of_elements,
    ast.Set: Scope._origin_of_elements,
    ast.Dict: Scope._origin_of_map,
    ast.BinOp: Scope._origin_of_both,
    ast.IfExp: Scope._origin_of_either,
    ast.ListComp: Scope._origin_of_turns,
    ast.SetComp: Scope._origin_of_turns,
    ast.DictComp: Scope._origin_of_turns,
    ast.GeneratorExp: Scope._origin_of_turns,
}
