"""FLD203: the age of an entry is checked, but the entry stays."""

from __future__ import annotations

from floodline.scan._facts.reasons import Ground
from floodline.scan._findings.rule import Rule
from floodline.scan._proofs.evidence import PROVED, Evidence, place
from floodline.scan._proofs.removal import LAZY
from floodline.scan._rules.detectors import Case, Detector, Pattern

FLD203 = Rule(
    "FLD203", "ttl-read-but-not-evicted", "{} keeps expired entries: only their age is checked",
    "remove expired entries even if nothing asks for them: BoundedMap(ttl=...)",
)  # fmt: skip


class Told(Ground):
    """What the finding says."""

    AGE_READ = "{}: an age is checked, but the entry stays"


def _is_removed_when_asked(case: Case) -> bool:
    return case.removal.when == LAZY


def _asks_for_age(case: Case) -> bool:
    return any(mark.kind == "ttl" for _, mark in case.held.signs)


def _told(case: Case) -> tuple[Evidence, int]:
    """Name the line that looks as if it kept the container small and does not."""
    proof = case.removal.proof
    if proof.state != PROVED:
        return proof, 0
    file, mark = next(sign for sign in case.held.signs if sign[1].kind == "ttl")
    reason = Told.AGE_READ(proof.reason)
    return Evidence(reason, PROVED, place(file.path, mark.at.line)), 0


REMOVED_WHEN_ASKED = Pattern(FLD203, _is_removed_when_asked)
AGE_READ = Pattern(FLD203, _asks_for_age, _told)
DETECTORS: tuple[Detector, ...] = (REMOVED_WHEN_ASKED, AGE_READ)
