"""FLD503: a file or a connection that is opened and never closed."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.model import FileFacts, Mark
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import INSTANCE, ITSELF, OBJECT
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._findings.building import build
from floodline.scan._findings.confidence import confidence_of
from floodline.scan._findings.finding import HIGH, MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._proofs.evidence import ASSUMED, PROVED, REFUTED, UNKNOWN, Evidence, place
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.removal import NONE, Removal
from floodline.scan._rules.detectors import Check, Detector

FLD503 = Rule(
    "FLD503", "handle-held-open", "{} is opened and never closed",
    "open it in a `with` block, or close it in close() and __exit__", preview=True,
)  # fmt: skip


class Told(Ground):
    """What the finding says."""

    OUTLIVES = "an open handle outlives the object that forgets it"
    OPENED = "each instance opens one; {}"
    EVERY_INSTANCE = "every instance adds one more"
    NEVER_CLOSED = "nothing closes it"


def _handles(judge: Judge) -> Iterator[Finding]:
    closed = _closed(judge)
    for file, mark in judge.marks("handle"):
        yield from _handle(judge, file, mark, closed)


def _closed(judge: Judge) -> set[str]:
    """Return the names of what is closed anywhere, even by a base class or a helper."""
    return {mark.ref.name for _, mark in judge.marks("close") if mark.ref}


def _handle(judge: Judge, file: FileFacts, mark: Mark, closed: set[str]) -> Iterator[Finding]:
    ref = mark.ref or ITSELF
    key = judge.program.key(file, mark.function, ref)
    if ref.kind == OBJECT or ref.name in closed:
        return
    at = place(file.path, mark.at.line)
    if mark.detail == "item":
        found = _kept_item(judge, key, mark)
    elif ref.kind == INSTANCE and mark.function.rpartition(".")[2] in MAKERS:
        owner = judge.holders.instance(key.rpartition(".")[0])
        many = PROVED if owner.state == REFUTED else UNKNOWN
        if owner.state in (PROVED, ASSUMED):
            return
        found = (
            Evidence(Told.OUTLIVES(), PROVED, at),
            Evidence(Told.OPENED(owner.reason), many, at),
            Evidence(Told.EVERY_INSTANCE(), PROVED, at),
        )
    else:
        return
    if not found:
        return
    proofs = (*found, Evidence(Told.NEVER_CLOSED(), PROVED, at))
    confidence = confidence_of(proofs, Removal(NONE, proofs[3], ()))
    if confidence in (HIGH, MEDIUM):
        symbol = key.replace(":", ".")
        yield build(FLD503, file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])


def _kept_item(judge: Judge, key: str, mark: Mark) -> tuple[Evidence, Evidence, Evidence] | None:
    """Return the proofs that handles pile up in a container."""
    held = judge.program.held.get(key)
    if held is None:
        return None
    file, change = next((f, c) for f, c in held.changes if c.verb == "grow" and c.at == mark.at)
    path, open_key = judge.paths.path(held, file, change), judge.paths.key(file, change)
    return judge.holders.proof(held), path, open_key


DETECTORS: tuple[Detector, ...] = (Check(FLD503, _handles),)
