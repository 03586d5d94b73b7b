"""The probes by the symbol of their finding."""

from __future__ import annotations

from collections.abc import Callable

Step = Callable[[int], int]
Probe = Callable[[], Step]
PROBES: dict[str, Probe] = {}


def probe(name: str) -> Callable[[Probe], Probe]:
    """Keep a function under the symbol whose growth it drives."""

    def keep(function: Probe) -> Probe:
        PROBES[name] = function
        return function

    return keep
