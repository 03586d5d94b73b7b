"""When a process may be entered: its main thread sleeps in a system call that waits for events.

Python has released its lock there, and no lock of malloc or of the dynamic linker is held. Entering
at any other moment has aborted programs (a corrupted heap) and hung them for good.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

PROC = Path("/proc")
READ = {"x86_64": 0, "aarch64": 63}
# poll, select, epoll and nanosleep in all their forms. A wait for a lock (futex) is not among them:
# the lock may be Python's own
WAITS = {
    "x86_64": frozenset({7, 23, 35, 230, 232, 270, 271, 281, 441}),
    "aarch64": frozenset({22, 72, 73, 101, 115, 441}),
}
WAITED_FOR = ("pipe:", "socket:", "anon_inode:", "/dev/pts/", "/dev/tty", "/dev/console")
MOST_THREADS = 256


def asleep(pid: int, proc: Path = PROC, machine: str | None = None) -> bool:
    """Return True if the main thread waits for events in the kernel, or is held by us doing so."""
    machine = machine or platform.machine()
    try:
        words = (proc / str(pid) / "task" / str(pid) / "syscall").read_text("ascii").split()
        number = int(words[0])
    except (OSError, ValueError, IndexError):  # running, gone, or not ours to look at
        return False
    if number in WAITS.get(machine, ()):
        return True
    return number == READ.get(machine) and _waits(pid, int(words[1], 16), proc)


def _waits(pid: int, descriptor: int, proc: Path) -> bool:
    """Return True if reading from a descriptor waits for another process or a person.

    A file may be a library that is being loaded, with the lock of the dynamic linker held.
    """
    try:
        opened = str((proc / str(pid) / "fd" / str(descriptor)).readlink())
    except OSError:
        return False
    return opened.startswith(WAITED_FOR)


def quiet(pid: int, proc: Path = PROC) -> bool:
    """Return True if no other thread of a process runs either, so that Python's lock is free."""
    try:
        tasks = [entry for entry in os.listdir(proc / str(pid) / "task") if entry != str(pid)]  # noqa: PTH208  # names only
    except OSError:
        return False
    return len(tasks) <= MOST_THREADS and all(_sleeps(pid, task, proc) for task in tasks)


def _sleeps(pid: int, task: str, proc: Path) -> bool:
    try:
        stat = (proc / str(pid) / "task" / task / "stat").read_text("ascii", errors="replace")
    except OSError:  # it has just ended
        return True
    return stat.rpartition(")")[2].split()[0] == "S"
