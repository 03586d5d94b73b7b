"""Rolling summaries: written alongside the conversation, set aside, applied by its holder.

The callable runs in a thread or as a task, and gets only messages: neither it nor what runs it ever
touches the conversation. What it returns is checked before it may replace anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from floodline._clock import Clock
from floodline._units import format_duration, format_size
from floodline.history._formats.shapes import Message
from floodline.history._summaries.worker import workers

Summarise = Callable[..., str | Awaitable[str]]

_ERROR_TEXT = re.compile(
    r"\s*(?:"
    r"traceback \(most recent call last\)"
    r"|\{?\s*[\"']?error[\"']?\s*[:=]|error\b[^.\n]{0,40}[:!]"
    r"|(?:http|status)[\w\s:/.]{0,12}\b[45]\d\d\b"
    r"|[45]\d\d\s*(?:[:(\-]|$|bad|unauth|forbid|not found|too many|internal|service|gateway|error)"
    r"|\w*(?:error|exception)\s*:"
    r"|(?:internal server error|bad gateway|service unavailable|gateway time-?out)"
    r"|(?:rate limit|too many requests|quota exceeded|context length exceeded|request timed out)"
    r"|(?:i'?m|i am) (?:sorry|unable)|i (?:can't|cannot|can not|won't)\b|as an ai\b"
    r")",
    re.IGNORECASE,
)


@dataclass(slots=True, frozen=True)
class SummaryPolicy:
    """How long a summary may be and take, and when the breaker opens and tries again."""

    max_bytes: int
    timeout: float
    failures: int
    retry_after: float

    def within(self, max_bytes: int | None, max_tokens: int | None) -> SummaryPolicy:
        """Return a policy whose summaries use at most about a quarter of these bounds."""
        limits = [self.max_bytes]
        if max_bytes is not None:
            limits.append(max(1, max_bytes // 4))
        if max_tokens is not None:
            limits.append(max_tokens)  # at four bytes per token
        return replace(self, max_bytes=min(limits))

    def as_list(self) -> list[float]:
        """Return the numbers in the order of the fields."""
        return [self.max_bytes, self.timeout, self.failures, self.retry_after]


class Job:
    """One summary under way; `atoms` holds the keys of what it covers."""

    __slots__ = ("_waiters", "atoms", "done", "error", "started", "task", "text", "was_running")

    def __init__(self, atoms: frozenset[int], started: float) -> None:
        self.atoms, self.started = atoms, started
        self.text: object = None
        self.error: BaseException | None = None
        self.task: asyncio.Task[None] | None = None
        self.done = self.was_running = False
        self._waiters: list[Callable[[], object]] = []

    def run(self, call: Callable[[], object]) -> None:
        """Call the summariser on this thread; an awaitable gets an event loop of its own."""
        try:
            answer = call()
            self.text = asyncio.run(_await(answer)) if inspect.isawaitable(answer) else answer
        except BaseException as error:  # our thread must survive whatever user code raises
            self.error = error
        self._end()

    async def run_here(self, call: Callable[[], object]) -> None:
        """Await the summariser as a task on the running loop."""
        try:
            answer = call()
            self.text = await answer if inspect.isawaitable(answer) else answer
        except asyncio.CancelledError as error:
            self.error = error
            raise
        except Exception as error:
            self.error = error
        finally:
            self._end()

    def _end(self) -> None:
        self.done = True
        for tell in self._waiters:
            with contextlib.suppress(RuntimeError):  # the waiter's loop is closed
                tell()

    async def ended(self, patience: float) -> None:
        """Wait until it is done or can no longer finish, at most `patience` seconds."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        self._waiters.append(partial(loop.call_soon_threadsafe, ended.set))
        if self.done or (self.task is not None and self.task.done()):  # cancelled before it began
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), patience)

    def give_up(self) -> None:
        """Stop what can be stopped; a thread cannot be."""
        if self.task is not None and not self.task.done():
            with contextlib.suppress(RuntimeError):  # its loop is closed already
                self.task.get_loop().call_soon_threadsafe(self.task.cancel)


async def _await(answer: Awaitable[Any]) -> Any:
    return await answer


class Summariser:
    """Runs one job at a time, judges its result, and stops asking after too many failures."""

    __slots__ = ("_clock", "_failed_in_a_row", "_open_since", "_policy", "_takes", "call", "job")

    def __init__(self, call: Summarise, policy: SummaryPolicy, clock: Clock) -> None:
        self.call, self._policy, self._clock = call, policy, clock
        self._takes = _takes_max_bytes(call)
        self.job: Job | None = None
        self._failed_in_a_row = 0
        self._open_since: float | None = None

    @property
    def running(self) -> bool:
        """True if a summary is under way or waits to be applied."""
        return self.job is not None

    @property
    def broken(self) -> bool:
        """True if the breaker is open: nothing is asked until `retry_after` has passed."""
        since = self._open_since
        return since is not None and self._clock() - since < self._policy.retry_after

    def start(self, messages: list[Message], atoms: frozenset[int]) -> None:
        """Start to summarise `messages`; an async callable runs on this thread's loop, if any."""
        job = self.job = Job(atoms, self._clock())
        summarise = self.call
        limit = {"max_bytes": self._policy.max_bytes} if self._takes else {}

        def call() -> object:
            return summarise(messages, **limit)

        loop = _running_loop()
        if loop is not None and _is_async(summarise):
            job.task = loop.create_task(job.run_here(call), name="floodline-summary")
        else:
            workers.submit(lambda: job.run(call))

    def take(self) -> tuple[Job, str, str] | None:
        """Return a finished job with its text, or with the reason it failed; None while it runs."""
        job = self.job
        if job is None:
            return None
        age = self._clock() - job.started
        if not job.done and age < self._policy.timeout:
            return None
        self.job = None
        why = self._refuse(job, age)
        if why:
            job.give_up()
            self._failed_in_a_row += 1
            if self._failed_in_a_row >= self._policy.failures:
                self._open_since = self._clock()
            return job, "", why
        self._failed_in_a_row, self._open_since = 0, None
        return job, str(job.text).strip(), ""

    async def ended(self) -> None:
        """Wait for the job under way, if there is one, but not longer than it may take."""
        if self.job is not None:
            await self.job.ended(self._policy.timeout)

    def forget(self) -> None:
        """Abandon the job under way; what it was to replace is gone."""
        if self.job is not None:
            self.job.give_up()
            self.job = None

    def _refuse(self, job: Job, age: float) -> str:
        if not job.done:
            return f"no answer for {format_duration(age)}"
        if job.error is not None:
            return f"{type(job.error).__name__} was raised"
        if not isinstance(job.text, str):
            return f"it returned {type(job.text).__name__}, not str"
        return refuse_text(job.text, self._policy.max_bytes)


def refuse_text(text: str, max_bytes: int) -> str:
    """Return why `text` is not a summary (empty, too long, the text of an error), else ''."""
    if not text.strip():
        return "it is empty"
    if (size := len(text.encode(errors="replace"))) > max_bytes:
        return f"it has {format_size(size)}, and max_summary_bytes is {format_size(max_bytes)}"
    return "it is the text of an error" if _ERROR_TEXT.match(text) else ""


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _is_async(call: Summarise) -> bool:
    call = getattr(call, "func", call)  # functools.partial
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
        getattr(call, "__call__", None)  # noqa: B004  # an object with an async __call__
    )


def _takes_max_bytes(call: Summarise) -> bool:
    try:
        return "max_bytes" in inspect.signature(call).parameters
    except (TypeError, ValueError):  # a builtin may have no signature
        return False
