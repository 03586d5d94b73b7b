"""FLD303: a cache whose keys are objects that equal only themselves."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.model import FileFacts
from floodline.scan._facts.reasons import Ground
from floodline.scan._findings.building import build
from floodline.scan._findings.finding import LOW, MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._program.program import Program
from floodline.scan._proofs.evidence import PROVED, UNKNOWN, Evidence, place
from floodline.scan._proofs.grounds import Holder
from floodline.scan._proofs.judge import Judge
from floodline.scan._rules.caches.decorated import Kept, is_bound, lasting
from floodline.scan._rules.detectors import Check, Detector

FLD303 = Rule(
    "FLD303", "cache-keyed-by-object", "{} keeps every object it was called with",
    "key it by an id, and give it a maxsize", boundable=False,
)  # fmt: skip
PLAIN = {
    "str", "int", "float", "bool", "bytes", "tuple", "frozenset", "None", "Path", "UUID", "date",
    "datetime", "Literal", "Tuple", "Type", "type", "Union", "Any", "complex", "Decimal", "T",
    "Optional", "Sequence", "Hashable", "object", "TypeVar", "Enum", "PathLike", "slice", "",
}  # fmt: skip


class Told(Ground):
    """What the finding says."""

    OBJECT = "{} is an object, equal only to itself"


def _objects(judge: Judge) -> Iterator[Finding]:
    for file, mark, function in lasting(judge):
        if is_bound(function) or mark.detail != "unbounded":
            continue
        held = _object_parameter(judge.program, file, function.annotations)
        if not held:
            continue
        at = place(file.path, mark.at.line)
        proofs = (
            Evidence(Holder.MODULE(), PROVED, at),
            Evidence(Kept.EVERY_ARGUMENT(), PROVED, at),
            Evidence(Told.OBJECT(held), UNKNOWN, at),
            Evidence(Kept.FOR_EVER(), PROVED, at),
        )
        confidence = MEDIUM if judge.is_seen(f"{file.module}:{mark.name}") else LOW
        symbol = f"{file.module}.{mark.name}"
        yield build(FLD303, file.path, mark.at, symbol, confidence, proofs, grows=[at])


def _object_parameter(program: Program, file: FileFacts, annotations: tuple[str, ...]) -> str:
    for text in annotations:
        name = text.rpartition(".")[2]
        if name in PLAIN or not name[:1].isupper() or len(name) == 1:
            continue
        key = program.names.class_of(file.module, text)
        known = program.names.classes.get(key)
        if known and (known.decorators or any("Enum" in b or "Tuple" in b for b in known.bases)):
            continue
        return name
    return ""


DETECTORS: tuple[Detector, ...] = (Check(FLD303, _objects),)
