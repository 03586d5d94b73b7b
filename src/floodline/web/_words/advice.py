"""What to do next: the bound to set, and where else to look."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor, log10
from typing import Literal

from floodline._pages.answer_words import place
from floodline._pages.document import Step
from floodline._units import format_duration, format_size
from floodline.leaks._vocabulary import Outcome, Where
from floodline.recorder._snapshot import Snapshot, SuspectState
from floodline.web._words.phrases import growing, shown

MAPS = ("dict", "OrderedDict", "defaultdict", "Counter", "WeakKeyDictionary", "WeakValueDictionary")
LOGS = ("list", "deque", "tuple", "bytearray")
SHARE = 8  # one container gets an eighth of the memory
USUAL = 512 * 1024 * 1024  # memory assumed without a line or a limit
ELSEWHERE = {
    Where.NATIVE: "Look outside Python: run the program under memray run --native, and compare "
    "the versions of C extensions that hold buffers.",
    Where.FRAGMENTATION: "Return freed memory to the system: set MALLOC_ARENA_MAX=2, or use "
    "jemalloc; a MemoryBudget trims by itself under pressure.",
}


def advice(state: Snapshot) -> list[Step]:
    """Return what to do next, the most useful first."""
    found = [*_bounds(state), *_elsewhere(state), *_sessions(state), *_ends(state)]
    return found or [Step("Nothing; keep watching, or set a line with --line to be warned.")]


def _bounds(state: Snapshot) -> Iterator[Step]:
    for suspect in growing(state)[:3] or _likely(state):
        each = _bytes_each(state, suspect)
        at = place(suspect)
        fed = f", and {at} adds faster than anything removes" if at else ""
        weight = f" of about {format_size(each)} each" if each else ""
        do = "Bound" if suspect["verdict"] == Outcome.GROWING else "Look first at"
        says = f"{do} {suspect['owner']}: it holds {suspect['len']:,} items{weight}{fed}."
        yield Step(says, _code(suspect, _bound(state, each), each))


def _likely(state: Snapshot) -> list[SuspectState]:
    """Return the worst unproved suspect: a killed program can no longer be watched."""
    open_ones = [each for each in shown(state) if each["per_round"] > 0]
    return open_ones[:1] if state["verdict"] != Outcome.BOUNDED else []


def _bytes_each(state: Snapshot, suspect: SuspectState) -> float:
    """Return what an item costs: its share of memory growth, if that exceeds its own size.

    The container's own growth leaves out what the items refer to.
    """
    own = suspect["bytes_per_round"]
    if suspect["per_round"] <= 0 or own <= 0:
        return 0.0
    together = sum(max(0.0, each["bytes_per_round"]) for each in growing(state)) or own
    return max(own, state["memory"]["rate"] * own / together) / suspect["per_round"]


def _bound(state: Snapshot, each: float) -> int:
    """Return a round number of items that fill a fair share of the memory."""
    room = state["line"] or state["memory"]["limit"] or USUAL
    items = min(max(room / SHARE / (each or 1024.0), 10.0), 1_000_000.0)
    power = 10 ** floor(log10(items))
    return int(next(step for step in (5, 2, 1) if step * power <= items) * power)


def _code(suspect: SuspectState, bound: int, each: float) -> str:
    name = suspect["owner"].rpartition(".")[2]
    name = name if name.isidentifier() else "items"
    kind = suspect["type"].rpartition(".")[2]
    if kind in LOGS:
        made = f"BoundedLog({bound:_})"
    elif kind in MAPS and "session" in suspect["owner"].lower():
        made = f'Sessions(make_session, idle="30 min", max_sessions={bound:_})'
    else:
        made = f'BoundedMap({bound:_}, idle="30 min")'
    return f"{name} = {made}" + (f"  # at most about {format_size(bound * each)}" if each else "")


def _elsewhere(state: Snapshot) -> Iterator[Step]:
    if state["verdict"] == Outcome.GROWING and not growing(state):
        where = "Watch for longer: the walk has not named a container yet; a soak of one unit of "
        where += "work (floodline soak) names it faster."
        yield Step(ELSEWHERE.get(state["where"], where))
    needed = state["needed"]
    if state["verdict"] == Outcome.UNDECIDED and needed:
        yield Step(f"Watch for about {format_duration(needed['seconds'])} more: {needed['why']}.")


def _sessions(state: Snapshot) -> Iterator[Step]:
    for name, stuck in _sums(state, "stuck"):
        says = f"{_times(stuck)} a session of {name!r} was held longer than max_hold: the "
        yield Step(says + "events say when.")
    for name, retained in _sums(state, "retained"):
        says = f"{_times(retained)} a session of {name!r} had left and was still referenced: the "
        yield Step(says + "events say by what, and so does floodline.why_alive(state).")


def _times(number: int) -> str:
    return "Once" if number == 1 else f"{number:,} times"


def _sums(state: Snapshot, field: Literal["stuck", "retained"]) -> list[tuple[str, int]]:
    sums: dict[str, int] = {}
    for each in state["sessions"]:
        sums[each["name"]] = sums.get(each["name"], 0) + each[field]
    return [(name, number) for name, number in sums.items() if number]


def _ends(state: Snapshot) -> Iterator[Step]:
    end = state["exit"]
    limit = state["memory"]["limit"]
    if end and end["oom"] and limit and state["line"] is None:
        line = format_size(limit * 0.8)
        yield Step("Set a line below the limit, to be warned before the kernel kills the program:",
                   f'floodline run --line "{line}" …')  # fmt: skip
