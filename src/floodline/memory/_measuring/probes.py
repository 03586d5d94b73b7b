"""What can be measured about this process: each probe is a callable that returns one number.

Standard library only, because the probe inside a watched process imports this; psutil is used only
where there is no /proc, and imported only when something is read.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, Protocol

from floodline.errors import ConfigError
from floodline.memory._measuring import cgroup, psutil_figures
from floodline.memory._measuring.statm import statm


class Probe(Protocol):
    """Returns a current number, or None if the platform cannot tell."""

    def __call__(self) -> float | None:
        """Measure now."""
        ...


def rss() -> int:
    """Return the resident bytes of this process; on Linux one system call on a kept file."""
    return statm.resident() if statm.exists else psutil_figures.rss()


def vsz() -> int:
    """Return the bytes of address space of this process."""
    return statm.size() if statm.exists else psutil_figures.vsz()


def allocated_blocks() -> int:
    """Return how many blocks Python's own allocator has handed out."""
    return sys.getallocatedblocks()


def gc_pending() -> int:
    """Return the collector's counts of new objects and young collections since its last run.

    It keeps counting while automatic collection is off.
    """
    return sum(gc.get_count())


def gc_collections() -> int:
    """Return how often the collector has run, in all generations, since the start."""
    return sum(generation["collections"] for generation in gc.get_stats())


def threads(task: str = "/proc/self/task") -> int:
    """Return the threads of the process, including C libraries' where /proc shows them."""
    try:
        return len(list(Path(task).iterdir()))
    except OSError:
        return threading.active_count()


def open_files(folders: Iterable[str] = ("/proc/self/fd", "/dev/fd")) -> int | None:
    """Return the open file descriptors (on Windows: handles)."""
    for folder in folders:
        try:
            return len(list(Path(folder).iterdir())) - 1  # without the one used for listing
        except OSError:
            continue
    return psutil_figures.open_files()


def asyncio_tasks() -> int | None:
    """Return the asyncio tasks that exist in all event loops, done ones too while referenced.

    0 if asyncio was never imported; None where Python does not list them across loops (3.14).
    """
    tasks = sys.modules.get("asyncio.tasks")
    if tasks is None:
        return 0
    known = [getattr(tasks, name, None) for name in ("_all_tasks", "_scheduled_tasks")]
    eager = getattr(tasks, "_eager_tasks", ())
    found = next((tasks for tasks in known if tasks is not None), None)
    return None if found is None else len(found) + len(eager)


def machine_memory() -> int:
    """Return the bytes of memory of the machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return psutil_figures.machine_memory()


def cgroup_usage() -> int | None:
    """Return the working set of the cgroup that limits this process; None without one."""
    found = cgroup.binding()
    return None if found is None else found.usage


def cgroup_limit() -> int | None:
    """Return the lowest memory limit that applies to this process; None if there is none."""
    found = cgroup.binding()
    return None if found is None else found.limit


def psi_some(root: Path = cgroup.ROOT) -> float | None:
    """Return the percentage of the last 10 s in which some task waited for memory."""
    return cgroup.stall("some", root)


def psi_full(root: Path = cgroup.ROOT) -> float | None:
    """Return the percentage of the last 10 s in which all tasks waited for memory."""
    return cgroup.stall("full", root)


ProbeName = Literal[
    "rss",
    "vsz",
    "allocated_blocks",
    "gc_pending",
    "gc_collections",
    "threads",
    "open_files",
    "asyncio_tasks",
    "machine_memory",
    "cgroup_usage",
    "cgroup_limit",
    "psi_some",
    "psi_full",
]
PROBES: Mapping[str, Probe] = {
    "rss": rss,
    "vsz": vsz,
    "allocated_blocks": allocated_blocks,
    "gc_pending": gc_pending,
    "gc_collections": gc_collections,
    "threads": threads,
    "open_files": open_files,
    "asyncio_tasks": asyncio_tasks,
    "machine_memory": machine_memory,
    "cgroup_usage": cgroup_usage,
    "cgroup_limit": cgroup_limit,
    "psi_some": psi_some,
    "psi_full": psi_full,
}


def measure(*names: ProbeName) -> dict[str, float | None]:
    """Return the current values of the named probes, else of all; None where one cannot tell."""
    for name in names:
        if name not in PROBES:
            raise ConfigError(f"unknown probe {name!r}; choose one of {', '.join(PROBES)}")
    return {name: PROBES[name]() for name in names or PROBES}
