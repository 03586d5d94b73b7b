"""The circumstances under which code runs: in loops, in branches of a choice, behind guards."""

from __future__ import annotations

from typing import Literal, NamedTuple

from floodline.scan._facts.records import Struct

# nested: in a branch of a branch; absent: after `if key in known`; none: after `if x is None`;
# limit: where the size of what an object or a module holds is compared; left: in a branch that ends
# the function or the iteration; aged: after `if it is young: return`; once: behind a flag; main:
# where a file is run; serves: in a loop that waits; answer: what is put in was made by a call that
# knows the key
Word = Literal[
    "branch", "nested", "left", "aged", "absent", "none", "limit", "once", "main", "for", "while",
    "serves", "except", "finally", "answer", "there",
]  # fmt: skip
Repeats = Literal["", "for", "while", "serves", "forever", "once"]
Guard = Literal["", "finally", "except", "branch"]


class Circumstance(Struct, frozen=True, gc=False, order=True):
    """A circumstance that needs more than a word."""

    # arm: `text` was compared with `case`; past: it was found to be another one; endless: a loop
    # that begins in this line has no end; over: a loop goes over an object of the class `text`;
    # empty: `text` was found to be empty; size: the size of a local, or of an attribute of
    # another object, of this name is compared
    kind: Literal["arm", "past", "endless", "over", "empty", "size"]
    text: str
    case: str = ""
    line: int = 0


CHOSEN = {"arm", "past", "empty"}
Marks = frozenset[Word | Circumstance]
Arms = tuple[Circumstance, ...]


class Standing(NamedTuple):
    """The circumstances of a call."""

    repeats: Repeats  # in which loop
    over: str  # the class of the object that the loop goes over
    arms: Arms  # in which arms of choices between constants, and what is empty
    guard: Guard  # it may not run, or run after an error


def lasting(marks: Marks) -> Marks:
    """Return the marks that hold in a loop that goes on: that it began once bounds nothing."""
    over = [mark for mark in marks if mark == "once" or getattr(mark, "kind", "") == "empty"]
    return marks.difference(over) if over else marks


def details(marks: Marks, kind: Literal["arm", "endless", "over", "empty"]) -> list[Circumstance]:
    """Return the circumstances of one kind, in a stable order."""
    told = [mark for mark in marks if not isinstance(mark, str) and mark.kind == kind]
    return sorted(told) if len(told) > 1 else told


def arms_of(marks: Marks) -> Arms:
    """Return the arms of choices that something is in, those that it is past, and what is empty."""
    if not marks:
        return ()
    told = [mark for mark in marks if type(mark) is Circumstance and mark.kind in CHOSEN]
    return tuple(sorted(told) if len(told) > 1 else told)


def sizes_of(marks: Marks) -> list[str]:
    """Return the names of what had its size compared before."""
    return [mark.text for mark in marks if not isinstance(mark, str) and mark.kind == "size"]


def is_endless(marks: Marks) -> bool:
    """Return True if something is in an endless loop."""
    return any(not isinstance(mark, str) and mark.kind == "endless" for mark in marks)


def standing(marks: Marks) -> Standing:
    """Return the circumstances of a call: its loop, its arms of choices, its guard."""
    repeats: Repeats = ""
    over = ""
    if "once" in marks:
        repeats = "once"
    elif "while" in marks:
        repeats = "forever" if is_endless(marks) else "serves" if "serves" in marks else "while"
    elif "for" in marks:
        repeats = "for"
        over = next((mark.text for mark in details(marks, "over")), "")
    guard: Guard = ""
    if "finally" in marks:
        guard = "finally"
    elif "except" in marks:
        guard = "except"
    elif "branch" in marks:
        guard = "branch"
    return Standing(repeats, over, arms_of(marks), guard)
