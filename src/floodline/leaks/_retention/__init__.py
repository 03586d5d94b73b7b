"""Who keeps an object alive, and what should be gone by now."""

from __future__ import annotations

from floodline.leaks._retention.watchlist import Expectations, Watchlist, check_gone, expect_gone
from floodline.leaks._retention.why_alive import Retainer, WhyAlive

__all__ = ["Expectations", "Retainer", "Watchlist", "WhyAlive", "check_gone", "expect_gone"]
