"""Why a verdict is what it is, in words: the only place where these sentences are made."""

from __future__ import annotations

from dataclasses import dataclass

from floodline._units import format_size
from floodline.leaks._figures.suspect import Suspect
from floodline.leaks._vocabulary import Cause, Step

HOOK = "no name leads to them: look at hooks (atexit, at-fork) and at C extensions"
NATIVE_STEP = "run it under memray with --native to see which C call allocates"
FRAGMENT_STEP = "try MALLOC_ARENA_MAX=2, jemalloc, or malloc_trim at quiet times"


@dataclass(slots=True, frozen=True)
class Reason:
    """The cause, for programs, and the sentence, for people."""

    cause: Cause
    text: str


def too_few(unit: Step) -> Reason:
    """Say that there are not enough samples."""
    return Reason(Cause.TOO_FEW, f"too few {unit}s to tell")


def too_short(seconds: float) -> Reason:
    """Say that the process was not watched for long enough."""
    return Reason(Cause.TOO_SHORT, f"watched for {seconds:.0f} seconds, which is too short")


def first_walk() -> Reason:
    """Say that not everything was looked at once."""
    return Reason(Cause.FIRST_WALK, "the first walk has not ended")


def grows_so_far(one: Suspect, reason: Reason) -> Reason:
    """Name the first suspect before the reason why it is too early."""
    grows = f"{one.owner} grows by {one.per_round:.3g} a second"
    return Reason(reason.cause, f"{grows}; {reason.text}")


def too_deep(cut: int) -> Reason:
    """Say that a live walk did not look into everything."""
    text = f"{cut:,} objects lie too deep to look into; look at chains of objects"
    return Reason(Cause.TOO_DEEP, text)


def may_be_limited(one: Suspect) -> Reason:
    """Say that there is a limit, of which the number is not known."""
    text = f"{one.owner} grows, and its code removes above a limit that was not reached"
    return Reason(Cause.MAY_FILL, text)


def filling(one: Suspect, cap: int, left: int, unit: Step) -> Reason:
    """Say when a container will be full."""
    text = f"{one.owner} grows to a cap: full at {cap} in about {left} {unit}s"
    return Reason(Cause.FILLING, text)


def unsteady(one: Suspect, unit: Step) -> Reason:
    """Say that a suspect rose, and perhaps does not grow."""
    text = f"{one.owner} rose by {one.per_round:g} a {unit}, not steadily enough to tell"
    return Reason(Cause.UNSTEADY, text)


def unnamed_objects(rate: float, unit: Step) -> Reason:
    """Say that objects grow in number which no slot shows."""
    return Reason(Cause.UNNAMED_OBJECTS, f"{rate:.1f} more objects a {unit}; {HOOK}")


def unnamed_blocks(rate: float, unit: Step) -> Reason:
    """Say that Python's allocator hands out more, and no object shows it."""
    text = f"{rate:.1f} more blocks of Python's allocator a {unit}; {HOOK}"
    return Reason(Cause.UNNAMED_BLOCKS, text)


def malloc_grows(rate: float, unit: Step) -> Reason:
    """Say that C code allocates and does not free."""
    held = f"malloc holds {format_size(rate)} more each {unit} while Python objects stay"
    return Reason(Cause.MALLOC, f"{held}; {NATIVE_STEP}")


def held_by_malloc(gain: float) -> Reason:
    """Say that malloc keeps what was freed."""
    return Reason(Cause.MALLOC_FREE, _held(gain, "malloc"))


def held_by_arenas(gain: float) -> Reason:
    """Say that Python's allocator keeps what was freed."""
    return Reason(Cause.ARENAS_FREE, _held(gain, "Python's allocator"))


def in_use_by_c(gain: float) -> Reason:
    """Say that resident memory rose with what malloc has in use."""
    return Reason(Cause.IN_USE_BY_C, f"{_rose(gain)}: in use by C; {NATIVE_STEP}")


def mapped(gain: float) -> Reason:
    """Say that resident memory rose where malloc is not asked."""
    where = "mapped outside malloc; look at /proc/PID/smaps"
    return Reason(Cause.MAPPED, f"{_rose(gain)}: {where}, and {NATIVE_STEP}")


def resident(gain: float, unit: Step) -> Reason:
    """Say that resident memory rose, and no allocator tells why."""
    return Reason(Cause.RESIDENT, f"{_rose(gain)}; run more {unit}s")


def _held(gain: float, holder: str) -> str:
    return f"{_rose(gain)}: free, but held by {holder}; {FRAGMENT_STEP}"


def _rose(gain: float) -> str:
    return f"resident memory rose by {format_size(gain)} while Python objects stay"
