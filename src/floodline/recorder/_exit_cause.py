"""Why a process ended: from its status, the kernel's count of kills, its memory and the limit."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

from floodline._units import format_size
from floodline.memory._measuring import cgroup
from floodline.recorder._snapshot import Exit, ExitKind, ProcessStatus

WENT_ON = "continued in the background as"
SHOWN = 5
NEAR = 0.95  # of the limit
REQUESTS = ("SIGTERM", "SIGINT", "SIGHUP")  # sent to end a process, so the end was wanted
KEYS = {"SIGINT": "Ctrl-C", "SIGQUIT": "Ctrl-\\"}
CRASHES = frozenset({"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGSYS"})


def oom_kills(root: Path = cgroup.ROOT) -> int | None:
    """Return how many out-of-memory kills our cgroup has counted; None if unknown.

    The cgroups above ours are not read: they also count kills elsewhere.
    """
    names, folders = cgroup._ancestry(root)
    file = "memory.events" if names.version == 2 else "memory.oom_control"
    for line in cgroup._lines(folders[0] / file):
        word, _, number = line.partition(" ")
        if word == "oom_kill" and number.strip().isdecimal():
            return int(number)
    return None


def exit_record(
    code: int | None,
    *,
    oom: bool,
    last: float,
    limit: float | None,
    asked: str | None = None,
    typed: str | None = None,
) -> Exit:
    """Return how a process ended; `code` is negative for a signal, `asked` one that was passed on.

    `typed` is one that the terminal sent it. It need not have died of either: many programs handle
    it and exit cleanly.
    """
    name = None if code is None or code >= 0 else signal_name(-code)
    kind = _kind(code, name, oom=oom, near=_is_near(last, limit))
    return {
        "status": code if code is not None and code >= 0 else None,
        "signal": name,
        "oom": kind is ExitKind.OUT_OF_MEMORY,
        "cause": _cause(kind, code, name, last, limit) + _after(kind, name, asked, typed),
        "kind": kind,
    }


def _is_near(last: float, limit: float | None) -> bool:
    return bool(limit and last >= NEAR * limit)


def _kind(code: int | None, name: str | None, *, oom: bool, near: bool) -> ExitKind:
    if name == "SIGKILL":
        if oom:
            return ExitKind.OUT_OF_MEMORY
        return ExitKind.NEAR_THE_LIMIT if near else ExitKind.KILLED
    if name is not None:
        return ExitKind.CRASHED if name in CRASHES else ExitKind.SIGNALLED
    if code is None:
        return ExitKind.GONE
    return ExitKind.ENDED if code == 0 else ExitKind.FAILED


def _cause(
    kind: ExitKind,
    code: int | None,
    name: str | None,
    last: float,
    limit: float | None,
) -> str:
    match kind:
        case ExitKind.OUT_OF_MEMORY:
            return _killed(last, limit)
        case ExitKind.NEAR_THE_LIMIT:
            near = f"{format_size(last)} resident of a limit of {format_size(limit or 0)}"
            return f"killed, probably out of memory: {near}"
        case ExitKind.KILLED:
            return "killed, cause unknown"
        case ExitKind.CRASHED:
            return f"crashed with {name}"
        case ExitKind.SIGNALLED:
            return f"ended by {name}"
        case ExitKind.GONE:
            return "gone, cause unknown"
        case ExitKind.ENDED:
            return "exited normally"
        case _:
            return f"failed with status {code}"


def _after(kind: ExitKind, name: str | None, asked: str | None, typed: str | None) -> str:
    """Say which signal came first, if one did that asks for the end."""
    if kind not in (ExitKind.SIGNALLED, ExitKind.ENDED, ExitKind.FAILED):
        return ""
    if asked:
        return (
            ", which was passed on to it"
            if asked == name
            else f", after {asked} was passed on to it"
        )
    if typed:
        key = KEYS.get(typed, typed)
        return f" ({key})" if typed == name else f", after {key}"
    return ""


def _killed(last: float, limit: float | None) -> str:
    of = f" of a limit of {format_size(limit)}" if limit else ""
    return f"killed by the kernel, out of memory, with {format_size(last)} resident{of}"


def names_its_signal(exit: Exit) -> bool:
    """Return True if the cause names the signal."""
    return exit["kind"] in (ExitKind.SIGNALLED, ExitKind.CRASHED)


def ending(exit: Exit) -> str:
    """Return the cause, preceded by the signal if it does not name it."""
    unnamed = exit["signal"] and not names_its_signal(exit)
    return f"{exit['signal']}: {exit['cause']}" if unnamed else exit["cause"]


def end_state(exit: Exit, asked: str | None = None) -> ProcessStatus:
    """Return EXITED if a process ended cleanly or was asked to, else LOST."""
    wanted = exit["signal"] in (None, asked, *REQUESTS)
    return ProcessStatus.EXITED if wanted else ProcessStatus.LOST


def background_record(
    those: Sequence[tuple[int, ProcessStatus]],
    *,
    oom: bool,
    last: float,
    limit: float | None,
    asked: str | None = None,
) -> Exit:
    """Return how a program ended that continued as a daemon: `those` are pids and states.

    They were not our children, so there is no status; we only know whether they said goodbye, and
    whether we passed a signal on (`asked`).
    """
    states = {state for _, state in those}
    lost = ProcessStatus.LOST in states
    if ProcessStatus.RUNNING in states:
        end = "still running"
    elif lost:
        end = _killed(last, limit) if oom else "gone without a goodbye, cause unknown"
    elif asked:
        end = f"ended after {asked}, which was passed on to it"
    else:
        end = "exited normally"
    return {
        "status": None if lost else 0,
        "signal": None,
        "oom": lost and oom,
        "cause": f"{WENT_ON} {processes([pid for pid, _ in those])}: {end}",
        "kind": ExitKind.BACKGROUND,
    }


def processes(pids: Sequence[int]) -> str:
    """Write the pids of processes, at most the first few."""
    shown = ", ".join(map(str, pids[:SHOWN]))
    more = f" and {len(pids) - SHOWN} more" if len(pids) > SHOWN else ""
    return f"process{'es' if len(pids) > 1 else ''} {shown}{more}"


def signal_name(number: int) -> str:
    """Return the name of a signal, or its number if Python has no name for it."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def unclosed_record(last: float, limit: float | None, alive: Sequence[int] = ()) -> Exit:
    """Return what is known when the recorder itself was killed; `alive` are still running."""
    return {
        "status": None,
        "signal": None,
        "oom": False,
        "cause": _unclosed(last, limit, alive),
        "kind": ExitKind.UNCLOSED,
    }


def _unclosed(last: float, limit: float | None, alive: Sequence[int]) -> str:
    if alive:
        verb = "continues" if len(alive) == 1 else "continue"
        still = f"{processes(alive)} of the program {verb} unwatched"
        return f"this recording was never closed: the recorder was killed, and {still}"
    held = f"last memory {format_size(last)}"
    why = "this recording was never closed: the recorder was killed together with the program"
    if limit and _is_near(last, limit):
        return f"{why}, probably out of memory ({held} of a limit of {format_size(limit)})"
    return f"{why}, cause unknown ({held})"
