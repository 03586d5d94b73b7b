"""Finding what grows: the walk over all named places, the trend, the names, the feeding line.

Standard library only: it runs inside the watched program, even one without floodline installed.
The public names are here and load lazily. Soak runs and sessions import the rest from the stage
packages, which export what is used outside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from floodline._lazy import lazy_names

# count forks from the first import, including those before a live watch is wanted
from floodline.leaks import _forks as _forks

if TYPE_CHECKING:
    from floodline.leaks._figures.suspect import Suspect
    from floodline.leaks._live.answer import LiveAnswer
    from floodline.leaks._live.watch import Live
    from floodline.leaks._retention.watchlist import Expectations, check_gone, expect_gone
    from floodline.leaks._retention.why_alive import Retainer, WhyAlive, why_alive

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

_HOMES = {
    "Expectations": "_retention.watchlist",
    "Live": "_live.watch",
    "LiveAnswer": "_live.answer",
    "Retainer": "_retention.why_alive",
    "Suspect": "_figures.suspect",
    "WhyAlive": "_retention.why_alive",
    "check_gone": "_retention.watchlist",
    "expect_gone": "_retention.watchlist",
    "why_alive": "_retention.why_alive",
}

__getattr__, __dir__ = lazy_names(globals(), _HOMES)
