"""The rules that need no container: caches on methods, handlers per call, shared exceptions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from floodline.scan._facts.model import FileFacts, Mark
from floodline.scan._findings.finding import HIGH, LEVELS, LOW, MEDIUM, Finding, build
from floodline.scan._program.program import Program
from floodline.scan._proofs.growth import COMMAND_LINE
from floodline.scan._proofs.proof import PROVED, REFUTED, UNKNOWN, Proof, place
from floodline.scan._proofs.reach import REPEATS, STARTS
from floodline.scan._rules.judge import Judge

PLAIN = {
    "str", "int", "float", "bool", "bytes", "tuple", "frozenset", "None", "Path", "UUID", "date",
    "datetime", "Literal", "Tuple", "Type", "type", "Union", "Any", "complex", "Decimal", "T",
    "Optional", "Sequence", "Hashable", "object", "TypeVar", "Enum", "PathLike", "slice", "",
}  # fmt: skip
FAILS = ("Error", "Exception", "Warning", "Interrupt", "Exit")


def marked(program: Program, judge: Judge) -> Iterator[Finding]:
    """Yield the findings of rules that look at one place."""
    cleared = {
        call.callee.rpartition("|")[0].rpartition(".")[2].rpartition(":")[2]
        for file in program.files
        for call in file.calls
        if call.callee.endswith("|cache_clear")
    }
    raised: list[Finding] = []
    for file in program.files:
        for mark in file.marks:
            if mark.kind == "cache" and mark.name.rpartition(".")[2] not in cleared:
                yield from _cached(program, judge, file, mark)
            elif mark.kind == "handler":
                yield from _handler(judge, file, mark)
            elif mark.kind == "raise":
                raised += _raised(program, judge, file, mark)
    yield from _once_each(raised)


def _once_each(findings: list[Finding]) -> Iterator[Finding]:
    """One finding for each thing, at the best place, with all places where it happens."""
    by_symbol: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_symbol[finding.fingerprint].append(finding)
    for group in by_symbol.values():
        best = max(group, key=lambda finding: LEVELS.index(finding.confidence))
        places = dict.fromkeys(place for finding in (best, *group) for place in finding.grows)
        yield best._replace(grows=tuple(places))


def _cached(program: Program, judge: Judge, file: FileFacts, mark: Mark) -> Iterator[Finding]:
    function = program.names.functions[f"{file.module}:{mark.name}"]
    at = place(file.path, mark.at.line)
    symbol = f"{file.module}.{mark.name}"
    unbounded = mark.detail == "unbounded"
    first = function.parameters[:1]
    bound = function.owner and "staticmethod" not in function.decorators and first == ("self",)
    if mark.detail == "few" or _is_enum(program, f"{file.module}:{function.owner}"):
        return  # a handful of results, or of instances
    cache = Proof("the cache belongs to the class and outlives its instances", PROVED, at)
    if bound:
        owner = f"{file.module}:{function.owner}"
        one = judge.holders.instance(owner).state == PROVED
        if one and (not unbounded or function.parameters == ("self",)):
            return
        path = Proof("one entry for every instance and argument", PROVED, at)
        size = "nothing leaves" if unbounded else "the last ones stay, with their instances"
        proofs = (
            cache,
            path,
            Proof("self is part of the key", PROVED, at),
            Proof(size, PROVED, at),
        )
        confidence = MEDIUM if unbounded or judge.trusts() else LOW
        if unbounded and _comes_and_goes(program, judge, owner):
            confidence = HIGH
        yield build("FLD301", file.path, mark.at, symbol, confidence, proofs, grows=[at])
    elif unbounded and (held := _object_parameter(program, file, function.annotations)):
        path = Proof("one entry for every argument", PROVED, at)
        key = Proof(f"{held} is an object, equal only to itself", UNKNOWN, at)
        proofs = (
            Proof("held by the module", PROVED, at),
            path,
            key,
            Proof("nothing leaves", PROVED, at),
        )
        confidence = MEDIUM if judge.is_seen(f"{file.module}:{mark.name}") else LOW
        yield build("FLD303", file.path, mark.at, symbol, confidence, proofs, grows=[at])


def _is_enum(program: Program, owner: str) -> bool:
    names = program.names
    return owner in names.classes and any(
        "Enum" in base for kind in names.order(owner) for base in names.classes[kind].bases
    )


def _comes_and_goes(program: Program, judge: Judge, owner: str) -> bool:
    """Whether instances are seen to be made for each event."""
    return judge.holders.instance(owner).state == REFUTED and any(
        judge.paths.events.why(making.function) for making in program.makings.get(owner, ())
    )


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


def _handler(judge: Judge, file: FileFacts, mark: Mark) -> Iterator[Finding]:
    function = f"{file.module}:{mark.function}"
    often = judge.reach.often(function)
    name = mark.function.rpartition(".")[2]
    if mark.detail or often == STARTS or name in ("__init__", "main") or _is_undone(file, mark):
        return
    at = place(file.path, mark.at.line)
    path = Proof(
        f"{name}() adds one each time it runs", PROVED if often == REPEATS else UNKNOWN, at
    )
    if name.startswith(("setup", "configure", "init", "_setup", "_configure", "_init", "enable")):
        return
    proofs = (
        Proof("loggers live as long as the process", PROVED, at), path,
        Proof("every call adds one more", PROVED, at),
        Proof("nothing asks whether it is there", UNKNOWN, at),
    )  # fmt: skip
    if path.state == PROVED:
        symbol = f"{file.module}.{mark.function}"
        yield build("FLD405", file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])


def _is_undone(file: FileFacts, mark: Mark) -> bool:
    """Whether handlers are taken out or emptied here, or the one that is added is always the same.

    A logger takes the same handler only once.
    """
    home = mark.function.rpartition(".")[0]
    here = [call for call in file.calls if call.function == mark.function]
    near = [call for call in file.calls if home and call.function.rpartition(".")[0] == home]
    if any(call.callee.endswith("removeHandler") for call in (*here, *near)):
        return True
    changed = {c.ref for c in file.changes if c.function == mark.function and c.verb != "lookup"}
    if any(ref.endswith("|handlers") for ref in changed):
        return True
    added = [c for c in here if c.line == mark.at.line and c.callee.endswith("addHandler")]
    given = added[0].arguments[0] if added and added[0].arguments else ""
    return given[:4] in ("r:s:", "r:g:") and given[2:].partition("=")[0] not in changed


def _raised(program: Program, judge: Judge, file: FileFacts, mark: Mark) -> Iterator[Finding]:
    key = program.names.resolve(file.module, mark.detail)
    module, _, name = key.partition(":")
    made = program.names.globals.get(module, {}).get(name, "")
    if not made or not _is_error(program, module, made):
        return
    at = place(file.path, mark.at.line)
    often = judge.reach.often(f"{file.module}:{mark.function}")
    once = bool(COMMAND_LINE & set(file.module.split(".")))
    if once:
        often = STARTS
    path = Proof("raised each time the function runs", PROVED if often == REPEATS else UNKNOWN, at)
    proofs = (
        Proof(f"{name} is held by the module", PROVED, at), path,
        Proof("each raise adds to its traceback and context", PROVED, at),
        Proof("the traceback stays until the next raise", PROVED, at),
    )  # fmt: skip
    if handled := judge.paths.events.why(f"{file.module}:{mark.function}"):
        told = f"the traceback stays, unless it is dropped by who catches it: {handled}"
        proofs = (*proofs[:3], Proof(told, UNKNOWN, at))
    confidence = HIGH if often == REPEATS and not handled else LOW if once else MEDIUM
    yield build("FLD407", file.path, mark.at, f"{module}.{name}", confidence, proofs, grows=[at])


def _is_error(program: Program, module: str, made: str) -> bool:
    if made.endswith(FAILS):
        return True
    key = program.names.class_of(module, made)
    names = program.names
    return bool(key) and any(
        base.endswith(FAILS) for item in names.order(key) for base in names.classes[item].bases
    )
