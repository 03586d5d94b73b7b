"""Endpoints by path and method, and what they read from a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from floodline._service._http.service import Service
from floodline._service._refusals import Refusal, not_found

Handler = Callable[[Request], Awaitable[Response]]
LONGEST_ID = 512


@dataclass(slots=True, frozen=True)
class Endpoint:
    """What answers at one path; `name` is its label in figures and in the access log."""

    path: str
    name: str
    methods: Mapping[str, Handler]

    def route(self, service: Service) -> Route:
        """Return the route that Starlette needs."""
        return Route(self.path, _Answering(self, service))


class _Answering:
    """An object, because Starlette gives a function the method GET only, and its own 405."""

    def __init__(self, endpoint: Endpoint, service: Service) -> None:
        self._endpoint, self._service = endpoint, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["floodline.route"] = self._endpoint.name
        scope["floodline._service"] = self._service
        methods = self._endpoint.methods
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method not in methods:
            allowed = ", ".join(methods)
            text = f"Only {allowed} here."
            raise Refusal(405, "method_not_allowed", text, headers={"allow": allowed})
        response = await methods[method](Request(scope, receive))
        await response(scope, receive, send)


def service_of(request: Request) -> Service:
    """Return the service that a request came to."""
    service: Service = request.scope["floodline._service"]
    return service


def tenant_of(request: Request) -> str:
    """Return the tenant that asks."""
    tenant: str = request.scope["floodline.tenant"]
    return tenant


def id_of(request: Request, name: str = "id") -> str:
    """Return an id of the path; one that cannot exist is not found."""
    text: str = request.path_params[name]
    if len(text) > LONGEST_ID or not text.isprintable():
        raise not_found("conversation" if name == "id" else "item")
    return text


def json_answer(value: Any, status: int = 200) -> Response:
    """Return a JSON document."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")
