"""The OpenAPI document, and a page without a build step that shows and tries it, offline."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from floodline._service._http.openapi import document
from floodline._service._http.routing import Endpoint

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


async def openapi(_request: Request) -> Response:
    """GET /openapi.json."""
    return Response(_document(), media_type="application/json")


async def page(_request: Request) -> Response:
    """GET /docs."""
    return _file("explorer.html")


async def script(_request: Request) -> Response:
    """GET /docs/explorer.js."""
    return _file("explorer.js")


async def style(_request: Request) -> Response:
    """GET /docs/explorer.css."""
    return _file("explorer.css")


@cache
def _document() -> bytes:
    return msgspec.json.encode(document())


def _file(name: str) -> Response:
    kind = _KINDS[name.rpartition(".")[2]]
    headers = {"content-security-policy": POLICY, "referrer-policy": "no-referrer"}
    return Response(_text(name), media_type=kind, headers=headers)


@cache
def _text(name: str) -> bytes:
    return files("floodline._service").joinpath("static", name).read_bytes()


ENDPOINTS = (
    Endpoint("/openapi.json", "openapi", {"GET": openapi}),
    Endpoint("/docs", "docs", {"GET": page}),
    Endpoint("/docs/explorer.js", "docs", {"GET": script}),
    Endpoint("/docs/explorer.css", "docs", {"GET": style}),
)
