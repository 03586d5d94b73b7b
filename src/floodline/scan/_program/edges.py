"""What leads from function to function, and to the instances that they create."""

from __future__ import annotations

from collections.abc import Iterable

from floodline.scan._facts.calls import Argument, Kept
from floodline.scan._facts.circumstances import Repeats
from floodline.scan._facts.model import Call
from floodline.scan._facts.records import Struct

Passed = list[tuple[int | str, Argument]]  # arguments by their positions or names


class Edge(Struct, frozen=True, gc=False):
    """One call from a function to a function."""

    caller: str
    callee: str
    repeats: Repeats
    call: Call
    shift: int  # parameters before the first argument: 1 for a bound method
    guessed: bool = False  # one of several methods of that name
    kin: bool = False  # of one family: an event of one is an event of all


class Making(Struct, frozen=True, gc=False):
    """One place where a class is instantiated, and where the instance goes."""

    function: str
    kept: Kept
    repeats: Repeats
    line: int
    path: str
    again: bool = False  # known from where it is made: here it goes somewhere else
    guarded: bool = False  # it may not run: perhaps there is one already


def references(arguments: Iterable[Argument], keywords: Iterable[tuple[str, Argument]]) -> Passed:
    """Return the arguments of a call that are no values: what they name may be a function.

    Most calls have none. A container may be among them too.
    """
    found: Passed = []
    place: int | str
    for place, argument in enumerate(arguments):
        if argument.ref is not None or argument.origin.kind == "function":
            found.append((place, argument))
    for place, argument in keywords:
        if argument.ref is not None or argument.origin.kind == "function":
            found.append((place, argument))
    return found
