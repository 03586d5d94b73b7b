"""All conversations of a tenant, page by page, by the beginning of their ids and their last use."""

from __future__ import annotations

from dataclasses import dataclass

from floodline._service._log.flows import Keeping
from floodline._service._log.rows import ITEMS, ConversationRecord, read_record
from floodline.adapters._store_flows import Flow, ask
from floodline.errors import SessionNotFound

MOST_READ = 1000  # ids that one request looks at; a page may end before it is full


@dataclass(slots=True, frozen=True)
class Listed:
    """One conversation; its last use is the time of its newest item, or of its creation."""

    id: str
    record: ConversationRecord
    last_used_at: int
    items: int
    live: bool


@dataclass(slots=True, frozen=True)
class Listing:
    """A page; `last_id` is where the next one begins, which need not be the id of the last."""

    found: list[Listed]
    last_id: str
    has_more: bool


async def list_conversations(
    keeping: Keeping,
    *,
    prefix: str,
    after: str,
    limit: int,
    used_after: int | None,
    used_before: int | None,
) -> Listing:
    """Return conversations in the order of their ids."""

    def flow() -> Flow[Listing]:
        found: list[Listed] = []
        edge, looked_at = after, 0
        if prefix and after < prefix:
            edge = prefix
            if (yield from ask("load", keeping.name, prefix)) is not None:
                found += [one for one in (yield from _one(keeping, prefix)) if _fits(one)]
        while looked_at < MOST_READ:
            wanted = min(100, MOST_READ - looked_at)
            ids = yield from ask("ids", keeping.name, after=edge, limit=wanted)
            for id in ids:  # noqa: A001 - the word of the API
                if not id.startswith(prefix):
                    return Listing(found, edge, False)
                if len(found) == limit:
                    return Listing(found, edge, True)
                edge = id
                found += [one for one in (yield from _one(keeping, id)) if _fits(one)]
            if len(ids) < wanted:
                return Listing(found, edge, False)
            looked_at += len(ids)
        return Listing(found, edge, True)

    def _fits(one: Listed) -> bool:
        return (used_after is None or one.last_used_at > used_after) and (
            used_before is None or one.last_used_at < used_before
        )

    return await keeping.read(flow())


def _one(keeping: Keeping, id: str) -> Flow[list[Listed]]:
    try:
        record = yield from read_record(keeping.name, id)
    except SessionNotFound:  # deleted in the meantime
        return []
    newest = yield from ask("rows", keeping.name, id, ITEMS, limit=1, newest_first=True)
    count = yield from ask("count_rows", keeping.name, id, ITEMS)
    last = int(newest[0].at) if newest else record.created_at
    return [Listed(id, record, last, count, id in keeping.sessions)]
