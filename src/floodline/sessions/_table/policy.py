"""The arguments of a session table, read once and checked at construction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from floodline._units import parse_choice, parse_count, parse_duration, parse_size
from floodline.errors import ConfigError

NEVER = float("inf")

Durability = Literal["use", "park"]
OnError = Literal["save", "discard"]
WhenFull = Literal["wait", "reject", "grow"]


@dataclass(slots=True, frozen=True, kw_only=True)
class Policy:
    """Bounds and habits of one `Sessions`; times in seconds, NEVER where there is no limit."""

    name: str = "sessions"
    idle: float = 1800.0
    max_age: float | None = None
    max_sessions: int | None = 1000
    max_bytes: int | None = None
    durability: Durability = "use"
    on_error: OnError = "save"
    when_full: WhenFull = "wait"
    wait: float = 10.0
    busy_wait: float = 300.0
    max_hold: float = 300.0
    lease: float = 15.0
    linger: float = 0.0
    tombstone: float | None = None
    retain: float | None = None
    sweep_every: float = 60.0
    stored: bool = False

    @property
    def soonest(self) -> float:
        """Return the least time after which a session can become due."""
        return min(self.idle, self.max_age or NEVER)


def read_policy(values: dict[str, Any], *, stored: bool, weighed: bool) -> Policy:
    """Parse and check plain arguments; a bad one is a `ConfigError` that says what to do."""
    name = values["name"]
    if not isinstance(name, str) or not name:
        raise ConfigError(f"name={name!r} must be a non-empty string")
    policy = Policy(
        name=name,
        idle=_time(values, "idle", NEVER),
        max_age=_optional_time(values, "max_age"),
        max_sessions=_maybe(parse_count, values, "max_sessions"),
        max_bytes=_maybe(parse_size, values, "max_bytes"),
        durability=_choice(values, "durability", "use", "park"),
        on_error=_choice(values, "on_error", "save", "discard"),
        when_full=_choice(values, "when_full", "wait", "reject", "grow"),
        wait=_time(values, "wait", NEVER, zero=True),
        busy_wait=_time(values, "busy_wait", NEVER, zero=True),
        max_hold=_time(values, "max_hold", NEVER),
        lease=_time(values, "lease", 15.0),
        linger=_time(values, "linger", 0.0, zero=True),
        tombstone=_optional_time(values, "tombstone"),
        retain=_optional_time(values, "retain"),
        sweep_every=_time(values, "sweep_every", NEVER),
        stored=stored,
    )
    _refuse_what_cannot_work(policy, weighed)
    return policy


def check_parts(*, callables: dict[str, Any], store: Any, scope: Any, pressure: Any) -> None:
    """Refuse parts that could not work at construction rather than at their first call."""
    for key, value in callables.items():
        if value is not None and not callable(value):
            raise ConfigError(f"{key}={value!r} cannot be called; give a function or None")
    for key, value, methods, want in (
        (
            "store",
            store,
            ("acquire", "save", "load", "delete"),
            'a store or a URL such as "sqlite:///agent.db"',
        ),
        ("scope", scope, ("map", "leave"), "a SessionScope"),
        ("pressure", pressure, ("attach",), "a MemoryBudget"),
    ):
        # asked one by one: a proxy that answers by __getattr__ is as good as a class
        if value is not None and not all(hasattr(value, method) for method in methods):
            raise ConfigError(f"{key}={value!r} cannot be used; give {want}, or None")


def _refuse_what_cannot_work(policy: Policy, weighed: bool) -> None:
    if policy.on_error == "discard" and not policy.stored:
        raise ConfigError(
            'on_error="discard" goes back to the last saved version, so it needs store=; '
            'give one, or use on_error="save"'
        )
    if policy.max_bytes is not None and not (policy.stored or weighed):
        raise ConfigError(
            f"max_bytes={policy.max_bytes} needs weigh= (a callable that returns bytes), "
            "or store=, which weighs a session by its last record"
        )
    if policy.retain is not None and not policy.stored:
        raise ConfigError("retain= deletes stored rows, so it needs store=")
    if (
        policy.idle == NEVER
        and policy.max_age is None
        and policy.max_sessions is None
        and policy.max_bytes is None
    ):
        raise ConfigError(
            "no bound at all; give at least one of idle, max_age, max_sessions, max_bytes"
        )


def _time(values: dict[str, Any], key: str, none: float, *, zero: bool = False) -> float:
    value = values[key]
    return none if value is None else parse_duration(value, key, zero=zero)


def _optional_time(values: dict[str, Any], key: str) -> float | None:
    return None if values[key] is None else parse_duration(values[key], key)


def _maybe(parse: Any, values: dict[str, Any], key: str) -> int | None:
    return None if values[key] is None else parse(values[key], key)


def _choice(values: dict[str, Any], key: str, *choices: str) -> Any:
    return parse_choice(values[key], key, choices)
