"""A small chat server whose conversations stay bounded in memory and come back after a kill.

    python examples/agent_server.py --db agent.db
    curl -d '{"text": "hello"}' http://127.0.0.1:8000/chat/alice

Conversations live in `AsyncSessions` on SQLite: idle ones leave memory, and every answer is saved
before it is sent. The replies come from a built-in function, so there is no model and no network.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from floodline import AsyncSessions, Conversation
from floodline.errors import (
    ConfigError,
    SaveFailed,
    SessionBusy,
    SessionClosed,
    SessionConflict,
    SessionNotFound,
    SessionsFull,
    StoreError,
    StoreUnavailable,
)
from floodline.exporters import prometheus_app
from floodline.stores import SQLiteStore

MAX_BODY = 64 * 1024
MAX_ID = 200
STATUS: dict[type[Exception], int] = {
    SessionNotFound: 404,
    SessionClosed: 410,
    SessionBusy: 409,
    SessionConflict: 409,
    SessionsFull: 503,
    SaveFailed: 503,
    StoreUnavailable: 503,
}

Chats = AsyncSessions[Conversation]


def reply_to(text: str, turn: int) -> str:
    """Return a fixed reply for each text and turn; this is where a model would be."""
    words = text.split()
    longest = max(words, key=len)
    return f"Turn {turn}: {len(words)} words, and the longest is {longest!r}. Tell me more."


def turns_of(chat: Conversation) -> int:
    return chat.stats().appended // 2  # keeps counting after old messages have been trimmed


async def say(request: Request) -> Response:
    text = await text_of(request)
    async with chats(request).use(id_of(request)) as chat:
        turn = turns_of(chat) + 1
        chat.append({"role": "user", "content": text})
        reply = reply_to(text, turn)
        chat.append({"role": "assistant", "content": reply})
    return JSONResponse({"reply": reply, "turns": turn})  # already saved, by leaving the block


async def show(request: Request) -> Response:
    async with chats(request).use(id_of(request), create=False, shared=True) as chat:
        return JSONResponse({"turns": turns_of(chat), "messages": list(chat)})


async def end(request: Request) -> Response:
    await chats(request).close(id_of(request))
    return Response(status_code=204)


async def done(request: Request) -> Response:
    await chats(request).complete(id_of(request))
    return Response(status_code=204)


async def stats(request: Request) -> Response:
    return JSONResponse(chats(request).stats().as_dict())


def metrics() -> Route:
    try:
        return Route("/metrics", prometheus_app())
    except ConfigError as error:  # the Prometheus client library is not installed
        hint = str(error)

    async def missing(_: Request) -> Response:
        raise HTTPException(404, hint)

    return Route("/metrics", missing)


async def usage(request: Request) -> Response:
    return PlainTextResponse(usage_text(str(request.base_url).rstrip("/")))


def usage_text(address: str) -> str:
    return f"""\
A chat server that remembers, within limits. Try:

  curl -d '{{"text": "hello there"}}' {address}/chat/alice     say something
  curl {address}/stats                                       what is in memory
  curl {address}/metrics                                     the same for Prometheus
  curl {address}/chat/alice                                  read a conversation
  curl -X POST {address}/chat/alice/done                     done for now: it leaves memory
  curl -X DELETE {address}/chat/alice                        delete it

Kill it with kill -9 and start it again: every answered message is still there.
"""


def chats(request: Request) -> Chats:
    sessions: Chats = request.app.state.chats
    return sessions


def id_of(request: Request) -> str:
    name: str = request.path_params["id"]
    if len(name) > MAX_ID:
        raise HTTPException(400, f"the id has {len(name)} characters; {MAX_ID} are allowed")
    return name


async def text_of(request: Request) -> str:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise HTTPException(413, f"the body is larger than {MAX_BODY} bytes; send less at once")
    try:
        sent = json.loads(body)
    except ValueError as error:
        raise HTTPException(400, f'the body is not JSON ({error}); send {{"text": "…"}}') from error
    text = sent.get("text") if isinstance(sent, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise HTTPException(422, 'there is no text; send {"text": "…"} with at least one word')
    return text


async def failed(_: Request, error: Exception) -> Response:
    status = next(code for kind, code in STATUS.items() if isinstance(error, kind))
    patience = max(1, round(getattr(error, "retry_after", 1)))
    headers = {} if status in (404, 410) else {"Retry-After": str(patience)}
    return JSONResponse({"error": str(error)}, status, headers)


async def refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def build(sessions: Chats) -> Starlette:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with sessions as app.state.chats:  # leaving it saves what is still in memory
            yield

    return Starlette(
        routes=[
            Route("/", usage),
            Route("/stats", stats),
            metrics(),
            Route("/chat/{id}", say, methods=["POST"]),
            Route("/chat/{id}", show),
            Route("/chat/{id}", end, methods=["DELETE"]),
            Route("/chat/{id}/done", done, methods=["POST"]),
        ],
        exception_handlers={HTTPException: refused, **dict.fromkeys(STATUS, failed)},
        lifespan=lifespan,
    )


def listen(port: int) -> socket.socket:
    try:
        server = socket.create_server(("127.0.0.1", port))
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else 40 ms per answer
        return server
    except OSError:
        other = f"--port {port + 1}, with make: make run PORT={port + 1}"
        sys.exit(f"port {port} is taken or not allowed; try {other}")


def open_database(path: Path) -> SQLiteStore:
    try:
        return SQLiteStore(path)
    except StoreError as error:
        sys.exit(str(error))


def main() -> None:
    parser = argparse.ArgumentParser(description="A chat server that remembers, within limits.")
    parser.add_argument("--port", type=int, default=os.environ.get("PORT", "8000"))
    parser.add_argument("--db", type=Path, default=Path("agent.db"))
    options = parser.parse_args()
    with listen(options.port) as server, closing(open_database(options.db)) as store:
        address = "http://{}:{}".format(*server.getsockname())
        print(f"Listening on {address}, conversations in {options.db}. Press Ctrl-C to stop.\n")
        print(usage_text(address), flush=True)
        app = build(AsyncSessions(store=store, wait="2 s", name="chats"))
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[server])


if __name__ == "__main__":
    main()
