"""Lines that memory must not cross: sizes, or shares of the total."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from floodline._units import Size, parse_size
from floodline.errors import ConfigError
from floodline.memory._measuring import cgroup
from floodline.memory._measuring.probes import Probe, machine_memory, rss

_SHARE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")


@dataclass(slots=True, frozen=True)
class Line:
    """A size in bytes, or a share of the total memory."""

    size: int = 0
    share: float = 0.0

    def at(self, total: int) -> int:
        """Return the bytes; `total` is the total memory."""
        return self.size or int(total * self.share)

    def scaled(self, factor: float) -> Line:
        """Return the line multiplied by a factor."""
        return Line(int(self.size * factor), self.share * factor)


def parse_line(value: Size, what: str) -> Line:
    """Read `"80%"` as a share and everything else as a size; `what` names the setting in errors."""
    found = _SHARE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return Line(size=parse_size(value, what))
    share = float(found[1]) / 100
    if not 0 < share <= 1:
        raise ConfigError(f"{what}={value!r} must be above 0% and at most 100%")
    return Line(share=share)


@dataclass(slots=True, frozen=True)
class Ground:
    """How much memory is in use, and how much there is in total.

    Shares are of the lowest cgroup limit, and then everything charged to that cgroup counts, as it
    does when the kernel decides to kill. Without such a limit they are of the machine's memory, and
    then, as for sizes, the resident memory of this process counts.
    """

    shares: bool
    probe: Probe | None
    total: Probe | None
    root: Path = cgroup.ROOT

    def measure(self) -> tuple[int, int]:
        """Return the bytes in use and the total bytes (0 if no line needs them)."""
        if not self.shares:
            return self._own(), 0
        if self.total is not None:
            return self._own(), int(self.total() or 0)
        found, machine = cgroup.binding(self.root), machine_memory()
        if found is None or found.limit > machine:  # a limit that is never reached
            return self._own(), machine
        if self.probe is None and found.usage is not None:
            return found.usage, found.limit
        return self._own(), found.limit

    def used(self) -> int:
        """Return the bytes in use."""
        return self.measure()[0]

    def _own(self) -> int:
        return int((self.probe or rss)() or 0)
