"""FLD505: a client that is created for one call and never closed."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.model import FileFacts, Mark
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._findings.building import build
from floodline.scan._findings.finding import LOW, MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._program.commands import COMMAND_LINE
from floodline.scan._proofs.evidence import PROVED, UNKNOWN, Evidence, place
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.reach import Often
from floodline.scan._rules.detectors import Check, Detector

FLD505 = Rule(
    "FLD505", "client-per-call", "{} creates a client on every call and never closes it",
    "create it once and share it, or open it in a `with` block", boundable=False,
)  # fmt: skip
ENDS = ("close", "aclose", "shutdown", "dispose", "disconnect", "__exit__", "__aexit__")


class Told(Ground):
    """What the finding says."""

    LIVES_ON = "its connections or threads stay until it is collected"
    MADE = "{}() creates one each time it runs"
    EVERY_CALL = "every call creates one more"
    NOT_CLOSED = "{} is neither closed nor kept"


def _clients(judge: Judge) -> Iterator[Finding]:
    for file, mark in judge.marks("client"):
        yield from _client(judge, file, mark)


def _client(judge: Judge, file: FileFacts, mark: Mark) -> Iterator[Finding]:
    name = mark.function.rpartition(".")[2]
    often = judge.reach.often(f"{file.module}:{mark.function}")
    if often is not Often.REPEATS or name in {*MAKERS, "main"}:
        return
    if COMMAND_LINE & set(file.module.split(".")):
        return  # one client per run
    names = judge.program.names
    own = names.class_of(file.module, mark.name)
    if own and not any(names.method(own, end) for end in ENDS):
        return
    at = place(file.path, mark.at.line)
    proofs = (
        Evidence(Told.LIVES_ON(), UNKNOWN, at),
        Evidence(Told.MADE(name), PROVED, at),
        Evidence(Told.EVERY_CALL(), PROVED, at),
        Evidence(Told.NOT_CLOSED(mark.name), PROVED, at),
    )
    symbol = f"{file.module}.{mark.function}"
    confidence = MEDIUM if judge.is_seen(f"{file.module}:{mark.function}") else LOW
    yield build(FLD505, file.path, mark.at, symbol, confidence, proofs, grows=[at])


DETECTORS: tuple[Detector, ...] = (Check(FLD505, _clients),)
