"""Conversations of one tenant or of all, page by page, by prefix of their ids and last use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from floodline._service._log.flows import Keeping
from floodline._service._log.rows import ITEMS, ConversationRecord, read_record
from floodline.adapters._store_flows import Flow, ask
from floodline.errors import SessionNotFound

MOST_READ = 1000  # ids that one request looks at; a page may end before it is full


@dataclass(slots=True, frozen=True)
class Listed:
    """One conversation; its last use is the time of its newest item, or of its creation."""

    tenant: str
    id: str
    record: ConversationRecord
    last_used_at: int
    items: int
    live: bool

    @property
    def place(self) -> str:
        """Return where it stands in a list of all tenants."""
        return f"{self.tenant}/{self.id}"


@dataclass(slots=True, frozen=True)
class Listing:
    """A page; `last_id` is where the next one begins, which need not be the id of the last."""

    found: list[Listed]
    last_id: str
    has_more: bool
    looked_at: int = 0


@dataclass(slots=True, frozen=True)
class Wanted:
    """Which conversations to list; times are in seconds since 1970."""

    prefix: str = ""
    used_after: int | None = None
    used_before: int | None = None

    def fits(self, one: Listed) -> bool:
        """Return True if its last use lies between these times."""
        return (self.used_after is None or one.last_used_at > self.used_after) and (
            self.used_before is None or one.last_used_at < self.used_before
        )


async def list_all_tenants(
    tenants: Mapping[str, Keeping], wanted: Wanted, *, after: str, limit: int
) -> Listing:
    """Return conversations in the order of their tenants and ids; `after` is `TENANT/ID`.

    Two tenants may have the same id, so an id alone would not say where the next page begins.
    """
    begin, _, edge = after.partition("/")
    found: list[Listed] = []
    last, looked_at = after, 0
    for tenant in sorted(name for name in tenants if name >= begin):
        if looked_at >= MOST_READ:
            return Listing(found, last, True)
        page = await list_conversations(
            tenants[tenant],
            wanted,
            tenant=tenant,
            after=edge if tenant == begin else "",
            limit=max(1, limit - len(found)),
            most=MOST_READ - looked_at,
        )
        if len(found) == limit and (page.found or page.has_more):
            return Listing(found, last, True)
        found += page.found
        looked_at += page.looked_at + 1
        last = f"{tenant}/{page.last_id}"
        if page.has_more:
            return Listing(found, last, True)
    return Listing(found, found[-1].place if found else "", False)


async def list_conversations(
    keeping: Keeping,
    wanted: Wanted,
    *,
    tenant: str,
    after: str,
    limit: int,
    most: int | None = None,
) -> Listing:
    """Return conversations of one tenant in the order of their ids; `most` are looked at."""
    prefix = wanted.prefix
    budget = MOST_READ if most is None else most

    def flow() -> Flow[Listing]:
        found: list[Listed] = []
        edge, looked_at = after, 0
        if prefix and after < prefix:
            edge = prefix
            if (yield from ask("load", keeping.name, prefix)) is not None:
                found += yield from one(prefix)
        while looked_at < budget:
            number = min(100, budget - looked_at)
            ids = yield from ask("ids", keeping.name, after=edge, limit=number)
            for id in ids:  # noqa: A001 - the word of the API
                if not id.startswith(prefix):
                    return Listing(found, edge, False, looked_at)
                if len(found) == limit:
                    return Listing(found, edge, True, looked_at)
                edge = id
                found += yield from one(id)
                looked_at += 1
            if len(ids) < number:
                return Listing(found, edge, False, looked_at)
        return Listing(found, edge, True, looked_at)

    def one(id: str) -> Flow[list[Listed]]:
        listed = yield from _listed(keeping, tenant, id)
        return [each for each in listed if wanted.fits(each)]

    return await keeping.read(flow())


def _listed(keeping: Keeping, tenant: str, id: str) -> Flow[list[Listed]]:
    try:
        record = yield from read_record(keeping.name, id)
    except SessionNotFound:  # deleted in the meantime
        return []
    newest = yield from ask("rows", keeping.name, id, ITEMS, limit=1, newest_first=True)
    count = yield from ask("count_rows", keeping.name, id, ITEMS)
    last = int(newest[0].at) if newest else record.created_at
    return [Listed(tenant, id, record, last, count, id in keeping.sessions)]
