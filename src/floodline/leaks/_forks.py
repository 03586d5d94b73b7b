"""Counts the forks behind this process: a live watch leaves what a child inherits alone."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass


@dataclass(slots=True)
class _Fork:
    """How many forks led to this process, and how many modules were loaded at the last one."""

    generation: int = 0
    modules: int = 0


FORK = _Fork()


def _before() -> None:
    FORK.modules = len(sys.modules)


def _in_child() -> None:
    FORK.generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_child=_in_child)
