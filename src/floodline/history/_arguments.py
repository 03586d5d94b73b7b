"""The arguments of a conversation, checked."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from floodline._units import Duration, Size, parse_count, parse_duration, parse_size
from floodline.errors import ConfigError
from floodline.history._summaries.summary import SummaryPolicy

POLICY_NAMES = ("max_summary_bytes", "summary_timeout", "summary_failures", "summary_retry")


@lru_cache(maxsize=256)
def make_policy(size: Size, timeout: Duration, failures: int, retry: Duration) -> SummaryPolicy:
    """Check and read the settings; conversations with equal settings share one object."""
    return SummaryPolicy(
        parse_size(size, POLICY_NAMES[0]),
        parse_duration(timeout, POLICY_NAMES[1]),
        parse_count(failures, POLICY_NAMES[2]),
        parse_duration(retry, POLICY_NAMES[3]),
    )


def check_archive_id(id: object) -> None:
    """Raise unless this can name a conversation in an archive."""
    if id is not None and (not isinstance(id, str) or not id):
        raise ConfigError(f"archive_id={id!r} must be a non-empty string, or None")


def checked_callable(value: Any, what: str) -> Any:
    """Return what must be callable."""
    if not callable(value):
        takes = {"clock": "returns seconds", "count_tokens": "takes a message"}
        need = takes.get(what, "takes a list of messages")
        raise ConfigError(f"{what}={value!r} cannot be called; give a function that {need}")
    return value
