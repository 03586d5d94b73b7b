"""Where a value comes from, how it is derived, and which of several origins is widest."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final, Literal

from floodline.scan._facts.records import Struct, replace
from floodline.scan._facts.references import MANY

FRESH: Final = "fresh"
PARAMETER: Final = "parameter"
TURN: Final = "turn"
CALL: Final = "call"
OWN: Final = "own"
GLOBAL: Final = "global"
DOTTED: Final = "dotted"
FUNCTION: Final = "function"

ASKED: Final = "asked"
CALLED: Final = "called"
GIVEN: Final = "given"
UNDER: Final = "under"
PARTS = 4  # that a key is made of; more say nothing new


class Step(Struct, frozen=True, gc=False):
    """A step of a derivation: an attribute, an item, or the result of a method or a function."""

    name: str
    # `.name`, `.name()`, `name(value)`, `["name"]`
    how: Literal["asked", "called", "given", "under"]

    @property
    def text(self) -> str:
        """Return the step as messages show it."""
        return _WRITTEN[self.how].format(self.name)


_WRITTEN = {ASKED: ".{}", CALLED: ".{}()", GIVEN: ".{}(*)", UNDER: "['{}']"}


def _step(how: Literal["asked", "called", "given", "under"], name: str) -> Step:
    return Step(name, how)


attribute_step: Callable[[str], Step] = lru_cache(MANY)(partial(_step, ASKED))
call_step: Callable[[str], Step] = lru_cache(MANY)(partial(_step, CALLED))
given_step: Callable[[str], Step] = lru_cache(MANY)(partial(_step, GIVEN))
item_step: Callable[[str], Step] = lru_cache(MANY)(partial(_step, UNDER))


class Origin(Struct, frozen=True, gc=False):
    """Where a value comes from."""

    # constant; type: one of a fixed set; fresh: a new one each time; parameter; turn: what a loop
    # gets from an object made before it; attribute: of something unknown; call: what it returns;
    # own: an attribute of the instance; global: a name of the module, and dotted: an attribute of
    # one; function; all: of several origins; none: no key at all, one more at the end
    kind: Literal[
        "constant", "type", "fresh", "parameter", "turn", "attribute", "call", "own", "global",
        "dotted", "unknown", "function", "all", "none",
    ]  # fmt: skip
    name: str = ""
    number: int = 0  # of a parameter
    function: str = ""  # the outer function whose parameter it is
    steps: tuple[Step, ...] = ()  # what is asked of it
    parts: tuple[Origin, ...] = ()

    @property
    def text(self) -> str:
        """Return the name and the steps, as messages show them."""
        return self.name + "".join(step.text for step in self.steps)


CONSTANT: Final = Origin("constant")
TYPE: Final = Origin("type")
UNKNOWN: Final = Origin("unknown")
NO_KEY: Final = Origin("none")
FRESH_SELF: Final = Origin(FRESH, "self")

OPENNESS = (
    FRESH, PARAMETER, TURN, "attribute", CALL, OWN, GLOBAL, "unknown", DOTTED, "type",
)  # fmt: skip
DEPENDING = {PARAMETER, TURN, "attribute", CALL, OWN, DOTTED}
CHAINED = {PARAMETER, TURN, OWN, DOTTED}
_RANKS = {kind: rank for rank, kind in enumerate((*OPENNESS, "constant", FUNCTION, "all", "none"))}
_Named = Literal["fresh", "turn", "attribute", "call", "own", "global"]


def _dotted(name: str, attribute: str) -> Origin:
    return Origin(DOTTED, name, 0, "", (attribute_step(attribute),))


def _origins(kind: _Named) -> Callable[[str], Origin]:
    return lru_cache(MANY)(partial(Origin, kind))


fresh: Final = _origins(FRESH)
parameter: Callable[[int], Origin] = lru_cache(MANY)(partial(Origin, PARAMETER, ""))
turn_of: Final = _origins(TURN)
attribute: Final = _origins("attribute")
call_of: Final = _origins(CALL)
own: Final = _origins(OWN)
global_name: Final = _origins(GLOBAL)
dotted_name: Callable[[str, str], Origin] = lru_cache(MANY)(_dotted)
function_called: Callable[[str], Origin] = partial(Origin, FUNCTION)


def most_open(origins: list[Origin]) -> Origin:
    """Return the origin with the widest range of values, which decides.

    A new value decides alone. Of origins that depend on the caller or on what is read, several are
    kept: which of them is open is known only when the callers are.
    """
    if len(origins) == 1:
        return origins[0]
    told = [origin for origin in origins if origin is not CONSTANT]  # most are
    if not told:
        return CONSTANT
    if len(told) == 1:
        return told[0]
    widest, rank = CONSTANT, len(OPENNESS)
    several: list[Origin] = []  # they are few, and hashing them takes longer than comparing
    for origin in told:
        for part in origin.parts or (origin,):
            kind = part.kind
            found = _RANKS[kind]
            if found < rank:
                widest, rank = part, found
            if kind in DEPENDING and len(several) < PARTS and part not in several:
                several.append(part)
    if widest.kind == FRESH or len(several) < 2:
        return widest
    return Origin("all", "", 0, "", (), tuple(several))


def parts_of(origin: Origin) -> tuple[Origin, ...]:
    """Return the origins that one is made of."""
    return origin.parts or (origin,)


def asked(origin: Origin, step: Step) -> Origin | None:
    """Return the origin of a value derived from another, `None` if that says nothing."""
    if origin.kind in CHAINED:  # these are many, and hashing one takes longer than creating it
        return _derived(origin, step)
    if not origin.parts:
        return None
    told = [_derived(part, step) for part in origin.parts if part.kind in CHAINED]
    if len(told) < 2:
        return told[0] if told else CONSTANT
    return Origin("all", "", 0, "", (), tuple(told))


def _derived(origin: Origin, step: Step) -> Origin:
    return Origin(origin.kind, origin.name, origin.number, origin.function, (*origin.steps, step))


def answered(answer: Origin, given: Origin) -> Origin:
    """Return the origin of what a call returns: its answer, or one derived from what it is given.

    These are the parts that `most_open` would find, as `asked` has left none but such.
    """
    parts = (answer, *(given.parts or (given,)))
    return Origin("all", "", 0, "", (), parts[:PARTS])


def within(origin: Origin, function: str) -> Origin:
    """Return an origin of an outer function as an inner one sees it."""
    if origin.kind != PARAMETER and not origin.parts:
        return origin
    return most_open([_outer(part, function) for part in parts_of(origin)])


def _outer(origin: Origin, function: str) -> Origin:
    if origin.kind != PARAMETER or origin.function:
        return origin
    return replace(origin, function=function)


def before_call(origin: Origin) -> Origin | None:
    """Return what the first function that made a value was given, `None` if none did."""
    for number, step in enumerate(origin.steps):
        if step.how == GIVEN:
            return replace(origin, steps=origin.steps[:number])
    return None


def extends(origin: Origin, other: Origin) -> bool:
    """Return True if an origin is derived from another one."""
    more, known = origin.steps, other.steps
    if len(more) <= len(known) or more[: len(known)] != known:
        return False
    return replace(origin, steps=(), parts=()) == replace(other, steps=(), parts=())
