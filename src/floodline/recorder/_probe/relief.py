"""Sheds in the watched process when the recorder says that the line is crossed.

Only holders that a `MemoryBudget` of the program has attached are asked to shed.
"""

from __future__ import annotations

import sys
from typing import Any

from floodline import telemetry

_floodline_engine = True  # the walk leaves this module out

FIRST, MOST = 64, 4096  # items per request; doubles while requests keep coming


class Relief:
    """Sheds on the thread that runs users' finalizers, because the probe's must not block."""

    def __init__(self) -> None:
        self._ask = FIRST
        self._excess = 0

    def want(self, excess: int) -> bool:
        """Shed soon; `excess` bytes are above the line. Return True if any holder can."""
        self._excess = excess
        if not any(True for _ in self._budgets()):
            return False
        from floodline._clock import sweeper  # whoever has a budget has imported it

        sweeper.want(self._tick, 0.0)
        return True

    def _budgets(self) -> list[Any]:
        budgets = sys.modules.get("floodline.memory._budget.budget")
        if budgets is None:  # a program without one has not imported it, and need not
            return []
        return [
            holder
            for holder in telemetry.holders()
            if isinstance(holder, budgets.MemoryBudget) and holder.stats().action == "shed"
        ]

    def _tick(self) -> None:
        shed = 0
        for budget in self._budgets():
            shed += budget._holders.shed(self._ask, budget.name).items
        self._ask = min(2 * self._ask, MOST) if shed else FIRST
        if shed:
            telemetry.emit("line_shed", "floodline run", shed=shed)
            for budget in self._budgets():
                budget._collector.collect()
