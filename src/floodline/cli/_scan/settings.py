"""Reads the table `[tool.floodline.scan]`: the defaults of the options of `floodline scan`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from floodline.errors import ConfigError
from floodline.scan._findings.finding import Confidence
from floodline.settings import section

LEVELS = [level.value for level in reversed(Confidence)]


@dataclass(slots=True, frozen=True)
class ScanSettings:
    """What the file says; the names are those of the table, with `_` for `-`."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    confidence: str = "medium"
    fail_on: str = "high"
    library: bool | None = None
    preview: bool = False
    baseline: Path | None = None
    cache_dir: Path | None = None
    jobs: int | None = None


def load(start: Path | None = None) -> ScanSettings:
    """Read the nearest table; a wrong name or value raises `ConfigError` with its place."""
    file, table = section("scan", start)
    values = {}
    for name, value in table.items():
        where = f"{file}: scan.{name}"
        check = CHECKS.get(name)
        if check is None:
            near = get_close_matches(name, CHECKS, 1)
            hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(CHECKS)}"
            raise ConfigError(f"{file}: unknown setting scan.{name}; {hint}")
        values[name.replace("-", "_")] = check(value, where)
    for name in ("baseline", "cache_dir"):
        if name in values and file is not None:
            values[name] = file.parent / values[name]
    return ScanSettings(**values)


def codes(text: str | None) -> tuple[str, ...]:
    """Read `FLD101,FLD2`."""
    return tuple(part.strip().upper() for part in (text or "").split(",") if part.strip())


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f'{where}={value!r} must be a list of strings, such as ["FLD101"]')
    return tuple(value)


def _codes(value: Any, where: str) -> tuple[str, ...]:
    return tuple(code.strip().upper() for code in _texts(value, where))


def _by_pattern(value: Any, where: str) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise ConfigError(f'{where}={value!r} must be a table, such as {{"demo/*" = ["FLD101"]}}')
    return {pattern: _codes(listed, f"{where}.{pattern!r}") for pattern, listed in value.items()}


def _level(value: Any, where: str) -> str:
    if value not in LEVELS:
        raise ConfigError(f"{where}={value!r} must be one of {', '.join(LEVELS)}")
    return str(value)


def _switch(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{where}={value!r} must be true or false")
    return value


def _count(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigError(f"{where}={value!r} must be a number from 1")
    return value


def _path(value: Any, where: str) -> Path:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{where}={value!r} must be a path")
    return Path(value)


CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "select": _codes,
    "ignore": _codes,
    "exclude": _texts,
    "per-file-ignores": _by_pattern,
    "confidence": _level,
    "fail-on": _level,
    "library": _switch,
    "preview": _switch,
    "baseline": _path,
    "cache-dir": _path,
    "jobs": _count,
}
