"""Errors for those who waited together: equal, but each one's own."""

from __future__ import annotations

import pytest

from floodline._error_copies import twin_of
from floodline.errors import MalformedMessage, SessionsFull


class Turning(Exception):
    """An error that copies itself as something else."""

    def __copy__(self) -> Exception:
        return ValueError("another")


def caught(error: Exception) -> Exception:
    try:
        raise error
    except Exception as raised:
        return raised


@pytest.mark.parametrize(
    "error",
    [
        KeyError("a"),
        FileNotFoundError(2, "no such file", "agent.db"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        SessionsFull("no room", retry_after=7.0),
        MalformedMessage("no id", place="$[3]"),
        ExceptionGroup("two", [ValueError(1), KeyError(2)]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_twin_is_equal_but_another(error: Exception) -> None:
    traceback = caught(error).__traceback__
    twin = twin_of(error, traceback)
    assert twin is not error
    assert type(twin) is type(error)
    assert (twin.args, str(twin), vars(twin)) == (error.args, str(error), vars(error))
    assert twin.__traceback__ is traceback


def test_a_twin_keeps_the_reasons_and_has_notes_of_its_own() -> None:
    error = KeyError("a")
    error.add_note("where it happened")
    error.__context__, error.__cause__ = TypeError("context"), OSError("cause")
    twin = twin_of(error, None)
    twin.add_note("only here")
    assert twin.__cause__ is error.__cause__
    assert twin.__context__ is error.__context__
    assert twin.__suppress_context__
    assert error.__notes__ == ["where it happened"]


def test_what_copies_itself_as_another_kind_is_raised_itself() -> None:
    error = caught(Turning("me"))
    twin = twin_of(error, None)
    assert twin is error
    assert twin.__traceback__ is None
