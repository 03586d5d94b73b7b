"""The same figures without /proc, from psutil: macOS and Windows."""

from __future__ import annotations

from typing import Any


def _process() -> Any:
    import psutil

    return psutil.Process()


def rss() -> int:
    """Return the resident bytes of this process."""
    return int(_process().memory_info().rss)


def vsz() -> int:
    """Return the bytes of address space of this process."""
    return int(_process().memory_info().vms)


def open_files() -> int | None:
    """Return the open descriptors or handles."""
    process = _process()
    count = getattr(process, "num_fds", None) or getattr(process, "num_handles", None)
    return None if count is None else int(count())


def machine_memory() -> int:
    """Return the bytes of memory of the machine."""
    import psutil

    return int(psutil.virtual_memory().total)
