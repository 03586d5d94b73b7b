"""What a rule may consist of: a growth pattern, a search in one container, or its own check."""

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
    """A container that grows while nothing that runs removes from it: which rule says most?"""

    judge: Judge
    held: Held
    kinds: set[Kind]
    change: Change
    growing: list[tuple[FileFacts, Change]]  # all places where it grows at that depth
    removal: Removal


def told_as_proved(case: Case) -> tuple[Evidence, int]:
    """Return the removal's own proof; the message names no other line."""
    return case.removal.proof, 0


class Pattern(NamedTuple):
    """How a rule recognises a case; the first pattern that fits names the finding."""

    rule: Rule
    fits: Callable[[Case], bool]
    tells: Callable[[Case], tuple[Evidence, int]] = told_as_proved  # and the line of the message
    lives_unseen: bool = False  # how long the holder lives is rarely seen: at most medium


class Search(NamedTuple):
    """Looks at a container that no pattern was reported for, given the proof of its holder."""

    rule: Rule
    find: Callable[[Judge, Held, Evidence], Finding | None]


class Check(NamedTuple):
    """Looks at a whole program for one rule."""

    rule: Rule
    run: Callable[[Judge], Iterable[Finding]]
    gives_way: bool = False  # to any other rule that reports the same symbol


Detector = Pattern | Search | Check
