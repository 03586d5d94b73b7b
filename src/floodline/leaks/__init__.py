"""Finding what grows: the walk over all named places, the trend, the names, the feeding line.

Standard library only: it runs inside the watched program, also one that has no floodline.
"""

from __future__ import annotations

from floodline.leaks._closeup.closeup import Close, look_closer, merge
from floodline.leaks._closeup.feeding_line import Feeder, Watch
from floodline.leaks._figures.candidates import Candidate, Candidates, find_candidates
from floodline.leaks._figures.rss_split import Split, read_split
from floodline.leaks._figures.series import Series
from floodline.leaks._figures.suspect import Suspect
from floodline.leaks._figures.trend import Trend, trend
from floodline.leaks._figures.verdict import Verdict, decide
from floodline.leaks._heap.roots import survey
from floodline.leaks._heap.slots import Slots
from floodline.leaks._live.answer import LiveAnswer
from floodline.leaks._live.watch import Live
from floodline.leaks._retention.watchlist import Expectations, Watchlist, check_gone, expect_gone
from floodline.leaks._retention.why_alive import Retainer, WhyAlive, why_alive
from floodline.leaks._source.feeding_statements import feeding_place
from floodline.leaks._source.place import Place

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
