"""Pipeline stages that watch their memory, for any runner that calls functions.

A stage is a function or coroutine function that takes a context and returns something.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from floodline._units import Duration, Size, format_size, parse_duration, parse_size
from floodline.errors import ConfigError, StageTooLarge
from floodline.history import Conversation, extractive_summary
from floodline.memory import Collection, GCController, MemoryTracker, Probe, Span

__all__ = ["AutoSummarizingConversationStage", "MemoryBoundedStage", "StageResult"]

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class StageResult(Generic[T]):
    """What a stage returned, and how memory changed; sizes are in bytes.

    `growth` is measured after the collection, if there was one; `peak` is the highest resident
    size seen, and `peak_growth` is that minus the size at the start.
    """

    value: T
    stage: str
    growth: int
    peak: int
    peak_growth: int
    seconds: float
    collected: Collection | None


class MemoryBoundedStage:
    """Wraps a stage: samples memory while it runs, and collects garbage if it grew by `threshold`.

    `stage(context)` returns a `StageResult`, or a coroutine for one if the wrapped stage is async
    or returns an awaitable. Above `hard_limit`, an async stage is cancelled, and a plain one, which
    cannot be interrupted, runs to its end; both then raise `StageTooLarge`.
    """

    def __init__(
        self,
        stage: Callable[..., Any],
        *,
        name: str | None = None,
        threshold: Size | None = "64 MiB",
        hard_limit: Size | None = None,
        every: Duration = 0.05,
        tracker: MemoryTracker | None = None,
        collector: GCController | None = None,
        probe: Probe | None = None,
    ) -> None:
        if not callable(stage):
            raise ConfigError(f"stage={stage!r} cannot be called; give a function")
        self._stage = stage
        self.name = str(name or getattr(stage, "__qualname__", type(stage).__qualname__))
        self._threshold = None if threshold is None else parse_size(threshold, "threshold")
        self._hard_limit = None if hard_limit is None else parse_size(hard_limit, "hard_limit")
        self._every = parse_duration(every, "every")
        self.tracker = tracker or MemoryTracker(
            interval=self._every, probe=probe, name=f"{self.name}.memory"
        )
        self._watcher: AbstractContextManager[object] = nullcontext()
        if tracker is not None:  # a tracker of the caller may not sample on its own
            self._watcher = MemoryTracker(
                1,
                interval=self._every,
                probe=lambda: tracker.sample().bytes,
                name=f"{self.name}.watch",
            )
        self._collector = collector or GCController(
            trim=True, probe=self.tracker.read, name=f"{self.name}.gc"
        )
        call = getattr(stage, "__call__", None)  # noqa: B004  # a callable object may be async
        self._is_async = inspect.iscoroutinefunction(stage) or inspect.iscoroutinefunction(call)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the stage with the same arguments, and return a `StageResult`."""
        if self._is_async:
            return self._run_async(*args, **kwargs)
        span = self.tracker.stage(self.name)
        span.__enter__()
        try:
            with self._watcher:
                value = self._stage(*args, **kwargs)
        except BaseException:
            span.leave()
            span.end(failed=True)
            raise
        inside = copy_context()
        span.leave()
        if inspect.isawaitable(value):  # a plain function around an async one
            return self._go_on(span, value, inside)
        span.end(failed=False)
        return self._result(span, value)

    async def _run_async(self, *args: Any, **kwargs: Any) -> StageResult[Any]:
        with self.tracker.stage(self.name) as span:
            value = await self._watched(span, asyncio.ensure_future(self._stage(*args, **kwargs)))
        return self._result(span, value)

    async def _go_on(self, span: Span, awaitable: Awaitable[T], inside: Context) -> StageResult[T]:
        task = asyncio.get_running_loop().create_task(_outcome(awaitable), context=inside)
        failed = True
        try:
            value = await self._watched(span, task)
            failed = False
        finally:
            span.end(failed=failed)
        return self._result(span, value)

    async def _watched(self, span: Span, task: asyncio.Future[T]) -> T:
        try:
            await self._watch(task, span)
        finally:
            await _end(task)
        if task.cancelled():
            self._collect_after(span)
            self._refuse_above(span)
        return task.result()

    async def _watch(self, task: asyncio.Future[Any], span: Span) -> None:
        while not task.done():
            await asyncio.wait((task,), timeout=self._every)
            self.tracker.sample()
            if self._is_above(span):
                return

    def _is_above(self, span: Span) -> bool:
        return self._hard_limit is not None and span.peak_growth > self._hard_limit

    def _refuse_above(self, span: Span) -> None:
        if self._is_above(span):
            raise StageTooLarge(
                f"stage {self.name!r} grew by {format_size(span.peak_growth)}, above hard_limit"
                f"={format_size(self._hard_limit or 0)}; keep less in memory, or raise the limit"
            )

    def _collect_after(self, span: Span) -> Collection | None:
        if self._threshold is None or span.peak_growth <= self._threshold:
            return None
        return self._collector.collect()

    def _result(self, span: Span, value: T) -> StageResult[T]:
        collected = self._collect_after(span)
        self._refuse_above(span)
        growth = span.growth - (0 if collected is None else collected.reclaimed)
        return StageResult(
            value, self.name, growth, span.peak, span.peak_growth, span.seconds, collected
        )


