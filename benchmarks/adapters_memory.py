"""What the frameworks' in-memory defaults hold, and what floodline's adapters hold instead.

    python benchmarks/adapters_memory.py

Each case runs in a process of its own, once with the default and once with the adapter on SQLite.
The figure is how much resident memory rose between the first turn and the last, and the word is
what a soak run of the same turns says. Cases whose framework is not installed are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.metadata
import operator
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import psutil

from floodline.soak import run

TEXT = "x" * 2048
ROUNDS = 60
SEATS = 100


def langgraph_graph(url: str | None) -> Callable[[str], None]:
    """A graph whose turn in a thread is a question of 2 KiB and its answer."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, StateGraph

    from floodline.adapters.langgraph import FloodlineSaver

    class State(TypedDict):
        said: Annotated[list[str], operator.add]

    builder = StateGraph(State)
    builder.add_node("answer", lambda _state: {"said": [TEXT]})
    builder.add_edge(START, "answer")
    saver: Any = InMemorySaver() if url is None else FloodlineSaver(url)
    graph = builder.compile(checkpointer=saver)

    def turn(thread: str) -> None:
        config: Any = {"configurable": {"thread_id": thread}}
        graph.invoke({"said": [TEXT]}, config)

    return turn


def langgraph_turns(url: str | None) -> Callable[[int], None]:
    """Each turn is one more of the same thread, whose state grows."""
    turn = langgraph_graph(url)
    return lambda _number: turn("alice")


def langgraph_threads(url: str | None) -> Callable[[int], None]:
    """Each turn is another user, with a thread of one turn."""
    turn = langgraph_graph(url)
    return lambda number: turn(f"user{number}")


def agents_users(url: str | None) -> Callable[[int], None]:
    """Each turn is another user who says one thing of 2 KiB and never comes back."""
    from agents.memory import SQLiteSession

    from floodline.adapters.openai_agents import FloodlineSession, agent_sessions

    loop = asyncio.new_event_loop()
    kept: dict[str, Any] = {}  # as a server does that keeps one object for each user
    sessions = agent_sessions(url, max_sessions=SEATS) if url is not None else None

    def turn(number: int) -> None:
        user = f"user{number}"
        if sessions is None:
            session: Any = kept.setdefault(user, SQLiteSession(user))
        else:
            session = FloodlineSession(user, sessions)
        loop.run_until_complete(session.add_items([{"role": "user", "content": TEXT}]))

    return turn


def aiogram_users(url: str | None) -> Callable[[int], None]:
    """Each turn is another user, whose dialog begins and ends."""
    from aiogram.fsm.storage.base import StorageKey
    from aiogram.fsm.storage.memory import MemoryStorage, SimpleEventIsolation

    from floodline.adapters.aiogram import FloodlineIsolation, FloodlineStorage

    loop = asyncio.new_event_loop()
    storage: Any = MemoryStorage() if url is None else FloodlineStorage(url)
    isolation: Any = SimpleEventIsolation() if url is None else FloodlineIsolation(url)

    async def dialog(number: int) -> None:
        key = StorageKey(bot_id=1, chat_id=number, user_id=number)
        async with isolation.lock(key):
            await storage.set_state(key, "asked")
            await storage.update_data(key, {"text": TEXT})
            await storage.set_state(key)
            await storage.set_data(key, {})

    return lambda number: loop.run_until_complete(dialog(number))


def litestar_sessions(url: str | None) -> Callable[[int], None]:
    """Each turn is another session of 2 KiB, which is over by the time of the next."""
    from datetime import timedelta

    from litestar.stores.memory import MemoryStore

    from floodline.adapters.litestar import FloodlineStore

    loop = asyncio.new_event_loop()
    store: Any = MemoryStore() if url is None else FloodlineStore(url)
    soon = timedelta(microseconds=1)
    return lambda number: loop.run_until_complete(store.set(f"user{number}", TEXT, soon))


def fastmcp_requests(url: str | None) -> Callable[[int], None]:
    """Each turn is a request with an event of 2 KiB, and so a stream of its own."""
    from fastmcp.server.event_store import EventStore
    from mcp_types import JSONRPCNotification

    from floodline.adapters.mcp import FloodlineEventStore

    loop = asyncio.new_event_loop()
    events: Any = EventStore() if url is None else FloodlineEventStore(url)
    message = JSONRPCNotification(jsonrpc="2.0", method="note", params={"text": TEXT})
    return lambda number: loop.run_until_complete(events.store_event(str(number), message))


def llama_index_users(url: str | None) -> Callable[[int], None]:
    """Each turn is another user who says one thing of 2 KiB."""
    from llama_index.core.llms import ChatMessage
    from llama_index.core.storage.chat_store import SimpleChatStore

    from floodline.adapters.llama_index import FloodlineChatStore

    store: Any = SimpleChatStore() if url is None else FloodlineChatStore(url)

    def turn(number: int) -> None:
        text = f"{number} {TEXT}"
        store.add_message(f"user{number}", ChatMessage(role="user", content=text))

    return turn


def pydantic_ai_users(url: str | None) -> Callable[[int], None]:
    """Each turn is another user who says one thing of 2 KiB."""
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import InMemoryConversationStore
    from pydantic_ai.messages import ModelRequest

    from floodline.adapters.pydantic_ai import FloodlineConversationStore

    loop = asyncio.new_event_loop()
    store: Any = InMemoryConversationStore() if url is None else FloodlineConversationStore(url)

    def turn(number: int) -> None:
        said = ModelRequest.user_text_prompt(f"{number} {TEXT}")
        chat = Conversation(conversation_id=f"user{number}", messages=[said])
        loop.run_until_complete(store.save(chat))

    return turn


