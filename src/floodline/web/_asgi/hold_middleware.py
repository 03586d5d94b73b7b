"""The ASGI middleware that keeps a request's sessions until its true end, and answers errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from floodline import telemetry
from floodline.web._asgi.held_request import SCOPE_KEY, HeldRequest, current_request
from floodline.web._asgi.http_errors import answer_for

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY_VIOLATION = 1008  # the websocket's word for an error that the client can act on
TRY_AGAIN_LATER = 1013


class HoldSessions:
    """Releases what a request holds after its response, its stream and its background tasks.

    The sessions are saved before a response begins and before it ends: a client that has the
    answer can rely on it, and one whose session could not be saved is told so. An error of
    floodline's that nobody handled is answered with 400, 404, 409, 413 or 503.
    """

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] not in ("http", "websocket") or SCOPE_KEY in scope:
            await self.app(scope, receive, send)
            return
        held = HeldRequest()
        scope[SCOPE_KEY] = held
        exchange = _Exchange(scope["type"], held, receive, send)
        before = current_request.set(held)
        try:
            await exchange.run(self.app, scope)
        finally:
            current_request.reset(before)


class _Exchange:
    """One request and its response, with an eye on whether the client is still there."""

    def __init__(self, kind: str, held: HeldRequest, receive: Receive, send: Send) -> None:
        self._kind, self._held = kind, held
        self._receive, self._send = receive, send
        self._started = self._streams = self._gone = False
        self._listening = 0
        self._task = asyncio.current_task()
        self._ear: asyncio.Task[None] | None = None
        self._heard: asyncio.Queue[Event] = asyncio.Queue(maxsize=1)
        self._goodbye: Event | None = None

    async def run(self, app: App, scope: Scope) -> None:
        error: BaseException | None = None
        try:
            await app(scope, self._hear, self._tell)
        except asyncio.CancelledError as cancelled:
            error = cancelled
            if not (self._gone and self._task is not None and not self._task.uncancel()):
                raise
        except Exception as problem:
            error = problem
            if not await self._answer(problem):
                raise
        finally:
            if self._ear is not None:
                self._ear.cancel()
            await self._release(error)

    async def _release(self, error: BaseException | None) -> None:
        try:
            await self._held.release(error)
        except Exception as problem:  # after the response: nobody can be told any more
            telemetry.emit("save_failed", "request", error=telemetry.describe(problem))

    async def _hear(self) -> Event:
        """Receive for the app, also what the watch for a disconnect has heard first."""
        if self._goodbye is not None and self._heard.empty():
            return self._goodbye
        self._listening += 1
        try:
            return await (self._receive() if self._ear is None else self._heard.get())
        finally:
            self._listening -= 1

    async def _tell(self, event: Event) -> None:
        kind = event["type"]
        if kind == "http.response.start":
            await self._held.save()
            self._started = True
            if not any(name.lower() == b"content-length" for name, _ in event.get("headers", ())):
                self._watch()
        elif kind == "http.response.body" and event.get("more_body"):
            self._streams = True
        elif kind == "http.response.body" and self._streams:
            await self._held.save()
        elif kind in ("websocket.send", "websocket.accept"):
            self._started = True
        await self._send(event)

    def _watch(self) -> None:
        """Listen for a disconnect while the response is streamed, unless the app does."""
        if self._ear is None and not self._listening and self._held.holds:
            self._ear = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        while True:
            event = await self._receive()
            if event["type"] == "http.disconnect":
                break
            await self._heard.put(event)  # a request's body, if the app has not read all of it
        self._goodbye = event
        if self._listening:  # the app hears it, and ends by itself
            self._heard.put_nowait(event)
        elif self._task is not None:
            self._gone = True
            self._task.cancel()

    async def _answer(self, error: Exception) -> bool:
        """Answer an error of ours; return False if it is none, or if it is too late."""
        answer = answer_for(error) or answer_for(error.__cause__ or error)
        if answer is None or (self._started and self._kind == "http"):
            return False
        if self._kind == "websocket":
            code = TRY_AGAIN_LATER if "retry-after" in answer.headers else POLICY_VIOLATION
            await self._send({"type": "websocket.close", "code": code})
            return True
        headers = [(name.encode(), value.encode()) for name, value in answer.headers.items()]
        start = {"type": "http.response.start", "status": answer.status, "headers": headers}
        await self._send(start)
        await self._send({"type": "http.response.body", "body": answer.body})
        return True
