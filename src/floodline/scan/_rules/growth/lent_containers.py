"""FLD108 for callbacks: each call of a function lends the same captured container to all of them.

A callback may take what it gets for its own and add to it. What it adds is there in the next call.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from floodline.scan._facts.calls import NAME
from floodline.scan._facts.model import Call, FileFacts
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import LOCAL, Reference
from floodline.scan._findings.building import build
from floodline.scan._findings.finding import MEDIUM, Finding
from floodline.scan._program.names import INSIDE
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.evidence import ASSUMED, PROVED, UNKNOWN, Evidence, place
from floodline.scan._proofs.grounds import Holder, Out, Path
from floodline.scan._proofs.judge import Judge
from floodline.scan._rules.detectors import Check, Detector
from floodline.scan._rules.growth.closures import FLD108


class Told(Ground):
    """What the finding says."""

    LENT = "every callback gets the same one, and may add to it"


def _lent(judge: Judge) -> Iterator[Finding]:
    if not judge.trusts():
        return  # in a program that shows its callbacks, what they add is seen
    found: set[str] = set()
    for file in judge.program.files:
        for call in file.calls:
            if call.repeats != "for" or INSIDE not in call.function or not call.arguments:
                continue
            for held in _captured(judge.program, file, call):
                if held.key not in found and _is_kept(judge, file, call, held):
                    found.add(held.key)
                    yield _told(file, call, held)


def _captured(program: Program, file: FileFacts, call: Call) -> Iterator[Held]:
    """Yield the containers of an outer function that a loop over callbacks hands to each."""
    if call.callee.kind != NAME or not _is_unknown(program, file, call.callee.name):
        return
    for argument in call.arguments:
        ref = argument.ref
        if ref and ref.kind == LOCAL and call.function.startswith(f"{ref.function}{INSIDE}"):
            held = program.held.get(program.key(file, call.function, ref))
            if held is not None and not _is_used_outside(file, ref):
                yield held


def _is_unknown(program: Program, file: FileFacts, name: str) -> bool:
    """Return True if a name means nothing that the module defines or imports: a loop's variable."""
    key = program.names.resolve(file.module, name)
    known = key in program.names.functions or key in program.names.classes
    elsewhere = name in program.names.imports[file.module] or name in vars(builtins)
    return not (known or elsewhere or name in program.names.globals[file.module])


def _is_used_outside(file: FileFacts, ref: Reference) -> bool:
    """Return True if the function that creates it uses it too: then it is a result."""
    home = ref.function
    handed = any(
        given.ref == ref
        for call in file.calls
        if call.function == home
        for given in (*call.arguments, *(value for _, value in call.keywords))
    )
    changed = any(change.ref == ref for change in file.changes)
    return handed or changed or (ref, home) in file.escapes


def _is_kept(judge: Judge, file: FileFacts, call: Call, held: Held) -> bool:
    """Return True if the inner function is passed on, so that it may outlive the outer one."""
    inner = f"{file.module}:{call.function}"
    return bool(judge.program.by_reference.get(inner)) and not held.limits


def _told(file: FileFacts, call: Call, held: Held) -> Finding:
    made = held.made[0]
    at, here = place(file.path, made.at.line), place(file.path, call.line)
    name = call.function.rpartition(".")[2]
    proofs = (
        Evidence(Holder.CAPTURED_BY_CALLER(), UNKNOWN, at),
        Evidence(Path.UNSEEN(name), ASSUMED, here),
        Evidence(Told.LENT(), ASSUMED, here),
        Evidence(Out.NOTHING(), PROVED, at),
    )
    symbol = f"{file.module}.{call.function}{{{made.ref.name}}}"
    return build(FLD108, file.path, made.at, symbol, MEDIUM, proofs, grows=[here])


DETECTORS: tuple[Detector, ...] = (Check(FLD108, _lent),)
