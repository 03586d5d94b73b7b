"""Rules that are off until they are asked for: shared containers, caches, listeners, timers."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.model import Call, FileFacts, Function, Mark
from floodline.scan._facts.vocabulary import MAKERS, opposites_of
from floodline.scan._findings.finding import MEDIUM, Finding, build, make
from floodline.scan._program.program import Held, Program
from floodline.scan._proofs.proof import PROVED, REFUTED, UNKNOWN, Proof, place
from floodline.scan._proofs.reach import REPEATS
from floodline.scan._rules.judge import Judge

# a function whose work is to set something leaves it to its caller when that ends
SETTERS = ("set", "push", "enter", "aenter", "activate", "attach", "start", "use", "bind")


def preview(program: Program, judge: Judge, told: set[str]) -> Iterator[Finding]:
    """Yield what the preview rules find; `told` has symbols that another rule reports already."""
    for held in program.held.values():
        yield from _shared(program, held, told)
    resets = _resets(program)
    for file in program.files:
        calls = {(c.function, c.line, c.callee): c for c in file.calls}
        names = {last_of(call.callee) for call in file.calls}
        for mark in file.marks:
            call = calls.get((mark.function, mark.at.line, mark.name))
            if mark.kind == "cache" and mark.detail == "unbounded":
                yield from _cached(program, judge, file, mark, told)
            elif mark.kind == "timer" and call and not mark.detail and "cancel" not in names:
                yield from _timer(program, judge, file, mark, call)
            elif mark.kind == "set" and call:
                yield from _variable(program, judge, file, mark, call, resets)
            elif mark.kind == "listener" and call and not names & {*opposites_of(mark.detail)}:
                yield from _listener(program, judge, file, mark, call)


def last_of(callee: str) -> str:
    """Return the name of the function or method that a call names."""
    return callee.rpartition("|")[2].rpartition(":")[2]


def _shared(program: Program, held: Held, told: set[str]) -> Iterator[Finding]:
    """A container of the class body that methods fill through `self`."""
    body = f"{held.key.partition(':')[2].rpartition('.')[0]}:"
    name = held.key.rpartition(".")[2]
    if any(m.function != body or m.fills == "field" or m.ref == "s:" for m in held.made):
        return
    meant = any(
        mark.kind == "classvar" and mark.name == name and mark.function == body
        for mark in held.file.marks
    )
    if meant or name.isupper() or held.key.replace(":", ".") in told:
        return
    for file, change in held.changes:
        function = program.names.functions.get(f"{file.module}:{change.function}")
        by_self = function is not None and function.parameters[:1] == ("self",)
        if change.verb != "grow" or change.ref[:2] != "s:" or change.depth or not by_self:
            continue
        at, made = place(file.path, change.at.line), place(held.file.path, held.made[0].at.line)
        proofs = (
            Proof("held by the class, shared by all instances", PROVED, made),
            Proof(f"every instance adds to it in {change.function}()", PROVED, at),
            Proof("what one instance adds, all others see", UNKNOWN, at),
            Proof("__init__ makes no other", PROVED, made),
        )
        grows = [(file.path, change.at.line)]
        yield make(program, held, "FLD104", file, change.at, MEDIUM, proofs, grows, ())
        return


def _cached(
    program: Program, judge: Judge, file: FileFacts, mark: Mark, told: set[str]
) -> Iterator[Finding]:
    function = program.names.functions[f"{file.module}:{mark.name}"]
    symbol = f"{file.module}.{mark.name}"
    if symbol in told or function.parameters[:1] in (("self",), ("cls",)):
        return
    at = place(file.path, mark.at.line)
    for number, name in enumerate(function.parameters):
        state, why = judge.paths.origin(file.module, mark.name, f"param:{number}")
        if state == PROVED:
            proofs = (
                Proof("held by the module", PROVED, at),
                Proof("one entry for every argument", PROVED, at),
                Proof(f"argument {name}: {why}", UNKNOWN, at),
                Proof("nothing leaves", PROVED, at),
            )
            yield build("FLD302", file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])
            return


def _timer(
    program: Program, judge: Judge, file: FileFacts, mark: Mark, call: Call
) -> Iterator[Finding]:
    """A function that sets a timer for itself runs for ever, with all that it refers to."""
    own = f"{file.module}:{call.function}"
    given = [*call.arguments, *(k.partition("=")[2] for k in call.keywords)]
    handed = [key for text in given for key in program.functions_in(file, call, text)]
    function = program.names.functions.get(own)
    if own not in handed or function is None:
        return
    at = place(file.path, call.line)
    holder = Proof("every call starts one more", UNKNOWN, at)
    if function.owner:
        owner = judge.holders.instance(f"{file.module}:{function.owner}")
        if owner.state == PROVED:
            return
        state = PROVED if owner.state == REFUTED else UNKNOWN
        holder = Proof(f"the timer keeps its instance; {owner.claim}", state, owner.at or at)
    proofs = (
        holder,
        Proof(f"{call.function.rpartition('.')[2]}() sets its own timer again", PROVED, at),
        Proof("every instance adds one more", PROVED, at),
        Proof("nobody cancels it", PROVED, at),
    )
    symbol = f"{file.module}.{call.function}"
    yield build("FLD404", file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])


def _resets(program: Program) -> set[str]:
    """Return the variables that are reset, by a call or by whoever gets `var.reset`."""
    found = set()
    for file in program.files:
        for call in file.calls:
            handed = (text[2:].partition("=")[0] for text in call.arguments if text[:2] == "r:")
            for text in (call.callee, *handed):
                if text.startswith("o:g:") and text.endswith("|reset"):
                    base = text.partition(":")[2].rpartition("|")[0]
                    found.add(program.key_of_base(file, call.function, base))
    return found


def _variable(
    program: Program, judge: Judge, file: FileFacts, mark: Mark, call: Call, resets: set[str]
) -> Iterator[Finding]:
    base = call.callee.partition(":")[2].rpartition("|")[0]
    key = program.key_of_base(file, call.function, base)
    module, _, name = key.partition(":")
    made = program.names.globals.get(module, {}).get(name, "")
    if made.rpartition(".")[2] != "ContextVar" or key in resets:
        return
    often = judge.reach.often(f"{file.module}:{call.function}")
    last = call.function.rpartition(".")[2].lstrip("_")
    if often != REPEATS or call.arguments[:1] in ((), ("const",)) or last.startswith(SETTERS):
        return
    at = place(file.path, call.line)
    proofs = (
        Proof(f"{name} keeps its value as long as its context lives", UNKNOWN, at),
        Proof(f"{call.function.rpartition('.')[2]}() sets it each time it runs", PROVED, at),
        Proof("the value belongs to one call", PROVED, at),
        Proof("nobody resets it", PROVED, at),
    )
    symbol = key.replace(":", ".")
    yield build("FLD406", file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])


def _listener(
    program: Program, judge: Judge, file: FileFacts, mark: Mark, call: Call
) -> Iterator[Finding]:
    function = program.names.functions.get(f"{file.module}:{call.function}")
    if function is None or not _outlives(program, file, function, call):
        return
    given = [*call.arguments, *(k.partition("=")[2] for k in call.keywords)]
    if not any(_is_bound(program, file, call, text) for text in given):
        return
    at = place(file.path, call.line)
    last = call.function.rpartition(".")[2]
    if last in MAKERS:
        owner = judge.holders.instance(f"{file.module}:{function.owner}")
        if owner.state != REFUTED:
            return
        path = Proof(f"each instance adds one; {owner.claim}", PROVED, owner.at or at)
    elif judge.reach.often(f"{file.module}:{call.function}") == REPEATS:
        path = Proof(f"{last}() adds one each time it runs", PROVED, at)
    else:
        return
    proofs = (
        Proof("what is listened to keeps its listeners", UNKNOWN, at), path,
        Proof("every call adds one more", PROVED, at),
        Proof(f"nobody calls {' or '.join(opposites_of(mark.detail)[:2])} here", PROVED, at),
    )  # fmt: skip
    symbol = f"{file.module}.{call.function}"
    yield build("FLD403", file.path, mark.at, symbol, MEDIUM, proofs, grows=[at])


def _outlives(program: Program, file: FileFacts, function: Function, call: Call) -> bool:
    """Whether what is listened to was there before: handed in or global, and not made here."""
    kind, _, rest = call.callee.partition(":")
    base = rest.rpartition("|")[0]
    if base.startswith("self."):
        own = program.names.classes.get(f"{file.module}:{function.owner}")
        return own is not None and base[5:] not in dict(own.attributes)
    if base.startswith("T:"):
        return base[2:] in function.annotations
    return kind == "o" and base not in ("g:atexit", "g:signal") and not base.startswith("C:")


def _is_bound(program: Program, file: FileFacts, call: Call, text: str) -> bool:
    """Whether an argument is a function that keeps something alive: a method or an inner one."""
    if text[:2] == "f:":
        return True
    found = program.functions_in(file, call, text)
    return any(program.names.functions[key].owner or "<locals>" in key for key in found)
