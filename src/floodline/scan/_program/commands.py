"""Functions of a command line: the program itself calls the object that they are given to."""

from __future__ import annotations

from floodline.scan._facts.calls import NAME
from floodline.scan._program.program import Program

# parts of the names of modules that are run by hand
COMMAND_LINE = {
    "cli", "scripts", "commands", "__main__", "management", "docs", "examples", "benchmarks",
}  # fmt: skip


def commands_of(program: Program) -> frozenset[str]:
    """Return the functions that are decorated by what a module makes and then calls: `app()`.

    A server or a bot is given to what runs it, or has a method that does.
    """
    names = program.names
    known: dict[str, bool] = {}  # most functions of a module share a decorator's object
    found = set()
    for key, function in names.functions.items():
        for decorator in function.decorators:
            head, dot, _ = decorator.partition(".")
            if not dot:
                continue
            made = names.resolve(key.partition(":")[0], head)
            if made not in known:
                known[made] = _is_called(program, made)
            if known[made]:
                found.add(key)
    return frozenset(found)


def _is_called(program: Program, made: str) -> bool:
    """Return True if the module of an object calls it, and gives it nothing."""
    module, _, name = made.partition(":")
    file = program.names.modules.get(module) if name else None
    return file is not None and any(
        call.callee.name == name
        and call.callee.kind == NAME
        and not (call.arguments or call.keywords)
        for call in file.calls
    )