async def _outcome(awaitable: Awaitable[T]) -> T:
    return await awaitable


async def _end(task: asyncio.Future[Any]) -> None:
    """Cancel a task that is still running, and wait until it has cleaned up."""
    if not task.done():
        task.cancel()
        await asyncio.wait((task,))


class AutoSummarizingConversationStage:
    """Takes a turn of a conversation that summarises what it cannot keep.

    `await stage(context)` appends `context["messages"]` (a message, a list, or a string from the
    user) to `context["conversation"]`, or else to its own conversation. It then calls
    `respond(window)`, if given, and appends the reply. The returned context has `conversation`,
    `window` (valid for the provider, ready to send) and `reply`. Messages that are cut go into a
    rolling summary, which `summarise` makes while `respond` runs; the next turn waits for it.
    """

    def __init__(
        self,
        respond: Callable[..., Any] | None = None,
        *,
        summarise: Callable[..., Any] = extractive_summary,
        window_tokens: int | None = None,
        conversation: Conversation | None = None,
        **bounds: Any,
    ) -> None:
        for what, value in (("respond", respond), ("summarise", summarise)):
            if value is not None and not callable(value):
                raise ConfigError(f"{what}={value!r} cannot be called; give a function")
        if conversation is not None and bounds:
            raise ConfigError(
                f"{', '.join(bounds)} and conversation= together cannot work; "
                "give the bounds to the Conversation"
            )
        self._respond, self._summarise = respond, summarise
        self._window_tokens = window_tokens
        self.conversation = Conversation(**bounds) if conversation is None else conversation

    async def __call__(self, context: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Take one turn; the context is changed and returned."""
        conversation = self._conversation_of(context)
        summariser = conversation._keeper.summariser
        if summariser is not None:
            await summariser.ended()  # or quick turns are cut and never summarised
        conversation.extend(_messages(context.pop("messages", ())))
        window = conversation.window(self._window_tokens)
        context.update(conversation=conversation, window=window)
        if self._respond is not None:
            reply = self._respond(window)
            reply = await reply if inspect.isawaitable(reply) else reply
            conversation.extend(_messages(reply, role="assistant"))
            context["reply"] = reply
        return context

    def _conversation_of(self, context: Mapping[str, Any]) -> Conversation:
        given = context.get("conversation")
        conversation = self.conversation if given is None else given
        if not isinstance(conversation, Conversation):
            raise ConfigError(f"conversation={given!r} in the context must be a Conversation")
        if conversation._keeper.summariser is None:  # functions are not stored
            conversation.configure(summarise=self._summarise)
        return conversation


def _messages(given: Any, role: str = "user") -> list[dict[str, Any]]:
    if given is None:
        return []
    if isinstance(given, str):
        return [{"role": role, "content": given}]
    return [given] if isinstance(given, Mapping) else list(given)  # type: ignore[list-item]  # a dict
