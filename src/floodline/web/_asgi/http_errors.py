"""What an HTTP client is told when its session cannot be had: a status, and when to retry."""

from __future__ import annotations

import json
import math
from typing import NamedTuple

from floodline.errors import (
    ArchiveFailed,
    FloodlineError,
    PinsTooLarge,
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

RETRY_SOON = 1


class Answer(NamedTuple):
    """A response without its transport."""

    status: int
    headers: dict[str, str]
    body: bytes


class _Kind(NamedTuple):
    error: type[FloodlineError]
    status: int
    code: str
    text: str
    retry: bool = False


# Sentences of our own: the text of an error may name holders and stacks, which are not for clients.
_KINDS = (
    _Kind(SessionIdMissing, 400, "session_id_missing", "The request names no session."),
    _Kind(SessionNotFound, 404, "session_not_found", "There is no such session."),
    _Kind(SessionClosed, 404, "session_closed", "The session is closed."),
    _Kind(SessionBusy, 409, "session_busy", "The session is in use; try again.", True),
    _Kind(SessionConflict, 409, "session_conflict", "The session was changed elsewhere.", True),
    _Kind(SessionsFull, 503, "sessions_full", "All sessions are in use; try again.", True),
    _Kind(SaveFailed, 503, "save_failed", "The session could not be saved; try again.", True),
    _Kind(StoreUnavailable, 503, "store_unavailable", "The store does not answer.", True),
    _Kind(ArchiveFailed, 503, "archive_failed", "The archive does not answer.", True),
    _Kind(TooLarge, 413, "too_large", "The message is too large."),
    _Kind(PinsTooLarge, 413, "too_large", "The message is too large."),
    _Kind(StoreError, 500, "store_error", "The session cannot be read."),
)

ANSWERED = tuple(kind.error for kind in _KINDS)


def answer_for(error: BaseException) -> Answer | None:
    """Return the answer to an error of ours that a client can act on; None for others."""
    kind = next((kind for kind in _KINDS if isinstance(error, kind.error)), None)
    if kind is None:
        return None
    body = json.dumps({"error": {"type": kind.code, "message": kind.text}}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body))}
    if kind.retry:
        headers["retry-after"] = str(math.ceil(getattr(error, "retry_after", RETRY_SOON)) or 1)
    return Answer(kind.status, headers, body)
