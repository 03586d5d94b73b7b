"""The HTTP status of each error of ours, and whether the same request may succeed later."""

from __future__ import annotations

import math
from typing import NamedTuple

from floodline.errors import (
    ArchiveFailed,
    CodecError,
    ConfigError,
    FloodlineError,
    LogFull,
    PinsTooLarge,
    RowConflict,
    RowNotFound,
    SaveFailed,
    SessionBusy,
    SessionClosed,
    SessionConflict,
    SessionIdMissing,
    SessionNotFound,
    SessionsFull,
    StoreError,
    StoreUnavailable,
    TooLarge,
)


class Status(NamedTuple):
    """A status, and whether the client should try again."""

    code: int
    retry: bool = False


_STATUSES: dict[type[FloodlineError], Status] = {
    SessionIdMissing: Status(400),
    SessionNotFound: Status(404),
    SessionClosed: Status(404),
    RowNotFound: Status(404),
    SessionBusy: Status(409, retry=True),
    SessionConflict: Status(409, retry=True),
    RowConflict: Status(409),
    SessionsFull: Status(503, retry=True),
    SaveFailed: Status(503, retry=True),
    StoreUnavailable: Status(503, retry=True),
    ArchiveFailed: Status(503, retry=True),
    LogFull: Status(413),
    TooLarge: Status(413),
    PinsTooLarge: Status(413),
    CodecError: Status(400),
    StoreError: Status(500),
    ConfigError: Status(400),
}


class Sentence(NamedTuple):
    """What a client is told: the text of an error may name holders and stacks."""

    code: str
    text: str


Sentences = dict[type[FloodlineError], Sentence]  # an error comes before the kinds it derives from


def answer_to(error: BaseException, sentences: Sentences) -> tuple[Status, Sentence] | None:
    """Return the status of an error and the first sentence that fits it; None without one."""
    for kind, sentence in sentences.items():
        if isinstance(error, kind):
            return _STATUSES[kind], sentence
    return None


def seconds_until_retry(error: BaseException) -> int:
    """Return how long a client should wait, in whole seconds."""
    return at_least_one(getattr(error, "retry_after", 1.0))


def at_least_one(seconds: float) -> int:
    """Round seconds up, as the header `retry-after` wants them."""
    return max(1, math.ceil(seconds))
