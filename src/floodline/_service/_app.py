"""The app: its routes, its guard, and the sessions that it opens and ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

try:
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware
    from starlette.routing import BaseRoute
    from starlette.types import Receive, Scope, Send
except ImportError as error:
    raise ImportError(
        f"the service needs Starlette ({error}); run: pip install 'floodline[web]'"
    ) from error

from floodline._service._http import conversation_routes, documents, own_routes
from floodline._service._http.guard import UNMATCHED, Door, Guard
from floodline._service._http.routing import Endpoint
from floodline._service._http.service import AnySessions, Service, store_name
from floodline._service._limits import Limits
from floodline._service._metrics import Board
from floodline._service._refusals import Refusal
from floodline._service._tenants import ALONE, Tenants
from floodline.history import Conversation
from floodline.sessions import AsyncSessions
from floodline.stores import open_store

NAME = "conversations"
REFRESH_EVERY = 5.0
SWEEP_EVERY = 60.0

ENDPOINTS: tuple[Endpoint, ...] = (
    *conversation_routes.ENDPOINTS,
    *own_routes.ENDPOINTS,
    *documents.ENDPOINTS,
)


def make_board(tenants: Tenants, workers: int = 1) -> Board:
    """Return the table of figures; it is made before workers are forked."""
    names = dict.fromkeys([*(endpoint.name for endpoint in ENDPOINTS), "dashboard", UNMATCHED])
    return Board(list(names), tenants.names, workers)


def create_app(
    sessions: AnySessions,
    *,
    max_items: int = 10_000,
    max_body: int | str = "4 MiB",
    tokens: Iterable[tuple[str, str]] = (),
    allow_hosts: Iterable[str] | None = None,
    allow_origins: Iterable[str] = (),
) -> Starlette:
    """Return the API for sessions of your own, to mount in your app.

    `sessions` is a `Sessions` or `AsyncSessions` with a store, whose state is a `Conversation`; it
    stays yours to shut down. `tokens` are pairs of `admin` or any other name and a token; without
    them, everyone who reaches the app may use it. `allow_hosts=None` answers to every host name.
    """
    limits = Limits.read({"max_items": max_items, "max_body": max_body}, environ={})
    tenants = Tenants.of(list(tokens))
    if len(tenants.names) > 1:
        raise ValueError(
            f"tokens= names the tenants {', '.join(tenants.names)}, but one sessions object "
            "serves a single tenant; use floodline serve, or one app per tenant"
        )
    service = Service(
        {(tenants.names or (ALONE,))[0]: sessions},
        limits=limits,
        tenants=tenants,
        board=make_board(tenants),
    )
    return build(service, Door(allow_hosts, allow_origins))


def make_service(
    limits: Limits,
    tenants: Tenants,
    door: Door,
    *,
    board: Board | None = None,
    extra: Callable[[Service], Sequence[BaseRoute]] | None = None,
) -> Starlette:
    """Return the whole service, which opens its store and parks everything when it ends."""
    store = open_store(limits.store)
    begin = partial(Conversation, max_messages=limits.max_history)
    sessions = {
        tenant: AsyncSessions(
            begin,
            store=store,
            state_type=Conversation,
            name=store_name(NAME, tenant),
            # what is deleted must have left memory, or it would be written again when it leaves;
            # in half that time, as not every window that is asked for counts as a use in the store
            idle=limits.ttl if limits.retain is None else min(limits.ttl, limits.retain / 2),
            max_sessions=limits.max_sessions,
            retain=limits.retain,
            durability="use",
            on_error="save",
            when_full="wait",
        )
        for tenant in tenants.names or (ALONE,)
    }
    made = Service(
        sessions,
        limits=limits,
        tenants=tenants,
        board=board or make_board(tenants),
        max_history=limits.max_history,
    )

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        tending = [asyncio.create_task(_refresh(made))]
        if limits.retain is not None:
            tending.append(asyncio.create_task(_delete_unused(sessions.values(), limits.retain)))
        try:
            yield
        finally:
            for task in tending:
                task.cancel()
            await asyncio.gather(*tending, return_exceptions=True)
            made.drain()
            for each in sessions.values():
                await each.shutdown(grace=limits.grace)
            await asyncio.to_thread(store.close)

    return build(made, door, lifespan=lifespan, extra=() if extra is None else extra(made))


def build(
    service: Service,
    door: Door,
    *,
    lifespan: Any = None,
    extra: Sequence[BaseRoute] = (),
) -> Starlette:
    """Return an app around a service."""
    middleware = [
        Middleware(
            Guard,
            limits=service.limits,
            tenants=service.tenants,
            door=door,
            board=service.board,
            buffers=service.buffers,
            ending=lambda: service.draining,
        )
    ]
    if door.origins:
        middleware.insert(
            0,
            Middleware(
                CORSMiddleware,
                allow_origins=sorted(door.origins),
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],  # OpenAI's clients send several of their own
                expose_headers=["retry-after", "x-request-id", "x-should-retry"],
            ),
        )
    routes = [endpoint.route(service) for endpoint in ENDPOINTS]
    app = Starlette(routes=[*routes, *extra], middleware=middleware, lifespan=lifespan)
    app.router.redirect_slashes = False
    app.router.default = _nowhere
    app.state.service = service
    return app


async def _nowhere(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise Refusal(404, "unknown_url", "There is nothing at this address.")


async def _delete_unused(sessions: Iterable[AsyncSessions[Any]], retain: float) -> None:
    """Sweep although nothing is in memory, where sessions by themselves have nothing to do."""
    while True:
        await asyncio.sleep(min(SWEEP_EVERY, retain))
        for each in sessions:
            await each.sweep()


async def _refresh(service: Service) -> None:
    while True:
        await service.store_up()
        await asyncio.to_thread(service.buffers.give_back)
        service.refresh()
        await asyncio.sleep(REFRESH_EVERY)
