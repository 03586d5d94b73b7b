"""Watches a running server for what grows, about a millisecond of work at a time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from floodline.errors import ConfigError
from floodline.leaks._forks import FORK
from floodline.leaks._heap.slot_lookup import Places
from floodline.leaks._heap.slots import Slots
from floodline.leaks._live.answer import LiveAnswer
from floodline.leaks._live.blind_spots import blind_spots
from floodline.leaks._live.holdings import Holdings
from floodline.leaks._live.inherited_pages import Inherited
from floodline.leaks._live.judge import LEAST_SURE, Judge
from floodline.leaks._live.outline_walk import Anchors
from floodline.leaks._live.process_sampler import Sampler
from floodline.leaks._live.roots import Begin, roots
from floodline.leaks._live.sliced_walk import SlicedWalk
from floodline.leaks._live.tracks import Tracks
from floodline.leaks._live.watched_slots import Ticks
from floodline.leaks._objects.outline import Outlines
from floodline.memory import rss

SLICE = 0.001  # seconds of CPU time per step
TICK = 1.0  # seconds, at least, between two readings of the watched slots
REST = 5.0  # seconds, at least, between two walks
STARVED = 2.5  # times its CPU time: the most a step is charged
LATE = 0.006  # seconds in which the interpreter switches threads
LIMIT_EVERY = 1.0
MARGIN = 0.1  # of the memory limit, left untouched by the watch
SHORTEST, LONGEST = 0.01, 1.0  # seconds until the next step; other threads run in between
HOLDINGS_EVERY = 30.0
SETTLING = 2  # walks
PRICE = 4e-6  # seconds to walk one object, until it is known
LEAST_MET = 5_000
MOST_MET = 400_000  # about as many objects as are visited in a large heap
Limit = Callable[[], tuple[int, int | None]]


class Live:
    """Finds what grows in this process; call `step()` when it asks for it, from one thread.

    `budget` is the share of one CPU that it may use. `limit` returns the resident bytes and the
    memory limit (None: there is none); above nine tenths of it the watch pauses until there is room
    again. What a fork inherited is inspected only if `inherited` is true.
    """

    def __init__(
        self,
        *,
        budget: float = 0.01,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
        limit: Limit | None = None,
        inherited: bool = False,
    ) -> None:
        if not 0 < budget <= 1:
            raise ConfigError(f"budget={budget!r} must be above 0 and at most 1; try 0.01")
        self._budget, self._clock, self._cpu, self._limit = budget, clock, cpu, limit
        self._inherited = inherited
        self._cost = self._wanted = 0.0
        self._reset()

    def _reset(self) -> None:
        """Start over, also in a forked child, where earlier observations no longer hold."""
        self._generation = FORK.generation
        fresh = self._inherited or not FORK.generation
        self._shared = None if fresh else Inherited()
        self._began = self._clock()
        self._slots = Slots()
        self._outlines = Outlines()
        self._anchors: Anchors = {}
        self._places = Places(self._outlines, self._anchors)
        self._tracks = Tracks(self._slots)
        self._walked = Tracks(self._slots)
        self._ticks = Ticks(self._tracks, self._places, self._outlines)
        self._sampler = Sampler(census=fresh)
        self._judge = Judge(self._tracks, self._walked, self._places, self._sampler.process)
        self._holdings = Holdings(self._slots, self._places, self._outlines, rss)
        self._next_holdings = 0.0
        self._walk: SlicedWalk | None = None
        self._roots: Iterator[Begin] = iter(())
        self._before: SlicedWalk | None = None
        self._before_at = self._tick_cost = self._walk_seconds = 0.0
        self._compared = self._walks = 0
        self._walk_began = self._next_walk = self._next_tick = self._next_limit = 0.0
        self._short = False

    def step(self) -> float:
        """Work for about a millisecond; return the seconds until the next call is due."""
        began, cpu, since = self._cpu(), self._cpu, self._clock()
        if self._generation != FORK.generation:
            self._reset()
        now = self._now()
        if self._memory_is_short(now):
            idle = LONGEST
        else:
            idle = self._work(lambda: cpu() - began >= SLICE, now)
        spent = max(0.0, cpu() - began)
        self._cost += spent
        # on a busy machine a thread that waits for a CPU keeps the others from running
        late = max(0.0, since - self._wanted - LATE)
        end = self._clock()
        held = min(end - since + late, STARVED * spent)
        wait = max(
            idle, min(SHORTEST, SLICE / self._budget), max(spent, held) / self._budget - spent
        )
        self._wanted = end + wait
        return wait

    def answer(self) -> LiveAnswer:
        """Return what is known now, assembled from finished parts."""
        answer = self._judge.answer(
            watched=self._now(),
            objects=self._met,
            walks=self._walks,
            expected=self._expected(),
            cost=self._cost,
            blind=blind_spots(
                self._slots, self._before, short=self._short,
                inherited=self._shared is not None, census=self._sampler.counting,
                partial=self._holdings.partial,
            ),
        )  # fmt: skip
        return replace(answer, holders=self._holdings.found, split=self._holdings.split)

    @property
    def weighed(self) -> bool:
        """True once `answer` says what is in memory now."""
        return self._holdings.ready

    def hurry(self) -> None:
        """Say what is in memory from what the walk has met so far."""
        if self._walk is not None and not (self._holdings.due or self._holdings.ready):
            self._holdings.walked(self._walk, partial=True)

    def _now(self) -> float:
        return self._clock() - self._began

    def _memory_is_short(self, now: float) -> bool:
        if self._limit is not None and now >= self._next_limit:
            self._next_limit = now + LIMIT_EVERY
            resident, limit = self._limit()
            self._short = limit is not None and limit - resident < limit * MARGIN
            if self._short:  # remembering what a walk has visited takes memory too
                self._walk = None
        return self._short

    def _work(self, due: Callable[[], bool], now: float) -> float:
        """Do the most urgent thing; return for how long there is nothing to do."""
        self._sampler.sample(now)
        if self._ticks.busy or now >= self._next_tick:
            self._tick(due, now)
        elif self._judge.due(now):
            self._judge.work(now)
        elif self._holdings.due:
            self._holdings.work(due)
        elif self._walk is not None or now >= self._next_walk:
            self._advance(due, now)
        else:
            return max(0.0, min(LONGEST, self._next_walk - now, self._next_tick - now))
        return 0.0

    def _tick(self, due: Callable[[], bool], now: float) -> None:
        if not self._ticks.busy:
            self._tick_cost = 0.0
            self._ticks.begin()
        began = self._cpu()
        self._ticks.advance(due, self._now)
        self._tick_cost += self._cpu() - began
        # ticks may take a third of the budget, the rest is for the walk
        self._next_tick = now + max(TICK, 3 * self._tick_cost / self._budget)
        if not self._ticks.busy:
            self._judge.ask(now)

    def _advance(self, due: Callable[[], bool], now: float) -> None:
        walk = self._walk
        if walk is None:
            self._outlines.refresh()
            walk = self._walk = self._begin()
            self._walk_began, self._compared = now, 0
        while not due():
            if not walk.done:
                walk.advance(due)
            elif not self._begin_next(walk):
                self._compare(walk, due, now)
                break
        walk.let_go()  # what has just been started from a root
        while walk.containers:
            self._ticks.watch(walk.containers.pop())

    def _begin(self) -> SlicedWalk:
        if self._shared is not None and (self._shared.alone or Inherited().alone):
            self._shared = None
            self._sampler.allow_census()
        self._roots = roots(0 if self._shared is None else FORK.modules)
        return SlicedWalk(self._slots, self._outlines, self._anchors, inherited=self._shared)

    def _begin_next(self, walk: SlicedWalk) -> bool:
        begin = next(self._roots, None)
        if begin is not None:
            begin(walk)
        return begin is not None

    def _compare(self, walk: SlicedWalk, due: Callable[[], bool], now: float) -> None:
        """Track the slots that changed since the previous walk; this takes several steps too."""
        before, size = self._before, len(walk.count)
        while self._compared < size and not due():
            for index in range(self._compared, min(size, self._compared + 500)):
                row = walk.row(index)
                old = before.row(index) if before else row
                if row != old or index in self._walked.by_index:
                    self._changed(index, now, row, old)
            self._compared += 500
        if self._compared >= size:
            self._end(walk, now)

    def _changed(self, index: int, now: float, row: Any, old: Any) -> None:
        if index not in self._walked.by_index:
            self._walked.add(index, self._before_at, old)
        self._walked.add(index, now, row)
        if row[1] > old[1] or row[2] > old[2]:
            self._ticks.watch(index)

    def _end(self, walk: SlicedWalk, now: float) -> None:
        self._walks += 1
        self._walk_seconds = now - self._walk_began
        self._before_at = now
        if self._walks <= SETTLING:  # by then the engine has all the memory it needs
            self._sampler.process.restart()
            self._judge.settled(now)
        self._judge.walked(walk)
        walk.forget()
        if now >= self._next_holdings:
            self._next_holdings = now + HOLDINGS_EVERY
            self._holdings.walked(walk)
        self._before, self._walk = walk, None
        self._next_walk = now + max(REST, self._walk_seconds / 4)

    @property
    def _met(self) -> int:
        """The objects that the last finished walk visited, or the first one so far."""
        walk = self._before or self._walk
        return walk.objects if walk else 0

    def _expected(self) -> float:
        """Return the seconds until a verdict can be expected: the first walk, then readings."""
        if self._judge.decided:
            return 0.0
        if self._walks:
            left = max(0, SETTLING - self._walks) * self._walk_seconds
            return left + self._judge.seconds_left(self._now())
        # most allocator blocks are objects; what has been walked gives the cost of one
        met = self._walk.objects if self._walk else 0
        price = self._cost / met if met > LEAST_MET else PRICE
        blocks = min(sys.getallocatedblocks(), MOST_MET)
        return max(0.0, (blocks - met) * price / self._budget) + LEAST_SURE
