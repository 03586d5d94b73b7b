"""How often this process was forked: what a child inherits, a live watch leaves alone."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass


@dataclass(slots=True)
class _Fork:
    """How often this process is the child of a fork, and how many modules the last one found."""

    generation: int = 0
    modules: int = 0


FORK = _Fork()


def _before() -> None:
    FORK.modules = len(sys.modules)


def _in_child() -> None:
    FORK.generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_child=_in_child)
