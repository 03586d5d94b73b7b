"""FLD403: a listener is added to something that lives on, and nothing removes it."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.calls import METHOD, Argument
from floodline.scan._facts.model import Call, FileFacts, Function, Mark
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import ANSWER, CLASS, MODULE, OWN
from floodline.scan._facts.vocabulary import MAKERS, opposites_of
from floodline.scan._findings.building import build
from floodline.scan._findings.finding import MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._program.program import Program
from floodline.scan._proofs.evidence import PROVED, REFUTED, UNKNOWN, Evidence, place
from floodline.scan._proofs.grounds import Key
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.reach import Often
from floodline.scan._rules.callbacks.marked_calls import marked_calls
from floodline.scan._rules.detectors import Check, Detector

FLD403 = Rule(
    "FLD403", "listener-never-removed", "{} adds a listener that nothing removes",
    "remove it when its owner ends, or pass a weakref.WeakMethod",
    preview=True, boundable=False,
)  # fmt: skip


class Told(Ground):
    """What the finding says."""

    ADDED_BY_INSTANCE = "each instance adds one; {}"
    ADDS = "{}() adds one each time it runs"
    KEEPS_LISTENERS = "the event source keeps its listeners"
    NEVER_REMOVED = "nothing here calls {}"


def _listeners(judge: Judge) -> Iterator[Finding]:
    for file, mark, call, names in marked_calls(judge, "listener"):
        if not names & {*opposites_of(mark.detail)}:
            yield from _listener(judge, file, mark, call)


def _listener(judge: Judge, file: FileFacts, mark: Mark, call: Call) -> Iterator[Finding]:
    program = judge.program
    function = program.names.functions.get(f"{file.module}:{call.function}")
    if function is None or not _outlives(program, file, function, call):
        return
    given = [*call.arguments, *(value for _, value in call.keywords)]
    if not any(_is_bound(program, file, call, text) for text in given):
        return
    at = place(file.path, call.line)
    last = call.function.rpartition(".")[2]
    if last in MAKERS:
        owner = judge.holders.instance(f"{file.module}:{function.owner}")
        if owner.state != REFUTED:
            return
        path = Evidence(Told.ADDED_BY_INSTANCE(owner.reason), PROVED, owner.at or at)
    elif judge.reach.often(f"{file.module}:{call.function}") is Often.REPEATS:
        path = Evidence(Told.ADDS(last), PROVED, at)
    else:
        return
    opposites = " or ".join(opposites_of(mark.detail)[:2])
    proofs = (
        Evidence(Told.KEEPS_LISTENERS(), UNKNOWN, at), path,
        Evidence(Key.EVERY_CALL(), PROVED, at),
        Evidence(Told.NEVER_REMOVED(opposites), PROVED, at),
    )  # fmt: skip
    symbol = f"{file.module}.{call.function}"
    yield build(FLD403, file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])


def _outlives(program: Program, file: FileFacts, function: Function, call: Call) -> bool:
    """Return True if the event source was there before: passed in or global, not created here."""
    base = call.callee.base
    if base.kind == OWN:
        own = program.names.classes.get(f"{file.module}:{function.owner}")
        return own is not None and base.name not in dict(own.attributes)
    if base.kind == CLASS:
        return base.name in function.annotations
    seldom = base.kind == MODULE and base.name in ("atexit", "signal")
    return call.callee.kind == METHOD and not seldom and base.kind != ANSWER


def _is_bound(program: Program, file: FileFacts, call: Call, given: Argument) -> bool:
    """Return True if an argument is a function that keeps something alive: a method, a closure."""
    if given.origin.kind == "function":
        return True
    found = program.functions_in(file, call, given)
    return any(program.names.functions[key].owner or "<locals>" in key for key in found)


DETECTORS: tuple[Detector, ...] = (Check(FLD403, _listeners),)
