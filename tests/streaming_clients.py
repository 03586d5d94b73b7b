"""Clients of the chat server in `examples`, half of which leave in the middle of every answer."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from floodline import Conversation, Sessions
from floodline.errors import ConfigError
from floodline.history import INTERRUPTED, check
from floodline.recorder import read_recording
from floodline.stores import SQLiteStore
from run_programs import PATIENCE, Run

EXAMPLES = Path(__file__).parents[1] / "examples"
WORDS = " ".join(f"word{number}" for number in range(20))

SERVER = f"""
import os, socket, sys
from pathlib import Path

sys.path.insert(0, {str(EXAMPLES)!r})
os.chdir(Path(__file__).parent)  # where chat.db shall be
import uvicorn
from fastapi_chat import app

with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    listener.listen(500)
    print(listener.getsockname()[1], os.getpid(), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run([listener])
"""


@dataclass
class Asked:
    """A question that the server has begun to answer, so it must not be lost."""

    text: str
    heard: str
    complete: bool


@dataclass
class Client:
    """One user; those who leave read the first piece of an answer and close the connection."""

    name: str
    leaves: bool
    asked: list[Asked] = field(default_factory=list)

    async def ask(self, port: int) -> None:
        text = f"{self.name} {len(self.asked)} {WORDS}"
        body = f'{{"text": "{text}"}}'
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = (
            f"POST /chat HTTP/1.1\r\nhost: chat\r\nx-session: {self.name}\r\nconnection: close\r\n"
        )
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())
        try:
            status = await reader.readuntil(b"\r\n\r\n")
            assert status.startswith(b"HTTP/1.1 200"), status
            heard, ended = "", False
            while not ended and not (self.leaves and heard):
                size = int(await reader.readline(), 16)
                heard += (await reader.readexactly(size + 2))[:-2].decode()
                ended = size == 0
            self.asked.append(Asked(text, heard, ended))
        finally:
            writer.close()

    async def ask_until(self, port: int, turns: int, stop: asyncio.Event) -> None:
        while len(self.asked) < turns and not stop.is_set():
            await self.ask(port)


def problems_of(client: Client, chat: Conversation) -> list[str]:
    """Return what of an acknowledged history is missing; the newest messages are kept."""
    users = [one["content"] for one in chat if one["role"] == "user"]
    asked = client.asked[-len(users) :]
    found = [str(problem) for problem in check(chat.window())]
    if len(users) < min(len(client.asked), 20) or [one.text for one in asked] != users:
        found.append(f"{len(client.asked)} questions were asked, and the last are {users[-3:]}")
    answers = [one for one in chat if one["role"] == "assistant"]
    if len(answers) != len(users):
        found.append(f"{len(users)} questions have {len(answers)} answers")
    for one, answer in zip(asked, answers, strict=False):
        full = f"You said: {one.text} "
        whole = answer["content"] == full
        if not (whole if one.complete else full.startswith(answer["content"])):
            found.append(f"the answer to {one.text!r} is {answer['content']!r}")
        if not answer["content"].startswith(one.heard) or bool(answer.get(INTERRUPTED)) == whole:
            found.append(f"{one.heard!r} was heard, and {answer!r} is kept")
    return found


class Stage:
    """The server under `floodline run`, its clients, and what is asked of both."""

    def __init__(self, folder: Path, clients: int) -> None:
        self._folder = folder
        self.run = Run(folder, SERVER)
        self.clients = [Client(f"user{n}", leaves=bool(n % 2)) for n in range(clients)]

    def talk(self, turns: int, seconds: float = PATIENCE) -> None:
        """Let every client ask so many questions, or for so long."""

        async def all_at_once() -> None:
            stop = asyncio.Event()
            asyncio.get_running_loop().call_later(seconds, stop.set)
            talks = (one.ask_until(self.run.port, turns, stop) for one in self.clients)
            await asyncio.gather(*talks)

        asyncio.run(all_at_once())

    def verdict(self) -> str:
        """Return what the recorder says, "" before its first tick."""
        try:
            state: dict[str, Any] = read_recording(self.run.record).state()
        except ConfigError:
            return ""
        return str(state["verdict"])

    def left_held(self) -> int:
        """Wait until no session is held; return how many still are when patience ends."""
        store = SQLiteStore(self._folder / "chat.db")
        until = time.monotonic() + PATIENCE
        try:
            while (held := store.stats().leases) and time.monotonic() < until:
                time.sleep(0.05)
            return held
        finally:
            store.close()

    def end(self) -> str:
        """Stop the server as an orchestrator does; return what was said on stderr."""
        os.kill(self.run.pid, signal.SIGTERM)
        return self.run.finish()

    def lost(self) -> list[str]:
        """Return what was acknowledged and is not in the store."""
        with Sessions(Conversation, store=f"sqlite:///{self._folder / 'chat.db'}") as sessions:
            found: list[str] = []
            for client in self.clients:
                with sessions.use(client.name, create=False) as chat:
                    found += problems_of(client, chat)
            return found
