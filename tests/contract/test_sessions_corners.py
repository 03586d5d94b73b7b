"""Corners of sessions that a first user meets: wrong arguments, and looking without a sweeper."""

from __future__ import annotations

from typing import Any

import pytest

from floodline import AsyncSessions, Reason, Sessions
from floodline.errors import ConfigError


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("kind", [Sessions, AsyncSessions])
@pytest.mark.parametrize("key", ["weigh", "on_open", "on_leave", "clock"])
def test_a_hook_that_cannot_be_called_is_refused_at_construction(kind: Any, key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key}=3 cannot be called"):
        kind(dict, **{key: 3})


@pytest.mark.parametrize("kind", [Sessions, AsyncSessions])
@pytest.mark.parametrize("key", ["store", "scope", "pressure"])
def test_a_part_of_another_type_is_refused_at_construction(kind: Any, key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key}=3 cannot be used; give a "):
        kind(dict, **{key: 3})


def test_a_session_that_has_lingered_is_not_shown_though_no_sweeper_ran() -> None:
    clock = Clock()
    with Sessions(dict, linger=5, clock=clock, sweep_every=None) as sessions:
        with sessions.use("a"), sessions.use("b"):
            sessions.complete("a")
        clock.now += 4
        assert sessions.ids() == ["a", "b"]
        clock.now += 1
        assert "a" not in sessions
        assert sessions.peek("a") is None
        assert len(sessions) == 1
        assert sessions.ids() == ["b"]


def test_a_use_after_the_linger_finds_the_session_parked() -> None:
    clock, left = Clock(), []
    hooks: Any = {"on_leave": lambda id, state, reason: left.append((dict(state), reason))}
    with Sessions(dict, linger=5, clock=clock, sweep_every=None, **hooks) as sessions:
        with sessions.use("a") as state:
            state["n"] = 1
        sessions.complete("a")
        clock.now += 5
        with sessions.use("a") as state:
            assert state == {}
            assert left == [({"n": 1}, Reason.completed)]
