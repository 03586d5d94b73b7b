"""Judges a claim by the source alone; nothing of it is run."""

from __future__ import annotations

import ast
from typing import NamedTuple

from floodline._python.names import last_name
from floodline.scan._facts.calls import METHOD
from floodline.scan._facts.model import Change
from floodline.scan._facts.references import (
    INSTANCE,
    ITSELF,
    MODULE,
    OWN,
    Reference,
    in_module,
    of_instance,
)
from floodline.scan._sources.files import decoded, shown
from floodline.verify._answer import PROVED, REFUTED, UNKNOWN, Evidence, Judgement
from floodline.verify._claims import Claim
from floodline.verify._numbers import class_of
from floodline.verify._removal import FITS, LEAST, SAYS, SOME
from floodline.verify._source import BLOCKS, CONTAINER_BASES, RECENT, Bound, Source, bound_argument

SETTING_UP = ("__init__", "__new__", "__post_init__", "__setstate__")
LRU_DEFAULT = 128


class _Container(NamedTuple):
    ref: Reference
    classes: list[str]
    open_base: bool

    @property
    def name(self) -> str:
        return ".".join(filter(None, (*self.classes[:1], self.ref.name)))


def judge(claim: Claim) -> tuple[Judgement, list[str]]:
    """Return the judgement, and the functions that add to the container, public ones first."""
    where = shown(claim.file)
    try:
        source = Source(decoded(claim.file.read_bytes()), claim)
    except FileNotFoundError:
        return _refuted(f"there is no file {where}", where), []
    except SyntaxError as error:
        says = f"syntax error: {error.msg}"
        return Judgement(UNKNOWN, (Evidence(says, f"{where}:{error.lineno or 1}"),)), []
    except (OSError, ValueError, LookupError, RecursionError, MemoryError) as error:
        return Judgement(UNKNOWN, (Evidence(f"cannot be read: {error}", where),)), []
    return _Static(claim, source, where).judge()


def _refuted(says: str, at: str, *, absent: bool = False) -> Judgement:
    return Judgement(REFUTED, (Evidence(says, at),), absent)


def _is_private(function: str) -> bool:
    return function.rpartition(".")[2].startswith("_")


