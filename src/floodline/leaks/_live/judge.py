"""Judges the tracks of a live watch, and names what grows, one suspect at a time."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

from floodline.leaks._figures import reasons
from floodline.leaks._figures.candidates import Candidate, find_candidates
from floodline.leaks._figures.series import COLUMNS
from floodline.leaks._figures.suspect import Suspect
from floodline.leaks._figures.trend import keeps_pace, rises_often
from floodline.leaks._figures.verdict import Verdict, decide, may_fill, unsteady
from floodline.leaks._heap.slot_lookup import Places
from floodline.leaks._heap.slots import ITEM, NOWHERE
from floodline.leaks._live.answer import LiveAnswer
from floodline.leaks._live.named_suspects import Named, echoes_of, name, renewed
from floodline.leaks._live.readings.tracks import Process, Track, Tracks
from floodline.leaks._live.walk.sliced_walk import SlicedWalk
from floodline.leaks._source.excerpt import forget_trees
from floodline.leaks._vocabulary import Cause, Outcome, Where

EVERY = 2.0
LEAST_NAMED = 15.0  # seconds of growth before it is named
LEAST_SURE = 60.0  # seconds after the first look before anything is called bounded
LEAST_GROWN = 78.0  # seconds before it is called growing: what a server fills at start-up looks so
LEAST_SPAN = 45.0  # seconds for which the growth of one of its suspects was seen
AGAIN = 3  # judgements in a row that a new verdict takes
DOUBTS = 5  # the same for one that only doubts what was bounded: noise rises now and then
CALM = 20.0  # seconds without anything that rises, after which it is first called bounded
STALLED = 45.0  # seconds without growth, after which what was called growing no longer is
UNNAMED_AFTER = 150.0  # seconds before growth without a name is called growing
NATIVE_AFTER = 100.0  # the same for memory of C code, which libraries also take to warm up
STOPPED = 3  # readings without a change, of what has changed in most of them
STEP = 0.05  # of its pace: so little may one that gets the same items differ from another
EXPLAINS = 0.7  # of what it gained: so much must a container above it have gained too
LENGTH = COLUMNS.index("length")
MAX_JUDGED = 32
_UNNAMED = (Cause.UNNAMED_OBJECTS, Cause.UNNAMED_BLOCKS)
MAX_SUSPECTS = 12
MAX_NAMED = 200


class Judged(Tracks):
    """The rising tracks, steepest first, as many as are judged at once."""

    def __init__(self, tracks: Tracks, indices: list[int]) -> None:
        self.slots = tracks.slots
        self.by_index = {index: tracks.by_index[index] for index in indices}


class Judge:
    """Turns tracks into named suspects, and these into a verdict."""

    def __init__(self, ticks: Tracks, walks: Tracks, places: Places, process: Process) -> None:
        self._ticks, self._walks, self._places, self._process = ticks, walks, places, process
        self._asked = False
        self._next = 0.0
        self._settled: float | None = None
        self.first_look = 0.0  # seconds until everything has been walked once
        self._cut = 0
        self._pending: list[Candidate] = []
        self._growing: list[Candidate] = []
        self._rising: list[Candidate] = []
        self._names: dict[int, Named] = {}
        self._echoed: dict[str, float] = {}  # when an owner was last put below another
        self._suspects: tuple[Suspect, ...] = ()
        self._rose: tuple[float, list[Suspect]] = (-CALM, [])  # what rose last, and when
        self.unnamed = False  # True while there are more objects that no name explains
        self._new: Outcome | None = None
        self._times = 0
        self._verdict = Verdict(Outcome.UNDECIDED, Where.UNKNOWN, 40, reasons.too_few("second"))

    def ask(self, now: float) -> None:
        """Judge soon: there are new figures."""
        if now >= self._next:
            self._next, self._asked = now + EVERY, True

    def due(self, _: float) -> bool:
        """Return True if there is something to judge or to name."""
        return self._asked or bool(self._pending)

    def walked(self, walk: SlicedWalk) -> None:
        """Judge soon: a walk has finished."""
        self._cut, self._asked = walk.cut, True

    def settled(self, now: float) -> None:
        """Measure the process from now on."""
        self._settled = now

    def seconds_left(self, now: float) -> float:
        """Return the seconds until enough has been seen for a verdict."""
        if self._settled is None:
            return self.first_look + LEAST_SURE
        return max(0.0, LEAST_SURE - now + self._settled)

    @property
    def decided(self) -> bool:
        """True if the verdict is growing or bounded."""
        return self._verdict.verdict != Outcome.UNDECIDED

    def work(self, now: float) -> None:
        """Judge all tracks, or name one suspect."""
        if self._pending:
            self._name(self._pending.pop())
        else:
            self._asked = False
            self._find()
        if not self._pending:
            forget_trees()
            self._decide(now)

    def _find(self) -> None:
        fast, slow = _rising(self._ticks), _rising(self._walks)
        tests = max(1, len(self._ticks.changed()) + len(self._walks.changed()))
        found = find_candidates(Judged(self._ticks, fast), tests=tests)
        seldom = find_candidates(
            Judged(self._walks, [i for i in slow if not self._is_read(i)]), tests=tests
        )
        # more objects below something say nothing new if their holder is known to grow
        slowly = [c for c in seldom.growing if c.column != "count" or not found.growing]
        slowly = [c for c in slowly if not self._is_held(c)]
        rising = [
            c for c in found.growing + slowly
            if self._track(c).span >= LEAST_NAMED and not self._is_counted_above(c)
        ]  # fmt: skip
        unsure = [c for c in found.rising if not self._is_counted_above(c)]
        self._growing, self._rising = self._parted(rising, unsure)
        self._rising += [c for c in seldom.rising if not self._is_held(c)]
        chosen = (self._growing or self._rising)[:MAX_SUSPECTS]
        self._pending = [c for c in chosen if c.slot.index not in self._names]

    def _parted(
        self, rising: list[Candidate], unsure: list[Candidate]
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Return what grows for sure, and what slows down or may."""
        sure = [c for c in rising if self._is_steady(c)]
        slowing = [c for c in rising if not self._is_steady(c)] + unsure
        # what is sure of one is sure of another that gets the same items at the same time
        growing = sure + [c for c in slowing if any(_in_step(c, one) for one in sure)]
        return growing, [c for c in slowing if c not in growing]

    def _is_held(self, one: Candidate) -> bool:
        """Return True if a container above it that is read often has grown as much."""
        parents, at, track = one.slot.slots.parents, one.slot.index, self._track(one)
        gained = _share_gained(track, COLUMNS.index(one.column))
        while (at := parents[at]) != NOWHERE:
            above = self._ticks.by_index.get(at)
            if above is not None and _share_gained(above, LENGTH) >= EXPLAINS * gained:
                return True
        return False

    def _is_counted_above(self, one: Candidate) -> bool:
        """Return True if it is the number of items of a container whose length is known."""
        parent = one.slot.parent
        if one.column != "count" or one.slot.label != ITEM or parent is None:
            return False
        return any(parent.index in known.by_index for known in (self._ticks, self._walks))

    def _is_read(self, index: int) -> bool:
        """Return True if readings between the walks show how a slot changes.

        They only see what its path leads to, which is not the end of a chain.
        """
        track = self._ticks.by_index.get(index)
        return track is not None and (track.moved or index not in self._walks.by_index)

    def _track(self, one: Candidate) -> Track:
        index = one.slot.index
        return (self._ticks if self._is_read(index) else self._walks).by_index[index]

    def _is_steady(self, one: Candidate) -> bool:
        """Return True if it keeps its initial pace: what fills up slows down, or stops."""
        track = self._track(one)
        times, values = track.times, track.column(COLUMNS.index(one.column))
        read = self._is_read(one.slot.index)
        if track.quiet >= (STOPPED if read else 1) and rises_often(values):
            return False
        return keeps_pace(times, values)

    def _name(self, one: Candidate) -> None:
        if len(self._names) >= MAX_NAMED:
            self._names.clear()
        self._names[one.slot.index] = name(one, self._places)

    def _decide(self, now: float) -> None:
        found, rising = self._named(self._growing, now), self._named(self._rising, now)
        left_over = [one for one in found if self._is_left_over(one, now)]
        growing, rising = [one for one in found if one not in left_over], left_over + rising
        # named growth needs no figures of the process, which restart once the watch has settled
        sure = [one for one in growing if not may_fill(one)]
        named = Verdict(Outcome.GROWING, Where.PYTHON) if sure else None
        verdict = named or self._climbing(decide(self._process, growing, rising), now)
        self.unnamed = verdict.reason is not None and verdict.reason.cause in _UNNAMED
        verdict = self._doubted(verdict, growing, rising, now)
        left = self._seconds_for(verdict, now)
        if left > 0:
            first = self._settled is None and not sure
            told = self.unnamed and self.seconds_left(now) <= 0
            verdict = _too_early(now, first, growing or rising, verdict, left, told=told)
        if not self._holds(verdict, now):
            self._verdict = verdict
        elif self._verdict.verdict == Outcome.GROWING:
            fresh = {one.owner: one for one in (*rising, *growing)}
            self._suspects = tuple(_refreshed(one, fresh) for one in self._suspects)
            return
        self._suspects = _ranked(growing or rising, self._verdict)

    def _climbing(self, verdict: Verdict, now: float) -> Verdict:
        """Return a verdict, undecided if rare counts of all objects speak against bounded."""
        process = self._process
        if verdict.verdict != Outcome.BOUNDED:
            return verdict
        if process.climb:
            reason = reasons.unnamed_objects(
                process.climb, process.unit, process.counted, may_be_garbage=process.may_be_garbage
            )
            return Verdict(Outcome.UNDECIDED, Where.PYTHON, round(2 * now), reason)
        if process.few_counts:
            return Verdict(Outcome.UNDECIDED, Where.UNKNOWN, 60, reasons.too_short(now))
        return verdict

    def _doubted(
        self, verdict: Verdict, growing: list[Suspect], rising: list[Suspect], now: float
    ) -> Verdict:
        """Return a verdict, or a weaker one if names, the past or what was not read say so."""
        if verdict.reason is not None and verdict.reason.cause == Cause.UNNAMED_OBJECTS and rising:
            verdict = unsteady(rising, now)  # a name explains them, though it may be filling
        if growing or rising:
            self._rose = now, growing or rising
        elif verdict.verdict == Outcome.BOUNDED and self._rose_lately(now):
            verdict = unsteady(self._rose[1], now)  # noise hides a slow rise now and then
        if verdict.verdict == Outcome.BOUNDED and self._cut:
            reason = reasons.too_deep(self._cut)
            verdict = Verdict(Outcome.UNDECIDED, Where.PYTHON, None, reason)
        return verdict

    def _is_left_over(self, one: Suspect, now: float) -> bool:
        """Return True if it echoed a moment ago what has stopped: it must go on for a while."""
        return not one.echoes and now - self._echoed.get(one.owner, -inf) < LEAST_SPAN

    def _rose_lately(self, now: float) -> bool:
        """Return True if something rose a moment ago; once bounded, that takes several doubts."""
        return self._verdict.verdict != Outcome.BOUNDED and now - self._rose[0] < CALM

    def _seconds_for(self, verdict: Verdict, now: float) -> float:
        """Return how many seconds are missing for such a verdict."""
        if verdict.verdict == Outcome.GROWING and verdict.where == Where.PYTHON:
            if verdict.reason is not None:  # objects without a name
                return max(self.seconds_left(now), UNNAMED_AFTER - now)
            spans = [self._track(one).span for one in self._growing]
            return max(LEAST_GROWN - now, LEAST_SPAN - max(spans, default=LEAST_SPAN))
        if verdict.verdict == Outcome.GROWING:
            return max(self.seconds_left(now), NATIVE_AFTER - now)
        return self.seconds_left(now)

    def _holds(self, verdict: Verdict, now: float) -> bool:
        """Return True if the verdict so far stands: a new one must be reached several times.

        What was called growing stays so while its suspects have not fallen and still grow; if there
        are none, while memory still rises there, only less surely.
        """
        before, new = self._verdict.verdict, verdict.verdict
        if new == before:
            self._new = None
            return False
        if before == Outcome.GROWING and any(self._still_grows(one, now) for one in self._suspects):
            return True
        less_sure = new == Outcome.UNDECIDED and verdict.where == self._verdict.where
        if before == Outcome.GROWING and less_sure and not self._suspects:
            return True
        self._times = self._times + 1 if new == self._new else 1
        self._new = new
        if new == Outcome.UNDECIDED:
            return before == Outcome.BOUNDED and self._times < DOUBTS
        return self._times < AGAIN

    def _still_grows(self, one: Suspect, now: float) -> bool:
        if one.verdict != Outcome.GROWING:
            return False
        index = next(
            (i for i, named in self._names.items() if named.suspect.owner == one.owner), -1
        )
        known = self._ticks if self._is_read(index) else self._walks
        track, counted = known.by_index.get(index), one.unit == "object"
        return track is not None and track.rises(now - STALLED, counted=counted)

    def _named(self, found: list[Candidate], now: float) -> list[Suspect]:
        """Return the records of candidates; those that only echo another go below it."""
        if len(self._echoed) >= MAX_NAMED:
            self._echoed.clear()
        kept: list[tuple[Named, Suspect, list[str]]] = []
        for one in found[:MAX_SUSPECTS]:
            named = self._names.get(one.slot.index)
            if named is None:
                continue
            places = self._track(one).latest[0]
            suspect = renewed(named, one, len(kept) + 1, places=places)
            for at, (other, first, echoes) in enumerate(kept):
                if suspect.owner == first.owner:
                    break
                if other.points and not named.points and echoes_of(other, first, named, suspect):
                    suspect = suspect.but(rank=first.rank)
                    kept[at] = (named, suspect, [first.owner, *echoes])
                    break
                if echoes_of(named, suspect, other, first):
                    echoes.append(suspect.owner)
                    self._echoed[suspect.owner] = now
                    break
            else:
                kept.append((named, suspect, []))
        return [one.but(echoes=tuple(dict.fromkeys(echoes))) for _, one, echoes in kept]

    def answer(
        self, *, watched: float, objects: int, walks: int, expected: float, cost: float,
        blind: tuple[str, ...], own: int = 0,
    ) -> LiveAnswer:  # fmt: skip
        """Build the current answer."""
        verdict = self._verdict
        return LiveAnswer(
            verdict=verdict.verdict,
            where=verdict.where or Where.NONE,
            suspects=self._suspects,
            needed=_needed(verdict),
            watched_seconds=watched,
            objects=objects,
            walks=walks,
            expected_seconds=expected,
            cost_seconds=cost,
            blind_spots=blind,
            own_bytes=own,
            filling=tuple(self._process.holders.filling()),
        )


