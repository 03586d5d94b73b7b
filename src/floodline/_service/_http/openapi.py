"""The OpenAPI document of the service, with the schemas that items are checked with."""

from __future__ import annotations

from functools import cache
from typing import Any

from floodline import __version__
from floodline._service._http.bodies import MAX_NAME, MAX_PAIRS, MAX_VALUE
from floodline._service._items.accept import ITEM_ID, MAX_ITEMS, completed
from floodline._service._items.schema import by_type, types

Document = dict[str, Any]

# what can be asked for: far more than any model takes, and later than anyone will ask
MAX_TOKENS, LAST_SECOND = 100_000_000, 2**40

_CONVERSATIONS, _OWN, _HEALTH = "Conversations", "floodline", "Health"


def _ref(name: str) -> Document:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: list[str] | None = None, **properties: Document) -> Document:
    wanted = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": wanted}


_STRING, _NUMBER, _BOOLEAN = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
_SECONDS = {"type": "integer", "minimum": 0, "maximum": LAST_SECOND}
_ANY: Document = {"type": "object", "additionalProperties": True}


def _query(name: str, schema: Document, text: str) -> Document:
    return {"name": name, "in": "query", "schema": schema, "description": text}


def _path(name: str) -> Document:
    schema = {"type": "string", "minLength": 1, "maxLength": 512}
    return {"name": name, "in": "path", "required": True, "schema": schema}


_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "minLength": 1, "maxLength": 512},
    "description": "The same key with the same body is one request.",
}
_LIMIT = _query("limit", {"type": "integer", "minimum": 1, "maximum": 100}, "Size of a page.")
_AFTER = _query("after", {"type": "string"}, "Begin after this id.")


def _operation(
    tag: str,
    summary: str,
    answer: Document | str,
    *,
    parameters: list[Document] | None = None,
    body: str | None = None,
    refused: tuple[int, ...] = (),
) -> Document:
    kind = answer if isinstance(answer, str) else "application/json"
    schema = _STRING if isinstance(answer, str) else answer
    responses: Document = {"200": {"description": "OK", "content": {kind: {"schema": schema}}}}
    for status in sorted({*refused, *((401, 403, 421, 503) if tag != _HEALTH else (421, 503))}):
        responses[str(status)] = {"$ref": "#/components/responses/Error"}
    operation: Document = {"tags": [tag], "summary": summary, "responses": responses}
    if parameters:
        operation["parameters"] = parameters
    if body is not None:
        content = {"application/json": {"schema": _ref(body)}}
        operation["requestBody"] = {"required": body != "NewConversation", "content": content}
    if tag == _HEALTH:
        operation["security"] = []
    return operation


_READ, _WRITE = (400, 404), (400, 404, 408, 409, 413, 415)
_DONE = _object(id=_STRING, object=_STRING, done=_BOOLEAN)


def _paths() -> Document:
    one, item = [_path("id")], [_path("id"), _path("item")]
    mine, own = "/v1/conversations", "/v1/floodline"
    complete = _operation(_OWN, "Expect no more work.", _DONE, parameters=one, refused=_WRITE)
    delete = _operation(
        _CONVERSATIONS,
        "Delete a conversation.",
        _ref("Deleted"),
        parameters=one,
        refused=(404, 409),
    )
    return {
        mine: {
            "post": _operation(
                _CONVERSATIONS, "Create a conversation.", _ref("Conversation"),
                parameters=[_KEY], body="NewConversation", refused=_WRITE,
            ),
        },
        f"{mine}/{{id}}": {
            "get": _operation(
                _CONVERSATIONS, "Get a conversation.", _ref("Conversation"),
                parameters=one, refused=_READ,
            ),
            "post": _operation(
                _CONVERSATIONS, "Replace the metadata.", _ref("Conversation"),
                parameters=one, body="Metadata", refused=_WRITE,
            ),
            "delete": delete,
        },
        f"{mine}/{{id}}/items": {
            "get": _operation(
                _CONVERSATIONS, "List items.", _ref("ItemList"), refused=_READ,
                parameters=[
                    *one, _LIMIT, _AFTER,
                    _query("order", {"type": "string", "enum": ["asc", "desc"]}, "Default desc."),
                ],
            ),
            "post": _operation(
                _CONVERSATIONS, "Append items.", _ref("ItemList"),
                parameters=[*one, _KEY], body="NewItems", refused=_WRITE,
            ),
        },
        f"{mine}/{{id}}/items/{{item}}": {
            "get": _operation(
                _CONVERSATIONS, "Get an item.", _ref("Item"), parameters=item, refused=_READ
            ),
            "delete": _operation(
                _CONVERSATIONS, "Delete an item.", _ref("Conversation"),
                parameters=item, refused=(404, 409),
            ),
        },
        f"{own}/conversations": {
            "get": _operation(
                _OWN, "List conversations (admin).", _ref("ConversationList"), refused=_READ,
                parameters=[
                    _LIMIT, _AFTER,
                    _query("prefix", _STRING, "Prefix of the ids."),
                    _query("tenant", _STRING, "Of this tenant only; then ids are plain."),
                    _query("used_after", _SECONDS, "Unix time in seconds."),
                    _query("used_before", _SECONDS, "Unix time in seconds."),
                ],
            ),
        },
        f"{own}/conversations/{{id}}/window": {
            "get": _operation(
                _OWN, "What to send to a model.", _ref("Window"), refused=(400, 404, 409),
                parameters=[
                    *one,
                    _query(
                        "max_tokens",
                        {"type": "integer", "minimum": 1, "maximum": MAX_TOKENS},
                        "Limit it to this many.",
                    ),
                    _query(
                        "provider",
                        {"type": "string", "enum": ["openai", "responses", "anthropic", "gemini"]},
                        "Whose API the messages are for.",
                    ),
                ],
            ),
        },
        f"{own}/conversations/{{id}}/complete": {"post": complete},
        f"{own}/conversations/{{id}}/park": {
            "post": _operation(_OWN, "Leave memory now.", _DONE, parameters=one, refused=_WRITE)
        },
        f"{own}/stats": {"get": _operation(_OWN, "Figures (admin).", _ANY)},
        f"{own}/events": {
            "get": _operation(
                _OWN, "Recent events, or a stream of them (admin).", _ANY, refused=(400,),
                parameters=[
                    _query("limit", {"type": "integer", "minimum": 1, "maximum": 1000}, "Most."),
                ],
            )
        },
        "/sessions/{id}": {"delete": delete},
        "/sessions/{id}/complete": {"post": complete},
        "/health/live": {"get": _operation(_HEALTH, "The process answers.", _ref("Health"))},
        "/health/ready": {
            "get": _operation(_HEALTH, "The store answers; no worker is draining.", _ref("Health"))
        },
        "/metrics": {"get": _operation(_OWN, "Figures for Prometheus (admin).", "text/plain")},
    }  # fmt: skip  # a table


