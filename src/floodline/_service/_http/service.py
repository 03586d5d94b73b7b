"""What all routes share: the conversations of each tenant, limits, figures, and draining."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from floodline._service._http.bodies import Buffers
from floodline._service._http.events import Streams
from floodline._service._limits import Limits
from floodline._service._log.conversations import Conversations
from floodline._service._log.flows import Keeping
from floodline._service._metrics import Board
from floodline._service._refusals import Refusal, not_found
from floodline._service._tenants import ADMIN, ALONE, Tenants
from floodline.adapters._store_flows import Flow, ask
from floodline.memory import rss
from floodline.sessions import AsyncSessions, Sessions

AnySessions = Sessions[Any] | AsyncSessions[Any]

NO_SESSION = "floodline-ready"  # an id to look for; whether it is there does not matter
READY_WAIT = 2.0
ASK_EVERY = 1.0


class Service:
    """The state of one worker."""

    def __init__(
        self,
        sessions: Mapping[str, AnySessions],
        *,
        limits: Limits,
        tenants: Tenants,
        board: Board,
        max_history: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits, self.tenants, self.board = limits, tenants, board
        self.tenanted = {
            tenant: Conversations(
                Keeping(each), max_items=limits.max_items, max_history=max_history
            )
            for tenant, each in sessions.items()
        }
        self.buffers, self.streams = Buffers(limits), Streams()
        self.draining = False
        self.on_drain: list[Callable[[], object]] = []
        self._clock = clock
        self._asked_at, self._up = -ASK_EVERY, False
        self._asking: asyncio.Task[bool] | None = None
        board.set("workers", 1)

    def conversations(self, tenant: str) -> Conversations:
        """Return the conversations of the tenant that asks."""
        if tenant not in self.tenanted:
            raise Refusal(403, "not_a_tenant", "The admin token has no conversations of its own.")
        return self.tenanted[tenant]

    def named(self, tenant: str) -> Conversations:
        """Return the conversations of the tenant that an administrator asks about."""
        if tenant not in self.tenanted:
            raise not_found("tenant", "tenant")
        return self.tenanted[tenant]

    def check_admin(self, tenant: str) -> None:
        """Refuse what is about all tenants to one of them."""
        if not self.tenants.is_admin(tenant):
            raise Refusal(403, "admin_only", "This needs the admin token.")

    def drain(self) -> None:
        """Turn not ready, and end the streams."""
        if self.draining:
            return
        self.draining = True
        self.board.set("draining", 1)
        self.streams.end()
        for end in self.on_drain:
            end()

    async def store_up(self) -> bool:
        """Return True if the store answers; asked at most once a second, by one caller."""
        if self._asking is None and self._clock() - self._asked_at < ASK_EVERY:
            return self._up
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        return await asyncio.shield(self._asking)

    async def _ask(self) -> bool:
        keeping = next(iter(self.tenanted.values())).keeping

        def flow() -> Flow[None]:
            yield from ask("load", keeping.name, NO_SESSION)

        try:
            async with asyncio.timeout(READY_WAIT):
                await keeping.read(flow())
            self._up = True
        except Exception:
            self._up = False
        finally:
            self._asked_at, self._asking = self._clock(), None
        self.board.set("store_up", float(self._up))
        return self._up

    def refresh(self) -> None:
        """Bring the gauges up to date."""
        board = self.board
        board.set("resident_bytes", rss())
        board.set("event_readers", len(self.streams))
        for tenant, conversations in self.tenanted.items():
            stats = conversations.keeping.sessions.stats()
            board.set("sessions_live", stats.items, tenant)
            board.set("sessions_held", stats.held, tenant)
            board.set("sessions_waiting", stats.waiting, tenant)
            board.set("sessions_unsaved", stats.unsaved, tenant)
            board.set("sessions_limit", stats.max_items or 0, tenant)
            board.set("sessions_stored", stats.store_rows or 0, tenant)
            board.count_up_to("session_loads_total", tenant, stats.loaded)
            board.count_up_to("session_saves_total", tenant, stats.saved)
            board.count_up_to("session_save_errors_total", tenant, stats.save_errors)
            board.count_up_to("session_conflicts_total", tenant, stats.conflicts)


def store_name(name: str, tenant: str) -> str:
    """Return the name of a tenant's sessions, which is part of every key in the store."""
    return name if tenant == ALONE else f"{name}/{tenant}"


__all__ = ["ADMIN", "ALONE", "AnySessions", "Service", "store_name"]
