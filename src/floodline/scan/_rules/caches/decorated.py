"""The functions with a lasting cache: nothing clears it, and it may hold many results."""

from __future__ import annotations

from collections.abc import Iterator

from floodline.scan._facts.calls import METHOD
from floodline.scan._facts.model import FileFacts, Function, Mark
from floodline.scan._facts.reasons import Ground
from floodline.scan._program.program import Program
from floodline.scan._proofs.judge import Judge


class Kept(Ground):
    """What a cache keeps."""

    EVERY_ARGUMENT = "one entry for every argument"
    FOR_EVER = "nothing is removed"


def lasting(judge: Judge) -> Iterator[tuple[FileFacts, Mark, Function]]:
    """Yield the cached functions whose cache nothing clears, and which may hold many results."""
    program = judge.program
    cleared = _cleared(program)
    for file, mark in judge.marks("cache"):
        function = program.names.functions[f"{file.module}:{mark.name}"]
        few = mark.detail == "few" or _is_enum(program, f"{file.module}:{function.owner}")
        if mark.name.rpartition(".")[2] not in cleared and not few:
            yield file, mark, function


def is_bound(function: Function) -> bool:
    """Return True if a function receives its instance, which is then part of the key."""
    plain = not function.owner or "staticmethod" in function.decorators
    return not plain and function.parameters[:1] == ("self",)


def _cleared(program: Program) -> set[str]:
    return {
        call.callee.base.name.rpartition(".")[2]
        for file in program.files
        for call in file.calls
        if call.callee.name == "cache_clear" and call.callee.kind == METHOD
    }


def _is_enum(program: Program, owner: str) -> bool:
    names = program.names
    return owner in names.classes and any(
        "Enum" in base for kind in names.order(owner) for base in names.classes[kind].bases
    )
