"""The run itself: warm up, sample between rounds, judge, then look for the feeding lines."""

from __future__ import annotations

import asyncio
import gc
import inspect
import time
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from floodline._units import parse_count
from floodline.errors import ConfigError
from floodline.leaks import Suspect
from floodline.leaks._closeup import Close, Feeder, Watch, look_closer, merge, with_traced_line
from floodline.leaks._figures import (
    Series,
    decide,
    find_candidates,
    typical_slope,
)
from floodline.leaks._heap import Slots
from floodline.leaks._vocabulary import Outcome, Where
from floodline.soak._answer import Answer
from floodline.soak._failure import failure_text
from floodline.soak._sampler import Sampler
from floodline.soak._scenario import Scenario
from floodline.soak._schedule import default_warmup, positions, traced_rounds

BUDGET = 3.0  # seconds for all samples of a run
WATCHED = 8

Phase = Literal["warm-up", "measuring", "tracing", "finishing"]
Progress = Callable[[int, int, Phase], object]


class Soak:
    """One run of a scenario; `own` are objects of the caller whose growth is not the program's."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        rounds: int,
        warmup: int | None = None,
        own: tuple[Any, ...] = (),
        progress: Progress | None = None,
        budget: float = BUDGET,
    ) -> None:
        self.rounds = parse_count(rounds, "rounds")
        self.warmup = default_warmup(rounds) if warmup is None else warmup
        if not 0 <= self.warmup < rounds:
            raise ConfigError(f"warmup={warmup} must be at least 0 and below rounds={rounds}")
        self._scenario, self._budget, self._progress = scenario, budget, progress
        self._slots = Slots()
        self._sampler = Sampler(self._slots)
        self._series = self._sampler.series
        self._own = (*own, self, self._sampler)
        self._done = 0
        self._at = "setup()"  # what the scenario is doing
        self._wanted: set[int] = set()

    def run(self) -> Answer:
        """Run to the end on this thread; an async scenario gets an event loop of its own."""
        if self._scenario.asynchronous:
            return asyncio.run(self.arun())
        return _step_through(self.arun())

    async def arun(self) -> Answer:
        """Run on the event loop that is running."""
        try:
            await self._call(self._scenario.setup)
            answer = await self._measure()
            self._at = "teardown()"
            await self._call(self._scenario.teardown)
        except Exception as error:  # anything the scenario raises is its answer
            return self.failed(error)
        return answer

    async def _measure(self) -> Answer:
        last = self.rounds - traced_rounds(self.rounds)
        for _ in range(self.warmup):
            await self._round("warm-up")
        await self._drain()
        # two walks that do not count: they allocate what all others reuse
        await self._sample(decides=True)
        began = time.process_time()
        await self._sample(decides=True)
        cost = time.process_time() - began
        self._sampler.restart()
        self._wanted = set(positions(max(1, self._done), last, cost, self._budget))
        if self._done in self._wanted:
            await self._sample()
        while self._done < last:
            await self._round("measuring")
            if self._done in self._wanted:
                await self._sample()
        return await self._judge()

    async def _judge(self) -> Answer:
        found = find_candidates(self._series, paced=True) if len(self._series) else None
        chosen = (found.growing or found.rising) if found else []
        close = merge(look_closer(self._slots, chosen, own=self._own)) if chosen else []
        watches = await self._watch([one for one, _ in close[:WATCHED]])
        suspects = [
            with_traced_line(one.suspect(rank).but(echoes=echoes), one, watch)
            for rank, ((one, echoes), watch) in enumerate(
                zip(close, [*watches, *([None] * len(close))], strict=False), 1
            )
        ]
        lengths = [self._series.column(one.one.slot.index, one.one.column) for one, _ in close]
        del close, watches
        return self._answer(suspects, lengths)

    async def _watch(self, close: list[Close]) -> list[Watch]:
        """Run the remaining rounds, with line events until each watched suspect was fed."""
        watches = [one.watch() for one in close]
        with Feeder(watches) as feeder:
            while self._done < self.rounds:
                if all(watch.fed for watch in watches):
                    break
                await self._round("tracing" if feeder.active else "finishing")
                gc.collect()
        while self._done < self.rounds:
            await self._round("finishing")
        return watches

    async def _round(self, phase: Phase) -> None:
        if self._progress:
            self._progress(self._done, self.rounds, phase)
        self._at = f"round({self._done})"
        await self._call(self._scenario.round, self._done)
        self._done += 1

    async def _call(self, function: Callable[..., Any], *arguments: Any) -> None:
        result = function(*arguments)
        if inspect.isawaitable(result):
            await result

    async def _drain(self) -> None:
        """Let due callbacks run, then collect, again if a finalizer may have created garbage."""
        if self._scenario.asynchronous:
            for _ in range(20):
                await asyncio.sleep(0)
                if not getattr(asyncio.get_running_loop(), "_ready", ()):
                    break
        if gc.collect():
            gc.collect()

    async def _sample(self, *, decides: bool = False) -> None:
        await self._drain()
        decides = decides or self._done == max(self._wanted)
        self._sampler.sample(self._done, self._own, decides=decides)

    def _answer(self, suspects: list[Suspect], lengths: list[list[int]]) -> Answer:
        series = self._series
        growing = [s for s in suspects if s.verdict == Outcome.GROWING]
        rising = [s for s in suspects if s.verdict != Outcome.GROWING]
        verdict = decide(series, growing, rising)
        if verdict.verdict != Outcome.GROWING:
            suspects = [s.but(verdict=verdict.verdict) for s in suspects]
        names = ("malloc_used", "malloc_free", "malloc_mapped", "blocks")
        return Answer(
            verdict=verdict.verdict,
            where=verdict.where,
            rounds=self.rounds,
            warmup=self.warmup,
            bytes_per_round=_rate(series, "bytes"),
            objects_per_round=_rate(series, "objects"),
            rss_per_round=_rate(series, "rss"),
            suspects=tuple(suspects),
            needed_rounds=verdict.rounds,
            why=verdict.why,
            cause=verdict.reason.cause if verdict.reason else None,
            memory={f"{name}_per_round": _rate(series, name) for name in names},
            series={
                "rounds": series.rounds,
                "objects": series.process("objects"),
                "bytes": series.process("bytes"),
                "rss": series.process("rss"),
                "blocks": series.process("blocks"),
                "malloc_used": series.process("malloc_used"),
                "malloc_free": series.process("malloc_free"),
                "malloc_mapped": series.process("malloc_mapped"),
                "arenas": series.process("arenas"),
                "suspects": lengths,
            },
        )

    def failed(self, error: BaseException) -> Answer:
        """Return the answer of a run that the scenario ended with this error."""
        return Answer(
            verdict=Outcome.UNDECIDED,
            where=Where.UNKNOWN,
            rounds=self.rounds,
            warmup=self.warmup,
            needed_rounds=self.rounds,
            why=f"{self._at} raised {type(error).__name__}",
            errors=(failure_text(error),),
        )


def _rate(series: Series, name: str) -> float:
    return round(typical_slope(series.rounds, series.process(name)), 2)


def _step_through(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Run a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        answer: Answer = done.value
        return answer
    work.close()
    raise ConfigError("the scenario waited for something; make its functions async")


def run(
    round: Callable[[int], Any],  # the name in a scenario file
    *,
    rounds: int = 200,
    warmup: int | None = None,
    setup: Callable[[], Any] | None = None,
    teardown: Callable[[], Any] | None = None,
    own: tuple[Any, ...] = (),
    progress: Progress | None = None,
) -> Answer:
    """Call `round(i)` `rounds` times and say what grows."""
    parts = {k: v for k, v in (("setup", setup), ("teardown", teardown)) if v is not None}
    scenario = Scenario(round, **parts)
    return Soak(scenario, rounds=rounds, warmup=warmup, own=own, progress=progress).run()
