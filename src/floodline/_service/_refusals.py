"""What a client is told when a request cannot be served, in the shape that OpenAI's clients parse.

These clients retry 408, 409, 429 and 5xx by themselves, unless `x-should-retry` says otherwise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from floodline.errors import (
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
    """Return the answer to a request that is wrong in itself."""
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
    return Refusal(503, code, message, headers=_later(retry_after))


def _later(seconds: float) -> dict[str, str]:
    return {"retry-after": str(max(1, math.ceil(seconds)))}


class _Kind(NamedTuple):
    error: type[FloodlineError]
    status: int
    code: str
    text: str
    retry: bool = False


# Sentences of our own: the text of an error may name holders and stacks, which are not for clients.
_KINDS = (
    _Kind(SessionNotFound, 404, "not_found", "There is no such conversation."),
    _Kind(SessionClosed, 404, "not_found", "The conversation was deleted."),
    _Kind(RowNotFound, 404, "not_found", "There is no such item to begin after."),
    _Kind(SessionBusy, 409, "conversation_busy", "The conversation is in use; try again.", True),
    _Kind(SessionConflict, 409, "conversation_changed", "Changed elsewhere; try again.", True),
    _Kind(RowConflict, 409, "item_conflict", "An item of this id has other content."),
    _Kind(SessionsFull, 503, "sessions_full", "All sessions are in use; try again.", True),
    _Kind(SaveFailed, 503, "save_failed", "It could not be saved; try again.", True),
    _Kind(StoreUnavailable, 503, "store_unavailable", "The store does not answer.", True),
    _Kind(LogFull, 413, "too_many_items", "The conversation is full."),
    _Kind(TooLarge, 413, "too_large", "An item is too large."),
    _Kind(PinsTooLarge, 413, "too_large", "System messages alone exceed the window."),
    _Kind(CodecError, 400, "invalid_value", "An item cannot be stored."),
    _Kind(StoreError, 500, "store_error", "The conversation cannot be read."),
    _Kind(ConfigError, 400, "invalid_value", "A value of the request cannot be used."),
)


def refusal_for(error: BaseException) -> Refusal | None:
    """Return the answer to an error of ours; None for others, which are defects."""
    if isinstance(error, Refusal):
        return error
    kind = next((kind for kind in _KINDS if isinstance(error, kind.error)), None)
    if kind is None:
        return None
    headers = _later(getattr(error, "retry_after", 1.0)) if kind.retry else {}
    if kind.status == 409:
        headers["x-should-retry"] = str(kind.retry).lower()
    return Refusal(kind.status, kind.code, kind.text, headers=headers)
