"""The sentences that explain a verdict; they are written nowhere else."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import Protocol

from floodline._units import format_number, format_size
from floodline.leaks._figures.own_holders import Filling
from floodline.leaks._figures.suspect import Suspect
from floodline.leaks._vocabulary import Cause, Step

HOOK = "no name leads to them: check hooks (atexit, at-fork) and C extensions"
WAITING = "perhaps cycles of objects, which a full garbage collection frees: none has run of late"
UNCOLLECTED = "the garbage collector is disabled, so it never frees cycles of objects"
NATIVE_STEP = "run it under memray with --native to see which C call allocates"
FRAGMENT_STEP = "try MALLOC_ARENA_MAX=2, jemalloc, or malloc_trim at quiet times"


class Counted(Protocol):
    """Counts of all objects by type, and what they cost."""

    taken: int
    longest: float  # seconds
    searched: str  # what was done to find their holders

    @property
    def kinds(self) -> tuple[str, ...]:
        """The types that multiply, most first."""


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
    return Reason(Cause.TOO_SHORT, f"watched for only {seconds:.0f} seconds")


def first_walk() -> Reason:
    """Say that the first walk is still under way."""
    return Reason(Cause.FIRST_WALK, "the first walk has not finished")


def grows_so_far(one: Suspect, reason: Reason) -> Reason:
    """Name the first suspect, then the reason why it is too early to tell."""
    grows = f"{one.owner} grows by {format_number(one.per_round)} per second"
    return Reason(reason.cause, f"{grows}; {reason.text}")


def too_deep(cut: int) -> Reason:
    """Say that a live walk did not inspect everything."""
    text = f"{cut:,} objects are too deep to inspect; check for long chains of objects"
    return Reason(Cause.TOO_DEEP, text)


def may_be_limited(one: Suspect) -> Reason:
    """Say that there is a limit, but its value is unknown."""
    text = f"{one.owner} grows, but its code removes items at a limit or time not yet reached"
    return Reason(Cause.MAY_FILL, text)


def filling(one: Suspect, cap: int, left: int, unit: Step) -> Reason:
    """Say when a container will be full."""
    text = f"{one.owner} is filling towards a cap: full at {cap:,} in about {left:,} {unit}s"
    return Reason(Cause.FILLING, text)


def holder_fills(one: Filling, unit: Step) -> Reason:
    """Say when one of floodline's own containers or session tables will be full."""
    text = f"{one.name} is filling: full at {one.limit:,} in about {one.left:,} {unit}s"
    return Reason(Cause.FILLING, text)


def unsteady(one: Suspect, unit: Step) -> Reason:
    """Say that a suspect rose, but may not be growing."""
    rose = f"{one.owner} rose by {format_number(one.per_round)} per {unit}"
    return Reason(Cause.UNSTEADY, f"{rose}, but not steadily enough to tell")


def unnamed_objects(
    rate: float, unit: Step, counted: Counted | None = None, *, may_be_garbage: bool = False
) -> Reason:
    """Say that there are more and more objects that no slot accounts for, and of which types."""
    kinds = counted.kinds if counted else ()
    mostly = f", mostly {' and '.join(kinds)}" if kinds else ""
    step = WAITING if may_be_garbage else HOOK if gc.isenabled() else UNCOLLECTED
    text = f"{format_number(rate)} more objects per {unit}{mostly}; {step}"
    if counted is not None and kinds:
        cost = f"{1000 * counted.longest:.0f} ms at most"
        done = [f"counted by type {counted.taken} times, {cost}", counted.searched]
        text += f" ({'; '.join(filter(None, done))})"
    return Reason(Cause.UNNAMED_OBJECTS, text)


def unnamed_blocks(rate: float, unit: Step) -> Reason:
    """Say that Python's allocator hands out more blocks, but no object accounts for them."""
    text = f"{format_number(rate)} more blocks in Python's allocator per {unit}; {HOOK}"
    return Reason(Cause.UNNAMED_BLOCKS, text)


def malloc_grows(rate: float, unit: Step) -> Reason:
    """Say that C code allocates without freeing."""
    held = f"malloc holds {format_size(rate)} more each {unit} while Python objects do not grow"
    return Reason(Cause.MALLOC, f"{held}; {NATIVE_STEP}")


def held_by_malloc(gain: float) -> Reason:
    """Say that malloc keeps what was freed."""
    return Reason(Cause.MALLOC_FREE, _held(gain, "malloc"))


def held_by_arenas(gain: float) -> Reason:
    """Say that Python's allocator keeps what was freed."""
    return Reason(Cause.ARENAS_FREE, _held(gain, "Python's allocator"))


def in_use_by_c(gain: float) -> Reason:
    """Say that resident memory rose along with malloc's memory in use."""
    return Reason(Cause.IN_USE_BY_C, f"{_rose(gain)}: in use by C code; {NATIVE_STEP}")


def mapped(gain: float) -> Reason:
    """Say that resident memory rose outside malloc."""
    where = "mapped outside malloc; look at /proc/PID/smaps"
    return Reason(Cause.MAPPED, f"{_rose(gain)}: {where}, and {NATIVE_STEP}")


def resident(gain: float, unit: Step) -> Reason:
    """Say that resident memory rose and no allocator explains it."""
    return Reason(Cause.RESIDENT, f"{_rose(gain)}; more {unit}s are needed to tell why")


def _held(gain: float, holder: str) -> str:
    return f"{_rose(gain)}: free, but held by {holder}; {FRAGMENT_STEP}"


def _rose(gain: float) -> str:
    return f"resident memory rose by {format_size(gain)} while Python objects do not grow"
