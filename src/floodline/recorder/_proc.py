"""What can be seen of a process from outside: by /proc, else by psutil."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from floodline.recorder._descriptors import STARVED
from floodline.recorder._probe_site import VARIABLE

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
VERSION = re.compile(r"python3\.(\d+)")
OLDEST = 11
HELPER = "multiprocessing.resource_tracker"  # one of Python's own, without a leak to watch


class NoProbe(StrEnum):
    """Why a process has no probe."""

    FLAGS = "flags"
    ENVIRONMENT = "environment"
    PATH = "path"
    OLD = "old"
    OTHER = "other"
    QUIET = "quiet"  # it has one that has not reported yet


SENTENCES = {
    NoProbe.FLAGS: "started with {detail}, which keeps the probe out",
    NoProbe.ENVIRONMENT: f"its environment was cleared: it has no {VARIABLE}",
    NoProbe.PATH: "its PYTHONPATH was replaced",
    NoProbe.OLD: "Python 3.{detail}; the probe needs 3.11 or later",
    NoProbe.OTHER: "not a Python program",
    NoProbe.QUIET: "it carries the probe, but has only forked or waited so far",
}


@dataclass(slots=True, frozen=True)
class Seen:
    """A process seen from outside; `key` says why it has no probe, `why` says it in words."""

    pid: int
    parent: int
    command: str
    key: NoProbe
    why: str


def resident(pid: int, proc: Path = PROC) -> int | None:
    """Return the resident bytes of a process, None if it is gone.

    Without a descriptor to look with, that `OSError` is raised.
    """
    if not proc.is_dir():
        return _psutil(pid)
    try:
        return int((proc / str(pid) / "statm").read_bytes().split()[1]) * PAGE
    except OSError as error:
        if error.errno in STARVED:
            raise
        return None
    except (ValueError, IndexError):
        return None


def _psutil(pid: int) -> int | None:
    import psutil

    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None


def alive(pid: int, proc: Path = PROC) -> bool:
    """Return True if a process is still running; a zombie is not."""
    try:
        state = (proc / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except OSError as error:
        if error.errno in STARVED:
            return (proc / str(pid)).exists()  # which takes no descriptor
        return not proc.is_dir() and _psutil(pid) is not None
    return state.rpartition(")")[2].split()[:1] not in (["Z"], ["X"])


def owner_of(pid: int, proc: Path = PROC) -> int | None:
    """Return the user of a process, None if the system does not say."""
    try:
        return (proc / str(pid)).stat().st_uid
    except OSError:
        return None


def descendants(pid: int, proc: Path = PROC) -> list[int]:
    """Return the descendants of a process; empty if they cannot be listed."""
    if not proc.is_dir():
        return _psutil_descendants(pid)
    found: list[int] = []
    queue = [pid]
    while queue and len(found) < 1000:
        for child in _children(queue.pop(), proc):
            found.append(child)
            queue.append(child)
    return found


def _children(pid: int, proc: Path) -> list[int]:
    children: list[int] = []
    try:
        for task in (proc / str(pid) / "task").iterdir():
            children += map(int, (task / "children").read_text(encoding="ascii").split())
    except (OSError, ValueError):
        pass
    return children


def _psutil_descendants(pid: int) -> list[int]:
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def carriers(address: str, proc: Path = PROC) -> list[int]:
    """Return the processes started with a probe for this address, wherever they are now.

    A daemon leaves the tree of its program, but keeps the environment it was started with.
    """
    if not proc.is_dir():
        return _psutil_carriers(address)
    try:
        pids = [int(folder.name) for folder in proc.iterdir() if folder.name.isdecimal()]
    except OSError:  # no descriptor to list them with
        return []
    return [pid for pid in pids if carries(pid, address, proc) and alive(pid, proc)]


def carries(pid: int, address: str, proc: Path = PROC) -> bool:
    """Return True if a process was started with a probe for this address."""
    try:
        environment = (proc / str(pid) / "environ").read_bytes()
    except OSError:  # it is gone, or another user's
        return not proc.is_dir() and pid in _psutil_carriers(address)
    return f"{VARIABLE}={address}".encode() in environment.split(b"\0")


def _psutil_carriers(address: str) -> list[int]:
    import psutil

    every = psutil.process_iter(["environ"])
    return [one.pid for one in every if (one.info["environ"] or {}).get(VARIABLE) == address]


def look(pid: int, parent: int, site: str, proc: Path = PROC) -> Seen | None:
    """Return what a process is and why it may have no probe; None if it is gone."""
    folder = proc / str(pid)
    words = _words(folder / "cmdline") or []
    if not words or any(HELPER in word for word in words):
        return None
    key, detail = _why(pid, proc, words, site)
    return Seen(pid, parent, _shown(words), key, SENTENCES[key].format(detail=detail))


def command_of(pid: int, proc: Path = PROC) -> str | None:
    """Return the command line of a process, shortened; None if it is gone."""
    words = _words(proc / str(pid) / "cmdline")
    return _shown(words) if words else None


def environment_of(pid: int, proc: Path = PROC) -> dict[str, str] | None:
    """Return the environment that a process was started with; None if it is not readable."""
    words = _words(proc / str(pid) / "environ")
    return None if words is None else dict(pair.split("=", 1) for pair in words if "=" in pair)


def _shown(words: list[str]) -> str:
    return " ".join([Path(words[0]).name, *words[1:]])[:200]


def _why(pid: int, proc: Path, words: list[str], site: str) -> tuple[NoProbe, str]:
    try:
        exe = (proc / str(pid) / "exe").readlink().name
    except OSError:
        exe = Path(words[0]).name
    if "python" not in exe.lower():
        return NoProbe.OTHER, ""
    version = VERSION.search(exe)
    if version and int(version[1]) < OLDEST:
        return NoProbe.OLD, version[1]
    flag = next((word for word in _flags(words) if set(word) & set("IES")), None)
    if flag:
        return NoProbe.FLAGS, flag
    environment = environment_of(pid, proc)
    if environment is None:
        return NoProbe.QUIET, ""
    if VARIABLE not in environment:
        return NoProbe.ENVIRONMENT, ""
    if site not in environment.get("PYTHONPATH", "").split(os.pathsep):
        return NoProbe.PATH, ""
    return NoProbe.QUIET, ""


def _flags(words: list[str]) -> list[str]:
    """Return the interpreter's own options: those before the program."""
    flags = []
    for word in words[1:]:
        if not word.startswith("-") or word in ("-c", "-m", "-"):
            break
        if not word.startswith("--"):
            flags.append(word)
    return flags


def _words(file: Path) -> list[str] | None:
    try:
        text = file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return None
    return [word for word in text.split("\0") if word]
