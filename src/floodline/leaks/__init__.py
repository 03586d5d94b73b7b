"""Finding what grows: the walk over all named places, the trend, the names, the feeding line.

Standard library only: it runs inside the watched program, also one that has no floodline.
"""

from __future__ import annotations

from floodline.leaks._candidates import Candidate, Candidates, find_candidates
from floodline.leaks._feed import Feeder, Watch
from floodline.leaks._gone import Expectations, Watchlist, check_gone, expect_gone
from floodline.leaks._inspect import Close, look_closer, merge
from floodline.leaks._live import Live
from floodline.leaks._live_answer import LiveAnswer
from floodline.leaks._roots import survey
from floodline.leaks._series import Series
from floodline.leaks._slots import Slots
from floodline.leaks._source import Place, feeding_place
from floodline.leaks._split import Split, read_split
from floodline.leaks._suspect import Suspect
from floodline.leaks._trend import Trend, trend
from floodline.leaks._verdict import Verdict, decide
from floodline.leaks._why import Retainer, WhyAlive, why_alive

__all__ = [
    "Candidate",
    "Candidates",
    "Close",
    "Expectations",
    "Feeder",
    "Live",
    "LiveAnswer",
    "Place",
    "Retainer",
    "Series",
    "Slots",
    "Split",
    "Suspect",
    "Trend",
    "Verdict",
    "Watch",
    "Watchlist",
    "WhyAlive",
    "check_gone",
    "decide",
    "expect_gone",
    "feeding_place",
    "find_candidates",
    "look_closer",
    "merge",
    "read_split",
    "survey",
    "trend",
    "why_alive",
]
