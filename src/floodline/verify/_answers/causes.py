"""What verify can see, as values; `texts` has the sentences."""

from __future__ import annotations

from enum import Enum, StrEnum, auto


class Verdict(StrEnum):
    """What is known about a claim."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "cannot tell"


class Cause(Enum):
    """Why a verdict is what it is."""

    # in the source: what the claim is about
    NO_FILE = auto()
    SYNTAX_ERROR = auto()
    UNREADABLE = auto()
    NO_SYMBOL = auto()
    NO_CONTAINER = auto()
    # in the source: whether there is a limit
    UNLIMITED = auto()
    UNLIMITED_CACHE = auto()
    LIMIT_NOT_SEEN = auto()
    CONDITION_NOT_SEEN = auto()
    REMOVES_NOTHING = auto()
    CHECK_NOT_CALLED = auto()
    CHECK_ELSEWHERE = auto()
    # in the source: whether it is the claimed one
    NUMBER_NOT_KNOWN = auto()
    OTHER_NUMBER = auto()
    LETS_NOBODY_ADD = auto()
    REMOVES = auto()
    POLICY_NOT_SEEN = auto()
    OTHER_POLICY = auto()
    RENEWAL_NOT_SEEN = auto()
    READ_RENEWS = auto()
    READ_RENEWS_NOT = auto()
    READ_RENEWS_FIFO = auto()
    # executed: it could not be run
    NOT_IMPORTED = auto()
    NOT_MADE = auto()
    NOT_FED = auto()
    FEED_NOT_KNOWN = auto()
    TOO_SLOW = auto()
    DIED = auto()
    # executed: what the child counted
    NOTHING_GREW = auto()
    HELD_TOO_MANY = auto()
    HELD_TOO_FEW = auto()
    ITEMS_ALIKE = auto()
    EMPTIED = auto()
    NEVER_EMPTIED = auto()
    EMPTIED_AT_ONCE = auto()
    FIRST_KEPT = auto()
    NEWEST_KEPT = auto()
    FIRST_LEFT = auto()
    FIRST_GONE = auto()
