"""The bounds of a conversation, and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from floodline._units import Size, parse_count, parse_size
from floodline.errors import ConfigError
from floodline.telemetry import Stats


@dataclass(slots=True, frozen=True)
class Bounds:
    """The four bounds; conversations with equal bounds share one object.

    `one_message` is what a single message may weigh: it must also fit the whole.
    """

    max_messages: int | None
    max_tokens: int | None
    max_bytes: int | None
    max_message_bytes: int | None
    one_message: int | None

    def exceeded(self, messages: int, tokens: float, size: int, *, times: float = 1) -> str | None:
        """Return the first bound that these figures exceed, if any; `times` widens all."""
        if self.max_messages is not None and messages > max(1, self.max_messages * times):
            return "count"
        if self.max_bytes is not None and size > self.max_bytes * times:
            return "bytes"
        if self.max_tokens is not None and tokens > self.max_tokens * times:
            return "tokens"
        return None

    def as_list(self) -> list[int | None]:
        """Return the four numbers, for `make_bounds`."""
        return [self.max_messages, self.max_tokens, self.max_bytes, self.max_message_bytes]


@lru_cache(maxsize=256)
def make_bounds(
    max_messages: int | None,
    max_tokens: int | None,
    max_bytes: Size | None,
    max_message_bytes: Size | None,
) -> Bounds:
    """Check and read the settings; at least one of the first three must be a bound."""
    if max_messages is None and max_tokens is None and max_bytes is None:
        raise ConfigError(
            "max_messages, max_tokens and max_bytes are all None; give at least one, "
            "a conversation without a bound grows forever"
        )
    total = None if max_bytes is None else parse_size(max_bytes, "max_bytes")
    each = None
    if max_message_bytes is not None:
        each = parse_size(max_message_bytes, "max_message_bytes")
    return Bounds(
        None if max_messages is None else parse_count(max_messages, "max_messages"),
        None if max_tokens is None else parse_count(max_tokens, "max_tokens"),
        total,
        each,
        min((limit for limit in (total, each) if limit is not None), default=None),
    )


@dataclass(slots=True)
class Counters:
    """What has happened so far; saved with the conversation."""

    appended: int = 0
    archived: int = 0
    shortened: int = 0
    duplicates: int = 0
    late: int = 0
    closed_calls: int = 0
    unread: int = 0
    summaries: int = 0
    summary_failures: int = 0

    def as_list(self) -> list[int]:
        """Return the numbers in the order of the fields."""
        return [getattr(self, name) for name in self.__slots__]


@dataclass(slots=True, frozen=True, kw_only=True)
class HistoryStats(Stats):
    """The figures of one conversation; `left` counts messages by the bound that cut them.

    `fixed` counts system and pinned messages, `in_flight` calls without a result, `late` results
    that came too late or for no call, `unread` messages cut in the very append that completed their
    step, `archive_waiting` messages that the archive has not accepted, `archive_failures` its
    failures in a row.
    """

    tokens: int
    max_tokens: int | None
    fixed: int
    in_flight: int
    appended: int
    archived: int
    archive_waiting: int
    archive_failures: int
    shortened: int
    duplicates: int
    late: int
    closed_calls: int
    unread: int
    summaries: int
    summary_failures: int
    summary_running: bool
    breaker_open: bool
    correction: float
    left: Mapping[str, int] = field(default_factory=dict)
