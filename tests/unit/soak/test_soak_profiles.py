"""Profiles: what they do to sessions, again and again in the same way."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace

import pytest

from floodline.errors import ChaosError, ConfigError
from floodline.soak import PROFILES, chaos_point
from floodline.soak._profiles import Fate, Load, profile_round


class Plain:
    """A program of plain functions that counts what is asked of it."""

    def __init__(self, hook=chaos_point) -> None:
        self.opened, self.worked, self.closed = Counter(), Counter(), Counter()
        self.failed = 0
        self._hook = hook

    def open_session(self, id):
        self.opened[id] += 1

    def work(self, id):
        self.worked[id] += 1

    def close_session(self, id):
        self.closed[id] += 1
        try:
            self._hook()
        except ChaosError:
            self.failed += 1
            raise


class Awaiting(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.cancelled = 0

    async def work(self, id):
        self.worked[id] += 1
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


def play(name, program, rounds=10):
    play_round = profile_round(name, program)
    for i in range(rounds):
        play_round(i)
    return program


@pytest.mark.parametrize(("name", "sessions", "works"), [("baseline", 4, 2), ("stress", 40, 5)])
def test_without_chaos_every_session_is_worked_on_and_closed_once(name, sessions, works):
    program = play(name, Plain())
    assert len(program.opened) == 10 * sessions
    assert set(program.worked.values()) == {works}
    assert program.closed == program.opened
    assert program.failed == 0


def test_chaos_loses_doubles_and_delays_closes_and_lets_hooks_fail():
    program = play("chaos", Plain())
    assert len(program.opened) == 200
    closes = Counter(program.closed[one] for one in program.opened)
    assert closes[0] > 40  # dropped, abandoned, cancelled
    assert closes[2] > 5
    assert program.failed > 3
    assert any(program.worked[one] < 3 for one in program.opened)


def test_chaos_is_the_same_every_time():
    assert play("chaos", Plain()).closed == play("chaos", Plain()).closed


def test_a_late_close_comes_in_the_next_round():
    program = Plain()
    play_round = profile_round("chaos", program)
    late = []
    for i in range(10):
        before = set(program.closed)
        play_round(i)
        late += [one for one in program.closed if one not in before and f"-{i - 1}-" in one]
    assert late


def test_coroutines_are_cancelled_in_the_middle_of_a_call():
    program = Awaiting()
    play_round = profile_round("chaos", program)

    async def main():
        for i in range(10):
            await play_round(i)

    asyncio.run(main())
    assert program.cancelled > 5


def test_an_error_of_the_program_ends_the_round():
    def broken(id):
        raise KeyError(id)

    async def broken_later(id):
        await asyncio.sleep(0)
        raise KeyError(id)

    async def broken_when_cancelled(id):
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            raise KeyError(id) from None

    parts = vars(SimpleNamespace(open_session=str, work=str, close_session=str))
    with pytest.raises(KeyError):
        profile_round("baseline", SimpleNamespace(**{**parts, "work": broken}))(0)
    with pytest.raises(KeyError):
        asyncio.run(profile_round("stress", SimpleNamespace(**{**parts, "work": broken_later}))(0))
    load = Load(PROFILES["chaos"], {**parts, "work": broken_when_cancelled})
    with pytest.raises(KeyError):
        asyncio.run(load.round(0))
    assert load.fates[Fate.CANCELLED] == 1
    chaos_point()  # outside of a round it does nothing


def test_what_is_missing_in_the_scenario_is_named():
    with pytest.raises(ConfigError, match=r"needs work\(id\), close_session\(id\)"):
        profile_round("chaos", SimpleNamespace(open_session=str))


def test_an_awaitable_of_a_plain_function_is_refused():
    async def later():
        await asyncio.sleep(0)

    program = SimpleNamespace(open_session=lambda _: later(), work=str, close_session=str)
    with pytest.raises(ConfigError, match="make it async"):
        profile_round("baseline", program)(0)
