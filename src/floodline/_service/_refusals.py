"""What a client is told when a request cannot be served, in the shape that OpenAI's clients parse.

These clients retry 408, 409, 429 and 5xx by themselves, unless `x-should-retry` says otherwise.
"""

from __future__ import annotations

from floodline._service._statuses import (
    Sentence,
    Sentences,
    answer_to,
    at_least_one,
    seconds_until_retry,
)
from floodline.errors import (
    CodecError,
    ConfigError,
    LogFull,
    PinsTooLarge,
    RowConflict,
    RowNotFound,
    SaveFailed,
    SessionBusy,
    SessionClosed,
    SessionConflict,
    SessionNotFound,
    SessionsFull,
    StoreError,
    StoreUnavailable,
    TooLarge,
)


class Refusal(Exception):
    """A request that is answered with an error; `headers` say whether to try again."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.param = status, code, message, param
        self.headers = headers or {}

    def body(self) -> dict[str, object]:
        """Return the document of the answer."""
        error = {
            "message": self.message if self.param is None else f"{self.param}: {self.message}",
            "type": "server_error" if self.status >= 500 else "invalid_request_error",
            "param": self.param,
            "code": self.code,
        }
        return {"error": error}


def invalid(message: str, param: str | None = None, code: str = "invalid_value") -> Refusal:
    """Return the answer to an invalid request."""
    return Refusal(400, code, message, param=param)


def not_found(what: str, param: str | None = None) -> Refusal:
    """Return the answer to an id that this tenant does not have."""
    return Refusal(404, "not_found", f"There is no such {what}.", param=param)


def conflict(message: str, code: str, param: str | None = None) -> Refusal:
    """Return the answer to what will never be accepted, however often it is sent."""
    return Refusal(409, code, message, param=param, headers={"x-should-retry": "false"})


def too_large(message: str, code: str, param: str | None = None) -> Refusal:
    """Return the answer to what is above a limit."""
    return Refusal(413, code, message, param=param)


def overloaded(message: str, code: str, retry_after: float = 1.0) -> Refusal:
    """Return the answer to a request that may be sent again later."""
    return Refusal(503, code, message, headers=_later(at_least_one(retry_after)))


def _later(seconds: int) -> dict[str, str]:
    return {"retry-after": str(seconds)}


_SENTENCES: Sentences = {
    SessionNotFound: Sentence("not_found", "There is no such conversation."),
    SessionClosed: Sentence("not_found", "The conversation was deleted."),
    RowNotFound: Sentence("not_found", "There is no such item to start after."),
    SessionBusy: Sentence("conversation_busy", "The conversation is in use; try again."),
    SessionConflict: Sentence("conversation_changed", "The conversation has changed; try again."),
    RowConflict: Sentence("item_conflict", "An item with this id has different content."),
    SessionsFull: Sentence("sessions_full", "All sessions are in use; try again."),
    SaveFailed: Sentence("save_failed", "The conversation could not be saved; try again."),
    StoreUnavailable: Sentence("store_unavailable", "The store does not answer."),
    LogFull: Sentence("too_many_items", "The conversation is full."),
    TooLarge: Sentence("too_large", "An item is too large."),
    PinsTooLarge: Sentence("too_large", "System messages alone exceed the window."),
    CodecError: Sentence("invalid_value", "An item cannot be stored."),
    StoreError: Sentence("store_error", "The conversation cannot be read."),
    ConfigError: Sentence("invalid_value", "The request has an invalid value."),
}


def refusal_for(error: BaseException) -> Refusal | None:
    """Return the answer to an error of ours; None for others, which are defects."""
    if isinstance(error, Refusal):
        return error
    answer = answer_to(error, _SENTENCES)
    if answer is None:
        return None
    status, (code, text) = answer
    headers = _later(seconds_until_retry(error)) if status.retry else {}
    if status.code == 409:
        headers["x-should-retry"] = str(status.retry).lower()
    return Refusal(status.code, code, text, headers=headers)
