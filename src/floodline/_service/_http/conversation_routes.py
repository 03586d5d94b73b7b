"""The Conversations API under `/v1`, as OpenAI's clients call it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from floodline._service._http.bodies import (
    check_content_type,
    one_of,
    parse_object,
    read_metadata,
    whole_number,
)
from floodline._service._http.routing import Endpoint, id_of, json_answer, service_of, tenant_of
from floodline._service._items.accept import accept_all
from floodline._service._log.conversations import Conversations, Once
from floodline._service._log.rows import ConversationRecord, digest_of, key_of
from floodline._service._refusals import invalid

MAX_KEY = 512
LONGEST_PAGE, USUAL_PAGE = 100, 20


async def create(request: Request) -> Response:
    """POST /v1/conversations."""
    body, given = await _read(request)
    metadata = read_metadata(given)
    items = accept_all([] if given.get("items") is None else given["items"])
    key = _key(request)
    id = f"conv_{secrets.token_hex(24) if key is None else key_of(key)}"  # noqa: A001 - the word of the API
    digest = "" if key is None else digest_of(body)
    record = await _mine(request).create(id, metadata, items, digest)
    board, tenant = service_of(request).board, tenant_of(request)
    board.add("conversations_created_total", tenant)
    board.add("items_appended_total", tenant, len(items))
    return json_answer(_conversation(id, record))


async def retrieve(request: Request) -> Response:
    """GET /v1/conversations/{id}."""
    id = id_of(request)  # noqa: A001 - the word of the API
    return json_answer(_conversation(id, await _mine(request).record(id)))


async def update(request: Request) -> Response:
    """POST /v1/conversations/{id}."""
    _, given = await _read(request)
    metadata = read_metadata(given, required=True)
    id = id_of(request)  # noqa: A001 - the word of the API
    return json_answer(_conversation(id, await _mine(request).update(id, metadata)))


async def delete(request: Request) -> Response:
    """DELETE /v1/conversations/{id}."""
    id = id_of(request)  # noqa: A001 - the word of the API
    await _mine(request).delete(id)
    service_of(request).board.add("conversations_deleted_total", tenant_of(request))
    return json_answer({"id": id, "deleted": True, "object": "conversation.deleted"})


async def append(request: Request) -> Response:
    """POST /v1/conversations/{id}/items."""
    body, given = await _read(request)
    if "items" not in given:
        raise invalid("is missing", "items", "missing_required_parameter")
    items = accept_all(given["items"])
    key = _key(request)
    once = None if key is None else Once(key_of(key), digest_of(body))
    done = await _mine(request).append(id_of(request), items, once)
    board, tenant = service_of(request).board, tenant_of(request)
    board.add("items_appended_total", tenant, done.new)
    board.add("items_repeated_total", tenant, len(items) - done.new)
    return _list(done.data, done.ids, has_more=False)


async def list_items(request: Request) -> Response:
    """GET /v1/conversations/{id}/items."""
    query = request.query_params
    newest = one_of(query, "order", ("desc", "asc")) == "desc"
    limit = whole_number(query, "limit", USUAL_PAGE, 1, LONGEST_PAGE)
    assert limit is not None
    after = query.get("after") or None
    page = await _mine(request).page(id_of(request), after=after, limit=limit, newest=newest)
    return _list(
        [row.data for row in page.rows], [row.key for row in page.rows], has_more=page.has_more
    )


async def retrieve_item(request: Request) -> Response:
    """GET /v1/conversations/{id}/items/{item}."""
    data = await _mine(request).item(id_of(request), id_of(request, "item"))
    return Response(data, media_type="application/json")


async def delete_item(request: Request) -> Response:
    """DELETE /v1/conversations/{id}/items/{item}."""
    id = id_of(request)  # noqa: A001 - the word of the API
    record = await _mine(request).delete_item(id, id_of(request, "item"))
    service_of(request).board.add("items_deleted_total", tenant_of(request))
    return json_answer(_conversation(id, record))


ENDPOINTS = (
    Endpoint("/v1/conversations", "conversations", {"POST": create}),
    Endpoint(
        "/v1/conversations/{id}",
        "conversation",
        {"GET": retrieve, "POST": update, "DELETE": delete},
    ),
    Endpoint("/v1/conversations/{id}/items", "items", {"GET": list_items, "POST": append}),
    Endpoint(
        "/v1/conversations/{id}/items/{item}",
        "item",
        {"GET": retrieve_item, "DELETE": delete_item},
    ),
)


def _mine(request: Request) -> Conversations:
    return service_of(request).conversations(tenant_of(request))


async def _read(request: Request) -> tuple[bytes, dict[str, Any]]:
    body = await service_of(request).buffers.read(request)
    check_content_type(request, body)
    return body, parse_object(body)


def _key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key) <= MAX_KEY:
        raise invalid(f"must have 1 to {MAX_KEY} characters", "Idempotency-Key")
    return key


def _conversation(id: str, record: ConversationRecord) -> dict[str, Any]:
    return {
        "id": id,
        "object": "conversation",
        "created_at": record.created_at,
        "metadata": record.metadata,
    }


def _list(data: Sequence[bytes], ids: Sequence[str], *, has_more: bool) -> Response:
    """Return a page; the items go out as they lie in the log."""
    rest = {
        "first_id": ids[0] if ids else "",
        "last_id": ids[-1] if ids else "",
        "has_more": has_more,
    }
    body = b'{"object":"list","data":[%s],%s' % (b",".join(data), msgspec.json.encode(rest)[1:])
    return Response(body, media_type="application/json")
