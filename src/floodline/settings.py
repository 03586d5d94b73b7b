"""Settings: built-in defaults ← `floodline.toml` or `[tool.floodline]` ← `FLOODLINE_*` ← arguments.

Nothing is cached and nothing is global: each constructor reads the current settings.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, cast

from floodline._session_options import SETTINGS
from floodline.errors import ConfigError

__all__ = ["Settings", "default", "load", "resolve"]

T = TypeVar("T")
Check = Callable[[Any, str], object]
PREFIX = "FLOODLINE_"
SECTIONS = ("scan", "serve")  # tables of their own, which a command checks
SERVE = f"{PREFIX}SERVE_"  # the variables of the table `serve`


def _probe(value: Any, what: str) -> str | None:
    """Not for `Sessions`: `dormant`, or the address that `floodline run` gives its children."""
    if value is None:
        return None
    if not isinstance(value, str) or (value != "dormant" and value.count(":") < 2):
        raise ConfigError(f'{what}={value!r} is not a probe; give "dormant" or nothing')
    return value


# A check gets the value and its name for errors, and returns what the constructor should see.
KEYS: dict[str, Check] = {name: option.read_setting for name, option in SETTINGS.items()}
KEYS["probe"] = _probe


@dataclass(slots=True, frozen=True)
class Settings:
    """The values from the file and the environment; a name set in neither is missing."""

    values: Mapping[str, Any]
    file: Path | None = None


class _Default:
    """A built-in default in a signature; it looks like and equals the value it stands for."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, _Default) else other))

    def __hash__(self) -> int:
        return hash(self.value)


def default(value: T) -> T:
    """Mark a default in a signature, so that `resolve` can tell it from an argument."""
    return cast("T", _Default(value))


def resolve(**arguments: Any) -> dict[str, Any]:
    """Replace each marker with the setting of that name, or else with the marked value.

    Arguments that are not markers stay as they are. Without a marker no file is searched for.
    """
    if not any(isinstance(value, _Default) for value in arguments.values()):
        return arguments
    found = load().values
    return {
        name: found.get(name, value.value) if isinstance(value, _Default) else value
        for name, value in arguments.items()
    }


def load(start: Path | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the nearest settings file, from `start` (the current directory) upwards, and `environ`.

    Unknown names, bad values and unreadable files raise `ConfigError`, which names the place.
    """
    file, table = _nearest(start)
    values = _checked(table, f"{file}: ")
    for variable, text in (os.environ if environ is None else environ).items():
        if variable.startswith(PREFIX) and not variable.startswith(SERVE):
            name = variable.removeprefix(PREFIX).lower()
            check = KEYS.get(name) or _unknown(variable, [PREFIX + key.upper() for key in KEYS])
            values[name] = check(_plain(text or "none"), variable)
    return Settings(values, file)


def section(name: str, start: Path | None = None) -> tuple[Path | None, Mapping[str, Any]]:
    """Return the settings file and its table of that name, unchecked; a missing table is empty.

    Anything other than a table raises `ConfigError`.
    """
    file, table = _nearest(start)
    found = table.get(name, {})
    if not isinstance(found, dict):
        raise ConfigError(f"{file}: {name}={found!r} must be a table: [tool.floodline.{name}]")
    return file, found


def _checked(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    values = {}
    for name, value in table.items():
        if name in SECTIONS:
            continue
        check = KEYS.get(name) or _unknown(name, KEYS, where)
        values[name] = check(_plain(value), where + name)
    return values


def _unknown(name: str, known: Iterable[str], where: str = "") -> Check:
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(known)}"
    raise ConfigError(f"{where}unknown setting {name}; {hint}")


def _plain(value: object) -> object:
    """Turn the word `none` into None, which neither TOML nor the environment has."""
    return None if isinstance(value, str) and value.lower() == "none" else value


def _nearest(start: Path | None) -> tuple[Path | None, Mapping[str, Any]]:
    try:
        here = (start or Path()).resolve(strict=True)
    except OSError:  # a deleted current directory has no settings
        return None, {}
    for directory in (here, *here.parents):
        if (file := directory / "floodline.toml").is_file():
            return file, _parsed(file)
        if (file := directory / "pyproject.toml").is_file():
            tool = _parsed(file).get("tool", {})
            if isinstance(tool, dict) and "floodline" in tool:
                return file, _table(tool["floodline"], file)
    return None, {}


def _table(value: object, file: Path) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{file}: tool.floodline={value!r} must be a table: [tool.floodline]")
    return value


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}; correct or remove it") from error
