"""Proof 4: will anything that removes ever run?"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from floodline._python.mutations import NOT_OF_A_MAP, TAKES_NAMED
from floodline.scan._facts.circumstances import arms_of
from floodline.scan._facts.model import RENEWS, Change, FileFacts
from floodline.scan._facts.reasons import Reason
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.branches import Branches, exclude, is_forgetting, takes_back, undoes
from floodline.scan._proofs.entries import begins_anew, encloses, is_lazy, replaces_inherited
from floodline.scan._proofs.events import Events, in_a_loop
from floodline.scan._proofs.evidence import ASSUMED, PROVED, REFUTED, UNKNOWN, Evidence, place
from floodline.scan._proofs.grounds import Out
from floodline.scan._proofs.growing import Growing
from floodline.scan._proofs.reach import LOOPS, Often, Reach
from floodline.scan._proofs.runners import Runners

COUNTERPARTS = {
    "__exit__": ("__enter__", "__init__"),
    "__aexit__": ("__aenter__", "__init__"),
    "stop": ("start",),
    "close": ("open", "__init__", "connect"),
    "aclose": ("open", "__init__", "connect"),
    "disconnect": ("connect",),
    "__del__": ("__init__", "__new__"),
}
CAME = {"disconnect": "connect", "close": "connect", "leave": "join", "logout": "login"}
GONE = re.compile("disconnect|(?<=on_)close|leave|logout")
ENTERING = ("register", "subscribe", "attach", "listen", "hook")
LEAVING = ("un", "remove", "detach", "off", "deregister")
RELOADS = "reload"
SWEEPS = (Out.BY_ITSELF, Out.IN_A_LOOP)


class When(StrEnum):
    """When a removal runs, the best first."""

    RUNS = "runs"
    LAZY = "lazy"
    EVENT = "event"
    PUBLIC = "public"  # only functions that nothing calls lead to it
    END = "end"
    NEVER = "never"
    GUESSED = "guessed"  # the object whose attribute shrinks, or the caller, is not known
    NONE = "none"  # nothing removes


RUNS, LAZY, EVENT, PUBLIC, END, NEVER, GUESSED, NONE = When
RANK = list(When)


class How(StrEnum):
    """By what means something leaves a container."""

    EVENT = "event"
    FINALLY = "finally"
    TTL = "ttl"
    CAP = "cap"
    CALL = "call"
    SWEEP = "sweep"
    SHUTDOWN = "shutdown"
    NEVER = "never"
    WEAK = "weak"
    COMMENT = "comment"


class Way(NamedTuple):
    """One place that removes, and when it runs."""

    when: When
    reason: Reason
    at: str
    line: int
    how: How
    named: bool = False  # it removes the one entry that it is asked to


class Removal(NamedTuple):
    """The best way out that a container has."""

    when: When
    proof: Evidence
    ways: tuple[Way, ...]


class Removals:
    """Judges everything that shrinks a container."""

    def __init__(self, program: Program, reach: Reach, events: Events, *, library: bool) -> None:
        self._program = program
        self._reach = reach
        self._events = events
        self._library = library
        self._arms = Branches(program, reach)
        self._runners = Runners(program, reach, events)

    def judge(self, held: Held, depth: int, growing: list[tuple[FileFacts, Change]]) -> Removal:
        """Judge which way out runs, if any."""
        growth = Growing(held, growing, self._reach)
        ways = [
            _when_asked(file, change)
            if is_lazy(held, file, change, self._program.clocks)
            else self._way(file, change, growth)
            for file, change in held.changes
            if self._removes(held, file, change, depth) or begins_anew(change, growing)
        ]
        ways += self._limits(held, depth, growth)
        ways += [
            Way(GUESSED, Out.OF_ANOTHER(self._last(change.function) or "the module"),
                place(file.path, change.at.line), change.at.line, How.CALL)
            for file, change in held.guesses
            if self._removes(held, file, change, depth)
        ]  # fmt: skip
        if all(way.reason.ground is Out.AFTER_ERROR for way in ways if way.when == RUNS):
            ways = [
                way._replace(when=EVENT, how=How.EVENT) if way.when == RUNS else way for way in ways
            ]
        ways.sort(key=lambda way: RANK.index(way.when))
        if not ways:
            return self._none(held)
        best = ways[0]
        state = REFUTED if best.when == RUNS else PROVED
        if best.when in (EVENT, NEVER, PUBLIC):
            state = ASSUMED  # the event may arrive for each entry; a call may be hidden
        if best.when in (LAZY, GUESSED) or (best.when == END and held.escapes):
            state = UNKNOWN
        return Removal(best.when, Evidence(best.reason, state, best.at), tuple(ways))

    def elsewhere(self, held: Held, depth: int, function: str) -> When:
        """Return when other functions remove, apart from what this one does."""
        growing = [(f, c) for f, c in held.changes if c.verb == "grow" and c.function == function]
        growth = Growing(held, growing, self._reach)
        found = (
            self._way(file, change, growth).when
            for file, change in held.changes
            if self._removes(held, file, change, depth) and change.function != function
        )
        return min(found, key=RANK.index, default=NONE)

    def _none(self, held: Held) -> Removal:
        at = place(held.file.path, held.made[0].at.line)
        if held.escapes:
            return Removal(NONE, Evidence(Out.NOTHING_HERE(), UNKNOWN, at), ())
        return Removal(NONE, Evidence(Out.NOTHING(), PROVED, at), ())

    def _removes(self, held: Held, file: FileFacts, change: Change, depth: int) -> bool:
        if change.verb not in ("shrink", "replace") or change.depth > depth:
            return False
        maps = {made.kind for made in held.made} <= {"map", "lookup"}
        if maps and change.op in NOT_OF_A_MAP and not change.depth:
            return False  # a method of the same name on another object
        if change.op == RENEWS and change.marks & {"branch", "except"} and _fills(held, change):
            return False  # as likely as not, it makes what is not there yet
        if change.verb == "replace":
            made = {m.function for m in held.made}
            return (
                made != {change.function}
                or self._begins_each_time(file, change)
                or self._begins_again(file, change)
                or replaces_inherited(self._program, held, change)
            )
        return True

    def _begins_each_time(self, file: FileFacts, change: Change) -> bool:
        """Return True if what creates the container runs for each event, and always creates it."""
        runs = self._events.why(f"{file.module}:{change.function}")
        return runs is not None and "branch" not in change.marks

    def _begins_again(self, file: FileFacts, change: Change) -> bool:
        """Return True if what creates the container for a new instance is also called later."""
        callers = self._program.callers.get(f"{file.module}:{change.function}", ())
        makes = {self._last(edge.caller) in MAKERS for edge in callers}
        return makes == {True, False}

    def _limits(self, held: Held, depth: int, growth: Growing) -> list[Way]:
        return [
            Way(RUNS, Out.LIMIT(), place(file.path, limit.at.line), limit.at.line, How.CAP)
            for file, limit in held.limits
            if limit.acts
            and limit.depth <= depth
            and f"{file.module}:{limit.function}" in growth.by_function
        ]

    def _way(self, file: FileFacts, change: Change, growth: Growing) -> Way:
        function = f"{file.module}:{change.function}"
        name = change.function.rpartition(".")[2] or "the module"
        if function in growth.functions:
            others = growth.without(function)
            growth = others if self._is_aside(function, others.functions) else growth
        when, reason = self._when(function, name, change, growth)
        if change.op == RELOADS and when == RUNS and function not in growth.functions:
            when, reason = GUESSED, Out.RELOADED(name)  # perhaps with all that was in it
        how = self._how(function, change, when, reason)
        named = change.op in TAKES_NAMED and bool(change.key_text)
        return Way(when, reason, place(file.path, change.at.line), change.at.line, how, named)

    def _how(self, function: str, change: Change, when: When, reason: Reason) -> How:
        """Return by what means something is removed."""
        if "finally" in change.marks:
            return How.FINALLY
        if "limit" in change.marks:
            return How.CAP
        near = {function, *(edge.caller for edge in self._program.callers.get(function, ()))}
        if near & self._program.clocks.keys():
            return How.TTL
        if when == RUNS:
            return How.SWEEP if reason.ground in SWEEPS else How.CALL
        return {PUBLIC: How.CALL, GUESSED: How.CALL, EVENT: How.EVENT, END: How.SHUTDOWN}.get(
            when, How.NEVER
        )

    def _when(
        self, function: str, name: str, change: Change, growth: Growing
    ) -> tuple[When, Reason]:
        growing, owner = growth.functions, growth.owner
        if function in growing:
            same = [c for f, c in growth.places if f"{f.module}:{c.function}" == function]
            if all(exclude(arms_of(change.marks), arms_of(c.marks)) for c in same):
                return EVENT, Out.OTHER_EVENT(name)
            if takes_back(change, same) and self._is_all(function, change, growth):
                return EVENT, Out.IF_IT_COMES_AGAIN(name)
            failed = undoes(change, same) and function not in self._arms.loops
            return RUNS, (Out.AFTER_ERROR if failed else Out.WHERE_IT_GROWS)(name)
        if encloses(function, change, growth.places):
            return RUNS, Out.WHERE_IT_GROWS(name)
        if self._own(function, change, growth.places):
            return RUNS, Out.BY_ITS_INSTANCE(name)
        above = self._reach.ancestors(function, owner)
        named = change.op in TAKES_NAMED and bool(change.key_text) and self._are_passed(growing)
        if any(self._runners.runs(item, growth, named=named) for item in above):
            return RUNS, Out.BY_ITSELF(name)
        if self._loops(change, function, above, owner):
            return RUNS, Out.IN_A_LOOP(name)
        if self._shares(change, function, growth):
            return RUNS, Out.CALLED_WHERE_IT_GROWS(name)
        if not self._opens(function, growing) and self._arms.needs_event(change, function):
            return EVENT, Out.ONE_EVENT(name)
        return self._seldom(function, name, above, growing, owner)

    def _is_all(self, function: str, change: Change, growth: Growing) -> bool:
        """Return True if an event's function takes an entry out once: several cover all arms."""
        alone = len(growth.taken(function, change.key_text)) == 1
        return alone and self._events.why(function) is not None

    def _are_passed(self, growing: list[str]) -> bool:
        """Return True if what makes it grow is a handler too, so that both wait for an event."""
        return any(self._reach.is_passed(item) for item in growing)

    def _loops(self, change: Change, function: str, above: frozenset[str], owner: str) -> bool:
        callers = self._program.callers
        if in_a_loop(change) and self._reach.is_called(function):
            return True
        if any(edge.repeats in ("serves", "forever") for edge in callers.get(function, ())):
            return True  # whatever it is called
        lasting = [item for item in above if not (owner and self._reach.ends(item, owner))]
        related = (edge for item in lasting for edge in self._program.related.get(item, ()))
        if any(edge.repeats in ("serves", "forever") for edge in related):
            return True  # whichever member of its family is there
        return any(edge.repeats in LOOPS for item in lasting for edge in callers.get(item, ()))

    def _shares(self, change: Change, function: str, growth: Growing) -> bool:
        above = self._reach.ancestors(function) - self._runners.passing
        near = {n for item in above for n in growth.by_function.get(item, ())}
        for number in near:
            growing, (_, grown) = growth.functions[number], growth.places[number]
            common = above & self._arms.shared(change, function, grown, growing)
            both = {function, growing} - self._events.handlers
            if change.op in TAKES_NAMED and all(map(self._reach.is_passed, both)):
                common -= {function}  # a handler takes one entry, and another adds it again
            if common:
                return True
        return False

    def _seldom(
        self, function: str, name: str, above: frozenset[str], growing: list[str], owner: str
    ) -> tuple[When, Reason]:
        if self._opens(function, growing) and not self._is_forgotten(function, growing):
            return RUNS, Out.COUNTERPART(name)
        tops = [item for item in above if self._is_top(item, owner)]
        if tops and all(self._ends(item) for item in tops):
            return END, Out.AT_AN_END(name)
        if tops and all(self._ends(item) or is_forgetting(item) for item in tops):
            return EVENT, Out.ON_REQUEST(name)
        if any(self._reach.is_passed(item) or item in self._events.handlers for item in above):
            if self._reach.is_seldom(function):
                return END, Out.AT_EXIT(name)
            return EVENT, Out.ITS_EVENT(name)
        return self._unseen(function, name, above, growing, tops)

    def _unseen(
        self, function: str, name: str, above: frozenset[str], growing: list[str], tops: list[str]
    ) -> tuple[When, Reason]:
        """Judge a removal that nothing is seen to run after the start."""
        makers = all(self._last(item) in MAKERS or item == function for item in above)
        if makers and len(above) > 1:
            return NEVER, Out.WHILE_MADE(name)
        if not self._reach.is_called(function):
            if any(edge.guessed for edge in self._program.callers.get(function, ())):
                return GUESSED, Out.CALLED_BY_NAME(name)
            return self._uncalled(function, name, growing)
        if any(self._reach.often(item) is not Often.STARTS for item in tops):
            return PUBLIC, Out.PUBLIC(name)
        return NEVER, Out.AT_START(name)

    def _own(self, function: str, change: Change, grown: list[tuple[FileFacts, Change]]) -> bool:
        """Return True if an instance, when it ends, removes from its class what it added."""
        home = function.rpartition(".")[0]
        return self._reach.is_end(function) and all(
            c.key_text == change.key_text
            and c.key_text.startswith("self")
            and f"{f.module}:{c.function}".rpartition(".")[0] == home
            for f, c in grown
        )

    def _opens(self, function: str, growing: list[str]) -> bool:
        """Return True if it grows where something begins and shrinks where the same thing ends."""
        last = COUNTERPARTS.get(self._last(function), ())
        home = function.rpartition(".")[0]
        if (gone := GONE.search(self._last(function))) is not None:
            came = self._last(function).replace(gone[0], CAME[gone[0]])
            return all(self._last(item) in (came, "open", "on_open") for item in growing)
        return all(g.rpartition(".")[0] == home and self._last(g) in last for g in growing)

    def _is_aside(self, function: str, others: list[str]) -> bool:
        """Return True if nothing calls a function that may also grow it, as others do."""
        seen = not others or function in self._events.handlers
        return not seen and self._is_forgotten(function, others)

    def _is_forgotten(self, function: str, growing: list[str]) -> bool:
        """Return True if the program itself calls what makes it grow, but not its counterpart."""
        program = self._program
        if self._last(function).startswith("__") or self._reach.is_passed(function):
            return False
        asked = program.callers.get(function) or program.related.get(function)
        return not asked and all(self._reach.is_called(item) for item in growing)

    def _is_top(self, item: str, owner: str) -> bool:
        return not self._program.callers.get(item) or bool(owner and self._reach.ends(item, owner))

    def _uncalled(self, function: str, name: str, growing: list[str]) -> tuple[When, Reason]:
        found = self._program.names.functions.get(function)
        maker = self._program.names.functions.get(function.rpartition(".<locals>.")[0])
        if maker and maker.returns_inner:
            return PUBLIC, Out.HANDED_TO_CALLER(name)
        public = found is not None and not self._last(function).startswith("_")
        enters = all(self._last(item).startswith(ENTERING) for item in growing)
        if public and enters and self._last(function).startswith(LEAVING):
            return PUBLIC, Out.FOR_REGISTERED(name)
        dunder = self._last(function).startswith("__")
        used = any(self._reach.is_called(item) for item in growing)
        if dunder or (public and (self._library or not used)):
            return PUBLIC, Out.FOR_CALLERS(name)
        return NEVER, Out.UNCALLED(name)

    def _ends(self, function: str) -> bool:
        return self._reach.is_end(function)

    def _last(self, function: str) -> str:
        return function.rpartition(":")[2].rpartition(".")[2]


def _fills(held: Held, change: Change) -> bool:
    """Return True if the function of a change also puts something inside."""
    return any(
        c.verb == "grow" and c.depth >= change.depth and c.function == change.function
        for _, c in held.changes
    )


def _when_asked(file: FileFacts, change: Change) -> Way:
    return Way(LAZY, Out.EXPIRED(), place(file.path, change.at.line), change.at.line, How.TTL)
