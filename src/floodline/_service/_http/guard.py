"""Around every request: who asks, how many at once, what came of it and how long it took."""

from __future__ import annotations

import ipaddress
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from floodline._service._http.bodies import Buffers
from floodline._service._limits import Limits
from floodline._service._metrics import Board
from floodline._service._refusals import Refusal, overloaded, refusal_for
from floodline._service._tenants import Tenants

access_log = logging.getLogger("floodline.serve.access")
_log = logging.getLogger("floodline.serve")

UNMATCHED = "unmatched"
HEALTH = ("/health/live", "/health/ready")
# a browser sends no bearer: the page asks for one, and the dashboard checks by itself
PAGES = ("/docs", "/openapi.json", "/dashboard")
LOCAL_NAMES = frozenset({"localhost", "ip6-localhost"})


class Door:
    """Whom the service answers: names it is called by, and sites whose scripts may use it.

    `hosts=None` answers to every name. `local` is for a service that listens on loopback only.
    """

    def __init__(
        self,
        hosts: Iterable[str] | None = None,
        origins: Iterable[str] = (),
        local: bool = False,
        trust_proxy: bool = False,
    ) -> None:
        self.hosts = None if hosts is None else frozenset(map(hostname, hosts))
        self.origins = frozenset(origin.rstrip("/").lower() for origin in origins)
        self.local, self.trust_proxy = local, trust_proxy

    def check(self, headers: Headers) -> None:
        """Raise a `Refusal` for a foreign host name or site."""
        host = headers.get("host", "")
        if self.hosts is not None and not self._is_ours(host):
            raise Refusal(421, "wrong_host", "This service does not answer to that host name.")
        origin = headers.get("origin")
        if origin is None or origin in self.origins:
            return
        if urlsplit(origin).netloc.lower() != host.lower():
            raise Refusal(403, "wrong_origin", "Pages from other sites may not use this service.")

    def _is_ours(self, host: str) -> bool:
        name = hostname(host)
        if name in LOCAL_NAMES or (self.hosts is not None and name in self.hosts):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # a name can be made to point here; an address cannot
        return not self.local or address.is_loopback


def hostname(host: str) -> str:
    """Return the name of a Host header, without port, brackets and the final dot."""
    text = host.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    if text.count(":") > 1:  # an address of IPv6, as an option has it
        return text
    name, colon, port = text.rpartition(":")
    return (name if colon and port.isdigit() else text).rstrip(".")


class Guard:
    """Wraps the routes; everything that is refused here is answered in the same shape as there."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits,
        tenants: Tenants,
        door: Door,
        board: Board,
        buffers: Buffers,
        ending: Callable[[], bool],
    ) -> None:
        self.app, self.limits, self.tenants, self.door = app, limits, tenants, door
        self.board, self.buffers, self.ending = board, buffers, ending
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        status, started = 500, False
        request_id = f"req_{secrets.token_hex(12)}"

        async def noted(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                own = MutableHeaders(scope=message)
                own["x-request-id"] = request_id
                own.setdefault("cache-control", "no-store")
                own.setdefault("x-content-type-options", "nosniff")
                if self.ending():  # the client's next request goes to another worker
                    own["connection"] = "close"
            await send(message)

        self.in_flight += 1
        try:
            await self._serve(scope, receive, noted)
        except Exception as error:
            refusal = refusal_for(error)
            if refusal is None:
                self.board.add("errors_total")
                _log.exception("request %s failed", request_id)
                refusal = Refusal(500, "internal_error", f"Request {request_id} failed.")
            elif refusal.status >= 500:
                _log.warning("request %s: %s: %s", request_id, type(error).__name__, error)
            if started:
                raise
            await answer(refusal)(scope, receive, noted)
        finally:
            self.in_flight -= 1
            self.buffers.release(scope)
            seconds = time.perf_counter() - began
            route = scope.get("floodline.route", UNMATCHED)
            self.board.answered(route, status, seconds)
            self._gauges()
            if access_log.isEnabledFor(logging.INFO):
                access_log.info("%s", self._line(scope, route, status, seconds, request_id))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        self._gauges()
        self.door.check(headers)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path not in HEALTH:
            if self.in_flight - self.buffers.reading > self.limits.max_requests:
                raise overloaded("Too many requests at once; try again.", "overloaded")
            tenant = self.tenants.tenant_of(headers.get("authorization"))
            if tenant is None and not path.startswith(PAGES):
                raise Refusal(
                    401,
                    "invalid_api_key",
                    "Send a known token: Authorization: Bearer TOKEN.",
                    headers={"www-authenticate": "Bearer"},
                )
            scope["floodline.tenant"] = tenant or ""
        await self.app(scope, receive, send)

    def _gauges(self) -> None:
        self.board.set("in_flight", self.in_flight)
        self.board.set("buffered_bytes", self.buffers.held)

    def _line(self, scope: Scope, route: str, status: int, seconds: float, request_id: str) -> str:
        """Describe a request: nothing of its query, its headers or its body."""
        words: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "client": self._client(scope),
            "method": scope["method"],
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 2),
            "bytes_in": scope.get("floodline.buffered", 0),
            "tenant": scope.get("floodline.tenant", ""),
            "conversation": scope.get("path_params", {}).get("id", "")[:100],
            "request": request_id,
        }
        return msgspec.json.encode(words).decode()

    def _client(self, scope: Scope) -> str:
        if self.door.trust_proxy:
            chain = Headers(scope=scope).get("x-forwarded-for", "")
            if nearest := chain.rpartition(",")[2].strip():
                return nearest[:64]
        client = scope.get("client")
        return client[0] if client else ""


def answer(refusal: Refusal) -> Response:
    """Return the response to a request that is refused."""
    return Response(
        msgspec.json.encode(refusal.body()),
        refusal.status,
        refusal.headers,
        media_type="application/json",
    )
