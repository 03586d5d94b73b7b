"""A scenario: what is set up, done in each round, and taken down."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from floodline.errors import ConfigError
from floodline.soak._profiles import profile_round


def _nothing() -> None:
    return None


@dataclass(slots=True, frozen=True)
class Scenario:
    """Three functions, plain or async; if one of them is async, all run on one event loop."""

    round: Callable[[int], Any]
    setup: Callable[[], Any] = _nothing
    teardown: Callable[[], Any] = _nothing

    @property
    def asynchronous(self) -> bool:
        """Return True if an event loop is needed."""
        return any(map(inspect.iscoroutinefunction, (self.round, self.setup, self.teardown)))


def load(path: Path, *, profile: str | None = None) -> Scenario:
    """Import a scenario file with its folder first on the path, as Python runs a script.

    With a `profile`, rounds are made of the file's `open_session`, `work` and `close_session`.
    """
    if not path.is_file():
        raise ConfigError(f"scenario {str(path)!r} is not a file; give one that defines round(i)")
    sys.path.insert(0, str(path.resolve().parent))
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else "__soak__"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"scenario {str(path)!r} is not a Python file; give one that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    work = getattr(module, "round", None) if profile is None else profile_round(profile, module)
    if not callable(work):
        raise ConfigError(f"scenario {str(path)!r} defines no round(i); add `def round(i): ...`")
    parts = {name: getattr(module, name, _nothing) for name in ("setup", "teardown")}
    _check(path, "round", work, 0)
    for name, function in parts.items():
        _check(path, name, function)
    return Scenario(work, **parts)


def _check(path: Path, name: str, function: Any, *arguments: int) -> None:
    """Refuse what cannot be called like this, or would do nothing when called."""
    where = f"scenario {str(path)!r}: {name}"
    if not callable(function):
        raise ConfigError(f"{where} is {function!r}; make it a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(f"{where}() yields, so it would never run; make it a plain function")
    try:
        signature = inspect.signature(function)
    except ValueError:  # written in C
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        wanted = "one argument, the number of the round" if arguments else "no argument"
        raise ConfigError(f"{where}{signature} must accept {wanted}") from error
