"""Sizes and times as people write them: `"64 MiB"`, `"30 min"`, `"80%"`."""

from __future__ import annotations

import math
import re
import sys
from datetime import timedelta
from typing import TypeVar

from floodline.errors import ConfigError

Size = int | float | str
Duration = int | float | str | timedelta
Choice = TypeVar("Choice", bound=str)

_NUMBER = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?|\.[0-9]+)\s*([A-Za-zµ%]*)\s*")

_BYTES = {"": 1, "b": 1, "byte": 1, "bytes": 1}
_BYTES |= {f"{p}b": 1000**n for n, p in enumerate("kmgt", 1)}
_BYTES |= {f"{p}ib": 1024**n for n, p in enumerate("kmgt", 1)}
_BYTES |= {p: 1024**n for n, p in enumerate("kmgt", 1)}

_SECONDS: dict[str, float] = {"ms": 0.001}
_SECONDS |= dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), 1)
_SECONDS |= dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60)
_SECONDS |= dict.fromkeys(("h", "hr", "hour", "hours"), 3600)
_SECONDS |= dict.fromkeys(("d", "day", "days"), 86400)
_SECONDS |= dict.fromkeys(("w", "week", "weeks"), 604800)


def parse_size(value: Size, what: str) -> int:
    """Return a number of bytes, at least 1; `what` names the setting in errors."""
    number = _parse(value, _BYTES, what, 'a number of bytes or a string such as "64 MiB"')
    if number < 1:
        raise ConfigError(f"{what}={value!r} is below 1 byte; give a positive size or None")
    return int(number)


def parse_duration(value: Duration, what: str, *, zero: bool = False) -> float:
    """Return seconds, more than 0 unless `zero` is set; `what` names the setting in errors."""
    if isinstance(value, timedelta):
        number = value.total_seconds()
    else:
        number = _parse(value, _SECONDS, what, 'seconds, a timedelta or a string such as "30 min"')
    if number < 0 or (number == 0 and not zero):
        least = "0 s or more" if zero else "more than 0 s"
        raise ConfigError(f"{what}={value!r} must be {least}; give a longer time or None")
    return number


def parse_count(value: int | None, what: str) -> int:
    """Return a whole number of at least 1; `what` names the setting in errors."""
    if isinstance(value, bool) or not isinstance(value, int):
        # None only gets here where it is not allowed
        otherwise = "" if value is None else ", or None"
        raise ConfigError(f"{what}={value!r} must be a whole number of at least 1{otherwise}")
    if value > sys.maxsize:
        raise _too_large(what)
    if value < 1:
        raise ConfigError(f"{what}={value} is below 1; give a positive number or None")
    return value


def parse_choice(value: Choice, what: str, choices: tuple[str, ...]) -> Choice:
    """Return `value` if it is one of `choices`; `what` names the setting in errors."""
    if value not in choices:
        known = ", ".join(repr(c) for c in choices)
        raise ConfigError(f"{what}={value!r} is unknown; choose one of {known}")
    return value


def format_duration(seconds: float) -> str:
    """Write seconds as people say them: `0.25 s`, `45 s`, `4 min 22 s`, `3 h 30 min`."""
    if seconds < 59.5:
        return f"{seconds:.3g} s"
    rest = round(seconds) if seconds < 3600 else round(seconds / 60) * 60
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        number, rest = divmod(rest, size)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2])


def format_size(size: float) -> str:
    """Write bytes as `512 B`, `1.5 KiB` or `64 MiB`."""
    for n, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1024**n:
            number = size / 1024**n
            return f"{number:.0f} {unit}" if number >= 999.5 else f"{number:.3g} {unit}"
    return f"{size:.0f} B"


def format_number(number: float) -> str:
    """Write a number in about three digits, and never with an exponent: `0.25`, `12.5`, `1,210`."""
    return f"{number:,.0f}" if abs(number) >= 999.5 else f"{number:.3g}"


def _parse(value: object, units: dict[str, float] | dict[str, int], what: str, want: str) -> float:
    if isinstance(value, str):
        found = _NUMBER.fullmatch(value)
        if not found or found[2].lower() not in units:
            raise ConfigError(f"{what}={value!r} cannot be read; give {want}")
        number = float(found[1].replace("_", "")) * units[found[2].lower()]
        if math.isinf(number):
            raise _too_large(what)
        return number
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"{what}={value!r} cannot be read; give {want}")
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an int that no float can hold, and that may be too long to print
        raise _too_large(what) from None
    if not finite:
        raise ConfigError(f"{what}={value!r} cannot be read; give {want}")
    return value


def _too_large(what: str) -> ConfigError:
    return ConfigError(f"{what} is too large to count with; give a smaller number, or None")
