"""Which checkpoints of a thread stay, and how the others go."""

from __future__ import annotations

from floodline.adapters._langgraph.rows import (
    CHECKPOINTS,
    VALUES,
    Saved,
    ThreadRows,
    slices,
    value_key,
    writes_log,
)
from floodline.adapters._store_flows import Flow


def keep_only(rows: ThreadRows, thread: str, keep: int) -> Flow[None]:
    """Keep the newest checkpoints of a thread, and what its subgraphs need with them."""
    floor = ""
    for ns in sorted((yield from rows.spaces(thread))):  # the graph itself, "", comes first
        if not (floor and _is_of_a_task(ns)):
            if (yield from rows.ask("count_rows", thread, CHECKPOINTS + ns)) <= keep:
                continue
            saved = yield from rows.saved(thread, ns)
            yield from keep_newest(rows, thread, ns, saved, keep)
            floor = sorted(saved)[-keep] if ns == "" else floor
        else:
            saved = yield from rows.saved(thread, ns)
            if max(saved, default="") < floor:  # of a step that is no longer kept
                yield from remove(rows, thread, ns, saved, set(saved))


def keep_newest(
    rows: ThreadRows, thread: str, ns: str, saved: dict[str, Saved], keep: int
) -> Flow[None]:
    """Keep the newest checkpoints of a namespace and the ancestors that they need."""
    wanted = set(sorted(saved)[-keep:])
    for key in sorted(wanted):
        wanted |= yield from _needed_by(rows, thread, ns, saved, key)
    yield from remove(rows, thread, ns, saved, set(saved) - wanted)


def _needed_by(
    rows: ThreadRows, thread: str, ns: str, saved: dict[str, Saved], key: str
) -> Flow[set[str]]:
    """Return the ancestors that rebuild the delta channels of a checkpoint."""
    missing = set(saved[key].delta_channels)
    needed: set[str] = set()
    at: str | None = key
    while missing and at is not None and at in saved:
        needed.add(at)
        versions = saved[at].versions
        keys = {value_key(one, versions[one]): one for one in missing if one in versions}
        found = yield from rows.ask("get_rows", thread, VALUES + ns, list(keys))
        missing -= {keys[one] for one in found}
        at = saved[at].parent
    return needed


def remove(
    rows: ThreadRows, thread: str, ns: str, saved: dict[str, Saved], gone: set[str]
) -> Flow[None]:
    """Delete checkpoints with their writes, and the values that only they had.

    The checkpoints go first: if this is interrupted, values without a checkpoint are left, not
    checkpoints without their values.
    """
    if not gone:
        return
    rest = {key for one in set(saved) - gone for key in saved[one].value_keys()}
    values = {key for one in gone for key in saved[one].value_keys()} - rest
    for log, keys in ((CHECKPOINTS, gone), (VALUES, values)):
        for some in slices(sorted(keys)):
            yield from rows.ask("delete_rows", thread, log + ns, keys=some)
    for key in sorted(gone):
        yield from rows.ask("delete_rows", thread, writes_log(ns, key))


def _is_of_a_task(ns: str) -> bool:
    """Return True for a subgraph inside one task; others keep their memory between runs."""
    return ":" in ns.rpartition("|")[2]
