"""What adapters do with the sessions of a store: hold one, delete one, page through rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from floodline.adapters._leased_values import acquire
from floodline.adapters._store_flows import Flow, ask
from floodline.stores import Grant, Row, RowStore

T = TypeVar("T")

WAIT = 60.0  # for another holder, which needs some milliseconds unless its machine died
PAGE = 500
SESSIONS_IN_MEMORY = 1000
ROWS_IN_MEMORY = 1000
TURN = 10  # how much longer than asked for a last turn may be


def hold(name: str, id: str, work: Callable[[Grant], Flow[T]]) -> Flow[T]:
    """Run `work` with the lease of a session; it ends the lease, and an error releases it."""
    grant = yield from acquire(name, id, WAIT)
    try:
        return (yield from work(grant))
    except Exception:
        yield from ask("release", name, id, grant.fence)
        raise


def delete(name: str, id: str) -> Flow[bool]:
    """Delete a session and its rows, if there is one."""
    if (yield from ask("load", name, id)) is None:
        return False

    def work(grant: Grant) -> Flow[bool]:
        return bool((yield from ask("delete", name, id, fence=grant.fence)))

    return (yield from hold(name, id, work))


def ids(name: str, prefix: str = "") -> Flow[list[str]]:
    """Return the ids that begin with `prefix`, in order."""
    found: list[str] = []
    after = prefix[:-1]
    while page := (yield from ask("ids", name, after=after, limit=PAGE)):
        found += [one for one in page if one.startswith(prefix)]
        after = page[-1]
        if not after.startswith(prefix) and after > prefix:
            break
    return found


def all_rows(name: str, id: str, log: str) -> Flow[list[Row]]:
    """Return all rows of a log, in order."""
    found: list[Row] = []
    after: str | None = None
    while page := (yield from ask("rows", name, id, log, after=after, limit=PAGE)):
        found += page
        after = page[-1].key
        if len(page) < PAGE:
            break
    return found


def newest_turns(
    name: str, id: str, log: str, most: int, begins: Callable[[Row], bool]
) -> Flow[list[Row]]:
    """Return at most `most` of the newest rows, in order, beginning where a turn begins.

    A last turn that alone has more rows is returned whole, up to ten times as many. If no turn
    begins there, it is the newest rows as they are.
    """
    found: list[Row] = []
    start = 0  # how many of those found begin with a turn
    before: int | None = None
    while len(found) <= TURN * most:
        want = min(PAGE, most + 1 - len(found)) if len(found) <= most else PAGE
        terms = {"before": before, "limit": want, "newest_first": True}
        page: list[Row] = yield from ask("rows", name, id, log, **terms)
        for row in page:
            if start and len(found) >= most:
                return found[start - 1 :: -1]
            found.append(row)
            if begins(row):
                start = len(found)
        if len(page) < want:
            if len(found) <= most:
                return found[::-1]
            break
        before = page[-1].number
    return found[(start or most) - 1 :: -1]


def limit_of(store: RowStore | str | None, given: int | None, in_memory: int) -> int | None:
    """Return a limit as it was given; without a store there is always one."""
    return in_memory if given is None and store is None else given
