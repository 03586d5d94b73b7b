"""Reads Python assignments: what a name or attribute holds from then on."""

from __future__ import annotations

import ast

from floodline._python.names import dotted, last_name, written
from floodline.scan._facts.calls import (
    FIXED,
    HERE,
    IN_BODY,
    Kept,
    argument,
    in_entry,
    in_item,
    in_slot,
    method_of,
)
from floodline.scan._facts.circumstances import Circumstance, Marks
from floodline.scan._facts.model import FILLED, RENEWS, Alias, Call, Container, Mark, Verb
from floodline.scan._facts.origins import CONSTANT, NO_KEY, UNKNOWN, Origin, most_open
from floodline.scan._facts.records import replace
from floodline.scan._facts.references import (
    INSTANCE,
    LOCAL,
    MODULE,
    SELF,
    Base,
    Reference,
    base_of_answer,
    base_of_class,
    in_module,
    of_function,
    of_instance,
)
from floodline.scan._facts.vocabulary import ASSIGNED, MAKERS
from floodline.scan._frontends.python.calls import THROUGH, Calls
from floodline.scan._frontends.python.expressions import (
    at,
    created,
    is_new,
    stored_value,
)
from floodline.scan._frontends.python.nodes import LEAVES, names_in
from floodline.scan._frontends.python.scope import under
from floodline.scan._frontends.python.signs import client, flips, keeps
from floodline.scan._frontends.python.statements import (
    adds_to_itself,
    annotation,
    keeps_a_part,
    reloads,
)

MAYBE: Marks = frozenset({"branch", "except"})
PERHAPS: Marks = frozenset({"absent", "none"})  # there is nothing yet
MADE_BY = {ast.Call, ast.Await, ast.Subscript}
MAKING = {ast.Call, *THROUGH}  # what an instance may come from that is kept
COMPREHENSIONS = {ast.ListComp, ast.SetComp, ast.DictComp}
PARTS = {*COMPREHENSIONS, ast.Subscript}
TELLING = {ast.BinOp, ast.Compare, ast.BoolOp}  # said of a local, and asked later


