"""Watches a running server for what grows, about a millisecond of work at a time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from floodline.errors import ConfigError
from floodline.leaks._forks import FORK
from floodline.leaks._heap.slot_lookup import Places
from floodline.leaks._heap.slots import Slots
from floodline.leaks._live.answer import LiveAnswer
from floodline.leaks._live.blind_spots import blind_spots
from floodline.leaks._live.holder_search import HolderSearch
from floodline.leaks._live.holdings import Holdings
from floodline.leaks._live.inherited_pages import Inherited
from floodline.leaks._live.judge import Judge
from floodline.leaks._live.readings.own_memory import OwnMemory
from floodline.leaks._live.readings.process_sampler import Sampler
from floodline.leaks._live.readings.rare_steps import RareSteps
from floodline.leaks._live.readings.tracks import Row, Tracks
from floodline.leaks._live.readings.watched_slots import Ticks
from floodline.leaks._live.walk.outline_walk import Anchors
from floodline.leaks._live.walk.roots import Begin, KnownTasks, library_roots, roots
from floodline.leaks._live.walk.sliced_walk import SlicedWalk
from floodline.leaks._live.walk.stages import Progress, Rows, Stage
from floodline.leaks._objects.outline import Outlines
from floodline.leaks._objects.territory import Territory
from floodline.memory import rss

SLICE = 0.001  # seconds of CPU time per step
TICK = 1.0  # seconds, at least, between two readings of the watched slots
TICK_SHARE = 1 / 4  # of the budget, for readings of single places, and as much for those of many
REST = 5.0  # seconds, at least, between two walks
STARVED = 2.5  # times its CPU time: the most a step is charged
LATE = 0.006  # seconds in which the interpreter switches threads
LIMIT_EVERY = 1.0
MARGIN = 0.1  # of the memory limit, left untouched by the watch
SHORTEST, LONGEST = 0.01, 1.0  # seconds until the next step; other threads run in between
HOLDINGS_EVERY = 30.0
FIRST_TIMES = 6  # times the budget, until everything has been walked once
FIRST_COST = 300  # budgets of a second: the CPU time that this may take in all
LOADED = 2.0  # seconds without a new module, after which a program has been imported
LONGEST_LOAD = 15.0
WHOLE_EVERY = 4  # walks, of which the others do not enter libraries
FIRST_GUESS = 20.0  # seconds until everything was walked once, until there is a better guess
MAX_SLOTS = 16_000
Limit = Callable[[], tuple[int, int | None]]


class Live:
    """Finds what grows in this process; call `step()` when it asks for it, from one thread.

    `budget` is the share of one CPU that it may use; until everything has been walked once it takes
    up to six times as much, for at most 300 budgets of a second. `limit` returns the resident bytes
    and the memory limit (None: there is none); above nine tenths of it the watch pauses until there
    is room again. What a fork inherited is inspected only if `inherited` is true. `alone` says that
    this thread has done nothing else so far: all memory that it has touched is the watch's own.
    """

    def __init__(
        self,
        *,
        budget: float = 0.01,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
        limit: Limit | None = None,
        inherited: bool = False,
        alone: bool = False,
    ) -> None:
        if not 0 < budget <= 1:
            raise ConfigError(f"budget={budget!r} must be above 0 and at most 1; try 0.01")
        self._budget, self._clock, self._cpu, self._limit = budget, clock, cpu, limit
        self._inherited, self._alone = inherited, alone
        self._cost = self._wanted = 0.0
        self._reset()

    def _reset(self) -> None:
        """Start over, also in a forked child, where earlier observations no longer hold."""
        self._generation = FORK.generation
        fresh = self._inherited or not FORK.generation
        self._shared = None if fresh else Inherited()
        self._began = self._clock()
        self._slots = Slots(MAX_SLOTS)
        self._outlines, self._territory = Outlines(), Territory()
        self._anchors: Anchors = {}
        self._places = Places(self._outlines, self._anchors)
        self._tracks = Tracks(self._slots)
        self._walked = Tracks(self._slots)
        self._ticks = Ticks(self._tracks, self._places, self._outlines)
        self._own, rare = OwnMemory(alone=self._alone), RareSteps(self._now)
        self._rare = rare
        kept = self._tracks.by_index, self._walked.by_index
        self._sampler = Sampler(self._own, rare, census=fresh, tracks=lambda: sum(map(len, kept)))
        self._judge = Judge(self._tracks, self._walked, self._places, self._sampler.process)
        self._search = HolderSearch(
            self._slots, self._outlines, self._anchors, rare, self._ticks.watch
        )
        self._holdings = Holdings(self._slots, self._places, self._outlines, rare, rss)
        self._next_holdings = 0.0
        self._judge.first_look = FIRST_GUESS
        self._walk: SlicedWalk | None = None
        self._roots: Iterator[Begin] = iter(())
        self._known = KnownTasks()
        self._whole: SlicedWalk | None = None  # the last walk that entered libraries too
        self._stage, self._progress = Stage.PROGRAM, Progress(FIRST_GUESS)
        self._rows = {Stage.PROGRAM: Rows(), Stage.LIBRARIES: Rows()}
        self._tick_cost = self._walk_seconds = self._next_many = 0.0
        self._compared = self._walks = self._partial = self._tidied = 0
        self._walk_began = self._next_walk = self._next_tick = self._next_limit = 0.0
        self._short = self._walk_waits = False
        self._modules, self._modules_at = 0, 0.0

    def step(self) -> float:
        """Work for about a millisecond; return the seconds until the next call is due."""
        began, cpu, since = self._cpu(), self._cpu, self._clock()
        if self._generation != FORK.generation:
            self._reset()
        self._own.begin()
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
        self._own.end()
        least = min(SHORTEST, SLICE / self._share)
        wait = max(idle, least, max(spent, held) / self._share - spent)
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
            own=self._own.bytes,
            blind=blind_spots(
                self._slots, self._whole, short=self._short,
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

    @property
    def _share(self) -> float:
        """The share of a CPU that it may use now: more until everything has been walked once."""
        first = not self._walks and self._cost < FIRST_COST * self._budget
        return min(1.0, FIRST_TIMES * self._budget) if first else self._budget

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
        self._sampler.sample(now, harder=self._judge.unnamed)
        if self._judge.unnamed:
            counted = self._sampler.process.counted
            self._search.work(now, counted.ids, self._sampler.objects)
            counted.searched = self._search.told
        large = self._walks + self._sampler.censuses  # what takes memory for a while
        if self._tidied != large and self._rare.allows("tidy", self._rare.expected("tidy")):
            self._tidied = large
            self._rare.take("tidy", lambda: self._own.give_back(self._sampler.free))
        if self._ticks.busy or now >= self._next_tick:
            self._tick(due, now)
        elif self._judge.due(now):
            self._judge.first_look = 0.0 if self._walks else self._progress.left(now)
            self._judge.work(now)
        elif self._holdings.urgent:
            self._holdings.work(due)
        elif now >= self._next_many and not (self._walk_waits and self._walk_is_due(now)):
            self._tick_many(due, now)
        elif self._walk_is_due(now):
            self._advance(due, now)
        elif self._holdings.due:  # walks rest: what grows comes first
            self._holdings.work(due)
        else:
            due_next = min(self._next_walk, self._next_tick, self._next_many)
            return max(0.0, min(LONGEST, due_next - now))
        return 0.0

    def _walk_is_due(self, now: float) -> bool:
        return self._walk is not None or now >= self._next_walk

    def _tick(self, due: Callable[[], bool], now: float) -> None:
        if not self._ticks.busy:
            self._tick_cost = 0.0
            self._ticks.begin()
        began = self._cpu()
        self._ticks.advance(due, self._now)
        self._tick_cost += self._cpu() - began
        self._next_tick = now + max(TICK, self._tick_cost / (TICK_SHARE * self._share))
        if not self._ticks.busy:
            self._judge.ask(now)

    def _tick_many(self, due: Callable[[], bool], now: float) -> None:
        began = self._cpu()
        least = TICK if self._ticks.advance_many(due, self._now) else 0.0
        rest = (self._cpu() - began) / (TICK_SHARE * self._share)
        self._next_many = now + max(least, rest)
        self._walk_waits = True  # it comes next

    def _advance(self, due: Callable[[], bool], now: float) -> None:
        self._walk_waits = False
        walk = self._walk
        if walk is None:
            self._outlines.refresh()
            walk = self._walk = self._begin()
            self._walk_began = now
        while not due():
            if not walk.done:
                walk.advance(due)
            elif not self._begin_next(walk):
                self._compare(walk, due, now)
                break
        walk.let_go()  # what has just been started from a root
        while walk.containers:
            self._watch(walk.containers.pop())

    def _watch(self, index: int) -> None:
        self._ticks.watch(index, foreign=self._stage == Stage.LIBRARIES)

    def _begin(self) -> SlicedWalk:
        if self._shared is not None and (self._shared.alone or Inherited().alone):
            self._shared = None
            self._sampler.allow_census()
        self._stage, self._compared = Stage.PROGRAM, 0
        self._roots = roots(self._skipped, self._known)
        return SlicedWalk(
            self._slots, self._outlines, self._anchors,
            inherited=self._shared, territory=self._territory,
        )  # fmt: skip

    @property
    def _skipped(self) -> int:
        """The modules that a fork inherited, which are left out."""
        return 0 if self._shared is None else FORK.modules

    def _begin_next(self, walk: SlicedWalk) -> bool:
        begin = next(self._roots, None)
        if begin is None:
            return self._stage == Stage.LIBRARIES and walk.last()
        begin(walk)
        if self._stage == Stage.LIBRARIES:
            self._progress.step()
        return True

    def _compare(self, walk: SlicedWalk, due: Callable[[], bool], now: float) -> None:
        """Track the slots that changed since the last such stage; this takes several steps too."""
        before, size = self._rows[self._stage], len(walk.count)
        program = self._rows[Stage.PROGRAM] if self._stage == Stage.LIBRARIES else None
        while self._compared < size and not due():
            for index in range(self._compared, min(size, self._compared + 500)):
                if program is None or not program.row(index)[0]:
                    row = walk.row(index)
                    old = before.row(index) if before.at is not None else row
                    if row != old or index in self._walked.by_index:
                        self._changed(index, now, row, old, before.at or now)
            self._compared += 500
        if self._compared >= size:
            self._end_stage(walk, now)

    def _changed(self, index: int, now: float, row: Row, old: Row, then: float) -> None:
        if index not in self._walked.by_index:
            self._walked.add(index, then, old)
        self._walked.add(index, now, row)
        if row[1] > old[1] or row[2] > old[2]:
            self._watch(index)

    def _end_stage(self, walk: SlicedWalk, now: float) -> None:
        self._rows[self._stage] = Rows(walk, now, over=self._stage == Stage.LIBRARIES)
        if self._stage == Stage.LIBRARIES:
            self._whole = walk
            self._end(walk, now)
        elif not self._walks and not self._loaded(now):
            self._put_off(walk, now)
        elif self._walks and self._partial < WHOLE_EVERY - 1:
            self._partial += 1
            self._end(walk, now)
        else:
            self._stage, self._compared, self._partial = Stage.LIBRARIES, 0, 0
            walk.in_libraries = True
            self._roots = library_roots(self._skipped)
            self._progress.begin(len(sys.modules), now)

    def _loaded(self, now: float) -> bool:
        """Return True if the program has finished its imports, or takes very long for them."""
        if len(sys.modules) != self._modules:
            self._modules, self._modules_at = len(sys.modules), now
        return now - self._modules_at >= LOADED or now >= LONGEST_LOAD

    def _put_off(self, walk: SlicedWalk, now: float) -> None:
        """Walk the program again soon: it is still being imported."""
        walk.forget()
        self._walk, self._next_walk = None, now + LOADED / 2

    def _end(self, walk: SlicedWalk, now: float) -> None:
        self._walks += 1
        self._walk_seconds = now - self._walk_began
        if self._walks == 1:  # by then the engine has nearly all the memory it needs
            self._sampler.process.restart()
            self._judge.settled(now)
        self._judge.walked(self._whole or walk)
        walk.forget()
        if walk is self._whole and now >= self._next_holdings:
            self._next_holdings = now + HOLDINGS_EVERY
            self._holdings.walked(walk)
        self._walk = None
        self._next_walk = now + max(REST, self._walk_seconds / 4)

    @property
    def _met(self) -> int:
        """The objects that the last whole walk visited, or the first one so far."""
        walk = self._whole or self._walk
        return walk.objects if walk else 0

    def _expected(self) -> float:
        """Return the seconds until a verdict can be expected: the first walk, then readings."""
        if self._judge.decided:
            return 0.0
        return self._judge.seconds_left(self._now())
