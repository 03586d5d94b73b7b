"""The one driver of the acceptance suites.

Behave drives the library through hosts that are shaped like the systems whose authors asked for it:
`PlanService`, `PluginHost` and `SessionManager`, and the fixed versions of `examples/` through
`example`. Robot drives real processes from `processes.py`: the example server through `AgentServer`
and `floodline serve` through `SessionService`, over HTTP, and the command line through `Commands`.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

from floodline import AsyncSessions, Conversation, Reason, Sessions, SessionScope
from floodline.errors import SessionClosed
from floodline.stores import MemoryStore
from floodline.testing import SessionKit

sys.path.insert(0, str(Path(__file__).parents[1]))

from processes import PATIENCE, AgentServer, Commands, SessionService

from example_systems import EXAMPLES, load  # the path comes first

__all__ = ["EXAMPLES", "AgentServer", "Commands", "SessionService"]


def example(name: str) -> Any:
    """Return the fixed version of one of the five systems."""
    return load(name, "bounded")


def plan_kit() -> SessionKit:
    """Return the test kit for the fixed plan service, as another project would make it."""
    plans = example("plan_service").PlanService()
    return SessionKit(
        lambda session: plans.create_plan(session, "cross the river"),
        work=lambda session: plans.run_step(session, "pack"),
        close_session=plans.clear_memory,
        live=plans.live,
    )


class Clock:
    """Time that passes when a scenario says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, minutes: float) -> None:
        self.now += minutes * 60