class Bindings(Calls):
    """Notes containers that are created, replaced and aliased."""

    def __init__(self) -> None:
        super().__init__()
        self.counters: dict[Reference, None] = {}
        self.globals: dict[str, Base] = {}
        self.attributes: dict[str, Base] = {}

    def assign(self, node: ast.Assign, marks: Marks) -> None:
        value, targets = node.value, node.targets
        if type(value) not in LEAVES:
            kept = self._kept(targets[0]) if type(value) in MAKING else HERE
            for target in targets[1:]:  # `user = self.users[id] = User()`: both
                kept = self._kept(target) if kept is HERE else kept
            self.expression(value, marks, kept=kept)
        for target in targets:
            self.bind(target, value, marks)
        if type(value) is ast.Call and last_name(value.func) == "__new__":
            self._bind_instance(node)
        if len(targets) > 1 and stored_value(value) == "waiter":
            self._bind_waiter(targets)

    def _bind_instance(self, node: ast.Assign) -> None:
        """Read `cls._instance = super().__new__(cls)`: the instance, perhaps the only one."""
        for target in node.targets:
            self.scope.selves.add(written(target))
            if isinstance(target, ast.Attribute) and self.scope.base(target.value) is SELF:
                only = Mark("singleton", self.scope.owner, at(node), self.scope.name, "")
                self.marks.append(only)

    def _bind_waiter(self, targets: list[ast.expr]) -> None:
        """Read `future = self._waiting[key] = loop.create_future()`."""
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        for target in targets:
            if isinstance(target, ast.Subscript) and names:
                found = self.scope.reference(target.value)
                if found and not found[1] and found[0].kind != LOCAL:
                    self.scope.waiters.update(dict.fromkeys(names, found[0]))

    def annotated(self, node: ast.AnnAssign, marks: Marks) -> None:
        self._note_said(node)
        value, target = node.value, node.target
        if value is None:
            return
        if type(value) not in LEAVES:
            kept = self._kept(target) if type(value) in MAKING else HERE
            self.expression(value, marks, kept=kept)
        self.bind(target, value, marks)
        if not self.scope.name.endswith(":"):
            return
        last = self.containers[-1] if self.containers else None
        here = last and last.fills in ("", FILLED) and last.at == at(target)
        if last and here and "ClassVar" not in _said(node):
            self.containers[-1] = replace(last, fills="annotated")
        if last_name(node.annotation) == "ClassVar":
            shared = Mark("classvar", last_name(target), at(node), self.scope.name, "")
            self.marks.append(shared)

    def _note_said(self, node: ast.AnnAssign) -> None:
        """Note the class that an annotation names: of an attribute, a local, or a bare global."""
        scope, said = self.scope, annotation(node.annotation)
        if not (said[:1].isupper() or "." in said):
            return  # most: builtins
        target = node.target
        if scope.name.endswith(":"):
            self._note_type(of_instance(last_name(target)), base_of_class(said))
            return
        if type(target) is ast.Name and scope.name:
            name = target.id
            if name not in scope.globals:
                scope.annotations[name] = said
            return
        found = scope.reference(target)
        if found and (found[0].kind == INSTANCE or node.value is None):
            self._note_type(found[0], base_of_class(said))

    def _kept(self, target: ast.expr) -> Kept:
        if type(target) is ast.Subscript:
            known = None if under(target) else self.scope.reference(target.value)
            lasts = known is not None and known[0].kind != LOCAL and not known[1]
            return in_entry(known[0]) if known and lasts else in_item(under(target))
        found = self.scope.reference(target)
        if found is None or found[0].kind == LOCAL or found[1]:
            return HERE
        if self.scope.name.endswith(":"):
            return IN_BODY
        return in_slot(found[0])

    def bind(self, target: ast.expr, value: ast.expr, marks: Marks) -> None:
        if type(target) is ast.Name:
            self._bind_name(target, value, marks)
            return
        if flip := flips(self.scope, target, value):
            self.marks.append(flip)
        if type(target) is ast.Subscript:
            self.store_item(target, value, marks)
        elif type(target) is ast.Attribute:
            self._hand_to(target, value)
            found = self.scope.reference(target)
            if found:
                self._bind_slot(found[0], target, value, marks)
        elif type(target) is ast.Tuple or type(target) is ast.List:
            self._bind_several(target, value, marks)

    def _hand_to(self, target: ast.Attribute, value: ast.expr) -> None:
        """Read `client.on_message = self.note`: another object gets a function to call."""
        base = self.scope.base(target.value)
        own = type(value) is ast.Attribute and self.scope.base(value.value) is SELF
        if base is SELF or not (own or type(value) is ast.Name):
            return
        found = self.scope.reference(value)
        if found and not found[1]:
            given = (FIXED, argument(UNKNOWN, found[0]))
            callee = method_of(base, ASSIGNED)
            self.calls.append(Call(self.scope.name, callee, target.lineno, "", given, (), HERE))

    def _bind_several(self, target: ast.Tuple | ast.List, value: ast.expr, marks: Marks) -> None:
        values = value.elts if type(value) is ast.Tuple or type(value) is ast.List else ()
        for index, part in enumerate(target.elts):
            if len(values) == len(target.elts):
                self.bind(part, values[index], marks)
            else:
                for name in names_in(part):
                    self._forget(name, self.scope.origin(value))
                below = self.scope.reference(value)
                if below and isinstance(part, ast.Name):
                    self.scope.refs[part.id] = (below[0], below[1] + 1)

    def _bind_name(self, target: ast.Name, value: ast.expr, marks: Marks) -> None:
        scope, name = self.scope, target.id
        if scope.name.endswith(":"):
            self._bind_slot(of_instance(name), target, value, marks)
            return
        if not scope.name or name in scope.globals:
            self._bind_slot(in_module(name), target, value, marks)
            return
        if type(value) is ast.Constant:
            # a number that changes later is where a count begins, as often as not
            counts = type(value.value) is int and name in scope.again
            self._rebind(name, UNKNOWN if counts else CONSTANT, marks)
            scope.stored[name] = "other"
            return
        kind, fills = created(value)
        found = None if kind else scope.reference(value)
        self._rebind(name, scope.origin(value), marks)
        if kind:
            scope.kinds.add(name)
            ref = of_function(scope.name, name)
            self.containers.append(Container(ref, kind, at(target), scope.name, fills))
        elif found:
            scope.refs[name] = found
        elif name in scope.parameters and not marks:
            scope.refs[name] = (of_function(scope.name, f"{name} anew"), 0)
        scope.stored[name] = stored_value(value)
        if type(value) in MADE_BY:
            self._note_maker(name, value)
        elif type(value) in TELLING:
            scope.meant[name] = value

    def _note_maker(self, name: str, value: ast.expr) -> None:
        """Note the class or the function that a local's value comes from."""
        scope = self.scope
        call = value.value if type(value) is ast.Await else value
        if type(call) is ast.Call and call.args:
            scope.asked[name] = call
        if type(value) is ast.Call:
            made = dotted(value.func)
            last = made.rpartition(".")[2]
            if last[:1].isupper():
                scope.types[name] = made
            elif made:
                scope.answers[name] = made
                if not last.startswith("create_"):
                    return  # most: no client
        elif type(value) is ast.Await and type(value.value) is ast.Call:
            scope.answers[name] = dotted(value.value.func)
        elif type(value) is ast.Subscript and under(value):
            scope.items[name] = scope.base(value)
        if client(value):
            scope.clients[name] = value

    def _rebind(self, name: str, origin: Origin, marks: Marks) -> None:
        """Give a local a new value; in a branch it may still have the one from before."""
        scope = self.scope
        if (name in scope.stored or name in scope.parameters) and not marks.isdisjoint(MAYBE):
            origin = most_open([scope.origin_of(name, scope), origin])
        self._forget(name, origin)

    def _forget(self, name: str, origin: Origin) -> None:
        scope = self.scope
        scope.refs.pop(name, None)
        scope.types.pop(name, None)
        scope.answers.pop(name, None)
        scope.items.pop(name, None)
        scope.asked.pop(name, None)
        scope.meant.pop(name, None)
        scope.origins[name] = origin

    def _bind_slot(self, ref: Reference, target: ast.expr, value: ast.expr, marks: Marks) -> None:
        scope = self.scope
        kind, fills = created(value)
        if not (kind and type(value) is ast.Call):
            self._note_value(ref, target, value)
        inside = bool(scope.name) and not scope.name.endswith(":")
        making = not inside or scope.name.rpartition(".")[2] in MAKERS
        if kind and (making or type(value) not in COMPREHENSIONS):
            self.containers.append(Container(ref, kind, at(target), scope.name, fills))
        elif making and (found := scope.reference(value)) and not found[1] and found[0] != ref:
            self.aliases.append(Alias(ref, found[0], scope.name))
        if inside and not (making and ref.kind == INSTANCE):
            self._replace(ref, target, value, marks)

    def _note_value(self, ref: Reference, target: ast.expr, value: ast.expr) -> None:
        """Note what a slot holds, other than a container that a call creates."""
        if type(value) is ast.Call:
            self.marks += keeps(self.scope, ref, target, value)
            if name := dotted(value.func):
                self._note_type(ref, _made_by(name))
        elif (default := _default(value)) and (name := dotted(default.func)):
            self._note_type(ref, _made_by(name))
        elif type(value) is ast.Name and (holder := self.scope.holder_of(value.id)):
            known = holder.types.get(value.id) or holder.annotations.get(value.id, "")
            if known:
                self._note_type(ref, base_of_class(known))
                self.keep_local(value, in_slot(ref))

    def _replace(self, ref: Reference, target: ast.expr, value: ast.expr, marks: Marks) -> None:
        """Read an assignment to a slot that holds something already, unless it was empty."""
        if marks and ("none" in marks or Circumstance("empty", written(target)) in marks):
            return
        verb: Verb = "grow" if adds_to_itself(self.scope, ref, value) else "replace"
        op = "reload" if verb == "replace" and reloads(self.scope, ref, value) else "="
        self.change(verb, (ref, 0), op, target, NO_KEY, "", value, marks)

    def _note_type(self, ref: Reference, made: Base) -> None:
        if ref.kind == INSTANCE:
            self.attributes.setdefault(ref.name, made)
        elif ref.kind == MODULE:
            self.globals.setdefault(ref.name, made)

    def store_item(self, target: ast.Subscript, value: ast.expr, marks: Marks) -> None:
        found = self.scope.reference(target.value)
        self.expression(target.value, marks, stored=True)
        self.expression(target.slice, marks)
        if found is None:
            return
        if type(target.slice) is ast.Slice:
            self.change("shrink", found, "[:]=", target, CONSTANT, "", None, marks)
            return
        if type(value) is ast.Name and found[0].kind != LOCAL:
            self.keep_local(value, in_entry(found[0]))
            if not found[1] and self.scope.stored.get(value.id) == "waiter":
                self.scope.waiters[value.id] = found[0]
        if type(value) is ast.Call and not found[1]:
            self.marks += keeps(self.scope, found[0], target, value)
        if type(value) in PARTS and keeps_a_part(self.scope, found[0], value):
            inner = (found[0], found[1] + 1)
            self.change("shrink", inner, "[]=", target, CONSTANT, "", None, marks)
            marks = marks | {"there"}
        elif not marks & PERHAPS and self.scope.name and is_new(value):
            inner = (found[0], found[1] + 1)
            self.change("shrink", inner, RENEWS, target, CONSTANT, "", None, marks)
        origin = self.scope.origin(target.slice)
        if type(target.value) is ast.Name and target.value.id in self.scope.kinds:
            filled = self.scope.filled
            filled[target.value.id] = most_open([filled.get(target.value.id, CONSTANT), origin])
        self.change("grow", found, "[]=", target, origin, written(target.slice), value, marks)
        self.inserts(target.value, marks)

    def augmented(self, node: ast.AugAssign, marks: Marks) -> None:
        self.expression(node.value, marks)
        target = node.target
        if isinstance(target, ast.Subscript):
            self.store_item(target, node.value, marks)
            return
        found = self.scope.reference(target)
        if found is None:
            return
        if type(node.op) is ast.Sub or type(node.op) is ast.BitAnd:
            self.change("shrink", found, "-=", target, CONSTANT, "", None, marks)
        elif isinstance(node.value, ast.Constant):
            self.counters[found[0]] = None
        elif type(node.op) is ast.Add or type(node.op) is ast.BitOr:
            if isinstance(target, ast.Name) and found[1] and not created(node.value)[0]:
                return  # what is inside may also be a string or a number: then nothing grows
            keyed = type(node.value) is ast.Dict
            origin = self.origin_of_update(node.value) if keyed else NO_KEY
            self.change("grow", found, "+=", target, origin, "", node.value, marks)

    def delete(self, node: ast.Delete, marks: Marks) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                found = self.scope.reference(target.value)
                if found:
                    key = written(target.slice)
                    self.change("shrink", found, "del", target, CONSTANT, key, None, marks)
            elif isinstance(target, ast.Attribute) and (found := self.scope.reference(target)):
                self.change("replace", found, "del", target, CONSTANT, "", None, marks)

    def global_(self, node: ast.Global, _: Marks) -> None:
        self.scope.globals.update(node.names)


def _made_by(name: str) -> Base:
    """Return what a call of a dotted name gives: an instance, or what a function returns."""
    made = name.rpartition(".")[2].lstrip("_")[:1].isupper()
    return base_of_class(name) if made else base_of_answer(name)


def _default(value: ast.expr) -> ast.Call | None:
    """Return the call in `given or Default()` and in `Default() if given is None else given`."""
    parts = value.values[-1:] if isinstance(value, ast.BoolOp) else []
    if isinstance(value, ast.IfExp):
        parts = [value.body, value.orelse]
    return next((part for part in parts if isinstance(part, ast.Call)), None)


def _said(node: ast.AnnAssign) -> str:
    inner = node.annotation
    return last_name(inner) if not isinstance(inner, ast.Constant) else str(inner.value)
