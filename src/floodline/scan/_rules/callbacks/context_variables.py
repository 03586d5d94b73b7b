"""FLD406: a context variable that is set on each call and never reset."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.calls import FIXED, named_by
from floodline.scan._facts.model import Call, FileFacts, Mark
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import MODULE
from floodline.scan._findings.building import build
from floodline.scan._findings.finding import MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._program.program import Program
from floodline.scan._proofs.evidence import PROVED, UNKNOWN, Evidence, place
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.reach import Often
from floodline.scan._rules.callbacks.marked_calls import marked_calls
from floodline.scan._rules.detectors import Check, Detector

FLD406 = Rule(
    "FLD406", "contextvar-not-reset", "{} is set on each call and never reset",
    "token = var.set(...), and var.reset(token) in `finally`", preview=True, boundable=False,
)  # fmt: skip
# a function whose job is to set something leaves the reset to its caller
SETTERS = ("set", "push", "enter", "aenter", "activate", "attach", "start", "use", "bind")


class Told(Ground):
    """What the finding says."""

    LIVES_WITH_CONTEXT = "{} keeps its value as long as its context lives"
    SET = "{}() sets it each time it runs"
    OF_ONE_CALL = "the value belongs to one call"
    NEVER_RESET = "nothing resets it"


def _variables(judge: Judge) -> Iterator[Finding]:
    resets = _resets(judge.program)
    for file, mark, call, _ in marked_calls(judge, "set"):
        yield from _variable(judge, file, mark, call, resets)


def _resets(program: Program) -> set[str]:
    """Return the variables that are reset, by a call or by handing out `var.reset`."""
    found = set()
    for file in program.files:
        for call in file.calls:
            handed = (named_by(given.ref) for given in call.arguments if given.ref)
            for callee in (call.callee, *handed):
                if callee and callee.name == "reset" and callee.base.kind == MODULE:
                    found.add(program.key_of_base(file, call.function, callee.base))
    return found


def _variable(
    judge: Judge, file: FileFacts, mark: Mark, call: Call, resets: set[str]
) -> Iterator[Finding]:
    key = judge.program.key_of_base(file, call.function, call.callee.base)
    module, _, name = key.partition(":")
    made = judge.program.names.globals.get(module, {}).get(name)
    if made is None or made.name.rpartition(".")[2] != "ContextVar" or key in resets:
        return
    often = judge.reach.often(f"{file.module}:{call.function}")
    last = call.function.rpartition(".")[2].lstrip("_")
    fixed = call.arguments[:1] in ((), (FIXED,))
    if often is not Often.REPEATS or fixed or last.startswith(SETTERS):
        return
    at = place(file.path, call.line)
    proofs = (
        Evidence(Told.LIVES_WITH_CONTEXT(name), UNKNOWN, at),
        Evidence(Told.SET(call.function.rpartition(".")[2]), PROVED, at),
        Evidence(Told.OF_ONE_CALL(), PROVED, at),
        Evidence(Told.NEVER_RESET(), PROVED, at),
    )
    symbol = key.replace(":", ".")
    yield build(FLD406, file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])


DETECTORS: tuple[Detector, ...] = (Check(FLD406, _variables),)
