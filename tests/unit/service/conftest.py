"""A client of the service, in the same process and without a socket."""

from __future__ import annotations

import asyncio

import pytest

from floodline import AsyncSessions, Conversation
from floodline.stores import MemoryStore
from floodline.web import create_app
from service_items import Asking


@pytest.fixture
def loop():
    made = asyncio.new_event_loop()
    yield made
    made.run_until_complete(made.shutdown_default_executor())
    made.close()


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def make(loop, store):
    """Return a function that makes a client of sessions with these options."""
    opened = []

    def make(kind=AsyncSessions, *, headers=None, max_history=50, sessions=None, **app):
        options = {"store": store, "name": "test", **(sessions or {})}
        held = kind(lambda: Conversation(max_messages=max_history), **options)
        opened.append(held)
        asking = Asking(create_app(held, **app), loop, **(headers or {}))
        asking.sessions = held
        return asking

    yield make
    for held in opened:
        ended = held.shutdown()
        if asyncio.iscoroutine(ended):
            loop.run_until_complete(ended)


@pytest.fixture
def ask(make):
    return make()
