"""What a provider's API would reject in a list of messages, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from floodline.errors import MalformedMessage
from floodline.history._formats.shapes import (
    ANTHROPIC,
    GEMINI,
    OPENAI,
    RESPONSES,
    Kind,
    Message,
    Reading,
    parse_provider,
    read,
)

_OPAQUE = Reading(None, Kind.opaque)


@dataclass(slots=True, frozen=True)
class Problem:
    """One reason for a rejection; `place` looks like `$[3].tool_calls[0].id`."""

    place: str
    why: str

    def __str__(self) -> str:
        return f"{self.why}: {self.place}"


def check(
    messages: Iterable[Message], provider: str | None = None, *, in_flight: bool = True
) -> list[Problem]:
    """Return what `provider` (inferred if None) would reject; an empty list means: send it.

    Calls of the last turn that have no result yet are in flight and no problem, unless
    `in_flight=False`. System messages are taken for what they are with every provider, though
    Anthropic and Gemini want them outside the list, where `Conversation.window` leaves them.
    """
    problems: list[Problem] = []
    listed = list(messages)
    readings = [_read(message, i, problems) for i, message in enumerate(listed)]
    family = parse_provider(provider)
    if family is not None:
        for i, reading in enumerate(readings):
            if not accepts(family, reading.family, reading.kind):
                wrote = reading.family or "another provider"
                problems.append(Problem(f"$[{i}]", f"{family} does not take messages of {wrote}"))
                readings[i] = _OPAQUE
    walk = _Walk(family or infer(readings), problems)
    for i, (message, reading) in enumerate(zip(listed, readings, strict=True)):
        walk.step(message, reading, f"$[{i}]")
    walk.end(in_flight)
    return sorted(problems, key=lambda problem: int(problem.place[2 : problem.place.index("]")]))


def accepts(family: str, wrote: str | None, kind: Kind) -> bool:
    """Tell whether a provider takes what another `wrote`; opaque messages nobody can judge."""
    if wrote is None:
        return family != GEMINI or kind in (Kind.opaque, Kind.system)
    return wrote == family


def infer(readings: Iterable[Reading]) -> str | None:
    """Return the provider of the last message that only one could have written."""
    family = None
    for reading in readings:
        family = reading.family or family
    return family


def _read(message: Message, i: int, problems: list[Problem]) -> Reading:
    try:
        return read(message, f"$[{i}]")
    except MalformedMessage as error:
        problems.append(Problem(error.place, error.why))
        return _OPAQUE


class _Walk:
    """Goes along the list with the calls that wait for a result and those that missed it."""

    def __init__(self, family: str | None, problems: list[Problem]) -> None:
        self._family, self._problems = family, problems
        self._waiting: list[tuple[str, str, int]] = []
        self._missed: list[tuple[str, str, int]] = []
        self._turn = 0
        self._before: Kind | None = None
        self._reasoning: str | None = None

    def step(self, message: Message, reading: Reading, place: str) -> None:
        if reading.kind is Kind.system:
            if self._family in (OPENAI, None):
                self._miss()
            return
        self._check_first(reading, place)
        self._check_reasoning(reading, place)
        if reading.kind is Kind.result:
            self._answer(message, reading, place)
        else:
            together = self._family in (ANTHROPIC, GEMINI) and self._before is Kind.model
            joined = reading.kind is Kind.model and together
            if reading.kind is Kind.user or not (joined or self._family == RESPONSES):
                self._miss()
            self._turn += reading.kind is Kind.user
            self._waiting += [(key, place, self._turn) for key in reading.calls]
        self._before = reading.kind

    def end(self, in_flight: bool) -> None:
        for key, place, turn in self._missed + self._waiting:
            if turn < self._turn or not in_flight:
                self._say(place, f"the call {key!r} has no result right after it")
        if self._reasoning and not in_flight:
            self._say(self._reasoning, "reasoning without the item that must follow it")

    def _check_first(self, reading: Reading, place: str) -> None:
        first = self._before is None and self._family in (ANTHROPIC, GEMINI)
        if first and reading.kind is Kind.model:
            self._say(place, f"the first message for {self._family} must be the user's")

    def _check_reasoning(self, reading: Reading, place: str) -> None:
        if self._reasoning and reading.kind in (Kind.user, Kind.result):
            self._say(self._reasoning, "reasoning without the item that must follow it")
        self._reasoning = place if reading.kind is Kind.reasoning else None

    def _answer(self, message: Message, reading: Reading, place: str) -> None:
        for key in reading.results:
            if not self._found(self._waiting, key):
                if self._found(self._missed, key):
                    self._say(place, f"the result of {key!r} does not stand right after its call")
                else:
                    self._say(place, f"a result of {key!r}, which is called nowhere before it")
        if reading.family == ANTHROPIC:
            types = [block.get("type") == "tool_result" for block in message["content"]]
            if types != sorted(types, reverse=True):
                self._say(f"{place}.content", "tool_result blocks must stand before all others")

    def _found(self, calls: list[tuple[str, str, int]], key: str) -> bool:
        for i, call in enumerate(calls):
            if call[0] == key:
                del calls[i]
                return True
        return False

    def _miss(self) -> None:
        self._missed += self._waiting
        self._waiting = []

    def _say(self, place: str, why: str) -> None:
        self._problems.append(Problem(place, why))
