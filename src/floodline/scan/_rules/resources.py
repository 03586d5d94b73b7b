"""The rules about what has to be closed or limited: clients, queues, handles, labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from floodline.scan._facts.model import Call, FileFacts, Mark
from floodline.scan._facts.vocabulary import MAKERS
from floodline.scan._findings.finding import HIGH, LOW, MEDIUM, Finding, build
from floodline.scan._program.program import Program
from floodline.scan._proofs.growth import COMMAND_LINE
from floodline.scan._proofs.proof import ASSUMED, PROVED, REFUTED, UNKNOWN, Proof, place
from floodline.scan._proofs.reach import LOOPS, REPEATS
from floodline.scan._proofs.removal import NONE, Removal
from floodline.scan._rules.judge import Judge, confidence_of

ENDS = ("close", "aclose", "shutdown", "dispose", "disconnect", "__exit__", "__aexit__")
PUTS, GETS = {"put", "put_nowait"}, {"get", "get_nowait", "join"}


def clients(program: Program, judge: Judge) -> Iterator[Finding]:
    """Yield the clients that are made for one call and never closed."""
    for file in program.files:
        for mark in file.marks:
            if mark.kind == "client":
                yield from _client(program, judge, file, mark)


def resources(program: Program, judge: Judge) -> Iterator[Finding]:
    """Yield what is opened or fed without an end; preview rules."""
    closed = _closed(program)
    queues = _uses_of_queues(program)
    for file in program.files:
        for mark in file.marks:
            if mark.kind == "label":
                yield from _label(judge, file, mark)
            elif mark.kind == "queue":
                yield from _queue(program, judge, file, mark, queues)
            elif mark.kind == "handle":
                yield from _handle(program, judge, file, mark, closed)


def _client(program: Program, judge: Judge, file: FileFacts, mark: Mark) -> Iterator[Finding]:
    name = mark.function.rpartition(".")[2]
    if judge.reach.often(f"{file.module}:{mark.function}") != REPEATS or name in {*MAKERS, "main"}:
        return
    if COMMAND_LINE & set(file.module.split(".")):
        return  # a client for one run
    own = program.names.class_of(file.module, mark.name)
    if own and not any(program.names.method(own, end) for end in ENDS):
        return
    at = place(file.path, mark.at.line)
    proofs = (
        Proof("its connections or threads live until they are collected", UNKNOWN, at),
        Proof(f"{name}() makes one each time it runs", PROVED, at),
        Proof("every call makes one more", PROVED, at),
        Proof(f"{mark.name} is neither closed nor kept", PROVED, at),
    )
    symbol = f"{file.module}.{mark.function}"
    confidence = MEDIUM if judge.is_seen(f"{file.module}:{mark.function}") else LOW
    yield build("FLD505", file.path, mark.at, symbol, confidence, proofs, grows=[at])


def _label(judge: Judge, file: FileFacts, mark: Mark) -> Iterator[Finding]:
    at = place(file.path, mark.at.line)
    state, why = judge.paths.origin(file.module, mark.function, mark.detail)
    often = judge.reach.often(f"{file.module}:{mark.function}")
    if state != PROVED or often != REPEATS:
        return
    proofs = (
        Proof("a series of a metric lives as long as the process", PROVED, at),
        Proof(f"{mark.function.rpartition('.')[2]}() counts each time it runs", PROVED, at),
        Proof(f"label {mark.name}: {why}", UNKNOWN, at),
        Proof("a series is never removed", PROVED, at),
    )
    symbol = f"{file.module}.{mark.function}"
    yield build("FLD504", file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])


Uses = dict[str, list[tuple[FileFacts, Call]]]


def _uses_of_queues(program: Program) -> tuple[Uses, Uses]:
    """Return who puts into and who takes out of each queue."""
    puts: Uses = defaultdict(list)
    gets: Uses = defaultdict(list)
    for file in program.files:
        for call in file.calls:
            base, _, name = call.callee.partition(":")[2].rpartition("|")
            if name not in PUTS and name not in GETS:
                continue
            key = program.key_of_base(file, call.function, base)
            (puts if name in PUTS else gets)[key].append((file, call))
    return puts, gets


def _queue(
    program: Program, judge: Judge, file: FileFacts, mark: Mark, uses: tuple[Uses, Uses]
) -> Iterator[Finding]:
    key = program.key(file, mark.function, mark.name)
    made = place(file.path, mark.at.line)
    if mark.name[:2] == "s:":
        holder = judge.holders.instance(key.rpartition(".")[0])
    else:
        holder = Proof("held by the module", PROVED, made)
    taken = uses[1].get(key, [])
    for at_file, call in uses[0].get(key, []):
        function = f"{at_file.module}:{call.function}"
        at = place(at_file.path, call.line)
        often = judge.reach.often(function) == REPEATS or call.repeats in LOOPS
        told = (
            f"line {taken[0][1].line} takes out, as fast as it can"
            if taken
            else "nobody was seen taking out"
        )
        proofs = (
            holder,
            Proof(f"{call.function.rpartition('.')[2]}() puts into it each time it runs",
                  PROVED if often else UNKNOWN, at),
            Proof("every call adds one more", PROVED, at),
            Proof(told, UNKNOWN, made),
        )  # fmt: skip
        if confidence_of(proofs, Removal(NONE, proofs[3], ())) == MEDIUM:
            symbol = key.replace(":", ".")
            yield build("FLD501", file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])
            return


def _closed(program: Program) -> set[str]:
    """Return the names of what is closed somewhere, by whomever: a base class, a helper."""
    return {
        mark.name.rpartition("|")[2].rpartition(":")[2]
        for file in program.files
        for mark in file.marks
        if mark.kind == "close"
    }


def _handle(
    program: Program, judge: Judge, file: FileFacts, mark: Mark, closed: set[str]
) -> Iterator[Finding]:
    key = program.key(file, mark.function, mark.name)
    if mark.name[:2] == "o:" or mark.name[2:] in closed:
        return
    at = place(file.path, mark.at.line)
    if mark.detail == "item":
        found = _kept_item(program, judge, key, mark)
    elif mark.name[:2] == "s:" and mark.function.rpartition(".")[2] in MAKERS:
        owner = judge.holders.instance(key.rpartition(".")[0])
        many = PROVED if owner.state == REFUTED else UNKNOWN
        if owner.state in (PROVED, ASSUMED):
            return
        found = (
            Proof("an open handle outlives whoever forgets it", PROVED, at),
            Proof(f"each instance opens one; {owner.claim}", many, at),
            Proof("every instance adds one more", PROVED, at),
        )
    else:
        return
    if not found:
        return
    proofs = (*found, Proof("nobody closes it", PROVED, at))
    confidence = confidence_of(proofs, Removal(NONE, proofs[3], ()))
    if confidence in (HIGH, MEDIUM):
        symbol = key.replace(":", ".")
        yield build("FLD503", file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])


def _kept_item(
    program: Program, judge: Judge, key: str, mark: Mark
) -> tuple[Proof, Proof, Proof] | None:
    """Return the proofs that handles pile up in a container."""
    held = program.held.get(key)
    if held is None:
        return None
    file, change = next((f, c) for f, c in held.changes if c.verb == "grow" and c.at == mark.at)
    path, open_key = judge.paths.path(held, file, change), judge.paths.key(file, change)
    return judge.holders.proof(held), path, open_key
