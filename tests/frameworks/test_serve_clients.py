"""Real clients of the Conversations API against `floodline serve`, with strict validation."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import httpx
import pytest

pytest.importorskip("openai", reason="the extra dev is not installed")

import openai
from agents import OpenAIConversationsSession
from openai import AsyncOpenAI

from floodline import AsyncSessions
from floodline.stores import MemoryStore
from floodline.web import create_app

sys.path.insert(0, str(Path(__file__).parent))
import item_types

SCHEMA = item_types.schema()


@pytest.fixture
def run():
    """Return a function that runs work with a client; answers on the way back can be lost."""

    def run(work, *, lose=0, retries=2):
        async def main():
            async with AsyncSessions(store=MemoryStore(), name="clients") as sessions:
                transport = Losing(create_app(sessions), lose)
                async with AsyncOpenAI(
                    base_url="http://localhost/v1",
                    api_key="any",
                    http_client=httpx.AsyncClient(transport=transport),
                    _strict_response_validation=True,
                    max_retries=retries,
                ) as client:
                    return await work(client)

        return asyncio.run(main())

    return run


class Losing(httpx.ASGITransport):
    """Serves requests, and loses the first answers to appends."""

    def __init__(self, app, lose):
        super().__init__(app=app)
        self._left = lose

    async def handle_async_request(self, request):
        answer = await super().handle_async_request(request)
        if self._left and request.url.path.endswith("/items"):
            self._left -= 1
            raise httpx.ReadError("lost")
        return answer


def example(schema, choice):
    """Return a value for a schema; `choice` picks the branches, and optional parts if it is odd."""
    if "$ref" in schema:
        return example(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], choice)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][choice % len(schema["enum"])]
    if "anyOf" in schema:
        return example(schema["anyOf"][choice % len(schema["anyOf"])], choice)
    kind = schema.get("type")
    if kind == "object":
        wanted = schema.get("required", ())
        return {
            name: example(part, choice)
            for name, part in schema.get("properties", {}).items()
            if name in wanted or (choice % 2 and name not in ("filters", "tools"))
        }
    if kind == "array":
        return [example(schema["items"], choice)] if schema.get("items") else []
    return {"string": "x", "integer": 1, "number": 1.5, "boolean": True, "null": None}.get(kind, {})


def test_the_item_types_are_those_of_the_client():
    from floodline._service._items.schema import types

    assert types() == SCHEMA, "python tests/frameworks/item_types.py > …/_items/types.json"


def test_every_item_type_passes_strict_validation_and_comes_back_as_it_was(run):
    items = []
    for choice in range(4):
        for branch in SCHEMA["anyOf"]:
            items.append({**example(branch, choice), "id": f"item_{len(items)}"})

    async def work(client):
        chat = await client.conversations.create()
        for first in range(0, len(items), 20):
            await client.conversations.items.create(chat.id, items=items[first : first + 20])
        listed = client.conversations.items.list(chat.id, order="asc", limit=50)
        return [item.to_dict(exclude_unset=True) async for item in listed]

    assert run(work) == items


def test_a_thousand_items_are_paged_through(run):
    async def work(client):
        chat = await client.conversations.create(
            items=[{"role": "user", "content": "first"}], metadata={"a": "b"}
        )
        for first in range(0, 1000, 20):
            items = [{"role": "user", "content": str(n)} for n in range(first, first + 20)]
            await client.conversations.items.create(chat.id, items=items)
        listed = client.conversations.items.list(chat.id, order="asc", limit=100)
        texts = [item.content[0].text async for item in listed]
        assert texts == ["first", *map(str, range(1000))]
        newest = await client.conversations.items.list(chat.id, limit=1)
        item = await client.conversations.items.retrieve(newest.data[0].id, conversation_id=chat.id)
        assert item.content[0].text == "999"
        await client.conversations.items.delete(item.id, conversation_id=chat.id)
        changed = await client.conversations.update(chat.id, metadata={"c": "d"})
        assert (await client.conversations.retrieve(chat.id)) == changed
        assert (await client.conversations.delete(chat.id)).deleted
        with pytest.raises(openai.NotFoundError):
            await client.conversations.retrieve(chat.id)
        with pytest.raises(openai.NotFoundError):
            await client.conversations.items.create(chat.id, items=items)

    run(work)


@pytest.mark.parametrize("how", ["ids", "key", "neither"])
def test_a_lost_answer_that_is_retried_appends_once_or_says_so(run, how):
    item = {"role": "user", "content": "one"} | ({"id": "mine"} if how == "ids" else {})
    headers = {"Idempotency-Key": "k"} if how == "key" else {}

    async def work(client):
        chat = await client.conversations.create()
        await client.conversations.items.create(chat.id, items=[item], extra_headers=headers)
        return [each.id async for each in client.conversations.items.list(chat.id)]

    # with neither it is at-least-once, as the documentation says
    assert len(run(work, lose=1)) == (2 if how == "neither" else 1)


def test_a_lasting_conflict_is_not_retried(run):
    async def work(client):
        chat = await client.conversations.create(
            items=[{"id": "mine", "role": "user", "content": "one"}]
        )
        other = [{"id": "mine", "role": "user", "content": "two"}]
        with pytest.raises(openai.ConflictError) as caught:
            await client.conversations.items.create(chat.id, items=other)
        assert caught.value.response.headers["x-should-retry"] == "false"
        assert caught.value.code == "item_conflict"

    run(work, retries=9)


def test_the_agents_sdk_keeps_its_session_here(run):
    items = [
        {"role": "user", "content": "what is it"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": json.dumps({"x": 1})},
        {"type": "function_call_output", "call_id": "c", "output": "42"},
        *({"role": "user", "content": str(n)} for n in range(30)),
    ]

    async def work(client):
        session = OpenAIConversationsSession(openai_client=client)
        await session.add_items(items)
        kept = await session.get_items()
        assert len(kept) == len(items)
        assert kept[2]["output"] == "42"
        newest = await session.get_items(limit=2)
        assert [item["content"][0]["text"] for item in newest] == ["28", "29"]
        assert (await session.pop_item())["content"][0]["text"] == "29"
        assert len(await session.get_items()) == len(items) - 1
        await session.clear_session()
        assert await session.get_items() == []

    run(work)
