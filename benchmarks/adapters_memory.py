"""What the frameworks' in-memory defaults hold, and what floodline's adapters hold instead.

    python benchmarks/adapters_memory.py

Each case runs in a process of its own, once with the default and once with the adapter on SQLite.
The figure is how much resident memory rose between the first turn and the last.
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

TEXT = "x" * 2048


def langgraph_turns(url: str | None) -> Callable[[int], None]:
    """One thread; each turn is a question of 2 KiB and its answer."""
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
    config: Any = {"configurable": {"thread_id": "alice"}}
    return lambda _turn: graph.invoke({"said": [TEXT]}, config)


def agents_users(url: str | None) -> Callable[[int], None]:
    """Each turn is another user who says one thing of 2 KiB and never comes back."""
    from agents.memory import SQLiteSession

    from floodline.adapters.openai_agents import FloodlineSession, agent_sessions

    loop = asyncio.new_event_loop()
    kept: dict[str, Any] = {}  # as a server does that keeps one object for each user
    sessions = agent_sessions(url, max_sessions=100) if url is not None else None

    def turn(number: int) -> None:
        user = f"user{number}"
        if sessions is None:
            session: Any = kept.setdefault(user, SQLiteSession(user))
        else:
            session = FloodlineSession(user, sessions)
        loop.run_until_complete(session.add_items([{"role": "user", "content": TEXT}]))

    return turn


CASES: dict[str, tuple[str, Callable[[str | None], Callable[[int], None]], int, str]] = {
    "langgraph": ("langgraph", langgraph_turns, 200, "200 turns of one thread"),
    "openai-agents": ("openai-agents", agents_users, 300, "300 users who say one thing"),
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.case:
        print(measure(chosen.case, chosen.store))
        return
    print("| framework | what was done | its default | floodline, on SQLite |")
    print("|---|---|---|---|")
    for case, (package, _, _, what) in CASES.items():
        grown = []
        with tempfile.TemporaryDirectory() as folder:
            for store in ([], ["--store", f"sqlite:///{Path(folder) / 'a.db'}"]):
                command = [sys.executable, __file__, "--case", case, *store]
                ran = subprocess.run(command, capture_output=True, text=True, check=True)
                grown.append(f"+{int(ran.stdout) / 2**20:.1f} MiB")
        version = importlib.metadata.version(package)
        print(f"| {package} {version} | {what} | {grown[0]} | {grown[1]} |")


if __name__ == "__main__":
    main()
