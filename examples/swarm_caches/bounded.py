"""The five caches on floodline: five policies, five limits that bind."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from floodline import Batch, BoundedLog, BoundedMap

MAX_ANALYTICS = 1000
MAX_STATUS = 20
MAX_COOKIES = 100
BATCH_SIZE = 50
MAX_METRICS = 1000

Send = Callable[[list[str]], object]


class AnalyticsCache:
    """Results of queries: LRU, 1000 entries."""

    def __init__(self) -> None:
        self._results: BoundedMap[str, str] = BoundedMap(MAX_ANALYTICS, order="lru")

    def get(self, query: str) -> str | None:
        """Return a cached result."""
        return self._results.get(query)

    def put(self, query: str, result: str) -> None:
        """Cache a result."""
        self._results[query] = result

    def __len__(self) -> int:
        return len(self._results)


class StatusCache:
    """The status of jobs: the oldest leave, 20 entries."""

    def __init__(self) -> None:
        self._status: BoundedMap[str, str] = BoundedMap(MAX_STATUS, order="oldest")

    def put(self, job: str, status: str) -> None:
        """Note a status."""
        self._status[job] = status

    def get(self, job: str) -> str | None:
        """Return the status of a job."""
        return self._status.get(job)

    def __len__(self) -> int:
        return len(self._status)


class CookieCache:
    """Cookies of sites: FIFO, 100 entries."""

    def __init__(self) -> None:
        self._cookies: BoundedMap[str, str] = BoundedMap(MAX_COOKIES, order="fifo")

    def put(self, site: str, cookie: str) -> None:
        """Keep a cookie."""
        self._cookies[site] = cookie

    def get(self, site: str) -> str | None:
        """Return the cookie of a site."""
        return self._cookies.get(site)

    def __len__(self) -> int:
        return len(self._cookies)


class MessageBatch:
    """Messages that are sent together: flushed at 50."""

    def __init__(self, send: Send) -> None:
        self._messages: Batch[str] = Batch(send, max_items=BATCH_SIZE)

    def add(self, message: str) -> None:
        """Queue a message."""
        self._messages.add(message)

    def flush(self) -> None:
        """Send what is queued."""
        self._messages.flush()

    def __len__(self) -> int:
        return len(self._messages)


class MetricsHistory:
    """Figures over time: a rolling window of 1000."""

    def __init__(self) -> None:
        self._figures: BoundedLog[float] = BoundedLog(MAX_METRICS)

    def add(self, figures: Iterable[float]) -> None:
        """Add figures."""
        self._figures.extend(figures)

    def latest(self) -> float:
        """Return the newest figure."""
        return self._figures[-1]

    def __len__(self) -> int:
        return len(self._figures)