class _Static:
    def __init__(self, claim: Claim, source: Source, where: str) -> None:
        self._claim = claim
        self._source = source
        self._where = where

    def _at(self, line: int) -> str:
        return f"{self._where}:{line}"

    def judge(self) -> tuple[Judgement, list[str]]:
        symbol = self._claim.symbol.replace(":", ".").removeprefix(f"{self._claim.file.stem}.")
        while symbol.count(".") and class_of(self._source.tree, symbol.split(".")[1]):
            symbol = symbol.partition(".")[2]  # a nested class is known by its own name
        cached = self._cached(symbol)
        if cached is not None:
            return cached, [symbol]
        containers = self._containers(symbol)
        if containers is None:
            return _refuted(f"there is no {symbol} in this file", self._where), []
        if not containers:
            says = f"{symbol} keeps no container that is seen here"
            return Judgement(UNKNOWN, (Evidence(says, self._where),)), []
        feeders: list[str] = []
        judged = []
        for container in containers:
            changes = self._changes(container)
            judged.append(self._container(container, changes))
            feeders += [f for c in self._growth(changes) for f in self._entries(c.function)]
        feeders.sort(key=_is_private)
        order = (PROVED, REFUTED, UNKNOWN)
        # of several containers the one that is bounded, or meant to be, is the claimed one
        best = min(judged, key=lambda j: (j.absent, order.index(j.verdict)))
        return best, list(dict.fromkeys(feeders))

    def _entries(self, function: str) -> list[str]:
        """The public functions by which a private one is called, else itself."""
        if not _is_private(function):
            return [function]
        calling = [f for f in self._source.owners if function in self._source.reached(f)]
        return [f for f in calling if not _is_private(f)] or [function]

    # what the symbol means

    def _containers(self, symbol: str) -> list[_Container] | None:
        facts, source = self._source.facts, self._source
        if any(c.name == symbol for c in facts.classes):
            return self._of_class(symbol)
        if symbol in source.owners:
            return self._of_function(symbol)
        owner, _, attribute = symbol.rpartition(".")
        if any(c.name == owner for c in facts.classes):
            classes, unknown = source.chain(owner)
            found = [_Container(of_instance(attribute), classes, unknown)]
        else:
            found = [_Container(in_module(symbol), [], False)]
        return found if source.makings(found[0].ref, found[0].classes) else None

    def _of_class(self, name: str) -> list[_Container]:
        classes, unknown = self._source.chain(name)
        refs = [
            c.ref
            for c in self._source.facts.containers
            if c.ref.kind == INSTANCE and self._owner(c.function) in classes
        ]
        refs += [c.ref for c in self._source.facts.changes if self._owner(c.function) in classes]
        for each in classes:
            for node in ast.walk(class_of(self._source.tree, each) or self._source.tree):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    refs.append(of_instance(node.attr))
        bases = {base for c in self._source.facts.classes if c.name in classes for base in c.bases}
        own = [_Container(ITSELF, classes, unknown)] if bases & CONTAINER_BASES else []
        found = [_Container(ref, classes, unknown) for ref in dict.fromkeys(refs) if ref.name]
        return own + [c for c in found if self._is_container(c)]

    def _is_container(self, container: _Container) -> bool:
        """Something that is added to, or that was made with a bound."""
        if container.ref.kind not in (INSTANCE, MODULE):
            return False
        known = {c.ref for c in self._source.facts.containers}
        made = self._source.made_bounds(container.ref, container.classes)
        return bool(made) or container.ref in known

    def _of_function(self, name: str) -> list[_Container]:
        owner = self._owner(name)
        classes, unknown = self._source.chain(owner) if owner else ([], False)
        inside = self._source.reached(name)
        touched = [c.ref for c in self._source.facts.changes if c.function in inside]
        touched += [c.ref for c in self._source.facts.limits if c.function in inside]
        found = [
            _Container(ref, classes if ref.kind == INSTANCE else [], unknown)
            for ref in dict.fromkeys(touched)
        ]
        return [c for c in found if self._is_container(c)]

    def _owner(self, function: str) -> str:
        return self._source.owners.get(function, function.rstrip(":"))

    def _cached(self, symbol: str) -> Judgement | None:
        """Judge a function under `lru_cache`, the bound of which is its decorator's."""
        name = symbol.rpartition(".")[2]
        for node in ast.walk(self._source.tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != name:
                continue
            for decorator in node.decorator_list:
                call = decorator if isinstance(decorator, ast.Call) else None
                wrapper = last_name(call.func if call else decorator)
                if wrapper not in ("lru_cache", "cache"):
                    continue
                line = decorator.lineno
                given = bound_argument(call) if call else None
                if call and call.args:
                    given = call.args[0]
                if wrapper == "cache" or (given is None and call and call.keywords):
                    return _refuted("the function's cache has no limit", self._at(line))
                number = self._source.numbers.of(given, None) if given else LRU_DEFAULT
                bound = Bound(number, frozenset({"first", RECENT}), line, "", made_so=True)
                return self._bound(bound, "the function's cache", [])
        return None

    # what bounds it

    def _changes(self, container: _Container) -> list[Change]:
        return [
            c
            for c in self._source.facts.changes
            if c.depth == 0
            and c.ref == container.ref
            and (c.ref.kind == MODULE or self._owner(c.function) in container.classes)
        ]

    @staticmethod
    def _growth(changes: list[Change]) -> list[Change]:
        return [
            c
            for c in changes
            if c.verb == "grow"
            and c.function.rpartition(".")[2] not in SETTING_UP
            and c.function
            and c.function[-1] != ":"
        ]

    def _container(self, container: _Container, changes: list[Change]) -> Judgement:
        source = self._source
        made = source.made_bounds(container.ref, container.classes)
        if made:
            return self._bound(made[0], container.name, changes)
        checks = [
            source.checked_bound(limit, changes)
            for limit in source.facts.limits
            if limit.depth == 0
            and limit.ref == container.ref
            and (limit.ref.kind == MODULE or self._owner(limit.function) in container.classes)
        ]
        trims = (
            source.slice_bound(c)
            for c in changes
            if c.verb in ("shrink", "replace") and "limit" not in c.marks
        )
        bounds = [*checks, *filter(None, trims)]
        acting = [bound for bound in bounds if bound.takes]
        if not acting:
            return self._unbounded(container, changes, bounds)
        fitting = [b for b in acting if b.number == self._claim.limit] or acting
        judged = self._bound(fitting[0], container.name, changes)
        return judged if judged.verdict != PROVED else self._covered(judged, fitting, changes)

    def _unbounded(
        self, container: _Container, changes: list[Change], checks: list[Bound]
    ) -> Judgement:
        name, growth = container.name, self._growth(changes)
        if checks:
            says = f"the size of {name} is compared, and the branch removes nothing"
            return _refuted(says, self._at(checks[0].line))
        made = self._source.makings(container.ref, container.classes)
        line = growth[0].at.line if growth else made[0][1] if made else 1
        paths = {f for c in growth for f in self._source.reached(c.function)}
        removes = [c for c in changes if c.verb in ("shrink", "replace") and c.function in paths]
        if removes:
            says = f"{name} is made smaller here, under which condition is not seen"
            return Judgement(UNKNOWN, (Evidence(says, self._at(removes[0].at.line)),))
        if not growth or container.open_base or self._claim.limit < 2:
            says = f"no limit of {name} is seen, and not all that adds to it is in this file"
            return Judgement(UNKNOWN, (Evidence(says, self._at(line)),))
        return _refuted(f"{name} grows, and nothing limits it", self._at(line), absent=True)

    def _covered(self, judged: Judgement, bounds: list[Bound], changes: list[Change]) -> Judgement:
        """A limit holds if every function that adds also checks, itself or by who it calls."""
        checking = {bound.function for bound in bounds}
        growth = self._growth(changes)
        left = [c for c in growth if not self._checks(c.function, checking, set())]
        if not left:
            return judged
        at = self._at(left[0].at.line)
        if len(left) == len(growth) and not any(self._source.callers(f) for f in checking):
            name = bounds[0].function
            extra = Evidence(f"what is added here is not checked: nothing calls {name}", at)
            return Judgement(REFUTED, (*judged.evidence, extra))
        extra = Evidence("what is added here is not checked on the same path", at)
        return Judgement(UNKNOWN, (*judged.evidence, extra))

    def _checks(self, function: str, checking: set[str], seen: set[str]) -> bool:
        if self._source.reached(function) & checking:
            return True
        seen.add(function)
        callers = self._source.callers(function) - seen
        return bool(callers) and all(self._checks(c, checking, seen) for c in callers)

    # whether it is the claimed one

    def _bound(self, bound: Bound, name: str, changes: list[Change]) -> Judgement:
        at, limit = self._at(bound.line), self._claim.limit
        if bound.number is None:
            says = f"{name} is limited by a number that is not known here; give `make`"
            return Judgement(UNKNOWN, (Evidence(says, at),))
        if bound.number != limit:
            return _refuted(f"{name} is limited to {bound.number}, not to {limit}", at)
        return self._policy(bound, name, changes)

    def _policy(self, bound: Bound, name: str, changes: list[Change]) -> Judgement:
        at, policy = self._at(bound.line), self._claim.policy
        kinds = bound.takes - {RECENT}
        if BLOCKS in kinds:
            refuses = Evidence(f"{name} lets nobody add more than {bound.number}", at)
            return Judgement(PROVED if policy == "reject" else REFUTED, (refuses,))
        told = " or ".join(SAYS[kind] for kind in sorted(kinds))
        seen = Evidence(f"{name}, at {bound.number}: {told}", at)
        if SOME in kinds:
            return Judgement(UNKNOWN, (seen, Evidence(f"whether that is {policy} is not seen", at)))
        if not kinds <= FITS[policy]:
            return Judgement(REFUTED, (seen, Evidence(f"that is not {policy}", at)))
        if policy in ("lru", "fifo"):
            return self._order(bound, seen, changes)
        return Judgement(PROVED, (seen,))

    def _order(self, bound: Bound, seen: Evidence, changes: list[Change]) -> Judgement:
        """Tell lru from fifo: does reading an entry renew it?"""
        lru = self._claim.policy == "lru"
        renewed, line = self._renewed(changes)
        if RECENT in bound.takes:
            renewed, line = "read", bound.line
        elif LEAST in bound.takes or bound.made_so:
            renewed = renewed or ("unknown" if lru and LEAST in bound.takes else "")
        at = self._at(line or bound.line)
        if renewed == "unknown" or (renewed == "write" and lru):
            says = "whether reading an entry renews it is not seen"
            return Judgement(UNKNOWN, (seen, Evidence(says, at)))
        if lru != (renewed == "read"):
            says = "no read renews an entry: that is not lru" if lru else "reading renews: not fifo"
            return Judgement(REFUTED, (seen, Evidence(says, at)))
        return Judgement(PROVED, (seen, Evidence("reading renews", at)) if lru else (seen,))

    def _renewed(self, changes: list[Change]) -> tuple[str, int]:
        """Whether a function that adds nothing moves an entry to the end, or one that adds does."""
        names = {c.ref.name for c in changes if c.ref.kind in (INSTANCE, MODULE)}
        adding = {c.function for c in changes if c.op == "[]="}
        found = ("", 0)
        for call in self._source.facts.calls:
            kind, name, base = call.callee
            moves = kind == METHOD and name == "move_to_end" and base.kind in (OWN, MODULE)
            if moves and base.name.rpartition(".")[2] in names:
                if call.function not in adding:
                    return "read", call.line
                found = ("write", call.line)
        taking = {c.function: c.at.line for c in changes if c.verb == "shrink" and c.op == "pop"}
        both = [f for f in taking if f in adding]
        return found if found[0] or not both else ("write", taking[both[0]])
