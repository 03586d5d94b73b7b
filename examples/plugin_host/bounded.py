"""The plugin host on floodline: a lost close event costs one idle period, and nothing more."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable

from floodline import Sessions, SessionScope
from floodline.sessions import SessionMap

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

    def __init__(self, scope: SessionScope, name: str) -> None:
        self._tasks: SessionMap[list[str]] = scope.map(name)

    def work(self, session_id: str, text: str) -> int:
        """Take a task, and return how many the session has had."""
        if session_id not in self._tasks:
            self._tasks[session_id] = []
        self._tasks[session_id].append(f"task: {text}")
        return len(self._tasks[session_id])

    def entries(self) -> int:
        """Return how many sessions it keeps something for."""
        return len(self._tasks)


class PluginHost:
    """Hands each task to all plugins."""

    def __init__(self, bus: EventBus) -> None:
        scope = SessionScope()
        self._plugins: list[Plugin] = []
        for n in range(PLUGINS):
            self._plugins.append(Plugin(scope, f"plugin-{n}"))
        self._sessions = Sessions(dict, idle="30 min", max_sessions=20, scope=scope, name="host")
        bus.on("session.deleted", self._sessions.close)

    def work(self, session_id: str, text: str) -> int:
        """Let all plugins work, and return how many tasks the session has had."""
        with self._sessions.use(session_id):
            return max(plugin.work(session_id, text) for plugin in self._plugins)

    def entries(self) -> int:
        """Return how many entries all plugins keep together."""
        return sum(plugin.entries() for plugin in self._plugins)
