"""The options of sessions, each declared once: type, default, how it is read and what it means.

The settings, the policy of a session table and the checks of the constructor are built from this
table. What a reader or a type checker must see spelled out (the signature of the constructors,
`Options`, the tables of the documentation) is compared with it by tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

from floodline._units import parse_choice, parse_count, parse_duration, parse_size
from floodline.errors import ConfigError

Read = Callable[[Any, str], Any]

NEVER = float("inf")

Durability = Literal["use", "park"]
OnError = Literal["save", "discard"]
WhenFull = Literal["wait", "reject", "grow"]


@dataclass(slots=True, frozen=True)
class Reader:
    """How a value is read; each function gets the value and its name for error messages."""

    argument: Read
    setting: Read | None = None  # the same from a file or a variable; None: not allowed there
    takes: str = ""  # what the documentation of the settings says


@dataclass(slots=True, frozen=True)
class Option:
    """One keyword argument of `Sessions` and `AsyncSessions`."""

    name: str
    type: str  # as it stands in the signature
    default: object
    reader: Reader
    means: str
    none: object = None  # what the argument None stands for

    @property
    def is_setting(self) -> bool:
        """Return True if a file or the environment can set this option."""
        return self.reader.setting is not None

    @property
    def may_be_none(self) -> bool:
        """Return True if None is a valid value."""
        return self.type.endswith("| None")

    @property
    def takes(self) -> str:
        """What can be written in a file or a variable."""
        return f"{self.reader.takes}, none" if self.may_be_none else self.reader.takes

    def read(self, value: Any) -> Any:
        """Check an argument and return it as the session table needs it."""
        if value is None and (self.may_be_none or self.none is not None):
            return self.none
        return self.reader.argument(value, self.name)

    def read_setting(self, value: Any, what: str) -> Any:
        """Check a value from a file or a variable; errors call it `what`."""
        if value is None and self.may_be_none:
            return None
        assert self.reader.setting is not None
        return self.reader.setting(value, what)


def _count_in_text(value: Any, what: str) -> int:
    digits = isinstance(value, str) and value.strip().isdecimal()
    return parse_count(int(value) if digits else value, what)


def _url(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(
            f'{what}={value!r} is not a store; give a URL such as "sqlite:///agent.db"'
        )
    return value


def _has(methods: tuple[str, ...], want: str, value: Any, what: str) -> Any:
    # checked one by one: a proxy that uses __getattr__ is as good as a class
    if not all(hasattr(value, method) for method in methods):
        raise ConfigError(f"{what}={value!r} cannot be used; give {want}, or None")
    return value


def _store(value: Any, what: str) -> Any:
    methods, want = (
        ("acquire", "save", "load", "delete"),
        'a store or a URL such as "sqlite:///agent.db"',
    )
    return value if isinstance(value, str) else _has(methods, want, value, what)


def _function(value: Any, what: str) -> Any:
    if not callable(value):
        raise ConfigError(f"{what}={value!r} cannot be called; give a function or None")
    return value


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{what}={value!r} must be a non-empty string")
    return value


def _choice(literal: Any) -> Reader:
    choices = get_args(literal)
    read = partial(_one_of, choices)
    return Reader(read, read, ", ".join(f"`{choice}`" for choice in choices))


def _one_of(choices: tuple[str, ...], value: str, what: str) -> str:
    return parse_choice(value, what, choices)


_zero_or_more = partial(parse_duration, zero=True)

TIME = Reader(parse_duration, parse_duration, "time")
PATIENCE = Reader(_zero_or_more, _zero_or_more, "time, 0")
NUMBER = Reader(parse_count, _count_in_text, "number")
SIZE = Reader(parse_size, parse_size, "size")
STORE = Reader(_store, _url, "URL")
FUNCTION = Reader(_function)
SCOPE = Reader(partial(_has, ("map", "leave"), "a SessionScope"))
PRESSURE = Reader(partial(_has, ("attach",), "a MemoryBudget"))
NAME = Reader(_name)
ANYTHING = Reader(lambda value, _what: value)

_DECLARED = (
    Option(
        "idle",
        "Duration | None",
        "30 min",
        TIME,
        "a session unused for this long is parked",
        none=NEVER,
    ),
    Option(
        "max_age",
        "Duration | None",
        None,
        TIME,
        "longest time in memory, counted from when it was opened",
    ),
    Option("max_sessions", "int | None", 1000, NUMBER, "maximum number of live sessions"),
    Option("max_bytes", "Size | None", None, SIZE, "maximum total size of all live sessions"),
    Option(
        "store",
        "Store | AsyncStore | str | None",
        None,
        STORE,
        'where parked sessions are kept: `"sqlite:///agent.db"`, `"redis://…"`, `"postgresql://…"`',
    ),
    Option(
        "state_type",
        "Any",
        None,
        ANYTHING,
        "the type of a stored state, if the factory does not say",
    ),
    Option(
        "weigh",
        "Callable[[S], int] | None",
        None,
        FUNCTION,
        "returns the size of a state in bytes, for `max_bytes`",
    ),
    Option(
        "on_open",
        "Callable[[str, S], Any] | None",
        None,
        FUNCTION,
        "called with id and state after a session is created or loaded",
    ),
    Option(
        "on_leave",
        "Callable[[str, S, Reason], Any] | None",
        None,
        FUNCTION,
        "called with id, state and reason when a session leaves memory",
    ),
    Option(
        "close_state",
        "bool",
        True,
        ANYTHING,
        "call the state's own `close()` or `aclose()` after `on_leave`",
    ),
    Option(
        "durability",
        "Durability",
        "use",
        _choice(Durability),
        "save at the end of each use, or when a session leaves memory",
    ),
    Option(
        "on_error",
        "OnError",
        "save",
        _choice(OnError),
        "what happens to a state whose `with` block raised",
    ),
    Option(
        "when_full",
        "WhenFull",
        "wait",
        _choice(WhenFull),
        "what `use` does when all places are taken",
    ),
    Option(
        "wait",
        "Duration | None",
        "10 s",
        PATIENCE,
        "how long to wait for room before `SessionsFull`",
        none=NEVER,
    ),
    Option(
        "busy_wait",
        "Duration | None",
        "5 min",
        PATIENCE,
        "how long to wait for a held id before `SessionBusy`",
        none=NEVER,
    ),
    Option(
        "max_hold",
        "Duration | None",
        "5 min",
        TIME,
        "a hold longer than this is reported as stuck",
        none=NEVER,
    ),
    Option(
        "lease",
        "Duration",
        "15 s",
        TIME,
        "how long a killed process keeps others out of its held sessions",
        none=15.0,
    ),
    Option(
        "linger",
        "Duration",
        0,
        PATIENCE,
        "how long a completed session stays in memory",
        none=0.0,
    ),
    Option("tombstone", "Duration | None", None, TIME, "how long a closed id is refused"),
    Option(
        "retain",
        "Duration | None",
        None,
        TIME,
        "stored sessions unused for this long are deleted",
    ),
    Option(
        "pressure",
        "Pressure | None",
        None,
        PRESSURE,
        "a `MemoryBudget` that parks sessions when memory is short",
    ),
    Option(
        "sweep_every",
        "Duration | None",
        "60 s",
        TIME,
        "how often the sweeper runs",
        none=NEVER,
    ),
    Option(
        "scope",
        "SessionScope | None",
        None,
        SCOPE,
        "maps that are cleared with each session",
    ),
    Option(
        "name",
        "str",
        "sessions",
        NAME,
        "its name in events and figures; also the key in the store",
    ),
    Option("clock", "Clock | None", None, FUNCTION, "a clock of your own, for tests"),
)
OPTIONS = {option.name: option for option in _DECLARED}
SETTINGS = {name: option for name, option in OPTIONS.items() if option.is_setting}
