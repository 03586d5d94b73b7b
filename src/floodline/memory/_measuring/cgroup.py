"""The memory limit that the kernel enforces on this process: cgroup v2 and v1, nested or not.

A limit may be set on any ancestor, so all visible ones are read and the lowest applies. Usage is
that of the same cgroup, as the working set: what is charged, minus the file cache that the kernel
would drop first (`inactive_file`). The kubelet and `docker stats` do the same. In a container, the
process's own path is often not mounted; then the root of the mount is the container's cgroup.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path("/")
UNLIMITED = 1 << 60  # v1 says "no limit" as a number near 2**63, rounded to pages


@dataclass(slots=True, frozen=True)
class Cgroup:
    """The cgroup with the lowest memory limit among those of this process."""

    path: str
    limit: int
    usage: int | None
    version: int


@dataclass(slots=True, frozen=True)
class _Names:
    version: int
    limits: tuple[str, ...]
    usage: str
    inactive: str


# `memory.high` does not kill but throttles to a standstill, so it counts as a limit like `max`
_V2 = _Names(2, ("memory.max", "memory.high"), "memory.current", "inactive_file")
_V1 = _Names(1, ("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file")


def binding(root: Path | str = ROOT) -> Cgroup | None:
    """Return the cgroup that limits this process, or None; `root` stands for the root directory."""
    root = Path(root)
    lowest: Cgroup | None = None
    names, folders = _ancestry(root)
    for folder in folders:
        limit = _limit_of(folder, names)
        if limit is not None and (lowest is None or limit < lowest.limit):
            shown = "/" + folder.relative_to(root).as_posix()
            lowest = Cgroup(shown, limit, _working_set(folder, names), names.version)
    return lowest


def stall(kind: str, root: Path = ROOT) -> float | None:
    """Return `avg10` of the memory pressure (PSI) of the cgroup, else of the machine, in percent.

    `kind` is `"some"` or `"full"`; None where the kernel does not keep it.
    """
    names, folders = _ancestry(root)
    own = [folder / "memory.pressure" for folder in folders][:1] if names.version == 2 else []
    for file in (*own, root / "proc/pressure/memory"):
        for line in _lines(file):
            word, _, rest = line.partition(" ")
            figures = dict(pair.split("=", 1) for pair in rest.split() if "=" in pair)
            if word == kind and "avg10" in figures:
                return float(figures["avg10"])
    return None


def _ancestry(root: Path) -> tuple[_Names, list[Path]]:
    """Return the folders of the process's cgroup and its ancestors, up to the mount's root."""
    mount = root / "sys/fs/cgroup"
    own, names = "/", _V2
    for line in _lines(root / "proc/self/cgroup"):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            own, names, mount = path, _V1, root / "sys/fs/cgroup/memory"
            break
        if not controllers:
            own = path
    folder = mount.joinpath(*(part for part in PurePosixPath(own).parts if part not in ("/", "..")))
    return names, list(_upwards(folder if folder.is_dir() else mount, mount))


def _upwards(folder: Path, mount: Path) -> Iterator[Path]:
    while True:
        yield folder
        if folder == mount:
            return
        folder = folder.parent


def _limit_of(folder: Path, names: _Names) -> int | None:
    limits = [_number(folder / name) for name in names.limits]
    return min((n for n in limits if n is not None and n < UNLIMITED), default=None)


def _working_set(folder: Path, names: _Names) -> int | None:
    charged = _number(folder / names.usage)
    if charged is None:
        return None
    for line in _lines(folder / "memory.stat"):
        name, _, value = line.partition(" ")
        if name == names.inactive and value.isdecimal():
            return max(0, charged - int(value))
    return charged


def _number(file: Path) -> int | None:
    text = "".join(_lines(file)[:1]).strip()
    return int(text) if text.isdecimal() else None  # otherwise "max", or nothing


def _lines(file: Path) -> list[str]:
    try:
        return file.read_bytes().decode("ascii", "replace").splitlines()
    except OSError:
        return []
