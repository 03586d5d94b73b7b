"""A minimal pipeline whose memory is tracked stage by stage.

    python examples/pipeline.py --turns 200

`await pipeline.run(context, memory_tracker=tracker)` is all that a runner needs to offer.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from floodline import GCController, MemoryTracker
from floodline.stages import AutoSummarizingConversationStage, MemoryBoundedStage, StageResult

Context = dict[str, Any]
Stage = Callable[[Context], Any]


class Pipeline:
    """Runs stages one after the other on one context."""

    def __init__(self, stages: Sequence[tuple[str, Stage]]) -> None:
        self._stages = list(stages)

    async def run(
        self, context: Context, *, memory_tracker: MemoryTracker | None = None
    ) -> Context:
        """Run all stages; with a tracker, each is a span under its name."""
        for name, stage in self._stages:
            span: AbstractContextManager[object] = nullcontext()
            if memory_tracker is not None:
                span = memory_tracker.stage(name)
            with span:
                result = stage(context)
                if inspect.isawaitable(result):
                    result = await result
            if isinstance(result, StageResult):  # a MemoryBoundedStage reports its metrics
                context.setdefault("metrics", {})[name] = result
                result = result.value
            context = result if isinstance(result, dict) else context
        return context


def load(context: Context) -> None:
    context["documents"] = [f"document {n} for turn {context['turn']}" * 50 for n in range(200)]


async def rank(context: Context) -> None:
    await asyncio.sleep(0)
    context["best"] = sorted(context.pop("documents"), key=len)[:3]  # the rest is dropped here


def ask(context: Context) -> None:
    context["messages"] = f"Turn {context['turn']}: what is in {context['best'][0][:20]}?"


def respond(window: list[dict[str, Any]]) -> str:
    return f"I have read {len(window)} messages."  # this is where a model would be


async def main(turns: int) -> MemoryTracker:
    tracker, collector = MemoryTracker(), GCController(threshold="32 MiB")
    end = collector.follow(tracker)
    pipeline = Pipeline(
        [
            ("load", MemoryBoundedStage(load, threshold="16 MiB", hard_limit="256 MiB")),
            ("rank", rank),
            ("ask", ask),
            ("talk", AutoSummarizingConversationStage(respond, max_messages=20)),
        ]
    )
    with tracker:
        for turn in range(turns):
            context = await pipeline.run({"turn": turn}, memory_tracker=tracker)
    end()
    print(tracker.report())
    print(f"{len(context['conversation'])} messages kept; the last reply: {context['reply']}")
    return tracker


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--turns", type=int, default=200)
    asyncio.run(main(arguments.parse_args().turns))
