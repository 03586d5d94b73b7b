"""Soak runs: the same work many times, then growing, bounded or undecided, and what grows."""

from __future__ import annotations

from floodline.soak._answer import Answer
from floodline.soak._run import Soak, run
from floodline.soak._scenario import Scenario, load

__all__ = ["Answer", "Scenario", "Soak", "load", "run"]
