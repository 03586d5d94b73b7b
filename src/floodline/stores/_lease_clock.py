"""The clock of leases: common to all processes of the machine, and deaf to the wall clock."""

from __future__ import annotations

import time

from floodline._clock import Clock


def machine_clock() -> Clock:
    """Return seconds since boot, sleep included where the system counts it.

    A lease must run out while a laptop sleeps, and must not when somebody sets the date.
    """
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    if boot is None:
        return time.monotonic
    return lambda: time.clock_gettime(boot)
