"""Rows that cannot be written are refused before a store sees them."""

from __future__ import annotations

import pytest

from floodline.errors import ConfigError, TooLarge
from floodline.stores import Append, NewRow

LOG = "events"


def test_what_cannot_be_a_row_is_refused_before_the_store() -> None:
    for bad in ("", 7, "\ud800"):
        with pytest.raises(ConfigError):
            NewRow(bad, b"")
        with pytest.raises(ConfigError):
            Append(bad, [])
    for number in (-1, 2**53):
        with pytest.raises(ConfigError):
            NewRow("a", b"", number)
    for options in ({"max_rows": 0}, {"max_bytes": 0}, {"when_full": ""}, {"when_taken": ""}):
        with pytest.raises(ConfigError):
            Append(LOG, [], **options)
    with pytest.raises(ConfigError):
        NewRow("a", "text")
    with pytest.raises(TooLarge):
        Append(LOG, [NewRow("a", b"12345")], max_bytes=4)
