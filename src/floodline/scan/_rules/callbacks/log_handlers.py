"""FLD405: a logging handler that is added on every call."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.model import Call, FileFacts, Mark
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import INSTANCE, MODULE, OBJECT, Reference
from floodline.scan._findings.building import build
from floodline.scan._findings.finding import LOW, MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._proofs.evidence import PROVED, UNKNOWN, Evidence, place
from floodline.scan._proofs.grounds import Key
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.reach import Often
from floodline.scan._rules.detectors import Check, Detector

FLD405 = Rule(
    "FLD405", "handler-per-call", "{} adds a logging handler on every call",
    "add it once at start-up, or test `if not logger.handlers`", boundable=False,
)  # fmt: skip
PREPARING = ("setup", "configure", "init", "_setup", "_configure", "_init", "enable")


class Told(Ground):
    """What the finding says."""

    LOGGERS_LIVE = "loggers live as long as the process"
    ADDS = "{}() adds one each time it runs"
    NOT_ASKED = "nothing checks whether it is already there"


def _handlers(judge: Judge) -> Iterator[Finding]:
    for file, mark in judge.marks("handler"):
        name = mark.function.rpartition(".")[2]
        once = name in ("__init__", "main") or name.startswith(PREPARING)
        repeats = judge.reach.often(f"{file.module}:{mark.function}") is Often.REPEATS
        if mark.detail or once or not repeats or _is_undone(file, mark):
            continue
        at = place(file.path, mark.at.line)
        proofs = (
            Evidence(Told.LOGGERS_LIVE(), PROVED, at),
            Evidence(Told.ADDS(name), PROVED, at),
            Evidence(Key.EVERY_CALL(), PROVED, at),
            Evidence(Told.NOT_ASKED(), UNKNOWN, at),
        )
        symbol = f"{file.module}.{mark.function}"
        seen = judge.is_seen(f"{file.module}:{mark.function}")
        yield build(FLD405, file.path, mark.at, symbol, MEDIUM if seen else LOW, proofs, grows=[at])


def _is_undone(file: FileFacts, mark: Mark) -> bool:
    """Return True if handlers are removed here, or the one that is added is always the same."""
    here = [call for call in file.calls if call.function == mark.function]
    changed = {c.ref for c in file.changes if c.function == mark.function and c.verb != "lookup"}
    if any(ref.kind == OBJECT and ref.name == "handlers" for ref in changed):
        return True
    return _removes_handlers(file, mark, here) or _adds_the_same(mark, here, changed)


def _removes_handlers(file: FileFacts, mark: Mark, here: list[Call]) -> bool:
    """Return True if this function removes handlers, or another method of its class."""
    home = mark.function.rpartition(".")[0]
    near = [call for call in file.calls if home and call.function.rpartition(".")[0] == home]
    return any(call.callee.name.endswith("removeHandler") for call in (*here, *near))


def _adds_the_same(mark: Mark, here: list[Call], changed: set[Reference]) -> bool:
    """Return True if the handler is not made here: a logger adds the same one only once."""
    added = [c for c in here if c.line == mark.at.line and c.callee.name.endswith("addHandler")]
    given = added[0].arguments[0].ref if added and added[0].arguments else None
    return given is not None and given.kind in (INSTANCE, MODULE) and given not in changed


DETECTORS: tuple[Detector, ...] = (Check(FLD405, _handlers),)
