"""The answer of a soak run, as a record and in words."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from textwrap import indent
from typing import TypedDict

from floodline import __version__
from floodline._pages.answer_text import Named, Told, answer_text
from floodline.leaks import Suspect
from floodline.leaks._suspect_record import SuspectRecord
from floodline.leaks._vocabulary import Cause, Outcome, Where

EXITS = {Outcome.BOUNDED: 0, Outcome.GROWING: 1, Outcome.UNDECIDED: 3}
FAILED = 4


class SeriesRecord(TypedDict, total=False):
    """What was measured at each sample, and the length of each suspect; empty without a sample."""

    rounds: list[int]
    objects: list[int]
    bytes: list[int]
    rss: list[int]
    blocks: list[int]
    malloc_used: list[int]
    malloc_free: list[int]
    malloc_mapped: list[int]
    arenas: list[int]
    suspects: list[list[int]]


class Needed(TypedDict):
    """What is missing for a verdict."""

    rounds: int | None
    why: str | None


class AnswerRecord(TypedDict):
    """The answer in JSON."""

    schema: int
    tool: str
    python: str
    verdict: Outcome
    where: Where | None
    rounds: int
    warmup: int
    bytes_per_round: float
    objects_per_round: float
    rss_per_round: float
    memory: dict[str, float]
    suspects: list[SuspectRecord]
    series: SeriesRecord
    needed: Needed
    errors: list[str]


class ChildRecord(TypedDict):
    """What a scenario's process writes for the command."""

    answer: AnswerRecord
    text: str
    exit: int


@dataclass(slots=True, frozen=True, kw_only=True, repr=False)
class Answer:
    """The verdict of a run; `errors` are those of the scenario, and mean that it failed.

    `series` has what was measured at each sample, and the length of each suspect. As a string it
    is its text, and its representation is the first line of that.
    """

    verdict: Outcome
    where: Where | None
    rounds: int
    warmup: int
    bytes_per_round: float = 0.0
    objects_per_round: float = 0.0
    rss_per_round: float = 0.0
    suspects: tuple[Suspect, ...] = ()
    needed_rounds: int | None = None
    why: str | None = None
    cause: Cause | None = None  # of `why`
    memory: dict[str, float] = field(default_factory=dict)
    series: SeriesRecord = field(default_factory=SeriesRecord)
    errors: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 bounded, 1 growing, 3 undecided, 4 the scenario failed."""
        return FAILED if self.errors else EXITS[self.verdict]

    def as_dict(self) -> AnswerRecord:
        """Return the JSON document."""
        return {
            "schema": 1,
            "tool": f"floodline {__version__}",
            "python": platform.python_version(),
            "verdict": self.verdict,
            "where": self.where,
            "rounds": self.rounds,
            "warmup": self.warmup,
            "bytes_per_round": self.bytes_per_round,
            "objects_per_round": self.objects_per_round,
            "rss_per_round": self.rss_per_round,
            "memory": self.memory,
            "suspects": [suspect.as_dict() for suspect in self.suspects],
            "series": self.series,
            "needed": {"rounds": self.needed_rounds, "why": self.why},
            "errors": list(self.errors),
        }

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Answer: {self.text().splitlines()[0]}>"

    def text(self) -> str:
        """Return the answer in words, what matters first."""
        if self.errors:
            return f"FAILED  {self.why}\n{indent(self.errors[0], '  ')}"
        rate = self.rss_per_round
        if self.where == Where.NATIVE:  # what malloc reuses is not yet resident memory
            rate = max(rate, self.memory.get("malloc_used_per_round", rate))
        told = Told(
            verdict=self.verdict,
            where=self.where,
            why=self.why,
            by="round",
            span=f"{self.rounds - self.warmup} rounds",
            rate=rate,
            suspects=[Named(s.as_dict(), s.unit, s.function or "") for s in self.suspects],
        )
        return answer_text(told)
