"""Finds what a provider's API would reject in a list of messages, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from floodline.errors import MalformedMessage
from floodline.history._formats.shapes import (
    ANTHROPIC,
    APPROVAL_REQUEST,
    APPROVAL_RESPONSE,
    GEMINI,
    OPENAI,
    RESPONSES,
    Kind,
    Message,
    Reading,
    is_linked,
    parse_provider,
    read,
)

_OPAQUE = Reading(None, Kind.opaque)
_DANGLING = "reasoning without the item that must follow it"


@dataclass(slots=True, frozen=True)
class Problem:
    """One reason for a rejection; `place` looks like `$[3].tool_calls[0].id`.

    `rule` is the name of one of `rules(provider)`, which cite their source.
    """

    place: str
    why: str
    rule: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.why}: {self.place}"


def check(
    messages: Iterable[Message],
    provider: str | None = None,
    *,
    in_flight: bool = True,
    original: Iterable[Message] | None = None,
) -> list[Problem]:
    """Return what `provider` (inferred if None) would reject; an empty list means: send it.

    Calls of the last turn that have no result yet are in flight and not a problem, unless
    `in_flight=False`. System messages are accepted for every provider, though Anthropic and Gemini
    want them outside the list, so `Conversation.window` leaves them out. With `original`, the list
    that `messages` were taken from, it also reports items that have lost the reasoning they came
    with. `rules` lists what is checked.
    """
    problems: list[Problem] = []
    listed = list(messages)
    readings = [_read(message, i, problems) for i, message in enumerate(listed)]
    family = parse_provider(provider)
    if family is not None:
        for i, reading in enumerate(readings):
            if not accepts(family, reading.family, reading.kind):
                wrote = reading.family or "another provider"
                why = f"{family} does not accept messages of {wrote}"
                problems.append(Problem(f"$[{i}]", why, "provider"))
                readings[i] = _OPAQUE
    family = family or infer(readings)
    walk = _Walk(family, problems)
    for i, (message, reading) in enumerate(zip(listed, readings, strict=True)):
        walk.step(message, reading, f"$[{i}]")
    walk.end(in_flight)
    if original is not None and family == RESPONSES:
        _check_parted(listed, list(original), problems)
    return sorted(problems, key=lambda problem: int(problem.place[2 : problem.place.index("]")]))


def accepts(family: str, wrote: str | None, kind: Kind) -> bool:
    """Return True if a provider accepts what another `wrote`; opaque messages are not judged."""
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
        rule = "role" if error.place.endswith(".role") else "shape"
        problems.append(Problem(error.place, error.why, rule))
        return _OPAQUE


def _check_parted(
    messages: list[Message], original: list[Message], problems: list[Problem]
) -> None:
    """Find items without the reasoning that stood before them in the original list."""
    came_with = _reasoning_of(original)
    now_with = _reasoning_of(messages)
    for i, message in enumerate(messages):
        lost = came_with.get(_identity(message), set()) - now_with.get(_identity(message), set())
        if lost:
            what = message.get("type", "message")
            why = f"the {what} was separated from the reasoning that it came with"
            problems.append(Problem(f"$[{i}]", why, "reasoning"))


def _reasoning_of(messages: list[Message]) -> dict[object, set[object]]:
    """Return the reasoning that each item of a response follows, up to the next reasoning."""
    found: dict[object, set[object]] = {}
    lead: set[object] = set()
    reasons = False
    for i, message in enumerate(messages):
        reading = _read(message, i, [])
        if reading.kind is Kind.reasoning:
            lead = {*(lead if reasons else ()), _identity(message)}
        elif reading.kind in (Kind.user, Kind.result):
            lead = set()
        elif lead and reading.kind is not Kind.system and is_linked(message):
            found[_identity(message)] = lead
        reasons = reading.kind is Kind.reasoning or (reasons and reading.kind is Kind.system)
    return found


def _identity(message: object) -> object:
    """Return what identifies a message in two lists: its id, or the dict's identity."""
    own = message.get("id") if isinstance(message, dict) else None
    return own if isinstance(own, str) else id(message)


class _Asked(NamedTuple):
    """A call or approval request that waits for its answer."""

    key: str
    place: str
    turn: int
    approval: bool


class _Walk:
    """Walks the list, tracking the calls that wait for a result and those that missed it."""

    def __init__(self, family: str | None, problems: list[Problem]) -> None:
        self._family, self._problems = family, problems
        self._waiting: list[_Asked] = []
        self._missed: list[_Asked] = []
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
            for key in reading.calls:
                approval = message.get("type") == APPROVAL_REQUEST
                self._waiting.append(_Asked(key, place, self._turn, approval))
        self._before = reading.kind

    def end(self, in_flight: bool) -> None:
        for key, place, turn, approval in self._missed + self._waiting:
            if turn < self._turn or not in_flight:
                if approval:
                    why = f"the approval request {key!r} has no response after it"
                    self._say(place, why, "approval")
                else:
                    self._say(place, f"the call {key!r} has no result right after it", "call")
        if self._reasoning and not in_flight:
            self._say(self._reasoning, _DANGLING, "following")

    def _check_first(self, reading: Reading, place: str) -> None:
        first = self._before is None and self._family in (ANTHROPIC, GEMINI)
        if first and reading.kind is Kind.model:
            self._say(place, f"the first message for {self._family} must be from the user", "first")

    def _check_reasoning(self, reading: Reading, place: str) -> None:
        if self._reasoning and reading.kind in (Kind.user, Kind.result):
            self._say(self._reasoning, _DANGLING, "following")
        self._reasoning = place if reading.kind is Kind.reasoning else None

    def _answer(self, message: Message, reading: Reading, place: str) -> None:
        approval = message.get("type") == APPROVAL_RESPONSE
        for key in reading.results:
            if not self._found(self._waiting, key):
                late = self._found(self._missed, key)
                if approval:
                    why = f"a response to {key!r}, which was not requested before it"
                    if late:
                        why = f"the response to {key!r} comes after the next user message"
                    self._say(place, why, "approval")
                elif late:
                    why = f"the result of {key!r} does not come right after its call"
                    self._say(place, why, "result")
                else:
                    why = f"a result for {key!r}, which was not called before it"
                    self._say(place, why, "result")
        if reading.family == ANTHROPIC:
            types = [block.get("type") == "tool_result" for block in message["content"]]
            if types != sorted(types, reverse=True):
                why = "tool_result blocks must come before all others"
                self._say(f"{place}.content", why, "order")

    def _found(self, calls: list[_Asked], key: str) -> bool:
        for i, call in enumerate(calls):
            if call.key == key:
                del calls[i]
                return True
        return False

    def _miss(self) -> None:
        self._missed += self._waiting
        self._waiting = []

    def _say(self, place: str, why: str, rule: str) -> None:
        self._problems.append(Problem(place, why, rule))
