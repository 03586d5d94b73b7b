"""What a process died of: its status, the kernel's count of kills, its memory and the limit."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from floodline._units import format_size
from floodline.memory import _cgroup

NEAR = 0.95  # of the limit
CRASHES = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGSYS"})


def oom_kills(root: Path = _cgroup.ROOT) -> int | None:
    """Return how often the kernel killed in our cgroup for lack of memory; None if unknown."""
    names, folders = _cgroup._ancestry(root)
    file = "memory.events" if names.version == 2 else "memory.oom_control"
    counts = []
    for folder in folders:
        for line in _cgroup._lines(folder / file):
            word, _, number = line.partition(" ")
            if word == "oom_kill" and number.strip().isdecimal():
                counts.append(int(number))
    return max(counts) if counts else None


def exit_record(
    code: int | None, *, oom: bool, last: float, limit: float | None, asked: bool = False
) -> dict[str, Any]:
    """Return how a process ended; `code` is negative for a signal, `asked` if we passed one on."""
    name = None if code is None or code >= 0 else signal_name(-code)
    record = {"status": code if code is not None and code >= 0 else None, "signal": name}
    killed = name == "SIGKILL"
    return {
        **record,
        "oom": bool(killed and oom),
        "cause": _cause(code, name, bool(killed and oom), last, limit, asked),
    }


def _cause(
    code: int | None, name: str | None, oom: bool, last: float, limit: float | None, asked: bool
) -> str:
    held = f"{format_size(last)} resident"
    if oom:
        of = f" of a limit of {format_size(limit)}" if limit else ""
        return f"killed by the kernel for lack of memory, with {held}{of}"
    if name == "SIGKILL":
        if limit and last >= NEAR * limit:
            near = f"{held} of a limit of {format_size(limit)}"
            return f"killed, probably for lack of memory: {near}"
        return "killed, cause unknown"
    if name in CRASHES:
        return f"crashed with {name}"
    if name:
        return f"ended by {name}" + (", which was passed on to it" if asked else "")
    if code is None:
        return "gone, cause unknown"
    return "ended by itself" if code == 0 else f"failed with status {code}"


def signal_name(number: int) -> str:
    """Return the name of a signal, also of one that Python has no name for."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def unclosed_cause(last: float, limit: float | None) -> str:
    """Say what is known when the recorder itself was killed."""
    held = f"last memory {format_size(last)}"
    why = "nobody closed this recording: the recorder was killed together with the program"
    if limit and last >= NEAR * limit:
        return f"{why}, probably for lack of memory ({held} of a limit of {format_size(limit)})"
    return f"{why}, cause unknown ({held})"
