"""The pipeline as its authors had it: every turn, every output and every event is kept."""

from __future__ import annotations

import copy
import time
from typing import Any

Context = dict[str, Any]


class Tracker:
    """Measures stages, and keeps every sample."""

    def __init__(self) -> None:
        self.samples: list[tuple[str, float]] = []

    def add(self, stage: str, seconds: float) -> None:
        """Note how long a stage took."""
        self.samples.append((stage, seconds))


def load(context: Context) -> None:
    page: Context = {"text": f"page about {context['text']} " * 20}
    page["book"] = {"title": "the river", "pages": [page]}  # refers back to the page
    context["page"] = page


def rank(context: Context) -> None:
    if "flood" in context["text"]:
        raise ValueError("the stage cannot rank a flood")
    context["best"] = context["page"]["text"][:40]


class Pipeline:
    """Runs all stages for each turn of a conversation."""

    def __init__(self) -> None:
        self.tracker = Tracker()
        self._conversation: list[dict[str, str]] = []
        self._snapshots: list[Context] = []
        self._outputs: dict[int, Context] = {}
        self._events: list[str] = []
        self._turns = 0

    async def turn(self, text: str) -> str:
        """Take a turn, and return the reply."""
        self._turns += 1
        context: Context = {"turn": self._turns, "text": text}
        for stage in (load, rank):
            began = time.perf_counter()
            self._snapshots.append(copy.deepcopy(context))
            stage(context)
            self.tracker.add(stage.__name__, time.perf_counter() - began)
        self._conversation.append({"role": "user", "content": text})
        context["reply"] = f"The best page begins with {context['best'][:20]!r}."
        self._conversation.append({"role": "assistant", "content": context["reply"]})
        self._outputs[self._turns] = context
        return str(context["reply"])

    def emit(self, event: str) -> None:
        """Note an event."""
        self._events.append(event)

    def latest(self, count: int) -> list[str]:
        """Return the newest events."""
        return self._events[-count:]

    def last_output(self) -> Context:
        """Return the output bag of the last turn."""
        return self._outputs[self._turns]

    def kept(self) -> int:
        """Return how many messages, outputs and events are kept."""
        return len(self._conversation) + len(self._outputs) + len(self._events)
