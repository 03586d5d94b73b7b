"""Stores on servers that are treated badly."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from floodline.stores import PostgresStore, RedisStore
from servers import Postgres, Valkey, told

Store = RedisStore | PostgresStore


@pytest.fixture(params=["redis", "postgres"])
def server(request: Any, valkey: Valkey, pg: Postgres) -> Any:
    request.getfixturevalue(request.param)  # empties it
    return valkey if request.param == "redis" else pg


@pytest.fixture
def opened(server: Any) -> Iterator[Callable[..., Store]]:
    """Open stores of the server, by its own port or by another."""
    stores: list[Store] = []

    def make(port: int | None = None, **options: Any) -> Store:
        url = server.url.replace(str(server.port), str(port or server.port))
        if server.kind == "redis":
            stores.append(RedisStore(url, **{"prefix": f"out{os.getpid()}", **options}))
        else:
            stores.append(PostgresStore(url, **options))
        return stores[-1]

    yield make
    for store in stores:
        store.close()
    if server.kind == "redis":
        told(server, "FLUSHALL")
