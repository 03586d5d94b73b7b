"""What a process died of: its status, the kernel's count of kills, its memory and the limit."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from floodline._units import format_size
from floodline.memory import _cgroup

WENT_ON = "went on in the background as"
SHOWN = 5
NEAR = 0.95  # of the limit
REQUESTS = ("SIGTERM", "SIGINT", "SIGHUP")  # whoever sends one wants an end, and gets it
CRASHES = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGSYS"})


def oom_kills(root: Path = _cgroup.ROOT) -> int | None:
    """Return how often the kernel killed in our cgroup for lack of memory; None if unknown.

    Of the cgroups above ours none is asked: they count the kills of strangers too.
    """
    names, folders = _cgroup._ancestry(root)
    file = "memory.events" if names.version == 2 else "memory.oom_control"
    for line in _cgroup._lines(folders[0] / file):
        word, _, number = line.partition(" ")
        if word == "oom_kill" and number.strip().isdecimal():
            return int(number)
    return None


def exit_record(
    code: int | None, *, oom: bool, last: float, limit: float | None, asked: str | None = None
) -> dict[str, Any]:
    """Return how a process ended; `code` is negative for a signal, `asked` one that was passed on.

    What was passed on need not be what it died of: many catch a signal and end in order.
    """
    name = None if code is None or code >= 0 else signal_name(-code)
    record = {"status": code if code is not None and code >= 0 else None, "signal": name}
    killed = name == "SIGKILL"
    return {
        **record,
        "oom": bool(killed and oom),
        "cause": _cause(code, name, bool(killed and oom), last, limit, asked),
    }


def end_state(exit: dict[str, Any], asked: str | None = None) -> str:
    """Return in one word how a process ended: in order, or as somebody wanted, or lost."""
    return "exited" if exit["signal"] in (None, asked, *REQUESTS) else "lost"


def _cause(
    code: int | None,
    name: str | None,
    oom: bool,
    last: float,
    limit: float | None,
    asked: str | None,
) -> str:
    after = f", after {asked} was passed on to it" if asked else ""
    if oom:
        return _killed(last, limit)
    if name == "SIGKILL":
        if limit and last >= NEAR * limit:
            near = f"{format_size(last)} resident of a limit of {format_size(limit)}"
            return f"killed, probably for lack of memory: {near}"
        return "killed, cause unknown"
    if name in CRASHES:
        return f"crashed with {name}"
    if name:
        return f"ended by {name}" + (", which was passed on to it" if asked == name else after)
    if code is None:
        return "gone, cause unknown"
    return ("ended by itself" if code == 0 else f"failed with status {code}") + after


def _killed(last: float, limit: float | None) -> str:
    of = f" of a limit of {format_size(limit)}" if limit else ""
    return f"killed by the kernel for lack of memory, with {format_size(last)} resident{of}"


def background_record(
    those: Sequence[tuple[int, str]],
    *,
    oom: bool,
    last: float,
    limit: float | None,
    asked: str | None = None,
) -> dict[str, Any]:
    """Return how a program ended that went on as a daemon: `those` are pids and states.

    They were no children of ours, so there is no status; only whether they said goodbye is known,
    and whether we passed a signal on (`asked`).
    """
    states = {state for _, state in those}
    lost = "lost" in states
    if "running" in states:
        end = "still running"
    elif lost:
        end = _killed(last, limit) if oom else "gone, cause unknown: no goodbye was heard"
    elif asked:
        end = f"ended after {asked}, which was passed on to it"
    else:
        end = "ended by itself"
    cause = f"{WENT_ON} {processes([pid for pid, _ in those])}: {end}"
    return {"status": None if lost else 0, "signal": None, "oom": lost and oom, "cause": cause}


def processes(pids: Sequence[int]) -> str:
    """Write the numbers of processes, the first few of many."""
    shown = ", ".join(map(str, pids[:SHOWN]))
    more = f" and {len(pids) - SHOWN} more" if len(pids) > SHOWN else ""
    return f"process{'es' if len(pids) > 1 else ''} {shown}{more}"


def signal_name(number: int) -> str:
    """Return the name of a signal, also of one that Python has no name for."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def unclosed_cause(last: float, limit: float | None, alive: Sequence[int] = ()) -> str:
    """Say what is known when the recorder itself was killed; `alive` are those that run still."""
    if alive:
        verb = "goes" if len(alive) == 1 else "go"
        still = f"{processes(alive)} of the program {verb} on unwatched"
        return f"nobody closed this recording: the recorder was killed, and {still}"
    held = f"last memory {format_size(last)}"
    why = "nobody closed this recording: the recorder was killed together with the program"
    if limit and last >= NEAR * limit:
        return f"{why}, probably for lack of memory ({held} of a limit of {format_size(limit)})"
    return f"{why}, cause unknown ({held})"
