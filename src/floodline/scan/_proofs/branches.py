"""Branches of a choice between events: what one event adds, another may never remove."""

from __future__ import annotations

import re
from functools import cached_property

from floodline._python.mutations import TAKES_NAMED
from floodline.scan._facts.circumstances import Arms, arms_of
from floodline.scan._facts.model import Change
from floodline.scan._program.edges import Edge
from floodline.scan._program.program import Program
from floodline.scan._proofs.reach import Reach

# what is compared when a program asks which event has arrived
KINDS = re.compile(r"(type|kind|event|action|topic|method|command|cmd|name|op)\W*$")
EVENTS = re.compile(r"^(on_?[A-Za-z]\w*|do_[A-Z]+|handle_\w+|\w+_event|\w+Event)$")
FORGETS = re.compile(r"(delet|remov|clear|reset|forget|logout|unsubscrib|purge)", re.IGNORECASE)
NAMES = re.compile(r"\w+")
ELSEWHERE = {"for", "while", "serves", "finally", "except"}
ENDS = re.compile(rf"{FORGETS.pattern}|clos|disconnect|expir", re.IGNORECASE)


def exclude(one: Arms, other: Arms) -> bool:
    """Return True if two places are in different arms of one choice, or one is past it."""
    return _leads_apart(one, other) or _leads_apart(other, one)


def _leads_apart(one: Arms, other: Arms) -> bool:
    theirs = {arm.text: arm.case for arm in other if arm.kind == "arm"}
    passed = {(arm.text, arm.case) for arm in other if arm.kind == "past"}
    return any(
        (arm.text, arm.case) in passed or theirs.get(arm.text, arm.case) != arm.case
        for arm in one
        if arm.kind == "arm"
    )


def is_forgetting(function: str) -> bool:
    """Return True if a framework calls a function on a request to remove something."""
    name = function.rpartition(":")[2].rpartition(".")[2]
    return bool(EVENTS.match(name) and FORGETS.search(name))


def undoes(change: Change, grown: list[Change]) -> bool:
    """Return True if an error handler removes the very entry that was put in before the error."""
    return "except" in change.marks and any(
        "except" not in c.marks and c.key_text and c.key_text == change.key_text for c in grown
    )


def takes_back(change: Change, grown: list[Change]) -> bool:
    """Return True if a branch takes out the entry that its function puts in, if it comes again.

    `if strikes[user] > 9: del strikes[user]` leaves the entries of all others. What is in it may be
    empty by then, and a `finally` undoes.
    """
    named = change.op in TAKES_NAMED and bool(change.key_text) and "branch" in change.marks
    return (
        named
        and ELSEWHERE.isdisjoint(change.marks)
        and all(c.key_text == change.key_text and ELSEWHERE.isdisjoint(c.marks) for c in grown)
        and not _finds_empty(change, grown)
        and not _asks_if_there(change, grown)
    )


def _finds_empty(change: Change, grown: list[Change]) -> bool:
    """Return True if what is in the entry was found empty, perhaps by the name of a local."""
    before = frozenset[object]().union(*(c.marks for c in grown))
    local = any(c.value == "made" for c in grown)
    asked = (NAMES.findall(a.text) for a in arms_of(change.marks - before) if a.kind == "empty")
    return any(change.ref.name in names or (local and len(names) == 1) for names in asked)


def _asks_if_there(change: Change, grown: list[Change]) -> bool:
    """Return True if its one branch is `if key in known`: what was put in is there, and goes."""
    deeper = "nested" in change.marks and not all("branch" in c.marks for c in grown)
    if any(c.at.line > change.at.line for c in grown):
        return False  # it is the entry of an earlier event
    asked = re.compile(rf"{re.escape(change.key_text)} in ")
    return not deeper and any(
        arm.case == "True" and asked.match(arm.text) for arm in arms_of(change.marks)
    )


class Branches:
    """Follows calls upwards, with the arms they are in."""

    def __init__(self, program: Program, reach: Reach) -> None:
        self._program = program
        self._reach = reach
        self._choosing = {
            edge.caller
            for edge in program.edges
            if any(arm.kind != "empty" for arm in edge.call.arms)
        }

    def shared(self, change: Change, function: str, grown: Change, growing: str) -> frozenset[str]:
        """Return the functions that lead to both changes, but not by different arms of a choice."""
        removes, grows = self._reach.ancestors(function), self._reach.ancestors(growing)
        common = removes & grows
        choosing = common & self._choosing
        parted = {
            item
            for item in (choosing | {function} if function in common else choosing)
            if _apart(self._ways(item, function, change, removes),
                      self._ways(item, growing, grown, grows))
        }  # fmt: skip
        return common & self._above(function, parted) if parted else common

    def _ways(self, item: str, function: str, change: Change, above: frozenset[str]) -> list[Arms]:
        edges = self._program.edges_of.get(item, ())
        found = [edge.call.arms for edge in edges if edge.callee in above]
        return [*found, arms_of(change.marks)] if item == function else found

    def _above(self, function: str, parted: set[str]) -> set[str]:
        """Return what leads to a function without passing a choice that separates the two."""
        found: set[str] = set()
        queue = [function] if function not in parted else []
        while queue:
            here = queue.pop()
            found.add(here)
            callers = {edge.caller for edge in self._program.callers.get(here, ())}
            queue += callers - found - parted
        return found

    @cached_property
    def loops(self) -> frozenset[str]:
        """The functions that call something in a loop; an error is the usual way to leave it."""
        return frozenset(
            f"{file.module}:{call.function}"
            for file in self._program.files
            for call in file.calls
            if call.repeats not in ("", "once")
        )

    def needs_event(self, change: Change, function: str) -> bool:
        """Return True if every path to a change first asks for one particular event."""
        if _asks(arms_of(change.marks)):
            return True
        seen, queue = {function}, [function]
        while queue:
            edges = self._program.callers.get(queue.pop(), ())
            if not edges:
                return False
            for edge in edges:
                if not _is_asked(edge) and edge.caller not in seen:
                    seen.add(edge.caller)
                    queue.append(edge.caller)
        return True


def _apart(removes: list[Arms], grows: list[Arms]) -> bool:
    if not any(removes):
        return False
    return all(exclude(one, other) for one in removes for other in grows)


def _is_asked(edge: Edge) -> bool:
    return _asks(edge.call.arms)


def _asks(arms: Arms) -> bool:
    """Return True if one of the arms is for an event that removes something."""
    return any(
        arm.kind == "arm" and KINDS.search(arm.text) and ENDS.search(arm.case) for arm in arms
    )
