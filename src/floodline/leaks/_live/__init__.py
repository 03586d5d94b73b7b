"""Watching a running server in slices of about a millisecond."""

from __future__ import annotations

from floodline.leaks._live.answer import LiveAnswer
from floodline.leaks._live.watch import Live

__all__ = ["Live", "LiveAnswer"]
