"""A closer look at the suspects: owner, contents, feeding line."""

from __future__ import annotations

from floodline.leaks._closeup.closeup import Close, look_closer, merge
from floodline.leaks._closeup.feeding_line import Feeder, Watch
from floodline.leaks._closeup.suspect_line import with_traced_line

__all__ = ["Close", "Feeder", "Watch", "look_closer", "merge", "with_traced_line"]
