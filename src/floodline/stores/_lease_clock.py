"""The clock of leases: shared by all processes of the machine, independent of the wall clock."""

from __future__ import annotations

import time

from floodline._clock import Clock


def machine_clock() -> Clock:
    """Return seconds since boot, sleep included where the system counts it.

    A lease must expire while a laptop sleeps, and must not expire when the date is set.
    """
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    if boot is None:
        return time.monotonic
    return lambda: time.clock_gettime(boot)
