"""The plugin host as its authors had it: 35 maps that only a close event clears."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable

PLUGINS = 35
Handler = Callable[[str], object]


class EventBus:
    """Delivers an event to its handlers; on some machines a quarter of them is lost."""

    def __init__(self, lost: float = 0.25, seed: int = 1) -> None:
        self._handlers: defaultdict[str, list[Handler]] = defaultdict(list)
        self._lost, self._random = lost, random.Random(seed)

    def on(self, event: str, handler: Handler) -> None:
        """Call the handler for each such event."""
        self._handlers[event].append(handler)

    def emit(self, event: str, session_id: str) -> None:
        """Deliver an event once, or not at all."""
        if self._random.random() < self._lost:
            return
        for handler in self._handlers.get(event, ()):
            handler(session_id)


class Plugin:
    """Counts the tasks of each session, and keeps its last input."""

    def __init__(self, bus: EventBus) -> None:
        self._tasks: dict[str, list[str]] = {}
        bus.on("session.deleted", self.forget)

    def work(self, session_id: str, text: str) -> int:
        """Take a task, and return how many the session has had."""
        if session_id not in self._tasks:
            self._tasks[session_id] = []
        self._tasks[session_id].append(f"task: {text}")
        return len(self._tasks[session_id])

    def forget(self, session_id: str) -> None:
        """Drop what is kept for a session."""
        self._tasks.pop(session_id, None)

    def entries(self) -> int:
        """Return how many sessions it keeps something for."""
        return len(self._tasks)


class PluginHost:
    """Hands each task to all plugins."""

    def __init__(self, bus: EventBus) -> None:
        self._plugins: list[Plugin] = []
        for _ in range(PLUGINS):
            self._plugins.append(Plugin(bus))

    def work(self, session_id: str, text: str) -> int:
        """Let all plugins work, and return how many tasks the session has had."""
        return max(plugin.work(session_id, text) for plugin in self._plugins)

    def entries(self) -> int:
        """Return how many entries all plugins keep together."""
        return sum(plugin.entries() for plugin in self._plugins)