class MemoryService:
    """What PlanService keeps for a session: it has a lock, cannot be encoded, and wants a close."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.lock = threading.Lock()
        self.notes: list[str] = []
        self.closed: list[str] = []  # its host puts its own list here
        self.breaks_on_close = False

    def close(self) -> None:
        self.closed.append(self.session_id)
        if self.breaks_on_close:
            raise OSError(f"the memory of {self.session_id} cannot be flushed")


class PlanService:
    """`dict[session_id, MemoryService]`, filled by three code paths, rebuilt on `Sessions`."""

    def __init__(self, clock: Clock, **bounds: Any) -> None:
        self.left: list[tuple[str, Reason]] = []
        self.refs: list[weakref.ref[MemoryService]] = []
        self.closed: list[str] = []
        self.most_live = 0
        self.scope = SessionScope()
        self.locks = self.scope.map("locks")
        self.memories = Sessions(
            MemoryService,
            on_open=self._opened,
            on_leave=self._leaves,
            scope=self.scope,
            clock=clock,
            name="plans",
            **bounds,
        )

    def create_plan(self, session_id: str, goal: str) -> int:
        return self._note(session_id, f"goal: {goal}")

    def run_step(self, session_id: str, step: str, error: Exception | None = None) -> int:
        with self.memories.use(session_id) as memory:
            memory.notes.append(f"step: {step}")
            if error is not None:
                raise error
            return len(memory.notes)

    def review(self, session_id: str) -> int:
        return self._note(session_id, "review")

    def clear_memory(self, session_id: str) -> None:
        self.memories.close(session_id)

    def notes(self, session_id: str) -> list[str]:
        with self.memories.use(session_id, create=False) as memory:
            return list(memory.notes)

    def lives(self, session_id: str) -> bool:
        return session_id in self.memories

    def reasons(self, session_id: str) -> list[str]:
        return [str(reason) for left, reason in self.left if left == session_id]

    def still_in_memory(self) -> list[str]:
        gc.collect()
        return [service.session_id for ref in self.refs if (service := ref()) is not None]

    def _note(self, session_id: str, note: str) -> int:
        with self.memories.use(session_id) as memory:
            memory.notes.append(note)
            self.most_live = max(self.most_live, len(self.memories))
            return len(memory.notes)

    def _opened(self, session_id: str, memory: MemoryService) -> None:
        self.locks[session_id] = threading.Lock()
        memory.closed = self.closed
        self.refs.append(weakref.ref(memory))

    def _leaves(self, session_id: str, _: MemoryService, reason: Reason) -> None:
        self.left.append((session_id, reason))


class PluginHost:
    """Many maps keyed by session that a `session.deleted` event should clear, and may not."""

    MAPS = 35

    def __init__(self, clock: Clock, *, stored: bool = False, **bounds: Any) -> None:
        self.finalized: Counter[str] = Counter()
        self.most_entries = 0
        self.scope = SessionScope()
        self.maps = [self.scope.map(f"plugin-{n}") for n in range(self.MAPS)]
        self.sessions = Sessions(
            dict,
            store=MemoryStore() if stored else None,
            on_leave=self._leaves,
            scope=self.scope,
            clock=clock,
            name="host",
            **bounds,
        )

    def work(self, session_id: str) -> int:
        with self.sessions.use(session_id) as state:
            return self._work(session_id, state)

    def late_work(self, session_id: str) -> int:
        """What a handler does for an event that may come after the end of its session."""
        with self.sessions.use(session_id, create=False) as state:
            return self._work(session_id, state)

    def deleted_event(self, session_id: str) -> None:
        self.sessions.close(session_id)

    def entries(self, session_id: str) -> int:
        return sum(session_id in plugin for plugin in self.maps)

    def all_entries(self) -> int:
        return sum(len(plugin) for plugin in self.maps)

    def _work(self, session_id: str, state: dict[str, int]) -> int:
        for plugin in self.maps:
            plugin[session_id] = object()
        state["tasks"] = state.get("tasks", 0) + 1
        self.most_entries = max(self.most_entries, self.all_entries())
        return state["tasks"]

    def _leaves(self, session_id: str, state: object, reason: Reason) -> None:
        self.finalized[session_id] += 1


class SessionManager:
    """A worker service for asyncio: conversations that several requests may ask for at once."""

    def __init__(self, clock: Clock, **bounds: Any) -> None:
        self.left: list[tuple[str, Reason]] = []
        self.opened: Counter[str] = Counter()
        self.answers: dict[str, asyncio.Event] = {}
        self.requests: list[asyncio.Task[None]] = []
        self.refused: list[str] = []
        self.store = MemoryStore()
        self.chats: AsyncSessions[Conversation] = AsyncSessions(
            store=self.store,
            on_open=self._opens,
            on_leave=self._leaves,
            clock=clock,
            name="worker",
            **bounds,
        )

    async def say(self, session_id: str, text: str) -> None:
        async with self.chats.use(session_id) as chat:
            chat.extend([{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}])

    async def begin(self, session_id: str, text: str) -> None:
        """Start a request whose answer comes when the scenario says so."""
        self.answers[session_id] = asyncio.Event()
        inside = asyncio.Event()
        request = asyncio.create_task(self._request(session_id, text, inside))
        self.requests.append(request)
        async with asyncio.timeout(PATIENCE):
            await inside.wait()

    async def answer(self, session_id: str) -> None:
        self.answers[session_id].set()
        async with asyncio.timeout(PATIENCE):
            await self.requests[-1]
        await self.settle()

    async def cancel(self) -> None:
        self.requests[-1].cancel()
        await asyncio.gather(*self.requests, return_exceptions=True)

    async def texts(self, session_id: str) -> list[str]:
        async with self.chats.use(session_id, create=False) as chat:
            return [message["content"] for message in chat]

    async def settle(self) -> None:
        """Wait until everything that is leaving has left."""
        async with asyncio.timeout(PATIENCE):
            while self.chats.stats().parking:  # noqa: ASYNC110  # nobody tells when, and no time passes
                await asyncio.sleep(0)

    async def _request(self, session_id: str, text: str, inside: asyncio.Event) -> None:
        try:
            async with self.chats.use(session_id) as chat:
                chat.append({"role": "user", "content": text})
                inside.set()
                await self.answers[session_id].wait()
                chat.append({"role": "assistant", "content": f"answer to {text}"})
        except SessionClosed:
            self.refused.append(session_id)

    def _opens(self, session_id: str, _: Conversation) -> None:
        self.opened[session_id] += 1

    def _leaves(self, session_id: str, _: Conversation, reason: Reason) -> None:
        self.left.append((session_id, reason))
