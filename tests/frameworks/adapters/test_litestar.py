"""The store of Litestar, under a real app."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("litestar", reason="the extra litestar is not installed")

from litestar import Litestar, Request, get
from litestar.middleware.session.server_side import ServerSideSessionConfig
from litestar.stores.registry import StoreRegistry
from litestar.testing import TestClient

from floodline.adapters.litestar import FloodlineStore
from floodline.errors import ConfigError
from floodline.stores import MemoryStore


@pytest.mark.parametrize("where", ["memory", "sqlite"])
def test_values_expire_are_renewed_and_deleted(where: str, tmp_path: Path) -> None:
    async def body() -> None:
        now = [1000.0]
        url = None if where == "memory" else f"sqlite:///{tmp_path / 'app.db'}"
        store = FloodlineStore(url, clock=lambda: now[0])
        await store.set("a", "text", expires_in=10)
        await store.set("b", b"bytes")
        assert await store.get("a") == b"text"
        assert (await store.expires_in("a"), await store.expires_in("b")) == (10, -1)
        now[0] += 5
        assert await store.get("a", renew_for=timedelta(seconds=20)) == b"text"
        assert await store.expires_in("a") == 20
        assert await store.get("b", renew_for=20) == b"bytes"
        assert await store.expires_in("b") == -1  # it never expired, so it is not made to
        now[0] += 20
        assert (await store.get("a"), await store.get("a", renew_for=5)) == (None, None)
        assert (await store.exists("a"), await store.exists("b")) == (False, True)
        assert await store.expires_in("a") is None
        assert await store.expires_in("never") is None
        await store.delete_expired()
        assert store._flows._store.count("litestar") == 1
        await store.delete("b")
        await store.delete("b")
        assert store._flows._store.count("litestar") == 0
        store.close()

    asyncio.run(body())


def test_namespaces_are_apart_and_a_parent_deletes_its_children() -> None:
    async def body() -> None:
        root = FloodlineStore()
        near, far = root.with_namespace("a"), root.with_namespace("ab")
        deep = near.with_namespace("b/:c")
        stores = [root, near, far, deep]
        for number, store in enumerate(stores):
            await store.set("key", str(number))
            await store.set("", "the empty key")
        assert [await store.get("key") for store in stores] == [b"0", b"1", b"2", b"3"]
        await near.delete_all()
        assert [await store.get("key") for store in stores] == [b"0", None, b"2", None]
        assert [await store.exists("") for store in stores] == [True, False, True, False]
        await root.delete_all()
        assert root._flows._store.count("litestar") == 0
        with pytest.raises(ConfigError, match="namespace"):
            root.with_namespace("")
        near.close()  # only the root closes
        await root.set("key", "still open")

    asyncio.run(body())


def test_an_app_keeps_its_sessions_across_restarts_and_closes_the_store(tmp_path: Path) -> None:
    @get("/")
    async def count(request: Request[Any, Any, Any]) -> int:
        request.session["visits"] = request.session.get("visits", 0) + 1
        return int(request.session["visits"])

    def app() -> Litestar:
        root = FloodlineStore(f"sqlite:///{tmp_path / 'app.db'}")
        return Litestar(
            [count],
            stores=StoreRegistry({"floodline": root}, root.with_namespace),
            middleware=[ServerSideSessionConfig().middleware],
        )

    with TestClient(app()) as client:
        assert [client.get("/").json() for _ in range(2)] == [1, 2]
        cookies = dict(client.cookies)
    with TestClient(app(), cookies=cookies) as client:
        assert client.get("/").json() == 3


def test_the_newest_stay_in_memory() -> None:
    async def body() -> None:
        store = FloodlineStore(MemoryStore(), max_keys=10)
        for number in range(30):
            await store.set(f"k{number}", "x")
        assert await store.exists("k29")
        assert not await store.exists("k0")

    asyncio.run(body())
