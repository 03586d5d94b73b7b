"""Finding what grows: the walk over all named places, the trend, the names, the feeding line.

Standard library only: it runs inside the watched program, also one that has no floodline.
What users need is here. Soak runs and sessions take the rest from the stages: their packages export
what is used outside of them.
"""

from __future__ import annotations

from floodline.leaks._figures import Suspect
from floodline.leaks._live import Live, LiveAnswer
from floodline.leaks._retention import Expectations, Retainer, WhyAlive, check_gone, expect_gone
from floodline.leaks._retention.why_alive import why_alive  # the module has the same name

__all__ = [
    "Expectations",
    "Live",
    "LiveAnswer",
    "Retainer",
    "Suspect",
    "WhyAlive",
    "check_gone",
    "expect_gone",
    "why_alive",
]
