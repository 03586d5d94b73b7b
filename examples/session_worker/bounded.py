"""The worker on floodline: idle sessions leave for the store, and come back when they are used."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from floodline import AsyncSessions, Conversation

Message = dict[str, Any]
WINDOW = 20  # messages that are sent
STORE = os.environ.get("WORKER_STORE", "sqlite:///worker.db")


async def answer(messages: list[Message]) -> str:
    """Stand in for the models: answer the last message."""
    await asyncio.sleep(0)
    said = messages[-1].get("content") or messages[-1]["parts"][0]["text"]
    return f"You said {len(said.split())} words."


@dataclass
class Session:
    """A conversation, which one caller at a time may continue."""

    history: Conversation = field(default_factory=lambda: Conversation(max_messages=WINDOW))
    queue: list[str] = field(default_factory=list)

    def window(self) -> list[Message]:
        """Return what is sent."""
        return self.history.window()  # the stored list is short, too


async def anthropic(session: Session, text: str) -> str:
    session.history.append({"role": "user", "content": [{"type": "text", "text": text}]})
    reply = await answer([{"role": "user", "content": text}])
    session.history.append({"role": "assistant", "content": [{"type": "text", "text": reply}]})
    return reply


async def openai(session: Session, text: str) -> str:
    session.history.append({"role": "user", "content": text})
    reply = await answer(session.window())
    session.history.append({"role": "assistant", "content": reply})
    return reply


async def gemini(session: Session, text: str) -> str:
    session.history.append({"role": "user", "parts": [{"text": text}]})
    reply = await answer(session.window())
    session.history.append({"role": "model", "parts": [{"text": reply}]})
    return reply


PROVIDERS = {"anthropic": anthropic, "openai": openai, "gemini": gemini}


class SessionWorker:
    """Answers its clients, one conversation for each session id."""

    def __init__(self) -> None:
        self._sessions = AsyncSessions(
            Session, idle="30 min", max_sessions=20, store=STORE, name="worker"
        )

    def _use(self, session_id: str) -> AbstractAsyncContextManager[Session]:
        return self._sessions.use(session_id)

    async def ask(self, session_id: str, text: str, provider: str = "openai") -> str:
        """Answer a message."""
        async with self._use(session_id) as session:
            return await PROVIDERS[provider](session, text)

    async def enqueue(self, session_id: str, text: str) -> None:
        """Keep work for later."""
        async with self._use(session_id) as session:
            session.queue.append(text)

    async def work(self, session_id: str) -> list[str]:
        """Do the work that waits."""
        async with self._use(session_id) as session:
            queue = session.queue
            replies = [await openai(session, text) for text in queue]
            queue.clear()
            return replies

    def stream(self, session_id: str, text: str) -> AsyncIterator[str]:
        """Answer a message word by word."""
        return self._words(session_id, text)

    async def _words(self, session_id: str, text: str) -> AsyncIterator[str]:
        async with self._use(session_id) as session:
            for word in (await openai(session, text)).split():
                yield word

    async def complete(self, session_id: str) -> None:
        """Note that no more work is expected."""
        await self._sessions.complete(session_id)

    async def delete(self, session_id: str) -> None:
        """Forget a session: the DELETE call."""
        await self._sessions.close(session_id)

    async def sent(self, session_id: str) -> list[Message]:
        """Return what the next call would send along."""
        async with self._use(session_id) as session:
            return session.window()

    def live(self) -> int:
        """Return how many sessions are in memory."""
        return len(self._sessions)

    async def shutdown(self) -> None:
        """Let everything go."""
        await self._sessions.shutdown()
