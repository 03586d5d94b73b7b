"""The pipeline on floodline: the same stages, and a limit on everything that is kept."""

from __future__ import annotations

from typing import Any

from floodline import BoundedLog, GCController, MemoryTracker
from floodline.stages import AutoSummarizingConversationStage, MemoryBoundedStage

Context = dict[str, Any]


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
        self.tracker = MemoryTracker(max_samples=200)
        self._collector = GCController(threshold="1 MiB", trim=True)
        self._collector.follow(self.tracker)
        self._load = MemoryBoundedStage(load, threshold="16 MiB", tracker=self.tracker)
        self._talk = AutoSummarizingConversationStage(max_messages=20)
        self._outputs: BoundedLog[Context] = BoundedLog(10, name="outputs")
        self._events: BoundedLog[str] = BoundedLog(1000, name="events")
        self._turns = 0

    async def turn(self, text: str) -> str:
        """Take a turn, and return the reply."""
        self._turns += 1
        context: Context = {"turn": self._turns, "text": text}
        self._load(context)
        with self.tracker.stage("rank"):
            rank(context)
        context["reply"] = f"The best page begins with {context['best'][:20]!r}."
        said = [
            {"role": "user", "content": text},
            {"role": "assistant", "content": context["reply"]},
        ]
        await self._talk({"messages": said})
        self._outputs.append(context)
        return str(context["reply"])

    def emit(self, event: str) -> None:
        """Note an event."""
        self._events.append(event)

    def latest(self, count: int) -> list[str]:
        """Return the newest events."""
        return list(self._events[-count:])

    def last_output(self) -> Context:
        """Return the output bag of the last turn."""
        return self._outputs[-1]

    def kept(self) -> int:
        """Return how many messages, outputs and events are kept."""
        return len(self._talk.conversation) + len(self._outputs) + len(self._events)
