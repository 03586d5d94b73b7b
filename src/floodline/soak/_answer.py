"""What a soak run answers, as a record and as words."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from typing import Any

from floodline import __version__
from floodline._units import format_size
from floodline.leaks import Suspect

EXITS = {"bounded": 0, "growing": 1, "undecided": 3}
FAILED = 4


@dataclass(slots=True, frozen=True, kw_only=True)
class Answer:
    """The verdict of a run; `errors` are those of the scenario, and make it a failed one.

    `series` has what was measured at each sample, and the length of each suspect.
    """

    verdict: str
    where: str | None
    rounds: int
    warmup: int
    bytes_per_round: float = 0.0
    objects_per_round: float = 0.0
    rss_per_round: float = 0.0
    suspects: tuple[Suspect, ...] = ()
    needed_rounds: int | None = None
    why: str | None = None
    memory: dict[str, float] = field(default_factory=dict)
    series: dict[str, Any] = field(default_factory=dict)
    errors: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 bounded, 1 growing, 3 undecided, 4 the scenario failed."""
        return FAILED if self.errors else EXITS[self.verdict]

    def as_dict(self) -> dict[str, Any]:
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

    def text(self) -> str:
        """Return the answer in words, first what matters."""
        over = f"over {self.rounds - self.warmup} rounds"
        if self.errors:
            return f"FAILED  the scenario raised\n  {self.errors[0]}"
        growing = [s for s in self.suspects if s.verdict == "growing"]
        if self.verdict == "growing" and growing:
            first = growing[0]
            head = f"GROWING  {_pace(first)}, {_bytes(first.bytes_per_round)} {over}"
        else:
            rate = self.rss_per_round
            if self.where == "native":  # what malloc reuses does not show in resident memory yet
                rate = max(rate, self.memory.get("malloc_used_per_round", rate))
            head = f"{self.verdict.upper()}  {_bytes(rate)} resident {over}"
        lines = [head + (f"  ({self.where})" if self.where else "")]
        if self.why:
            lines.append(f"  {self.why}")
        for suspect in self.suspects:
            lines += _lines(suspect)
        return "\n".join(lines)


def _pace(one: Suspect) -> str:
    return f"+{one.per_round:.1f} {one.unit}{'' if one.per_round == 1 else 's'}/round"


def _bytes(rate: float) -> str:
    return f"{'-' if rate < 0 else '+'}{format_size(abs(rate))}/round"


def _lines(one: Suspect) -> list[str]:
    lines = [f"  {one.owner}   {one.type}, {one.len} {one.unit}s"]
    lines.append(f"    reached by  {one.path}")
    if one.file:
        where = f"{one.file}:{one.line}  {one.function or ''}".rstrip()
        lines.append(
            f"    fed at      {where}" + ("" if one.line_source == "trace" else "  (static)")
        )
    if one.holds:
        lines.append(f"    holds       {one.holds}")
    if one.echoes:
        lines.append(f"    echoed by   {', '.join(one.echoes)}")
    return lines
