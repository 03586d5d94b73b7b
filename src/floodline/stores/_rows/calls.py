"""The calls of a row log, written once, like those of `_calls`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from floodline._units import parse_count
from floodline.errors import ConfigError
from floodline.stores._rows.log import Append, LogStats, Row, check_text

ROW_READS = frozenset({"get_rows", "rows", "logs", "names", "count_rows"})


class BlockingRowCalls(ABC):
    """See `RowStore` for what each call does."""

    @abstractmethod
    def _ask(self, what: str, /, *args: Any) -> Any:
        """Request an operation and wait for its answer."""

    def append_rows(
        self,
        name: str,
        id: str,
        rows: Sequence[Append],
        *,
        fence: int | None = None,
        create: bool = True,
    ) -> int:
        """See `RowStore.append_rows`."""
        new: int = self._ask("append_rows", name, id, tuple(rows), fence, create)
        return new

    def get_row(self, name: str, id: str, log: str, key: str) -> Row | None:
        """Return the row of one key, None if there is none."""
        return self.get_rows(name, id, log, (key,)).get(key)

    def get_rows(self, name: str, id: str, log: str, keys: Sequence[str]) -> dict[str, Row]:
        """See `RowStore.get_rows`."""
        found: dict[str, Row] = self._ask("get_rows", name, id, log, tuple(keys))
        return found

    def rows(
        self,
        name: str,
        id: str,
        log: str,
        *,
        after: str | int | None = None,
        before: str | int | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Row]:
        """See `RowStore.rows`."""
        terms = (name, id, log, after, before, parse_count(limit, "limit"), newest_first)
        page: list[Row] = self._ask("rows", *terms)
        return page

    def logs(self, name: str, id: str, *, after: str = "", limit: int = 1000) -> list[LogStats]:
        """See `RowStore.logs`."""
        found: list[LogStats] = self._ask("logs", name, id, after, parse_count(limit, "limit"))
        return found

    def names(self, *, after: str = "", limit: int = 1000) -> list[str]:
        """See `RowStore.names`."""
        found: list[str] = self._ask("names", after, parse_count(limit, "limit"))
        return found

    def count_rows(self, name: str, id: str, log: str | None = None) -> int:
        """See `RowStore.count_rows`."""
        count: int = self._ask("count_rows", name, id, log)
        return count

    def delete_rows(
        self,
        name: str,
        id: str,
        log: str | None = None,
        *,
        keys: Sequence[str] | None = None,
        fence: int | None = None,
    ) -> int:
        """See `RowStore.delete_rows`."""
        gone: int = self._ask("delete_rows", name, id, *_deletion(log, keys), fence)
        return gone


class AwaitedRowCalls:
    """The coroutine twin: the same calls, awaited."""

    __slots__ = ("_ask",)

    _ask: Callable[..., Awaitable[Any]]

    async def append_rows(
        self,
        name: str,
        id: str,
        rows: Sequence[Append],
        *,
        fence: int | None = None,
        create: bool = True,
    ) -> int:
        """See `RowStore.append_rows`."""
        new: int = await self._ask("append_rows", name, id, tuple(rows), fence, create)
        return new

    async def get_row(self, name: str, id: str, log: str, key: str) -> Row | None:
        """Return the row of one key, None if there is none."""
        return (await self.get_rows(name, id, log, (key,))).get(key)

    async def get_rows(self, name: str, id: str, log: str, keys: Sequence[str]) -> dict[str, Row]:
        """See `RowStore.get_rows`."""
        found: dict[str, Row] = await self._ask("get_rows", name, id, log, tuple(keys))
        return found

    async def rows(
        self,
        name: str,
        id: str,
        log: str,
        *,
        after: str | int | None = None,
        before: str | int | None = None,
        limit: int = 100,
        newest_first: bool = False,
    ) -> list[Row]:
        """See `RowStore.rows`."""
        terms = (name, id, log, after, before, parse_count(limit, "limit"), newest_first)
        page: list[Row] = await self._ask("rows", *terms)
        return page

    async def logs(
        self, name: str, id: str, *, after: str = "", limit: int = 1000
    ) -> list[LogStats]:
        """See `RowStore.logs`."""
        found: list[LogStats] = await self._ask(
            "logs", name, id, after, parse_count(limit, "limit")
        )
        return found

    async def names(self, *, after: str = "", limit: int = 1000) -> list[str]:
        """See `RowStore.names`."""
        found: list[str] = await self._ask("names", after, parse_count(limit, "limit"))
        return found

    async def count_rows(self, name: str, id: str, log: str | None = None) -> int:
        """See `RowStore.count_rows`."""
        count: int = await self._ask("count_rows", name, id, log)
        return count

    async def delete_rows(
        self,
        name: str,
        id: str,
        log: str | None = None,
        *,
        keys: Sequence[str] | None = None,
        fence: int | None = None,
    ) -> int:
        """See `RowStore.delete_rows`."""
        gone: int = await self._ask("delete_rows", name, id, *_deletion(log, keys), fence)
        return gone


def _deletion(
    log: str | None, keys: Sequence[str] | None
) -> tuple[str | None, tuple[str, ...] | None]:
    if keys is None:
        return log, None
    if log is None:
        raise ConfigError(f"keys={keys!r} are keys of one log; give log=, too")
    for key in keys:
        check_text(key, "key")
    return log, tuple(keys)
