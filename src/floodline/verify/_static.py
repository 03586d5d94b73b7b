"""Judges a claim by the source alone; nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from floodline._python.assignments import class_of
from floodline._python.at_limit import AtLimit
from floodline._python.bounds import LRU_DEFAULT, cache_size
from floodline.errors import ConfigError
from floodline.scan._facts.model import Change
from floodline.scan._sources.files import decoded, shown
from floodline.verify._answers.answer import Judgement, evidence
from floodline.verify._answers.causes import Cause, Verdict
from floodline.verify._answers.texts import CACHE
from floodline.verify._claims import Claim
from floodline.verify._policy import judge_bound
from floodline.verify._source.claimed_code import Bound, Source
from floodline.verify._source.containers import Container, Containers, growth, is_private


def judge(
    claim: Claim, content: Callable[[Path], bytes] = Path.read_bytes
) -> tuple[Judgement, list[str]]:
    """Return the judgement, and the functions that add to the container, public ones first.

    `content` reads the file; another one may read it as it was earlier.
    """
    where = shown(claim.file)
    try:
        source = Source(decoded(content(claim.file)), claim)
    except ConfigError:  # also a ValueError: the earlier revision is unknown
        raise
    except FileNotFoundError:
        return _refuted(Cause.NO_FILE, where, file=where), []
    except SyntaxError as error:
        return _unknown(Cause.SYNTAX_ERROR, f"{where}:{error.lineno or 1}", error=error.msg), []
    except (OSError, ValueError, LookupError, RecursionError, MemoryError) as error:
        return _unknown(Cause.UNREADABLE, where, error=error), []
    return _Static(claim, source, where).judge()


def _refuted(cause: Cause, at: str, *, absent: bool = False, **details: object) -> Judgement:
    return Judgement(Verdict.REFUTED, (evidence(cause, at, **details),), absent)


def _unknown(cause: Cause, at: str, **details: object) -> Judgement:
    return Judgement(Verdict.UNKNOWN, (evidence(cause, at, **details),))


class _Static:
    def __init__(self, claim: Claim, source: Source, where: str) -> None:
        self._claim = claim
        self._source = source
        self._containers = Containers(source)
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
        containers = self._containers.of(symbol)
        if containers is None:
            return _refuted(Cause.NO_SYMBOL, self._where, symbol=symbol), []
        if not containers:
            return _unknown(Cause.NO_CONTAINER, self._where, symbol=symbol), []
        feeders: list[str] = []
        judged = []
        for container in containers:
            changes = self._containers.changes(container)
            judged.append(self._container(container, changes))
            feeders += self._containers.feeders(changes)
        feeders.sort(key=is_private)
        order = list(Verdict)
        # of several containers, the claim means the one that is bounded, or intended to be
        best = min(judged, key=lambda j: (j.absent, order.index(j.verdict)))
        return best, list(dict.fromkeys(feeders))

    def _cached(self, symbol: str) -> Judgement | None:
        """Judge a function under `lru_cache`, whose bound is its decorator's."""
        name = symbol.rpartition(".")[2]
        for node in ast.walk(self._source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
                for decorator in node.decorator_list:
                    judged = self._decorated(decorator)
                    if judged is not None:
                        return judged
        return None

    def _decorated(self, decorator: ast.expr) -> Judgement | None:
        size = cache_size(decorator)
        if size is None:
            return None
        if not size.is_bounded:
            return _refuted(Cause.UNLIMITED_CACHE, self._at(decorator.lineno), name=CACHE)
        number = self._source.constants.of(size.given, None) if size.given else LRU_DEFAULT
        kinds = frozenset({AtLimit.FIRST, AtLimit.RENEWED})
        return self._bound(Bound(number, kinds, decorator.lineno, "", made_so=True), CACHE, [])

    def _bound(self, bound: Bound, name: str, changes: list[Change]) -> Judgement:
        return judge_bound(self._claim, self._source, self._where, bound, name, changes)

    def _container(self, container: Container, changes: list[Change]) -> Judgement:
        source = self._source
        made = source.made_bounds(container.ref, container.classes)
        if made:
            return self._bound(made[0], container.name, changes)
        limits = self._containers.limits(container)
        checks = [source.checked_bound(limit, changes) for limit in limits]
        if not limits:
            twins = self._containers.twin_limits(container, changes)
            found = [source.checked_bound(limit, changes) for limit in twins]
            checks = [bound for bound in found if bound.takes - {AtLimit.SOME}]
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
        proved = judged.verdict is Verdict.PROVED
        return self._covered(judged, fitting, changes) if proved else judged

    def _unbounded(
        self, container: Container, changes: list[Change], checks: list[Bound]
    ) -> Judgement:
        name, grows = container.name, growth(changes)
        if checks:
            return _refuted(Cause.REMOVES_NOTHING, self._at(checks[0].line), name=name)
        made = self._source.makings(container.ref, container.classes)
        line = grows[0].at.line if grows else made[0].lineno if made else 1
        paths = {f for c in grows for f in self._source.reached(c.function)}
        removes = [c for c in changes if c.verb in ("shrink", "replace") and c.function in paths]
        if removes:
            return _unknown(Cause.CONDITION_NOT_SEEN, self._at(removes[0].at.line), name=name)
        if not grows or container.open_base or self._claim.limit < 2:
            return _unknown(Cause.LIMIT_NOT_SEEN, self._at(line), name=name)
        return _refuted(Cause.UNLIMITED, self._at(line), absent=True, name=name)

    def _covered(self, judged: Judgement, bounds: list[Bound], changes: list[Change]) -> Judgement:
        """Judge a limit: it holds if every function that adds also checks, itself or by a call."""
        checking = {bound.function for bound in bounds}
        grows = growth(changes)
        left = [c for c in grows if not self._checks(c.function, checking, set())]
        if not left:
            return judged
        at = self._at(left[0].at.line)
        if len(left) == len(grows) and not any(self._source.callers(f) for f in checking):
            extra = evidence(Cause.CHECK_NOT_CALLED, at, function=bounds[0].function)
            return Judgement(Verdict.REFUTED, (*judged.evidence, extra))
        extra = evidence(Cause.CHECK_ELSEWHERE, at)
        return Judgement(Verdict.UNKNOWN, (*judged.evidence, extra))

    def _checks(self, function: str, checking: set[str], seen: set[str]) -> bool:
        if self._source.reached(function) & checking:
            return True
        seen.add(function)
        callers = self._source.callers(function) - seen
        return bool(callers) and all(self._checks(c, checking, seen) for c in callers)
