"""What an HTTP client is told when its session cannot be had: a status, and when to retry."""

from __future__ import annotations

import json
from typing import NamedTuple

from floodline._service._statuses import Sentence, Sentences, answer_to, seconds_until_retry
from floodline.errors import (
    ArchiveFailed,
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


class Answer(NamedTuple):
    """A response without its transport."""

    status: int
    headers: dict[str, str]
    body: bytes


_SENTENCES: Sentences = {
    SessionIdMissing: Sentence("session_id_missing", "The request names no session."),
    SessionNotFound: Sentence("session_not_found", "There is no such session."),
    SessionClosed: Sentence("session_closed", "The session is closed."),
    SessionBusy: Sentence("session_busy", "The session is in use; try again."),
    SessionConflict: Sentence("session_conflict", "The session was changed elsewhere."),
    SessionsFull: Sentence("sessions_full", "All sessions are in use; try again."),
    SaveFailed: Sentence("save_failed", "The session could not be saved; try again."),
    StoreUnavailable: Sentence("store_unavailable", "The store does not answer."),
    ArchiveFailed: Sentence("archive_failed", "The archive does not answer."),
    TooLarge: Sentence("too_large", "The message is too large."),
    PinsTooLarge: Sentence("too_large", "The message is too large."),
    StoreError: Sentence("store_error", "The session cannot be read."),
}

ANSWERED = tuple(_SENTENCES)


def answer_for(error: BaseException) -> Answer | None:
    """Return the answer to an error of ours that a client can act on; None for others."""
    found = answer_to(error, _SENTENCES)
    if found is None:
        return None
    status, (code, text) = found
    body = json.dumps({"error": {"type": code, "message": text}}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body))}
    if status.retry:
        headers["retry-after"] = str(seconds_until_retry(error))
    return Answer(status.code, headers, body)
