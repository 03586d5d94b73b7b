"""FLD501: a queue without a limit that is fed again and again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from floodline.scan._facts.model import Call, FileFacts, Mark
from floodline.scan._facts.reasons import Ground
from floodline.scan._facts.references import INSTANCE, ITSELF
from floodline.scan._findings.building import build
from floodline.scan._findings.confidence import confidence_of
from floodline.scan._findings.finding import MEDIUM, Finding
from floodline.scan._findings.rule import Rule
from floodline.scan._program.program import Program
from floodline.scan._proofs.evidence import PROVED, UNKNOWN, Evidence, place
from floodline.scan._proofs.grounds import Holder, Key
from floodline.scan._proofs.judge import Judge
from floodline.scan._proofs.reach import LOOPS, Often
from floodline.scan._proofs.removal import NONE, Removal
from floodline.scan._rules.detectors import Check, Detector

FLD501 = Rule(
    "FLD501", "unbounded-queue", "{} is a queue without a limit",
    "give it a maxsize, so that a slow reader slows the writer down", preview=True,
)  # fmt: skip
PUTS, GETS = {"put", "put_nowait"}, {"get", "get_nowait", "join"}
Uses = dict[str, list[tuple[FileFacts, Call]]]


class Told(Ground):
    """What the finding says."""

    TAKEN = "line {} takes items out, as fast as it can"
    NOT_TAKEN = "nothing was seen that takes items out"
    PUTS = "{}() adds an item each time it runs"


def _queues(judge: Judge) -> Iterator[Finding]:
    uses = _uses_of_queues(judge.program)
    for file, mark in judge.marks("queue"):
        yield from _queue(judge, file, mark, uses)


def _uses_of_queues(program: Program) -> tuple[Uses, Uses]:
    """Return what adds to each queue, and what takes out of it."""
    puts: Uses = defaultdict(list)
    gets: Uses = defaultdict(list)
    for file in program.files:
        for call in file.calls:
            name = call.callee.name
            if name not in PUTS and name not in GETS:
                continue
            key = program.key_of_base(file, call.function, call.callee.base)
            (puts if name in PUTS else gets)[key].append((file, call))
    return puts, gets


def _queue(judge: Judge, file: FileFacts, mark: Mark, uses: tuple[Uses, Uses]) -> Iterator[Finding]:
    ref = mark.ref or ITSELF
    key = judge.program.key(file, mark.function, ref)
    made = place(file.path, mark.at.line)
    if ref.kind == INSTANCE:
        holder = judge.holders.instance(key.rpartition(".")[0])
    else:
        holder = Evidence(Holder.MODULE(), PROVED, made)
    taken = uses[1].get(key, [])
    for at_file, call in uses[0].get(key, []):
        function = f"{at_file.module}:{call.function}"
        at = place(at_file.path, call.line)
        often = judge.reach.often(function) is Often.REPEATS or call.repeats in LOOPS
        told = Told.TAKEN(str(taken[0][1].line)) if taken else Told.NOT_TAKEN()
        proofs = (
            holder,
            Evidence(Told.PUTS(call.function.rpartition('.')[2]),
                  PROVED if often else UNKNOWN, at),
            Evidence(Key.EVERY_CALL(), PROVED, at),
            Evidence(told, UNKNOWN, made),
        )  # fmt: skip
        if confidence_of(proofs, Removal(NONE, proofs[3], ())) == MEDIUM:
            symbol = key.replace(":", ".")
            yield build(FLD501, file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])
            return


DETECTORS: tuple[Detector, ...] = (Check(FLD501, _queues),)
