"""What the tests of a store get: the store, in both its forms, and clocks that stand still."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from floodline.stores import Grant


def take(store: Any, id: str = "a", owner: str = "me", **options: Any) -> Grant:
    """Take a lease that must be free."""
    grant = store.acquire("chat", id, owner, **{"lease": 15.0, **options})
    assert isinstance(grant, Grant)
    return grant


def put(store: Any, content: bytes, id: str = "a", write_id: str | None = None) -> int:
    """Write a record under a lease of its own."""
    grant = take(store, id)
    terms = {"version": grant.version, "write_id": write_id or f"w{grant.fence}"}
    version: int = store.save("chat", id, content, fence=grant.fence, release=True, **terms)
    return version


def write(store: Any, content: bytes, grant: Grant, **options: Any) -> int:
    """Write a record under a grant."""
    terms = {"version": grant.version, "write_id": f"w{grant.fence}", "release": False, **options}
    version: int = store.save("chat", "a", content, fence=grant.fence, **terms)
    return version


class Clock:
    """Seconds that pass only when a test says so: the clock of the leases."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the seconds."""
        return self.now


class Wall(Clock):
    """A date that moves with the clock of the leases, as on a machine whose date is right."""

    def __init__(self, clock: Clock, ahead: float) -> None:
        self.clock, self.ahead = clock, ahead

    @property
    def now(self) -> float:
        """The date, in seconds."""
        return self.clock.now + self.ahead

    @now.setter
    def now(self, now: float) -> None:
        self.clock.now = now - self.ahead


class Awaited:
    """The coroutine twin of a store, called like the blocking one."""

    def __init__(self, store: Any) -> None:
        self._store, self._runner = store, asyncio.Runner()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store.aio, name)
        return lambda *args, **options: self._runner.run(method(*args, **options))

    def close(self) -> None:
        """Close the twin, and with it the store."""
        self._runner.run(self._store.aio.close())
        self._runner.close()


class StoreFixtures:
    """The fixtures of the contract; a subclass says how its store is made."""

    @pytest.fixture
    def clock(self) -> Clock:
        """The clock of the leases."""
        return Clock()

    @pytest.fixture
    def wall(self, clock: Clock) -> Wall:
        """The clock of the retention."""
        return Wall(clock, 1_000_000.0)

    @pytest.fixture
    def made(self, clock: Clock, wall: Wall) -> Iterator[Any]:
        """A new, empty store on these clocks; override this."""
        raise NotImplementedError(f"override the fixture `made` in {type(self).__name__}")

    @pytest.fixture
    def another(self, made: Any) -> Any:
        """A second connection to the same store; override this where there can be one."""
        pytest.skip(f"{type(made).__name__} has one connection")

    @pytest.fixture(params=["blocking", "awaited"])
    def store(self, request: pytest.FixtureRequest, made: Any) -> Iterator[Any]:
        """The store, and its coroutine twin where there is one."""
        if request.param == "awaited" and not hasattr(made, "aio"):
            pytest.skip("this store has no coroutine twin (`aio`)")
        used = made if request.param == "blocking" else Awaited(made)
        yield used
        used.close()

    @pytest.fixture
    def dead_owner(self) -> str:
        """The owner of a process on this machine that has ended."""
        program = "from floodline.stores import new_owner; print(new_owner('gone'))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        return done.stdout.decode().strip()
