"""FLD110 for listeners: an instance waits for any of several objects, and the others keep it.

What comes first frees its own list of listeners. The objects that live on keep the listener, and
with it the instance, unless the class takes it back.
"""

from __future__ import annotations

from floodline.scan._facts.model import Change, FileFacts
from floodline.scan._facts.origins import NO_KEY, OWN
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import OBJECT
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._findings.building import make
from floodline.scan._findings.confidence import confidence_of
from floodline.scan._findings.finding import HIGH, MEDIUM, Finding
from floodline.scan._program.program import Held
from floodline.scan._proofs.evidence import PROVED, Evidence, place
from floodline.scan._proofs.grounds import Key, Path
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.removal import NONE, Removal
from floodline.scan._rules.detectors import Detector, Search
from floodline.scan._rules.growth.registering_instances import FLD110


class Told(Ground):
    """What the finding says."""

    KEPT = "{} never removes {} from the objects that it did not hear from"


def _listens(judge: Judge, held: Held, holder: Evidence) -> Finding | None:
    for file, change in held.changes:
        method = _listener(judge, file, change)
        if not method or not judge.is_seen(f"{file.module}:{change.function}"):
            continue
        at = place(file.path, change.at.line)
        owner = change.function.rpartition(".")[0]
        if _takes_back(held, change, owner):
            continue
        path = Path.UNSEEN(change.function.rpartition(".")[2])
        proofs = (
            holder,
            Evidence(path, judge.paths.seen(f"{file.module}:{change.function}"), at),
            Evidence(Key.EVERY_CALL(), PROVED, at),
            Evidence(Told.KEPT(owner, change.key_text), PROVED, at),
        )
        confidence = confidence_of(proofs, Removal(NONE, proofs[3], ()))
        if confidence in (HIGH, MEDIUM):
            return make(judge.program, held, FLD110, file, change.at, MEDIUM, proofs,
                        [(file.path, change.at.line)], ())  # fmt: skip
    return None


def _listener(judge: Judge, file: FileFacts, change: Change) -> str:
    """Return the own method that a new instance adds to each of several other objects."""
    name = change.function.rpartition(".")[2]
    if change.verb != "grow" or change.key != NO_KEY or change.depth or name not in MAKERS:
        return ""
    if change.ref.kind != OBJECT or "for" not in change.marks or change.source.kind != OWN:
        return ""
    owner = f"{file.module}:{change.function.rpartition('.')[0]}"
    return judge.program.names.method(owner, change.source.name) if not change.source.steps else ""


def _takes_back(held: Held, change: Change, owner: str) -> bool:
    """Return True if the class removes its listener, from any object of that kind."""
    return any(
        other.verb == "shrink"
        and other.key_text == change.key_text
        and other.function.rpartition(".")[0] == owner
        for _, other in (*held.changes, *held.guesses)
    )


LISTENS = Search(FLD110, _listens)
DETECTORS: tuple[Detector, ...] = (LISTENS,)
