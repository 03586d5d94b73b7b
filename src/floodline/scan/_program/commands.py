"""Functions of a command line: the program itself calls the object that they are given to."""

from __future__ import annotations

from floodline.scan._facts.calls import NAME
from floodline.scan._program.program import Program


def commands_of(program: Program) -> frozenset[str]:
    """Return the functions that are decorated by what a module makes and then calls: `app()`.

    A server or a bot is given to what runs it, or has a method that does.
    """
    return frozenset(
        key
        for key, function in program.names.functions.items()
        if function.decorators and _is_command(program, key, function.decorators)
    )


def _is_command(program: Program, key: str, decorators: tuple[str, ...]) -> bool:
    heads = [name.partition(".")[0] for name in decorators if "." in name]
    return any(_is_called(program, *_home(program, key, head)) for head in heads)


def _home(program: Program, key: str, name: str) -> tuple[str, str]:
    module, _, found = program.names.resolve(key.partition(":")[0], name).partition(":")
    return module, found


def _is_called(program: Program, module: str, name: str) -> bool:
    """Return True if a module calls what it has under a name, and gives it nothing."""
    file = program.names.modules.get(module)
    return file is not None and any(
        call.callee.name == name
        and call.callee.kind == NAME
        and not (call.arguments or call.keywords)
        for call in file.calls
    )
