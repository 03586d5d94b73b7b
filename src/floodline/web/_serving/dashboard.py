"""The dashboard of a worker at `/dashboard`, for its administrator."""

from __future__ import annotations

import asyncio
from threading import Thread
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from floodline._service import Tenants
from floodline._service._http.service import Service
from floodline.web._dashboard.access import COOKIE, HEADERS, has_token, token_of_address
from floodline.web._dashboard.app import make_app
from floodline.web._dashboard.own_process import OwnProcess

PATH = "/dashboard"
NAME = "floodline_admin"
NO_TOKEN = (
    "This needs the admin token: open /dashboard/?token=TOKEN once, or send it as a bearer token.\n"
)


def dashboard_routes(service: Service) -> list[BaseRoute]:
    """Return the routes; watching starts with the first look, and ends with the service."""
    source = OwnProcess()
    # the service has checked the host; what is left is the token
    app = make_app(source, token=None)
    app.user_middleware.clear()
    service.on_drain.append(app.state.live.close)
    # on a thread of its own: it waits for a step of the probe
    service.on_drain.append(Thread(target=source.close, daemon=True).start)

    async def to_page(_: Request) -> RedirectResponse:
        return RedirectResponse(f"{PATH.lstrip('/')}/")

    return [Route(PATH, to_page), Mount(PATH, AdminOnly(app, service.tenants, source))]


class AdminOnly:
    """Checks the admin token: a bearer, or once in the address and then in a cookie."""

    def __init__(self, app: ASGIApp, tenants: Tenants, source: OwnProcess) -> None:
        self.app, self.tenants, self.source = app, tenants, source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        scope["floodline.route"] = "dashboard"
        given = token_of_address(scope, self._right)
        app = self.app
        known = self.tenants.open or has_token(Headers(scope=scope), NAME, self._right)
        if given is None and not known:
            app = PlainTextResponse(NO_TOKEN, 401)
        else:
            await asyncio.to_thread(self.source.start)  # it imports the engine

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = MutableHeaders(scope=message)
                own.update(HEADERS)
                if given is not None:
                    own.append("set-cookie", f"{NAME}={quote(given)}; {COOKIE}")
            await send(message)

        await app(scope, receive, sealed)

    def _right(self, token: str) -> bool:
        return not self.tenants.open and self.tenants.is_admin(
            self.tenants.tenant_of(f"Bearer {token}")
        )
