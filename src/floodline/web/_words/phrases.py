"""The state in words: the same sentences in the report, in Markdown and in the terminal."""

from __future__ import annotations

from datetime import UTC, datetime

from floodline._pages.answer_words import ELSEWHERE, FLAT, UNNAMED, gains, growth, title
from floodline._units import format_duration, format_size
from floodline.leaks._vocabulary import Outcome, Where
from floodline.recorder._exit_cause import names_its_signal
from floodline.recorder._snapshot import (
    ContainerState,
    EventState,
    Exit,
    ProcessState,
    ProcessStatus,
    SessionsState,
    Snapshot,
    SuspectState,
)

SHORT = 22.0  # seconds
DASHBOARD_AT = "dashboard at "  # in front of the address, where `floodline run` announces it
LAST_VERDICTS = 6
RUNNING = "This recording is still being written. It is complete up to {at}."
CUT = "Nothing could be written from {since} on ({why}). The last tick is that of {at}."
UNCLOSED = "{cause}. The recording is complete up to its last tick, {at}."


def growing(state: Snapshot) -> list[SuspectState]:
    """Return the suspects that grow, worst first."""
    return [suspect for suspect in state["suspects"] if suspect["verdict"] == Outcome.GROWING]


def because(state: Snapshot) -> str:
    """Say in one sentence why the verdict is what it is."""
    worst = growing(state)
    if state["verdict"] == Outcome.GROWING and worst:
        return gains(worst[0])
    needed = state["needed"]
    if state["verdict"] == Outcome.GROWING:
        told = f"{title(needed['why'])}." if needed and state["where"] == Where.PYTHON else UNNAMED
        return ELSEWHERE.get(state["where"], told)
    if state["verdict"] == Outcome.BOUNDED:
        return FLAT
    why = title((needed and needed["why"]) or "not enough was seen").rstrip(".")
    more = f" Watch for about {format_duration(needed['seconds'])} more." if needed else ""
    return f"{why}.{more}"


def verdicts(state: Snapshot) -> str:
    """Say how the verdict changed, the last changes at most; nothing if it never did."""
    changes = state["history"][-LAST_VERDICTS:]
    if len(state["history"]) < 2:
        return ""
    told = [
        f"{one['verdict']} after {format_duration(max(one['at'] - state['started'], 0.0))}"
        for one in changes[1:]
    ]
    return f"The verdict so far: {changes[0]['verdict']}, then {', '.join(told)}."


def shown(state: Snapshot) -> list[SuspectState]:
    """Return the suspects worth showing: all except those proved bounded."""
    return [suspect for suspect in state["suspects"] if suspect["verdict"] != Outcome.BOUNDED]


def ending(state: Snapshot) -> str:
    """Say how the program ended, as far as is known."""
    if state["exit"] is None and state["closed"]:
        running = any(process["state"] == ProcessStatus.RUNNING for process in state["processes"])
        return "Watching ended; the program continues." if running else "The program has ended."
    if state["exit"] is None:
        return "The program's end was not seen."
    return f"How the program ended: {how(state['exit'])}."


def how(exit: Exit) -> str:
    """Say how a process ended: the cause, and the signal if that does not name it."""
    name = exit["signal"]
    return f"{exit['cause']} ({name})" if name and not names_its_signal(exit) else exit["cause"]


def failed(state: Snapshot) -> bool:
    """Return True if the program is known to have ended badly."""
    end = state["exit"]
    if end is None:
        return False
    unseen = state["closed"] and end["status"] is None  # a daemon that is gone
    return bool(end["signal"] or end["status"] or unseen)


def unclosed(state: Snapshot) -> str:
    """Say that a recording has no end or is cut short; empty if it is complete."""
    if cut := state.get("cut"):
        return CUT.format(at=moment(state["now"]), since=moment(cut["at"]), why=cut["why"])
    if state["closed"]:
        return ""
    at = moment(state["now"])
    if state["exit"] is None:
        return RUNNING.format(at=at)
    return UNCLOSED.format(cause=title(how(state["exit"])), at=at)


def crossing(state: Snapshot) -> str:
    """Say where memory stands relative to the line."""
    line, memory = state["line"], state["memory"]
    if line is None:
        return "no line is set"
    if memory["peak"] > line:
        return f"crossed {format_size(line)}"
    if not memory["crosses_in"] or state["closed"]:
        return f"below {format_size(line)}"
    return f"crosses {format_size(line)} in {format_duration(memory['crosses_in'])}"


def rise(state: Snapshot) -> str:
    """Write how fast memory grows; in its first seconds a run has no rate."""
    rate = state["memory"]["rate"]
    if not rate and state["now"] - state["started"] < SHORT:
        return "too early to tell"
    return growth(rate)


def measured(size: float | None) -> str:
    """Write memory; a process that ends at once is gone before it is measured."""
    return format_size(size) if size else "not measured"


def held(process: ProcessState) -> str:
    """Write the memory of a process, or its peak if it has ended."""
    if process["state"] == ProcessStatus.RUNNING:
        return format_size(process["rss"])
    return f"peak {format_size(process['peak'])}" if process["peak"] else measured(None)


def reasons(holder: SessionsState | ContainerState) -> list[tuple[str, int]]:
    """Return why items left, most frequent first."""
    found = [(reason.replace("_", " "), n) for reason, n in holder["left"].items() if n]
    return sorted(found, key=lambda each: -each[1])


def left(holder: SessionsState | ContainerState) -> str:
    """Write why items left, in one line."""
    return ", ".join(f"{n:,} {reason}" for reason, n in reasons(holder)) or "none"


def fullness(container: ContainerState) -> float:
    """Return how full a container is, from 0 to 1, by its nearest bound."""
    pairs = [
        (container["items"], container["max_items"]),
        (container["bytes"], container["max_bytes"]),
    ]
    shares = [now / most for now, most in pairs if most and now is not None]
    return min(1.0, max(shares, default=0.0))


def amount(container: ContainerState) -> str:
    """Write what a container holds against its bounds."""
    most = f" of {container['max_items']:,}" if container["max_items"] else ""
    parts = [f"{container['items']:,}{most} items"]
    if container["max_bytes"]:
        held = format_size(container["bytes"] or 0)
        parts.append(f"{held} of {format_size(container['max_bytes'])}")
    if filling := container.get("filling"):
        parts.append(f"full in about {format_duration(filling['full_in'])}")
    return ", ".join(parts)


def blind_spots(state: Snapshot) -> list[str]:
    """Return what watching the processes does not see, each once."""
    found = (text for process in state["processes"] for text in process["blind_spots"])
    return list(dict.fromkeys(found))


def printable(text: str) -> str:
    """Replace what a terminal would obey: names come from the program."""
    return "".join(character if character.isprintable() else "�" for character in text)


def count(number: int | None) -> str:
    """Write a number with separators, or a dash if unknown."""
    return "–" if number is None else f"{number:,}"


def moment(wall: float) -> str:
    """Write a time in UTC, so that a mailed report means the same everywhere."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def times(event: EventState) -> str:
    """Say how often an event occurred with the same text."""
    count = event.get("count", 1)
    return f" ({count:,} times)" if count > 1 else ""


def clock(wall: float) -> str:
    """Write the time of day in UTC."""
    return datetime.fromtimestamp(wall, UTC).strftime("%H:%M:%S")