def adk_users(url: str | None) -> Callable[[int], None]:
    """Each turn is another user, whose name is kept and who says one thing of 2 KiB."""
    from google.adk.events import Event
    from google.adk.sessions import InMemorySessionService
    from google.genai import types

    from floodline.adapters.adk import FloodlineSessionService

    loop = asyncio.new_event_loop()
    service: Any = InMemorySessionService() if url is None else FloodlineSessionService(url)

    async def turn(number: int) -> None:
        terms = {"app_name": "shop", "user_id": f"user{number}", "state": {"user:name": number}}
        session = await service.create_session(**terms)
        part = types.Part.from_text(text=f"{number} {TEXT}")
        said = Event(author="user", content=types.Content(role="user", parts=[part]))
        await service.append_event(session, said)

    return lambda number: loop.run_until_complete(turn(number))


def agent_framework_users(url: str | None) -> Callable[[int], None]:
    """Each turn is another user who says one thing of 2 KiB, and whose session is stored."""
    from agent_framework import AgentSession, InMemoryHistoryProvider, Message, SessionStore

    from floodline.adapters.agent_framework import FloodlineHistoryProvider, FloodlineSessionStore

    loop = asyncio.new_event_loop()
    history: Any = InMemoryHistoryProvider() if url is None else FloodlineHistoryProvider(url)
    sessions: Any = SessionStore() if url is None else FloodlineSessionStore(url)

    async def turn(number: int) -> None:
        session = AgentSession(session_id=f"user{number}")
        said = Message("user", [f"{number} {TEXT}"])
        state = session.state.setdefault(history.source_id, {})
        await history.save_messages(session.session_id, [said], state=state)
        await sessions.set(session.session_id, session)

    return lambda number: loop.run_until_complete(turn(number))


CASES: dict[str, tuple[str, Callable[[str | None], Callable[[int], None]], int, str]] = {
    "langgraph": ("langgraph", langgraph_turns, 200, "200 turns of one thread"),
    "langgraph-users": ("langgraph", langgraph_threads, 2000, "2,000 users who say one thing"),
    "openai-agents": ("openai-agents", agents_users, 300, "300 users who say one thing"),
    "pydantic-ai": (
        "pydantic-ai-slim",
        pydantic_ai_users,
        10_000,
        "10,000 users who say one thing",
    ),
    "adk": ("google-adk", adk_users, 10_000, "10,000 users who say one thing"),
    "agent-framework": (
        "agent-framework-core",
        agent_framework_users,
        10_000,
        "10,000 users who say one thing",
    ),
    "aiogram": ("aiogram", aiogram_users, 10_000, "10,000 users whose dialog is over"),
    "litestar": ("litestar", litestar_sessions, 10_000, "10,000 sessions that have expired"),
    "fastmcp": ("fastmcp", fastmcp_requests, 10_000, "10,000 requests with one event"),
    "llama-index": (
        "llama-index-core",
        llama_index_users,
        10_000,
        "10,000 users who say one thing",
    ),
}


def measure(case: str, url: str | None) -> int:
    """Return by how many bytes resident memory rose."""
    _, begin, turns, _ = CASES[case]
    turn = begin(url)
    turn(0)
    gc.collect()
    process = psutil.Process()
    before = process.memory_info().rss
    for number in range(1, turns):
        turn(number)
    gc.collect()
    return process.memory_info().rss - before


def soak(case: str, url: str | None) -> str:
    """Return the verdict of a soak run, some turns a round."""
    _, begin, turns, _ = CASES[case]
    turn = begin(url)
    each, first = (10, 1500) if turns > 1000 else (1, SEATS)
    for number in range(first):  # until small caches and seats are full
        turn(number)

    def several(number: int) -> None:
        for one in range(first + number * each, first + (number + 1) * each):
            turn(one)

    answer = run(several, rounds=ROUNDS)
    if answer.verdict == "undecided":
        print(answer.as_dict(), file=sys.stderr)
    return str(answer.verdict)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "only", nargs="*", metavar="FRAMEWORK", help="the cases to run; default all"
    )
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--soak", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.case:
        print((soak if chosen.soak else measure)(chosen.case, chosen.store))
        return
    print("| framework | what was done | its default | floodline, on SQLite |")
    print("|---|---|---|---|")
    for case, (package, _, _, what) in CASES.items():
        if chosen.only and case not in chosen.only:
            continue
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        default, ours = one_case(case, on_sqlite=False), one_case(case, on_sqlite=True)
        print(f"| {package} {version} | {what} | {default} | {ours} |", flush=True)


def one_case(case: str, *, on_sqlite: bool) -> str:
    """Return what a cell of the table says."""
    said = []
    for options in ([], ["--soak"]):
        with tempfile.TemporaryDirectory() as folder:
            store = ["--store", f"sqlite:///{Path(folder) / 'a.db'}"] if on_sqlite else []
            command = [sys.executable, __file__, "--case", case, *options, *store]
            ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            said.append(ran.stdout.strip())
    return f"+{int(said[0]) / 2**20:.1f} MiB, {said[1]}"


if __name__ == "__main__":
    main()
