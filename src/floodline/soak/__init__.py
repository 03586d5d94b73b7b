"""Soak runs: the same work many times, then growing, bounded or undecided, and what grows."""

from __future__ import annotations

from floodline.soak._answer import Answer
from floodline.soak._profiles import PROFILES, Profile, chaos_point
from floodline.soak._run import Soak, run
from floodline.soak._scenario import Scenario, load

__all__ = ["PROFILES", "Answer", "Profile", "Scenario", "Soak", "chaos_point", "load", "run"]
