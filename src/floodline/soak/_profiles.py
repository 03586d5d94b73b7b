"""Profiles of load: they drive the sessions of a scenario, from an ordinary day to chaos.

A scenario for a profile defines `open_session(id)`, `work(id)` and `close_session(id)` instead of
`round(i)`. What happens to which session is drawn from a seed, so that each run is the same.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from floodline.errors import ChaosError, ConfigError

PARTS = ("open_session", "work", "close_session")


class Fate(StrEnum):
    """What becomes of a session."""

    CLOSED = "closed"
    DROPPED = "dropped"  # all its work is done, and the close event is lost
    LATE = "late"  # the close event arrives in the next round
    TWICE = "twice"  # and once more for good measure
    ABANDONED = "abandoned"  # in the middle of its work
    CANCELLED = "cancelled"  # in the middle of a call, where the scenario is async


@dataclass(slots=True, frozen=True)
class Profile:
    """How many sessions a round has, how much work each, and in how many of 100 what goes wrong.

    `failing` is how many of 100 calls of `chaos_point()` raise.
    """

    name: str
    sessions: int
    works: int
    fates: dict[Fate, int] = field(default_factory=dict)
    failing: int = 0


PROFILES = {
    each.name: each
    for each in (
        Profile("baseline", sessions=4, works=2),
        Profile("stress", sessions=40, works=5),
        Profile(
            "chaos",
            sessions=20,
            works=3,
            fates={
                Fate.DROPPED: 20,
                Fate.LATE: 10,
                Fate.TWICE: 10,
                Fate.ABANDONED: 15,
                Fate.CANCELLED: 15,
            },
            failing=10,
        ),
    )
}

_failing: list[Callable[[], bool]] = []


def chaos_point() -> None:
    """Raise `ChaosError` in a share of the calls while a soak runs with the profile chaos.

    Call it where a hook of your program may fail; in any other run it does nothing.
    """
    if any(fails() for fails in _failing):
        raise ChaosError("the chaos profile made this hook fail")


class Load:
    """Plays a profile: `round(i)` opens, works on and ends sessions."""

    def __init__(self, profile: Profile, parts: dict[str, Callable[[str], Any]]) -> None:
        self._profile = profile
        self._open, self._work, self._close = (parts[name] for name in PARTS)
        self._random = random.Random(profile.name)  # no secret: the same run, the same fates
        self._late: deque[str] = deque()
        self.fates: Counter[Fate] = Counter()

    def fails(self) -> bool:
        """Return True if the next hook is to fail."""
        return self._random.randrange(100) < self._profile.failing

    async def round(self, i: int) -> None:
        """Play one round."""
        _failing.append(self.fails)
        try:
            for _ in range(len(self._late)):
                await self._call(self._close, self._late.popleft())
            for n in range(self._profile.sessions):
                await self._session(f"{self._profile.name}-{i}-{n}")
        finally:
            _failing.remove(self.fails)

    async def _session(self, id: str) -> None:
        fate = self._draw()
        self.fates[fate] += 1
        await self._call(self._open, id)
        most = self._profile.works
        for _ in range(self._random.randrange(most) if fate is Fate.ABANDONED else most):
            await self._call(self._work, id)
        if fate is Fate.CANCELLED:
            await self._cancelled(id)
        elif fate is Fate.LATE:
            self._late.append(id)  # at most those of one round
        elif fate in (Fate.CLOSED, Fate.TWICE):
            for _ in range(1 + (fate is Fate.TWICE)):
                await self._call(self._close, id)

    def _draw(self) -> Fate:
        drawn = self._random.randrange(100)
        for fate, share in self._profile.fates.items():
            if drawn < share:
                return fate
            drawn -= share
        return Fate.CLOSED

    async def _call(self, function: Callable[[str], Any], id: str) -> None:
        try:
            result = function(id)
            if inspect.isawaitable(result):
                await result
        except ChaosError:  # a hook that failed on our behalf; anything else is the program's
            pass

    async def _cancelled(self, id: str) -> None:
        if not inspect.iscoroutinefunction(self._work):
            return
        task = asyncio.ensure_future(self._work(id))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,))
        ended = None if task.cancelled() else task.exception()
        if ended is not None and not isinstance(ended, ChaosError):
            raise ended


def profile_round(name: str, module: Any) -> Callable[[int], Any]:
    """Return `round(i)` that plays the profile with the functions of a scenario."""
    parts = {part: getattr(module, part, None) for part in PARTS}
    missing = [part for part, function in parts.items() if not callable(function)]
    if missing:
        raise ConfigError(
            f"--profile {name} needs {', '.join(f'{part}(id)' for part in missing)} in the "
            "scenario; add what opens, uses and closes a session of your program"
        )
    load = Load(PROFILES[name], parts)  # type: ignore[arg-type]  # all of them can be called
    if any(map(inspect.iscoroutinefunction, parts.values())):
        return load.round

    def plain(i: int) -> None:
        steps = load.round(i)
        try:
            steps.send(None)
        except StopIteration:
            return
        steps.close()
        raise ConfigError("a function of the scenario returned an awaitable; make it async")

    return plain
