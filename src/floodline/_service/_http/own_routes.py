"""floodline's own routes: windows, leaving memory, lists, figures; and those of the old worker."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from floodline import __version__
from floodline._service._http import events
from floodline._service._http.bodies import check_content_type, whole_number
from floodline._service._http.conversation_routes import delete
from floodline._service._http.openapi import LAST_SECOND, MAX_TOKENS
from floodline._service._http.routing import Endpoint, id_of, json_answer, service_of, tenant_of
from floodline._service._log.listing import Listed, Wanted, list_all_tenants, list_conversations
from floodline._service._refusals import invalid
from floodline._service._tenants import ALONE

PROVIDERS = ("openai", "responses", "anthropic", "gemini")


async def window(request: Request) -> Response:
    """GET /v1/floodline/conversations/{id}/window."""
    query = request.query_params
    max_tokens = whole_number(query, "max_tokens", None, 1, MAX_TOKENS)
    provider = query.get("provider")
    if provider is not None and provider not in PROVIDERS:
        raise invalid(f"must be one of {', '.join(PROVIDERS)}", "provider")
    id = id_of(request)  # noqa: A001 - the word of the API
    mine = service_of(request).conversations(tenant_of(request))
    found = await mine.window(id, max_tokens=max_tokens, provider=provider)
    return json_answer({"object": "floodline.window", "conversation_id": id, **found})


async def complete(request: Request) -> Response:
    """POST /v1/floodline/conversations/{id}/complete."""
    return await _leave(request, "complete")


async def park(request: Request) -> Response:
    """POST /v1/floodline/conversations/{id}/park."""
    return await _leave(request, "park")


async def list_all(request: Request) -> Response:
    """GET /v1/floodline/conversations."""
    service, query = service_of(request), request.query_params
    service.check_admin(tenant_of(request))
    limit = whole_number(query, "limit", 20, 1, 100)
    assert limit is not None
    wanted = Wanted(
        query.get("prefix", ""),
        whole_number(query, "used_after", None, 0, LAST_SECOND),
        whole_number(query, "used_before", None, 0, LAST_SECOND),
    )
    after, tenant = query.get("after", ""), query.get("tenant", ALONE)
    if tenant == ALONE and ALONE not in service.tenanted:
        keepings = {name: each.keeping for name, each in service.tenanted.items()}
        page = await list_all_tenants(keepings, wanted, after=after, limit=limit)
        first_id = page.found[0].place if page.found else ""
    else:
        keeping = service.named(tenant).keeping
        page = await list_conversations(keeping, wanted, tenant=tenant, after=after, limit=limit)
        first_id = page.found[0].id if page.found else ""
    return json_answer(
        {
            "object": "list",
            "data": [_listed(one) for one in page.found],
            "first_id": first_id,
            "last_id": page.last_id if page.found or page.has_more else "",
            "has_more": page.has_more,
        }
    )


async def stats(request: Request) -> Response:
    """GET /v1/floodline/stats."""
    service = service_of(request)
    service.check_admin(tenant_of(request))
    tenants = {
        tenant: conversations.keeping.sessions.stats().as_dict()
        for tenant, conversations in service.tenanted.items()
    }
    keeping = next(iter(service.tenanted.values())).keeping
    store = asdict(await keeping.store_stats())
    limits = {**asdict(service.limits), "store": store["kind"]}  # a URL may have a password
    return json_answer(
        {
            "object": "floodline.stats",
            "version": __version__,
            "tenants": tenants,
            "store": store,
            "limits": limits,
            "draining": service.draining,
        }
    )


async def all_events(request: Request) -> Response:
    """GET /v1/floodline/events: a list, or a stream for `Accept: text/event-stream`."""
    service = service_of(request)
    service.check_admin(tenant_of(request))
    if "text/event-stream" in request.headers.get("accept", ""):
        return StreamingResponse(
            service.streams.open(),
            media_type="text/event-stream",
            headers={"x-accel-buffering": "no"},
        )
    limit = whole_number(request.query_params, "limit", 100, 1, 1000)
    assert limit is not None
    return json_answer({"object": "list", "data": events.recent(limit)})


async def live(_request: Request) -> Response:
    """GET /health/live."""
    return json_answer({"status": "ok"})


async def ready(request: Request) -> Response:
    """GET /health/ready."""
    service = service_of(request)
    if not service.draining and await service.store_up():
        return json_answer({"status": "ok"})
    return json_answer({"status": "unavailable"}, 503)


async def metrics(request: Request) -> Response:
    """GET /metrics."""
    service = service_of(request)
    service.check_admin(tenant_of(request))
    await service.store_up()
    service.refresh()
    return PlainTextResponse(service.board.text(), media_type="text/plain; version=0.0.4")


async def _leave(request: Request, how: str) -> Response:
    check_content_type(request, await service_of(request).buffers.read(request))
    id = id_of(request)  # noqa: A001 - the word of the API
    await service_of(request).conversations(tenant_of(request)).leave(id, how)
    return json_answer({"id": id, "object": f"floodline.{how}", "done": True})


def _listed(one: Listed) -> dict[str, Any]:
    return {
        "id": one.id,
        "object": "conversation",
        "tenant": one.tenant,
        "created_at": one.record.created_at,
        "metadata": one.record.metadata,
        "last_used_at": one.last_used_at,
        "items": one.items,
        "live": one.live,
    }


_ONE = "/v1/floodline/conversations/{id}"

ENDPOINTS = (
    Endpoint("/v1/floodline/conversations", "list", {"GET": list_all}),
    Endpoint(f"{_ONE}/window", "window", {"GET": window}),
    Endpoint(f"{_ONE}/complete", "complete", {"POST": complete}),
    Endpoint(f"{_ONE}/park", "park", {"POST": park}),
    Endpoint("/v1/floodline/stats", "stats", {"GET": stats}),
    Endpoint("/v1/floodline/events", "events", {"GET": all_events}),
    # of the worker that this service replaces
    Endpoint("/sessions/{id}", "sessions", {"DELETE": delete}),
    Endpoint("/sessions/{id}/complete", "sessions_complete", {"POST": complete}),
    Endpoint("/health/live", "live", {"GET": live}),
    Endpoint("/health/ready", "ready", {"GET": ready}),
    Endpoint("/metrics", "metrics", {"GET": metrics}),
)
