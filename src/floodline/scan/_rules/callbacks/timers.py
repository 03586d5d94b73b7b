"""FLD404: a function that restarts its own timer runs forever, and keeps all it refers to."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.model import Call, FileFacts, Mark
from floodline.scan._facts.reasons import Ground
from floodline.scan._findings.building import build
from floodline.scan._findings.finding import MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._proofs.evidence import PROVED, REFUTED, UNKNOWN, Evidence, place
from floodline.scan._proofs.judge import Judge
from floodline.scan._rules.callbacks.marked_calls import marked_calls
from floodline.scan._rules.detectors import Check, Detector

FLD404 = Rule(
    "FLD404", "timer-never-cancelled", "{} restarts its own timer and nothing cancels it",
    "keep the timer and cancel it when its owner ends", preview=True, boundable=False,
)  # fmt: skip


class Told(Ground):
    """What the finding says."""

    STARTED_BY_CALL = "every call starts one more"
    KEEPS_INSTANCE = "the timer keeps its instance; {}"
    SETS_ITSELF = "{}() restarts its own timer"
    EVERY_INSTANCE = "every instance adds one more"
    NEVER_CANCELLED = "nothing cancels it"


def _timers(judge: Judge) -> Iterator[Finding]:
    for file, mark, call, names in marked_calls(judge, "timer"):
        if not mark.detail and "cancel" not in names:
            yield from _timer(judge, file, mark, call)


def _timer(judge: Judge, file: FileFacts, mark: Mark, call: Call) -> Iterator[Finding]:
    own = f"{file.module}:{call.function}"
    given = [*call.arguments, *(value for _, value in call.keywords)]
    handed = [key for text in given for key in judge.program.functions_in(file, call, text)]
    function = judge.program.names.functions.get(own)
    if own not in handed or function is None:
        return
    at = place(file.path, call.line)
    holder = Evidence(Told.STARTED_BY_CALL(), UNKNOWN, at)
    if function.owner:
        owner = judge.holders.instance(f"{file.module}:{function.owner}")
        if owner.state == PROVED:
            return
        state = PROVED if owner.state == REFUTED else UNKNOWN
        holder = Evidence(Told.KEEPS_INSTANCE(owner.reason), state, owner.at or at)
    proofs = (
        holder,
        Evidence(Told.SETS_ITSELF(call.function.rpartition(".")[2]), PROVED, at),
        Evidence(Told.EVERY_INSTANCE(), PROVED, at),
        Evidence(Told.NEVER_CANCELLED(), PROVED, at),
    )
    symbol = f"{file.module}.{call.function}"
    yield build(FLD404, file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])


DETECTORS: tuple[Detector, ...] = (Check(FLD404, _timers),)
