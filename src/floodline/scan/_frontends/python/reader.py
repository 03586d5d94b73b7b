"""The Python front end: reads one file into facts and drops its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable

from floodline._python.kinds import kind_of_class
from floodline._python.names import dotted, last_name, written
from floodline.scan._facts.calls import (
    DECORATING,
    DROPPED,
    ENTERED,
    HERE,
    RETURNED,
    UNSEEN,
    Argument,
    by_name,
)
from floodline.scan._facts.circumstances import Circumstance, Marks, Repeats, Word, lasting
from floodline.scan._facts.model import Call, Class, Container, FileFacts, Function, Mark
from floodline.scan._facts.origins import FRESH_SELF, UNKNOWN, attribute, function_called, parameter
from floodline.scan._facts.references import ITSELF, LOCAL
from floodline.scan._facts.vocabulary import PERIODIC, UNITS
from floodline.scan._frontends.python.arguments import idle
from floodline.scan._frontends.python.branches import NONE, Branches
from floodline.scan._frontends.python.conditions import (
    absent,
    arms_behind,
    behind_else,
    event_arm,
    found_full,
    insiders,
    outsiders,
    runs_once,
    tests_membership,
)
from floodline.scan._frontends.python.expressions import at
from floodline.scan._frontends.python.nodes import LEAVES, captured, names_in
from floodline.scan._frontends.python.pairs import pairs_of
from floodline.scan._frontends.python.scope import NAMING, Found, Scope
from floodline.scan._frontends.python.signs import closes, size_of_cache, unclosed
from floodline.scan._frontends.python.statements import (
    annotation,
    called,
    collect_locals,
    collect_packed,
    is_endless,
    leaves,
    returns_inner,
    serves,
)

# what may create a new value
MAKING = {ast.Call, ast.Attribute, ast.JoinedStr, ast.Name, ast.Subscript}
# tests that may explain why a branch is taken
TELLING = {ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Call}
SEQUENCES = {ast.List, ast.Tuple}
MOST_LISTED = 8  # containers: the body of the loop is read once for each
EVERY = by_name(PERIODIC)
BRANCH: Marks = frozenset({"branch"})
SERVED: Marks = frozenset({"while", "serves"})
LOOP: Marks = frozenset({"for"})
TURNS: Marks = frozenset({"while"})


def read(source: str | bytes, path: str, module: str) -> FileFacts:
    """Read the facts of one file; syntax errors are raised as they are."""
    lines = source.count("\n" if isinstance(source, str) else b"\n")  # type: ignore[arg-type]  # same kind
    return read_tree(ast.parse(source, filename=path), path, module, lines)


def read_tree(tree: ast.Module, path: str, module: str, lines: int) -> FileFacts:
    """Read the facts of a parsed file."""
    reader = _Reader()
    reader.tree = tree
    reader.block(tree.body, NONE)
    reader.finish()
    return FileFacts(
        path, module, lines,
        tuple(reader.containers), tuple(reader.changes), tuple(reader.calls),
        tuple(reader.limits), tuple(reader.pairs), tuple(reader.functions),
        tuple(reader.classes), tuple(reader.aliases), tuple(reader.marks),
        tuple(reader.imports.items()), tuple(reader.counters), tuple(reader.slices),
        tuple(reader.escapes), tuple(reader.globals.items()),
    )  # fmt: skip


class _Reader(Branches):
    """Walks statements in order; the rest is in `Branches`, `Bindings` and `Calls`."""

    def __init__(self) -> None:
        super().__init__()
        self.classes: list[Class] = []
        self.functions: list[Function] = []
        self.imports: dict[str, str] = {}
        self._tried = 0

    def finish(self) -> None:
        self.pairs = pairs_of(self.changes, self.risks)

    def block(self, body: list[ast.stmt], marks: Marks) -> None:
        for number, statement in enumerate(body):
            if type(statement) is ast.If:
                before, told = len(self.changes), len(self.marks)
                self.if_(statement, marks)
                if ends := leaves(statement.body):
                    self.refuse(statement)
                    self.leave(before)
                if rest := body[number + 1 :]:  # an `elif` has none, and there may be hundreds
                    marks = self._behind(statement, rest, marks, told, ends=ends)
                continue
            handler = _STATEMENTS.get(type(statement))
            if handler is not None:
                handler(self, statement, marks)
                continue
            for value in ast.iter_child_nodes(statement):
                if isinstance(value, ast.expr):
                    self.expression(value, marks)

    def _behind(
        self, node: ast.If, rest: list[ast.stmt], marks: Marks, told: int, *, ends: bool
    ) -> Marks:
        """Return the marks of what follows a branch, which may end the function or the loop."""
        if past := arms_behind(self.scope, node):
            marks = marks | past
        if not ends:
            return marks
        test = node.test
        if len(self.marks) > told and any(mark.kind == "ttl" for mark in self.marks[told:]):
            marks = marks | {"aged"}
        if tests_membership(test):
            return marks | {"absent"}
        if sized := self.past_sizes(test):
            return marks | sized
        if runs_once(self.scope, node, rest):
            return marks | {"once"}
        full = found_full(test)
        return marks | {Circumstance("empty", full)} if full else marks

    # definitions

    def import_(self, node: ast.Import, _: Marks) -> None:
        for name in node.names:
            head = name.name.partition(".")[0]
            self.imports[name.asname or head] = name.name if name.asname else head

    def import_from(self, node: ast.ImportFrom, _: Marks) -> None:
        prefix = "." * node.level + (node.module or "")
        for alias in node.names:
            name = alias.name
            if name == "*":
                self.imports[f"{prefix}.*"] = f"{prefix}:*"  # there may be several
            else:
                self.imports[alias.asname or name] = f"{prefix}:{name}"

    def class_(self, node: ast.ClassDef, marks: Marks) -> None:
        outer, kept = self.scope, self.attributes
        for decorator in node.decorator_list:
            self.expression(decorator, marks)
        self.scope = Scope(f"{node.name}:", node.name, None)
        self.attributes = {}
        bases = tuple(dotted(b) or last_name(b) for b in node.bases)
        self.block(node.body, NONE)
        for base in bases:
            kind = kind_of_class(base.rpartition(".")[2])
            if kind:
                fills = "" if kind != "lookup" else "?"
                self.containers.append(Container(ITSELF, kind, at(node), node.name + ":", fills))
        self.classes.append(
            Class(node.name, bases, node.lineno, tuple(self.attributes.items()),
                  tuple(last_name(called(d)) for d in node.decorator_list))
        )  # fmt: skip
        self.scope, self.attributes = outer, kept

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, marks: Marks) -> None:
        outer, name = self.scope, node.name
        owner, in_class = outer.owner, outer.name.endswith(":")
        if in_class:
            name = f"{owner}.{name}"
        elif outer.name:
            outer.origins[name] = UNKNOWN
            outer.refs.pop(name, None)
            name = f"{outer.name}.<locals>.{name}"
        decorated = node.decorator_list
        for decorator in decorated:
            self.decorator(name, decorator, marks)
        scope = Scope(name, owner, outer if not in_class and outer.name else None)
        decorators = tuple([dotted(called(d)) for d in decorated]) if decorated else ()
        taken, body, returns = node.args, node.body, node.returns
        told: list[str] = []
        if in_class and "staticmethod" in decorators:
            # in the place of the instance, so that it counts as a method
            scope.parameters[""] = parameter(0)
            told.append("")
        given = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs]
        for index, one in enumerate(given, len(told)):
            known, hint = one.arg, one.annotation
            scope.parameters[known] = parameter(index)
            text = annotation(hint) if hint is not None else ""
            told.append(text)
            if text:
                scope.annotations[known] = text
        options = taken.kwarg
        for extra in (taken.vararg, options):
            if extra:
                scope.origins[extra.arg] = attribute(extra.arg)
        packed = collect_packed(node, options.arg, scope) if options else []
        names, said = (*scope.parameters, *packed), (*told, *[""] * len(packed))
        self.functions.append(
            Function(
                name, owner, node.lineno, self.shared(names, names), self.shared(said, said),
                decorators, returns_inner(body),
                type(node) is ast.AsyncFunctionDef,
                annotation(returns) if returns is not None else "",
            )
        )  # fmt: skip
        collect_locals(body, scope)
        self.scope = scope
        tried, self._tried = self._tried, 0
        self.block(body, NONE)
        self._tried = tried
        if scope.clients:
            self.marks += unclosed(node, scope)
        self.scope = outer

    def decorator(self, name: str, decorator: ast.expr, marks: Marks) -> None:
        self.expression(decorator, marks, kept=DECORATING)
        callee = None if isinstance(decorator, ast.Call) else self.callee(decorator)
        if callee and not idle(callee, (), ()):
            # decorating is calling: once for a function of the module, each time for an inner one
            outer = self.scope.name
            repeats: Repeats = "once" if "once" in marks else ""
            self.calls.append(Call(outer, callee, decorator.lineno, repeats, (UNSEEN,), (), HERE))
        elif isinstance(decorator, ast.Call) and {k.arg for k in decorator.keywords} & UNITS:
            timed = Argument(function_called(name))  # `@loop(minutes=5)` runs it by itself
            self.calls.append(Call("", EVERY, decorator.lineno, "", (timed,), (), HERE))
        of_instance = "method" in dotted(called(decorator))  # keeps its entries with the instance
        if size := "" if of_instance else size_of_cache(decorator):
            self.marks.append(Mark("cache", name, at(decorator), name, size))

    # control flow

    def if_(self, node: ast.If, marks: Marks) -> None:
        self.expression(node.test, marks)
        test, body = node.test, node.body
        if type(test) is ast.Name:
            test = node.test = self.scope.meant.get(test.id, test)  # it was asked before
        added: set[Word | Circumstance] = {"branch", "nested"} if "branch" in marks else {"branch"}
        sized = NONE
        if not self.scope.name and "__name__" in ast.dump(test):
            added.add("main")
        if type(test) in TELLING:
            if arm := event_arm(self.scope, test):
                added.add(arm)
            if tests_membership(test):
                added.add("absent")
            added |= absent(test) | self.done(node)
            sized = self.compare_sizes(test, body)
            added |= sized
        before = len(self.changes)
        self.block(body, marks | added)
        if len(self.changes) > before:
            self.replaces(insiders(test), body, before)
        if otherwise := node.orelse:
            before = len(self.changes)
            self.block(otherwise, marks.union(BRANCH, sized, behind_else(self.scope, test)))
            if len(self.changes) > before:
                self.replaces(outsiders(self.scope, test), otherwise, before)

    def while_(self, node: ast.While, marks: Marks) -> None:
        self.expression(node.test, marks)
        inside = marks | TURNS | self.compare_sizes(node.test, node.body)
        if not self._tried and is_endless(node):
            inside = lasting(inside) | {Circumstance("endless", "", "", node.lineno)}
        if serves(node):
            inside = lasting(inside) | {"serves"}
        self.block(node.body, inside)
        self.block(node.orelse, marks)

    def for_(self, node: ast.For | ast.AsyncFor, marks: Marks) -> None:
        self.expression(node.iter, marks)
        repeats = LOOP
        if type(node) is ast.AsyncFor:  # over what a call returns, it may be done soon
            self.risks.append((self.scope.name, node.lineno, "await"))
            repeats = TURNS if type(node.iter) is ast.Call else SERVED
        if made := self.loop_target(node.target, node.iter):
            repeats |= {Circumstance("over", made)}
        for held in self._listed(node) or (None,):
            if held is not None:
                self.scope.refs[written(node.target)] = held
            self.block(node.body, (lasting(marks) if "serves" in repeats else marks) | repeats)
        self.block(node.orelse, marks)

    def _listed(self, node: ast.For | ast.AsyncFor) -> list[Found]:
        """Return the containers that `for one in (self.a, self.b)` goes over, each in its turn."""
        if type(node.iter) not in SEQUENCES or type(node.target) is not ast.Name:
            return []
        found = [self.scope.reference(one) for one in node.iter.elts[:MOST_LISTED]]  # type: ignore[attr-defined]  # a display
        return [one for one in found if one and one[0].kind != LOCAL]

    def try_(self, node: ast.Try, marks: Marks) -> None:
        self._tried += bool(node.handlers)  # an error is a way out of a loop
        self.block(node.body, marks)
        self._tried -= bool(node.handlers)
        for handler in node.handlers:
            if handler.name:
                self._forget(handler.name, attribute("error"))
            self.block(handler.body, marks | {"except"})
        self.block(node.orelse, marks)
        if node.finalbody:
            self.block(node.finalbody, marks | {"finally"})

    def with_(self, node: ast.With | ast.AsyncWith, marks: Marks) -> None:
        for item in node.items:
            self.expression(item.context_expr, marks, kept=ENTERED)
            self.marks += closes(self.scope, item)
            for name in names_in(item.optional_vars) if item.optional_vars else ():
                self._forget(name, self.scope.origin(item.context_expr))
        if type(node) is ast.AsyncWith:
            self.risks.append((self.scope.name, node.lineno, "await"))
        self.block(node.body, marks)

    def match_(self, node: ast.Match, marks: Marks) -> None:
        self.expression(node.subject, marks)
        subject, origin = ast.unparse(node.subject), self.scope.origin(node.subject)
        for number, case in enumerate(node.cases):
            for name in captured(case.pattern):
                self._forget(name, origin)
            if case.guard is not None:
                self.expression(case.guard, marks)
            arm = Circumstance("arm", subject, f"{number} {ast.unparse(case.pattern)}")
            self.block(case.body, marks | {"branch", arm})

    def raise_(self, node: ast.Raise, marks: Marks) -> None:
        if "branch" in marks:
            self.risks.append((self.scope.name, node.lineno, "raise"))
        if node.exc is not None:
            self.expression(node.exc, marks)
            if isinstance(node.exc, ast.Name) and self.scope.holder_of(node.exc.id) is None:
                self.marks.append(
                    Mark("raise", node.exc.id, at(node), self.scope.name, node.exc.id)
                )

    def return_(self, node: ast.Return, marks: Marks) -> None:
        if "branch" in marks:
            self.risks.append((self.scope.name, node.lineno, "return"))
        value = node.value
        if value is None:
            return
        if type(value) not in LEAVES:
            self.expression(value, marks, kept=RETURNED)
        made = self.scope.origin(value) if type(value) in MAKING else UNKNOWN
        if made.kind == "fresh" and made is not FRESH_SELF and not self._is_again(value):
            name = self.scope.name
            self.marks.append(Mark("fresh", name, at(node), name, origin=made))
        if type(value) is ast.Name:
            self.keep_local(value, RETURNED)
            if "<" in self.scope.name and value.id in self.scope.parameters:
                self.marks.append(Mark("gives", "", at(node), self.scope.name, ""))
        if type(value) in NAMING:
            found = self.scope.reference(value)
            if found and not found[1]:
                self.escapes.append((found[0], self.scope.name))

    def _is_again(self, value: ast.expr) -> bool:
        """Return True for a local that is bound more than once."""
        return type(value) is ast.Name and value.id in self.scope.again

    def expression_(self, node: ast.Expr, marks: Marks) -> None:
        self.expression(node.value, marks, kept=DROPPED)

    def nothing(self, node: ast.stmt, marks: Marks) -> None:
        """Ignore a statement without facts."""


_STATEMENTS: dict[type[ast.stmt], Callable[..., None]] = {
    ast.Expr: _Reader.expression_,
    ast.Import: _Reader.import_,
    ast.ImportFrom: _Reader.import_from,
    ast.ClassDef: _Reader.class_,
    ast.FunctionDef: _Reader.function,
    ast.AsyncFunctionDef: _Reader.function,
    ast.Assign: _Reader.assign,
    ast.AnnAssign: _Reader.annotated,
    ast.AugAssign: _Reader.augmented,
    ast.Delete: _Reader.delete,
    ast.Global: _Reader.global_,
    **dict.fromkeys((ast.Nonlocal, ast.Pass, ast.Break, ast.Continue), _Reader.nothing),
    ast.While: _Reader.while_,
    ast.For: _Reader.for_,
    ast.AsyncFor: _Reader.for_,
    ast.Try: _Reader.try_,
    ast.TryStar: _Reader.try_,
    ast.With: _Reader.with_,
    ast.AsyncWith: _Reader.with_,
    ast.Match: _Reader.match_,
    ast.Raise: _Reader.raise_,
    ast.Return: _Reader.return_,
}
