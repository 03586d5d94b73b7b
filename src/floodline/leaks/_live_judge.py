"""Judging the tracks of a live watch, and naming what grows, one suspect at a time."""

from __future__ import annotations

from typing import Any

from floodline.leaks._candidates import Candidate, find_candidates
from floodline.leaks._live_answer import LiveAnswer
from floodline.leaks._live_name import Named, echoes_of, name, renewed
from floodline.leaks._live_place import Places
from floodline.leaks._live_tracks import Process, Tracks
from floodline.leaks._live_walk import SlicedWalk
from floodline.leaks._suspect import Suspect
from floodline.leaks._verdict import Verdict, decide

EVERY = 2.0
LEAST_GROWING = 20.0  # seconds; what a server fills when it starts looks like growth
LEAST_BOUNDED = 60.0
MAX_JUDGED = 16
MAX_SUSPECTS = 12
MAX_NAMED = 200


class Judged(Tracks):
    """Those tracks that rise, the steepest first, as many as are judged at once."""

    def __init__(self, tracks: Tracks, indices: list[int]) -> None:
        self.slots = tracks.slots
        self.by_index = {index: tracks.by_index[index] for index in indices}


class Judge:
    """Turns tracks into suspects with names, and these into a verdict."""

    def __init__(self, ticks: Tracks, walks: Tracks, places: Places, process: Process) -> None:
        self._ticks, self._walks, self._places, self._process = ticks, walks, places, process
        self._asked = False
        self._next = 0.0
        self._walked = False
        self._pending: list[Candidate] = []
        self._growing: list[Candidate] = []
        self._rising: list[Candidate] = []
        self._names: dict[int, Named | None] = {}  # floodline: bounded[MAX_NAMED]
        self._suspects: tuple[Suspect, ...] = ()
        self._verdict = Verdict("undecided", "unknown", 40, "too few seconds to tell")

    def ask(self, now: float) -> None:
        """Judge soon: there are new figures."""
        if now >= self._next:
            self._next, self._asked = now + EVERY, True

    def due(self, _: float) -> bool:
        """Tell whether there is something to judge or to name."""
        return self._asked or bool(self._pending)

    def walked(self, _: SlicedWalk) -> None:
        """Judge soon: a walk has ended."""
        self._walked = self._asked = True

    @property
    def decided(self) -> bool:
        """Whether the verdict is growing or bounded."""
        return self._verdict.verdict != "undecided"

    def work(self, now: float) -> None:
        """Judge all tracks, or name one suspect."""
        if self._pending:
            self._name(self._pending.pop())
        else:
            self._asked = False
            self._find()
        if not self._pending:
            self._decide(now)

    def _find(self) -> None:
        fast, slow = _rising(self._ticks), _rising(self._walks)
        tests = max(1, len(self._ticks.changed()) + len(self._walks.changed()))
        found = find_candidates(Judged(self._ticks, fast), tests=tests)
        seldom = find_candidates(
            Judged(self._walks, [i for i in slow if i not in self._ticks.by_index]), tests=tests
        )
        self._growing = [c for c in found.growing + seldom.growing if self._long_enough(c)]
        self._rising = found.rising + seldom.rising
        chosen = (self._growing or self._rising)[:MAX_SUSPECTS]
        self._pending = [c for c in chosen if c.slot.index not in self._names]

    def _long_enough(self, one: Candidate) -> bool:
        index = one.slot.index
        track = self._ticks.by_index.get(index) or self._walks.by_index[index]
        return track.span >= LEAST_GROWING

    def _name(self, one: Candidate) -> None:
        if len(self._names) >= MAX_NAMED:
            self._names.clear()
        self._names[one.slot.index] = name(one, self._places)

    def _decide(self, now: float) -> None:
        growing, rising = self._named(self._growing), self._named(self._rising)
        verdict = decide(self._process, growing, rising)
        if verdict.verdict == "bounded" and (now < LEAST_BOUNDED or not self._walked):
            more = max(1, round(LEAST_BOUNDED - now))
            verdict = Verdict("undecided", "unknown", more, "watched for too short a time")
        chosen = growing or rising
        if verdict.verdict != "growing":
            chosen = [one.but(verdict=verdict.verdict) for one in chosen]
        self._suspects, self._verdict = tuple(chosen), verdict

    def _named(self, found: list[Candidate]) -> list[Suspect]:
        """Return the records of candidates; those that only echo another one are put below it."""
        kept: list[tuple[Named, Suspect, list[str]]] = []
        for one in found[:MAX_SUSPECTS]:
            named = self._names.get(one.slot.index)
            if named is None:
                continue
            suspect = renewed(named, one, len(kept) + 1)
            for other, first, echoes in kept:
                if suspect.owner == first.owner:
                    break
                if echoes_of(named, suspect, other, first):
                    echoes.append(suspect.owner)
                    break
            else:
                kept.append((named, suspect, []))
        return [one.but(echoes=tuple(dict.fromkeys(echoes))) for _, one, echoes in kept]

    def answer(
        self, *, watched: float, objects: int, walks: int, expected: float, cost: float,
        blind: tuple[str, ...],
    ) -> LiveAnswer:  # fmt: skip
        """Put the answer of now together."""
        verdict = self._verdict
        return LiveAnswer(
            verdict=verdict.verdict,
            where=verdict.where or "none",
            suspects=self._suspects,
            needed=_needed(verdict),
            watched_seconds=watched,
            objects=objects,
            walks=walks,
            expected_seconds=expected,
            cost_seconds=cost,
            blind_spots=blind,
        )


def _needed(verdict: Verdict) -> dict[str, Any] | None:
    if verdict.why is None:
        return None
    return {"seconds": float(verdict.rounds or 0), "why": verdict.why}


def _rising(tracks: Tracks) -> list[int]:
    """Return the slots that have more at the end than at the beginning, most bytes first."""
    found = []
    for index, track in tracks.by_index.items():
        gains = [column[-1] - column[0] for column in track.columns]
        if max(gains[:3]) > 0:
            found.append((gains[3], index))
    return [index for _, index in sorted(found, reverse=True)[:MAX_JUDGED]]
