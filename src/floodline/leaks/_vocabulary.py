"""The words of an answer: what a program does, where it grows, and how that is known.

They are the strings in the JSON documents. The module imports nothing else, so that readers of
answers need not load the engine.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal


class Outcome(StrEnum):
    """The verdict on a program, or on one of its suspects."""

    GROWING = "growing"
    BOUNDED = "bounded"
    UNDECIDED = "undecided"


class Where(StrEnum):
    """Which memory grows; `none` if nothing does."""

    PYTHON = "python"
    NATIVE = "native"
    FRAGMENTATION = "fragmentation"
    UNKNOWN = "unknown"
    NONE = "none"


class LineSource(StrEnum):
    """How the feeding line is known: observed at run time, or read from the source."""

    TRACE = "trace"
    STATIC = "static"


class Cause(StrEnum):
    """Why the verdict is not simply that a named container grows, or that nothing does."""

    TOO_FEW = "too few samples"
    TOO_SHORT = "watched too briefly"
    FIRST_WALK = "first walk not ended"
    FILLING = "filling up to a cap"
    MAY_FILL = "a limit that is not known"
    UNSTEADY = "rises unsteadily"
    TOO_DEEP = "objects too deep to look into"
    UNNAMED_OBJECTS = "objects without a name"
    UNNAMED_BLOCKS = "blocks without a name"
    MALLOC = "malloc in use"
    MALLOC_FREE = "malloc free but held"
    ARENAS_FREE = "arenas free but held"
    IN_USE_BY_C = "resident, in use by C"
    MAPPED = "mapped outside malloc"
    RESIDENT = "resident, not explained"


class Hold(StrEnum):
    """What keeps an object alive: a name, the caller alone, a garbage cycle, or unknown."""

    HELD = "held"
    CALLER = "caller"
    GARBAGE = "garbage"
    UNKNOWN = "unknown"


Column = Literal["length", "text", "count"]  # the figures of a slot that can grow
Step = Literal["round", "second"]  # what rates are per
Unit = Literal["item", "byte", "object"]  # what a suspect's length counts