def _in_step(one: Candidate, sure: Candidate) -> bool:
    """Return True if one rises at the pace of another, and still does."""
    mine, other = one.trend, sure.trend
    if one.column != sure.column or mine.last < mine.rate / 2:
        return False
    return abs(mine.rate - other.rate) <= STEP * other.rate


def _share_gained(track: Track, column: int) -> float:
    """Return how much of its present figure a track has gained."""
    values = track.column(column)
    return (values[-1] - values[0]) / values[-1] if values and values[-1] > 0 else 0.0


def _refreshed(one: Suspect, fresh: dict[str, Suspect]) -> Suspect:
    """Return a suspect with current figures and the verdict that stands."""
    return fresh.get(one.owner, one).but(rank=one.rank, verdict=one.verdict, echoes=one.echoes)


def _ranked(found: list[Suspect], verdict: Verdict) -> tuple[Suspect, ...]:
    """Return the suspects numbered, those without a cap first."""
    chosen = sorted(found, key=may_fill)
    sure = verdict.verdict == Outcome.GROWING
    return tuple(
        one.but(
            rank=rank,
            verdict=one.verdict if sure and not may_fill(one) else Outcome.UNDECIDED,
        )
        for rank, one in enumerate(chosen, 1)
    )


def _too_early(
    now: float, first: bool, found: list[Suspect], verdict: Verdict, seconds: float, *, told: bool
) -> Verdict:
    """Return undecided, with what is suspected; `told` also says what has no name."""
    if told and not found:
        return replace(verdict, verdict=Outcome.UNDECIDED, rounds=round(seconds))
    known = found or (verdict.reason is not None and verdict.reason.cause == Cause.FILLING)
    if known and verdict.verdict == Outcome.UNDECIDED and verdict.where == Where.PYTHON:
        return verdict  # more informative: a cap that has not been reached yet
    left = max(1, round(seconds))
    reason = reasons.first_walk() if first else reasons.too_short(now)
    if not found:
        return Verdict(Outcome.UNDECIDED, Where.UNKNOWN, left, reason)
    named = reasons.grows_so_far(found[0], reason)
    return Verdict(Outcome.UNDECIDED, Where.PYTHON, left, named)


def _needed(verdict: Verdict) -> dict[str, Any] | None:
    if verdict.why is None:
        return None
    return {"seconds": float(verdict.rounds or 0), "why": verdict.why}


def _rising(tracks: Tracks) -> list[int]:
    """Return the slots that have more at the end than at the start, most bytes first."""
    found = []
    for index, track in tracks.by_index.items():
        gains = track.gains
        if max(gains[:3]) > 0:
            found.append((gains[3], index))
    return [index for _, index in sorted(found, reverse=True)[:MAX_JUDGED]]
