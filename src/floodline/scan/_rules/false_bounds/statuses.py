"""FLD204: an entry is marked as done, and stays."""

from __future__ import annotations

from floodline.scan._facts.reasons import Ground
from floodline.scan._findings.rule import Rule
from floodline.scan._proofs.evidence import PROVED, Evidence, place
from floodline.scan._rules.detectors import Case, Detector, Pattern

FLD204 = Rule(
    "FLD204", "status-flipped-entry-kept", "{} keeps entries that are done",
    "remove the entry when it is done, or keep only recent ones: BoundedMap(max_items=...)",
)  # fmt: skip


class Told(Ground):
    """What the finding says."""

    BECOMES = "{}: an entry becomes {} and stays"


def _is_flipped(case: Case) -> bool:
    """Return True if a function that does not fill it changes the state of an entry."""
    grows = {c.function for _, c in case.held.changes if c.verb == "grow" and not c.depth}
    flips = any(m.kind == "flip" and m.function not in grows for _, m in case.held.signs)
    return flips and bool(case.kinds & {"map", "lookup"})


def _told(case: Case) -> tuple[Evidence, int]:
    """Name the line that looks as if it kept the container small and does not."""
    proof = case.removal.proof
    if proof.state != PROVED:
        return proof, 0
    file, mark = next(sign for sign in case.held.signs if sign[1].kind == "flip")
    reason = Told.BECOMES(proof.reason, mark.detail)
    return Evidence(reason, PROVED, place(file.path, mark.at.line)), 0


FLIPPED = Pattern(FLD204, _is_flipped, _told)
DETECTORS: tuple[Detector, ...] = (FLIPPED,)
