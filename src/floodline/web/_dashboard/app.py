"""The dashboard as an ASGI app: one page, its files, and the state in three forms."""

from __future__ import annotations

import asyncio
from pathlib import Path

from floodline._pages.document import STYLE
from floodline.recorder._snapshot import Snapshot
from floodline.web._dashboard.event_stream import Live, Source, encode, served
from floodline.web._dashboard.metrics import metrics_text

try:
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import FileResponse, PlainTextResponse, Response
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles
    from starlette.types import Receive, Scope, Send

    from floodline.web._dashboard.access import Access
except ImportError as error:
    raise ImportError(
        f"the dashboard needs Starlette ({error}); run: pip install 'floodline[web]'"
    ) from error

STATIC = Path(__file__).parents[1] / "static"
EVENTS = {"content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no"}


def make_app(source: Source, *, token: str | None, max_readers: int = 16) -> Starlette:
    """Return the app for one source; None as the token is for loopback addresses only.

    At most `max_readers` pages are live at once; the next gets status 503. It is read-only: all
    requests are GET.
    """
    live = Live(source, limit=max_readers)
    app = Starlette(
        routes=[
            Route("/", _page),
            Route("/api/state", _state),
            Route("/api/live", _Stream(live), methods=["GET"]),
            Route("/metrics", _metrics),
            Route("/static/style.css", _style),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Access, token=token)],
    )
    app.state.live = live
    return app


class _Stream:
    """The events endpoint, without a response object so that a stalled reader is noticed."""

    def __init__(self, live: Live) -> None:
        self.live = live

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self.live.make_room():
            text = f"{self.live.limit} pages are already live, which is the limit; close one\n"
            await PlainTextResponse(text, 503, {"retry-after": "10"})(scope, receive, send)
            return
        headers = [(name.encode(), value.encode()) for name, value in EVENTS.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await self.live.stream(receive, send)


async def _page(_: Request) -> Response:
    return FileResponse(STATIC / "index.html", headers={"cache-control": "no-cache"})


async def _style(_: Request) -> Response:
    return FileResponse(STYLE)  # the report uses it too


async def _state(request: Request) -> Response:
    return Response(encode(served(await _newest(request))), media_type="application/json")


async def _metrics(request: Request) -> Response:
    text = metrics_text(await _newest(request))
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


async def _newest(request: Request) -> Snapshot:
    live: Live = request.app.state.live
    return await asyncio.to_thread(live.source.state)  # it may block on a lock