def _schemas() -> Document:
    metadata = {
        "type": ["object", "null"],
        "maxProperties": MAX_PAIRS,
        "propertyNames": {"maxLength": MAX_NAME},
        "additionalProperties": {"type": "string", "maxLength": MAX_VALUE},
    }
    items = {"type": "array", "maxItems": MAX_ITEMS, "items": _ref("NewItem")}
    conversation = _object(
        id=_STRING, object={"const": "conversation"}, created_at=_NUMBER, metadata=_ANY
    )
    listed = _object(
        None,
        **conversation["properties"],
        tenant=_STRING,
        last_used_at=_NUMBER,
        items=_NUMBER,
        live=_BOOLEAN,
    )

    def page(of: Document) -> Document:
        data = {"type": "array", "items": of}
        ids = {"first_id": _STRING, "last_id": _STRING}
        return _object(None, object={"const": "list"}, data=data, has_more=_BOOLEAN, **ids)

    error = _object(message=_STRING, type=_STRING, code=_STRING, param={"type": ["string", "null"]})
    return {
        "Conversation": conversation,
        "ConversationList": page(listed),
        "Deleted": _object(id=_STRING, deleted=_BOOLEAN, object={"const": "conversation.deleted"}),
        "Error": _object(error=error),
        "Health": _object(status=_STRING),
        "ItemList": page(_ref("Item")),
        "Metadata": _object(metadata=metadata),
        "NewConversation": _object(
            [], items={**items, "type": ["array", "null"]}, metadata=metadata
        ),
        "NewItem": _moved({"anyOf": [_TEXT, *map(_new_item, by_type().values())]}),
        "NewItems": _object(items=items),
        "Window": _object(
            object={"const": "floodline.window"},
            conversation_id=_STRING,
            messages={"type": "array", "items": _ANY},
            system={"type": "array", "items": _ANY},
            tokens=_NUMBER,
        ),
        **_item_types(),
    }


_ID = {"type": ["string", "null"], "pattern": f"^{ITEM_ID.pattern}$"}
_TEXT = _object(
    ["role", "content"],
    id=_ID,
    type={"const": "message"},
    role={"enum": ["user", "assistant", "system", "developer"]},
    content=_STRING,
)


def _new_item(kind: Document) -> Document:
    """Return the schema of an item as a client may write it, without what is completed."""
    name = kind["properties"]["type"]["const"]
    return {
        **kind,
        "properties": {**kind["properties"], "id": _ID},
        "required": [each for each in kind["required"] if each not in completed(name)],
    }


def _item_types() -> Document:
    """Return the types of items under names of this document."""
    source = types()
    named = {"Item": {"anyOf": source["anyOf"]}}
    named |= {f"Item.{name}": schema for name, schema in source["$defs"].items()}
    moved: Document = _moved(named)
    return moved


def _moved(value: Any) -> Any:
    if isinstance(value, list):
        return [_moved(each) for each in value]
    if isinstance(value, dict):
        return {
            key: each.replace("#/$defs/", "#/components/schemas/Item.")
            if key == "$ref" and isinstance(each, str)
            else _moved(each)
            for key, each in value.items()
        }
    return value


@cache
def document() -> Document:
    """Return the whole document."""
    content = {"application/json": {"schema": _ref("Error")}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "floodline serve",
            "version": __version__,
            "description": "OpenAI's Conversations API on a floodline store.",
        },
        "paths": _paths(),
        "components": {
            "schemas": _schemas(),
            "responses": {"Error": {"description": "Refused.", "content": content}},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}, {}],
    }
