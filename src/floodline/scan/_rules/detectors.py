"""What a rule may bring: a pattern of growth, a search in one container, or a check of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from floodline._python.kinds import Kind
from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._findings.finding import Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._program.program import Held
from floodline.scan._proofs.evidence import Evidence
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.removal import Removal


class Case(NamedTuple):
    """A container that grows, and nothing that runs removes from it: which rule says most?"""

    judge: Judge
    held: Held
    kinds: set[Kind]
    change: Change
    growing: list[tuple[FileFacts, Change]]  # all places where it grows as deep as there
    removal: Removal


def told_as_proved(case: Case) -> tuple[Evidence, int]:
    """Return the proof of the removal as it is; the message names no other line."""
    return case.removal.proof, 0


class Pattern(NamedTuple):
    """How a rule recognises a case; the first pattern that fits names the finding."""

    rule: Rule
    fits: Callable[[Case], bool]
    tells: Callable[[Case], tuple[Evidence, int]] = told_as_proved  # and the line of the message
    lives_unseen: bool = False  # how long the holder lives is seldom seen: never more than medium


class Search(NamedTuple):
    """Looks at one container that no pattern was reported for, with the proof of its holder."""

    rule: Rule
    find: Callable[[Judge, Held, Evidence], Finding | None]


class Check(NamedTuple):
    """Looks at a whole program for one rule."""

    rule: Rule
    run: Callable[[Judge], Iterable[Finding]]
    gives_way: bool = False  # to whatever another rule says of the same symbol


Detector = Pattern | Search | Check
