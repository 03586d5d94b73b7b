"""Scenarios of sessions: `async def` tests that are run on both drivers.

`driver` is each driver once. `faulty` is a `FaultyStore` in each kind that its driver takes, and
`anystore` adds to these the stores of our own. `store` is one of our own, on the clock `wall`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from event_loops import StillClock
from floodline.stores import MemoryStore, SQLiteStore
from session_drivers import DRIVERS, Driver, FaultyStore

FAULTY = [
    ("threads", "blocking"),
    ("asyncio", "blocking"),
    ("asyncio", "awaited"),
    ("asyncio", "twin"),
]
OURS = [(driver, kind) for driver in DRIVERS for kind in ("memory", "sqlite")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name, pairs in (("faulty", FAULTY), ("anystore", FAULTY + OURS)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(("driver", name), pairs, indirect=True)
            return
    if "driver" in metafunc.fixturenames:
        metafunc.parametrize("driver", list(DRIVERS), indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    arguments["driver"].run(pyfuncitem.obj(**arguments))
    return True


@pytest.fixture
def driver(request: pytest.FixtureRequest) -> Driver:
    return DRIVERS[request.param]()


@pytest.fixture
def faulty(request: pytest.FixtureRequest) -> FaultyStore:
    return FaultyStore(kind=request.param)


@pytest.fixture
def wall() -> StillClock:
    """Both clocks of a store."""
    return StillClock(10_000.0)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path, wall: StillClock) -> Iterator[Any]:
    store: Any
    if request.param == "memory":
        store = MemoryStore(clock=wall, wall=wall)
    else:
        store = SQLiteStore(tmp_path / "s.db", clock=wall, wall=wall)
    yield store
    store.close()


@pytest.fixture
def anystore(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """The store as sessions get it, and the real one behind it."""
    if request.param in ("memory", "sqlite"):
        real: Any = SQLiteStore(tmp_path / "a.db") if request.param == "sqlite" else MemoryStore()
        yield real, real
        real.close()
    else:
        faulty = FaultyStore(kind=request.param)
        yield faulty.given, faulty.store
