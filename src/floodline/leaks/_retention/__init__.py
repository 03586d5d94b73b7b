"""Finds what keeps an object alive, and what should be gone by now."""

from __future__ import annotations

from floodline.leaks._retention.watchlist import Watchlist

__all__ = ["Watchlist"]
