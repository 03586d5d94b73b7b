"""A chat server with streamed answers: `uvicorn examples.fastapi_chat:app`, or run this file.

    curl -N -H 'x-session: alice' -H 'content-type: application/json' \
         -d '{"text": "hello"}' http://127.0.0.1:8000/chat

Needs `fastapi` and `uvicorn`. The model is a stand-in that answers word by word.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from floodline import AsyncSessions, Conversation
from floodline.web.asgi import HoldSessions, Session, lifespan, turn

sessions = AsyncSessions(Conversation, store="sqlite:///chat.db", max_sessions=1000)
app = FastAPI(lifespan=lifespan(sessions))
app.add_middleware(HoldSessions)

Chat = Annotated[Conversation, Session(sessions, header="x-session")]


class Question(BaseModel):
    """What a client sends."""

    text: str


async def model(messages: list[dict[str, Any]]) -> AsyncIterator[str]:
    """Stand in for a real model: repeat what was asked, a word at a time."""
    for word in f"You said: {messages[-1]['content']}".split(" "):
        await asyncio.sleep(0.01)
        yield word + " "


@app.post("/chat")
async def chat(question: Question, chat: Chat) -> StreamingResponse:
    chat.append({"role": "user", "content": question.text})

    async def answer() -> AsyncIterator[str]:
        async with turn(chat) as reply:
            async for piece in model(chat.window()):
                reply.write(piece)
                yield piece

    return StreamingResponse(answer(), media_type="text/plain")


if __name__ == "__main__":
    uvicorn.run(app)
