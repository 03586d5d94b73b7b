"""The worker as its authors had it: only a delete call or a shutdown frees a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
WINDOW = 20  # messages that are sent


async def answer(messages: list[Message]) -> str:
    """Stand in for the models: answer the last message."""
    await asyncio.sleep(0)
    said = messages[-1].get("content") or messages[-1]["parts"][0]["text"]
    return f"You said {len(said.split())} words."


@dataclass
class Session:
    """A conversation, which one caller at a time may continue."""

    history: list[Message] = field(default_factory=list)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    done: bool = False

    def window(self) -> list[Message]:
        """Return what is sent."""
        return self.history[-WINDOW:]  # the copy is short, the list is not


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
        self._sessions: dict[str, Session] = {}
        self._queues: dict[str, list[str]] = {}
        self._streams: dict[str, AsyncIterator[str]] = {}

    @asynccontextmanager
    async def _use(self, session_id: str) -> AsyncIterator[Session]:
        if session_id not in self._sessions:
            self._sessions[session_id] = Session()
            self._queues[session_id] = []
        session = self._sessions[session_id]
        async with session.lock:
            yield session

    async def ask(self, session_id: str, text: str, provider: str = "openai") -> str:
        """Answer a message."""
        async with self._use(session_id) as session:
            return await PROVIDERS[provider](session, text)

    async def enqueue(self, session_id: str, text: str) -> None:
        """Keep work for later."""
        async with self._use(session_id):
            self._queues[session_id].append(text)

    async def work(self, session_id: str) -> list[str]:
        """Do the work that waits."""
        async with self._use(session_id) as session:
            queue = self._queues[session_id]
            replies = [await openai(session, text) for text in queue]
            queue.clear()
            return replies

    def stream(self, session_id: str, text: str) -> AsyncIterator[str]:
        """Answer a message word by word."""
        self._streams[session_id] = self._words(session_id, text)
        return self._streams[session_id]

    async def _words(self, session_id: str, text: str) -> AsyncIterator[str]:
        async with self._use(session_id) as session:
            for word in (await openai(session, text)).split():
                yield word
        del self._streams[session_id]  # not reached if the client has gone

    async def complete(self, session_id: str) -> None:
        """Note that no more work is expected."""
        if session_id in self._sessions:
            self._sessions[session_id].done = True

    async def delete(self, session_id: str) -> None:
        """Forget a session: the DELETE call."""
        self._sessions.pop(session_id, None)
        self._queues.pop(session_id, None)
        self._streams.pop(session_id, None)

    async def sent(self, session_id: str) -> list[Message]:
        """Return what the next call would send along."""
        async with self._use(session_id) as session:
            return session.window()

    def live(self) -> int:
        """Return how many sessions are in memory."""
        return len(self._sessions)

    async def shutdown(self) -> None:
        """Let everything go."""
        self._sessions.clear()
        self._queues.clear()
        self._streams.clear()
