"""Requests to the scripts: a name and flat arguments, the times first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from floodline.stores._rows.log import Append, why_rows_refused
from floodline.stores._server.times import Moment

MICROS = 1_000_000
ROWS_WHY = why_rows_refused("")
_IN_A_WORD = re.compile(r"[% \n]")


class Request(NamedTuple):
    """One run of a script: what it takes once, and what it takes for each caller."""

    what: str
    head: tuple[Any, ...]
    args: Sequence[Any]


def request(what: str, moment: Moment, *args: Any, head: tuple[Any, ...] = ()) -> Request:
    """Return the request for a script at a moment."""
    now, stamp, _ = moment
    if now is None and stamp is None:
        return Request(what, ("", "", *head), args)
    return Request(what, (micros(now), micros(stamp), *head), args)


def micros(seconds: float | None) -> int | str:
    """Return a time as the scripts take it; an empty one is the server's."""
    return "" if seconds is None else round(seconds * MICROS)


def one_word(write_id: str) -> str:
    """Return a write id without blanks and line ends, which the scripts keep a list of."""
    if not ("%" in write_id or " " in write_id or "\n" in write_id):
        return write_id
    return _IN_A_WORD.sub(lambda found: f"%{ord(found[0]):02x}", write_id)


def flat(appends: Sequence[Append]) -> list[Any]:
    """Return appends as the arguments that `read_appends` reads."""
    terms: list[Any] = [len(appends)]
    for one in appends:
        terms += (one.log, _cap(one.max_rows), _cap(one.max_bytes), one.when_full, one.when_taken)
        terms.append(len(one.rows))
        for row in one.rows:
            terms += (row.key, _cap(row.number), row.data)
    return terms


def _cap(number: int | None) -> int | str:
    return "" if number is None else number
