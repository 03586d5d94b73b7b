"""Events and state of MCP sessions, with real servers of the official SDK and of FastMCP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.streamable_http import EventMessage
from mcp_types import JSONRPCNotification

from floodline import AsyncSessions
from floodline.adapters.mcp import (
    FloodlineEventStore,
    FloodlineSessionManager,
    FloodlineStateStore,
    http_app,
    session_state,
)
from floodline.errors import ConfigError, SessionIdMissing
from floodline.stores import MemoryStore

VERSION = "2025-11-25"


def note(text: str) -> JSONRPCNotification:
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/note", params={"text": text})


async def replayed(events: Any, last: str) -> tuple[str | None, list[str], list[str | None]]:
    texts: list[str] = []
    ids: list[str | None] = []

    async def send(event: EventMessage) -> None:
        texts.append(event.message.params["text"])  # type: ignore[union-attr,index]
        ids.append(event.event_id)

    return await events.replay_events_after(last, send), texts, ids


@pytest.mark.parametrize("where", ["memory", "sqlite"])
def test_events_are_replayed_in_order_and_only_so_many_are_kept(where: str, tmp_path: Path) -> None:
    async def body() -> None:
        url = None if where == "memory" else f"sqlite:///{tmp_path / 'mcp.db'}"
        events = FloodlineEventStore(url, max_events=5)
        first = await events.store_event("1", None)
        ids = [await events.store_event("1", note(str(number))) for number in range(4)]
        other = await events.store_event("_GET/stream é", note("other"))
        assert await replayed(events, first) == ("1", ["0", "1", "2", "3"], ids)
        assert await replayed(events, ids[1]) == ("1", ["2", "3"], ids[2:])
        assert await replayed(events, other) == ("_GET/stream é", [], [])
        await events.store_event("1", note("4"))
        for unknown in (first, "", "x", "x.1", f"{ids[1].partition('.')[0]}._GET_stream"):
            assert await replayed(events, unknown) == (None, [], [])
        large = await events.store_event("1", note("x" * 2**21))  # above max_bytes: alone
        assert await replayed(events, ids[3]) == (None, [], [])
        assert large.isascii()
        events.close()

    asyncio.run(body())


def test_streams_are_bounded_and_sessions_see_their_own() -> None:
    async def body() -> None:
        store = MemoryStore()
        events = FloodlineEventStore(store, max_streams=10)
        one, two = events.for_session(), events.for_session()
        mine = await one.store_event("1", note("mine"))
        await one.store_event("1", note("more"))
        await two.store_event("1", note("not mine"))
        assert (await replayed(one, mine))[:2] == ("1", ["more"])
        assert await replayed(two, mine) == (None, [], [])
        assert await replayed(events, mine) == (None, [], [])
        for number in range(100):
            await events.store_event(str(number), None)
        assert store.count("mcp") < 20

    asyncio.run(body())


class Exchange:
    """One request, as a server would make it; the answer is read as far as it has come."""

    def __init__(self, app: Any, method: str, body: Any, headers: dict[str, str]) -> None:
        raw = json.dumps(body).encode() if body is not None else b""
        fixed = {"host": "localhost:80", "accept": "application/json, text/event-stream"}
        full = {**fixed, "content-type": "application/json", **headers}
        self.scope = {
            "type": "http", "asgi": {"version": "3.0"}, "method": method, "path": "/mcp",
            "raw_path": b"/mcp", "query_string": b"", "scheme": "http", "http_version": "1.1",
            "headers": [(k.encode(), v.encode()) for k, v in full.items()], "root_path": "",
            "client": ("127.0.0.1", 1), "server": ("localhost", 80),
        }  # fmt: skip
        self._inbox: asyncio.Queue[Any] = asyncio.Queue()
        self._inbox.put_nowait({"type": "http.request", "body": raw, "more_body": False})
        self._arrived = asyncio.Event()
        self.headers: dict[str, str] = {}
        self.status, self.text = 0, ""
        self.task = asyncio.create_task(app(self.scope, self._inbox.get, self._send))

    async def _send(self, event: Any) -> None:
        if event["type"] == "http.response.start":
            self.status = event["status"]
            self.headers = {k.decode(): v.decode() for k, v in event["headers"]}
        self.text += event.get("body", b"").decode()
        self._arrived.set()

    async def until(self, part: str) -> str:
        while part not in self.text:
            self._arrived.clear()
            await self._arrived.wait()
        return self.text

    async def leave(self) -> None:
        self._inbox.put_nowait({"type": "http.disconnect"})
        await self.task


async def open_session(app: Any) -> dict[str, str]:
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client}
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    opened = Exchange(app, "POST", begin, {})
    await opened.task
    headers = {
        "mcp-session-id": opened.headers["mcp-session-id"],
        "mcp-protocol-version": VERSION,
    }
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await Exchange(app, "POST", ready, headers).task
    return headers


async def call(app: Any, headers: dict[str, str], tool: str, **arguments: Any) -> Exchange:
    params = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
    answer = Exchange(app, "POST", body, headers)
    await answer.task
    return answer


def test_the_official_sdk_resumes_a_session_and_keeps_its_state() -> None:
    sessions: AsyncSessions[dict[str, int]] = AsyncSessions(dict, store=MemoryStore())
    server = MCPServer("test")

    @server.tool()
    async def count(secret: str, ctx: Context[Any, Any]) -> str:
        async with session_state(ctx, sessions) as state:
            state["calls"] = state.get("calls", 0) + 1
            return f"{secret} {state['calls']}"

    async def body() -> None:
        app = http_app(server, FloodlineEventStore())
        assert isinstance(server.session_manager, FloodlineSessionManager)
        async with server.session_manager.run():
            alice, bob = await open_session(app), await open_session(app)
            first = await call(app, alice, "count", secret="of alice")
            await call(app, bob, "count", secret="of bob")
            assert "of alice 1" in first.text
            assert "of alice 2" in (await call(app, alice, "count", secret="of alice")).text
            primed = first.text.split("id: ")[1].split()[0]
            again = Exchange(app, "GET", None, {**alice, "last-event-id": primed})
            assert "of bob" not in await again.until("of alice 2")
            assert "of alice 1" in again.text
            await again.leave()
            stolen = Exchange(app, "GET", None, {**bob, "last-event-id": primed})
            await stolen.task
            assert "alice" not in stolen.text
        await sessions.shutdown()

    asyncio.run(asyncio.wait_for(body(), 60))


def test_without_a_session_or_an_event_store_it_says_so() -> None:
    class Nothing:
        session = None
        request_context: Any = None

    context = Nothing()
    context.request_context = context
    with pytest.raises(SessionIdMissing, match=r"sessions\.use"):
        session_state(context, AsyncSessions(dict))
    with pytest.raises(ConfigError, match="FloodlineEventStore"):
        http_app(MCPServer("test"), object())  # type: ignore[arg-type]
    manager = FloodlineSessionManager(MCPServer("test")._lowlevel_server)
    assert manager.event_store is None


def test_the_state_store_is_an_async_key_value() -> None:
    async def body() -> None:
        now = [100.0]
        store = FloodlineStateStore()
        store._values.wall = lambda: now[0]
        await store.put("a", {"x": [1]}, ttl=10)
        await store.put_many(["b", "c"], [{"y": 1}, {"z": 1}], collection="other")
        assert await store.ttl("a") == ({"x": [1]}, 10.0)
        assert await store.get_many(["b", "a"], collection="other") == [{"y": 1}, None]
        assert await store.ttl_many(["c"], collection="other") == [({"z": 1}, None)]
        now[0] += 11
        assert await store.ttl("a") == (None, None)
        assert await store.delete_many(["b", "x"], collection="other") == 1
        assert not await store.delete("a")
        store.close()

    asyncio.run(body())


@asynccontextmanager
async def running(app: Any) -> AsyncIterator[None]:
    async with app.router.lifespan_context(app):
        yield


def test_fastmcp_resumes_and_keeps_its_state_in_a_store(tmp_path: Path) -> None:
    fastmcp = pytest.importorskip("fastmcp", reason="fastmcp is not installed")
    key_value = pytest.importorskip("key_value.aio.protocols")
    states = FloodlineStateStore(f"sqlite:///{tmp_path / 'mcp.db'}")
    assert isinstance(states, key_value.AsyncKeyValue)
    server = fastmcp.FastMCP("test", session_state_store=states)

    async def count(ctx: Any) -> int:
        calls = (await ctx.get_state("calls") or 0) + 1
        await ctx.set_state("calls", calls)
        return int(calls)

    count.__annotations__["ctx"] = fastmcp.Context
    server.tool(count)

    async def body() -> None:
        app = server.http_app(event_store=FloodlineEventStore())
        async with running(app):
            alice, bob = await open_session(app), await open_session(app)
            first = await call(app, alice, "count")
            assert '"text":"1"' in first.text
            assert '"text":"2"' in (await call(app, alice, "count")).text
            assert '"text":"1"' in (await call(app, bob, "count")).text
            primed = first.text.split("id: ")[1].split()[0]
            again = Exchange(app, "GET", None, {**alice, "last-event-id": primed})
            await again.until('"text":"2"')
            await again.leave()
        assert states._flows._store.count("mcp-state") == 2
        states.close()

    asyncio.run(asyncio.wait_for(body(), 60))
