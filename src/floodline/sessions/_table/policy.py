"""The arguments of a session table, read once and checked at construction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from floodline._session_options import NEVER as NEVER
from floodline._session_options import OPTIONS, Durability, OnError, WhenFull
from floodline.errors import ConfigError

_BUILT_IN = {name: option.read(option.default) for name, option in OPTIONS.items()}


@dataclass(slots=True, frozen=True, kw_only=True)
class Policy:
    """Bounds and rules of one `Sessions`; times in seconds, NEVER where there is no limit."""

    name: str = _BUILT_IN["name"]
    idle: float = _BUILT_IN["idle"]
    max_age: float | None = _BUILT_IN["max_age"]
    max_sessions: int | None = _BUILT_IN["max_sessions"]
    max_bytes: int | None = _BUILT_IN["max_bytes"]
    durability: Durability = _BUILT_IN["durability"]
    on_error: OnError = _BUILT_IN["on_error"]
    when_full: WhenFull = _BUILT_IN["when_full"]
    wait: float = _BUILT_IN["wait"]
    busy_wait: float = _BUILT_IN["busy_wait"]
    max_hold: float = _BUILT_IN["max_hold"]
    lease: float = _BUILT_IN["lease"]
    linger: float = _BUILT_IN["linger"]
    tombstone: float | None = _BUILT_IN["tombstone"]
    retain: float | None = _BUILT_IN["retain"]
    sweep_every: float = _BUILT_IN["sweep_every"]
    stored: bool = False

    @property
    def soonest(self) -> float:
        """Return the least time after which a session can become due."""
        return min(self.idle, self.max_age or NEVER)


_IN_POLICY = [OPTIONS[field.name] for field in fields(Policy) if field.name in OPTIONS]
_PARTS = [option for option in OPTIONS.values() if option not in _IN_POLICY]


def read_policy(values: Mapping[str, Any], *, stored: bool, weighed: bool) -> Policy:
    """Parse and check plain arguments; a bad one raises a `ConfigError` that says what to do."""
    policy = Policy(
        **{option.name: option.read(values[option.name]) for option in _IN_POLICY}, stored=stored
    )
    _refuse_what_cannot_work(policy, weighed)
    return policy


def check_parts(values: Mapping[str, Any]) -> None:
    """Refuse at construction, rather than at the first call, what could not work."""
    for option in _PARTS:
        option.read(values[option.name])


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
