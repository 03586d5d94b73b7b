"""The options of `floodline serve`, each declared once: flag, setting, variable and default.

A flag wins over `FLOODLINE_SERVE_*`, that over a variable of the old worker, that over the table
`[tool.floodline.serve]`, and that over the settings of all sessions (`store`, `idle`,
`max_sessions`, `retain`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from floodline import settings
from floodline._units import parse_count, parse_duration, parse_size
from floodline.errors import ConfigError

Read = Callable[[Any, str], Any]


def _count(value: Any, what: str) -> int:
    digits = isinstance(value, str) and value.strip().isdecimal()
    return parse_count(int(value) if digits else value, what)


def _duration(value: Any, what: str) -> float:
    return parse_duration(value, what)


def _size(value: Any, what: str) -> int:
    return parse_size(value, what)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{what}={value!r} must be a non-empty string")
    return value


@dataclass(slots=True, frozen=True)
class Option:
    """One limit: how it is read, its default, and its name in the old worker."""

    name: str
    read: Read
    default: Any
    takes: str
    means: str
    also: str | None = None  # the setting of all sessions that stands in for it
    before: str | None = None  # its variable in the worker that this service replaces, also read
    before_unit: str = ""
    optional: bool = False

    @property
    def flag(self) -> str:
        """The flag of the command."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return settings.SERVE + self.name.upper()


OPTIONS = (
    Option(
        "store",
        _text,
        "sqlite:///floodline.db",
        "URL",
        "where conversations are kept",
        also="store",
    ),
    Option(
        "ttl", _duration, "60 min", "time", "a conversation unused for this long leaves memory",
        also="idle", before="SESSION_TTL_MINUTES", before_unit=" min",
    ),
    Option(
        "max_history", _count, 50, "number", "messages in the window of a conversation",
        before="MAX_CONVERSATION_HISTORY",
    ),
    Option(
        "max_sessions", _count, 100, "number", "conversations in memory, per tenant",
        also="max_sessions", before="MAX_ACTIVE_SESSIONS",
    ),
    Option("max_items", _count, 10_000, "number", "items per conversation"),
    Option("max_body", _size, "4 MiB", "size", "the largest request body"),
    Option("max_requests", _count, 200, "number", "requests handled at once"),
    Option("max_connections", _count, 1000, "number", "open connections"),
    Option(
        "retain", _duration, None, "time", "conversations unused for this long are deleted",
        also="retain", optional=True,
    ),
    Option("grace", _duration, "10 s", "time", "how long SIGTERM waits for requests in progress"),
    Option(
        "drain", lambda value, what: parse_duration(value, what, zero=True), "1 s", "time, 0",
        "how long requests are still accepted after SIGTERM, while not ready",
    ),
)  # fmt: skip  # one argument a line would fill two pages


@dataclass(slots=True, frozen=True, kw_only=True)
class Limits:
    """What the service may take: sizes in bytes, times in seconds."""

    store: str = "sqlite:///floodline.db"
    ttl: float = 3600.0
    max_history: int = 50
    max_sessions: int = 100
    max_items: int = 10_000
    max_body: int = 4 << 20
    max_requests: int = 200
    max_connections: int = 1000
    retain: float | None = None
    grace: float = 10.0
    drain: float = 1.0

    @property
    def max_buffered(self) -> int:
        """How many bytes of request bodies may be in memory at once."""
        return max(64 << 20, 2 * self.max_body)

    @property
    def body_seconds(self) -> float:
        """How long a request body may take to arrive."""
        return 30.0

    @classmethod
    def read(
        cls,
        flags: Mapping[str, Any] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        start: Path | None = None,
    ) -> Limits:
        """Return the limits from flags (None: not given), variables and the settings file."""
        flags, environ = flags or {}, os.environ if environ is None else environ
        file, table = settings.section("serve", start)
        _check_names(table, environ, file)
        general = settings.load(start, environ).values
        values = {}
        for option in OPTIONS:
            found = _found(option, flags, environ, table, general, file)
            values[option.name] = _value(option, *found)
        return cls(**values)


assert tuple(option.name for option in OPTIONS) == tuple(field.name for field in fields(Limits))

OTHER = ("tokens", "admin_token")  # read by `_tenants`, from the environment only


def _found(
    option: Option,
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    table: Mapping[str, Any],
    general: Mapping[str, Any],
    file: Path | None,
) -> tuple[Any, str]:
    """Return the value that wins, and its name for errors."""
    if flags.get(option.name) is not None:
        return flags[option.name], option.flag
    if option.variable in environ:
        return environ[option.variable], option.variable
    if option.before is not None and option.before in environ:
        return environ[option.before] + option.before_unit, option.before
    if option.name in table:
        return table[option.name], f"{file}: serve.{option.name}"
    if option.also is not None and general.get(option.also) is not None:
        return general[option.also], option.also
    return option.default, option.name


def _value(option: Option, value: Any, what: str) -> Any:
    if option.optional and (value is None or str(value).lower() == "none"):
        return None
    return option.read(value, what)


def _check_names(table: Mapping[str, Any], environ: Mapping[str, str], file: Path | None) -> None:
    names = [option.name for option in OPTIONS]
    for name in table:
        if name not in names:
            raise ConfigError(f"{file}: unknown setting serve.{name}; {_hint(name, names)}")
    variables = [settings.SERVE + name.upper() for name in (*names, *OTHER)]
    for variable in environ:
        if variable.startswith(settings.SERVE) and variable not in variables:
            raise ConfigError(f"unknown setting {variable}; {_hint(variable, variables)}")


def _hint(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else f"choose one of {', '.join(known)}"
