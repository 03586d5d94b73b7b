"""The five caches as they were when their limits were announced as done; one of them is."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable

log = logging.getLogger(__name__)

MAX_ANALYTICS = 1000
MAX_STATUS = 20
MAX_COOKIES = 100
BATCH_SIZE = 50
MAX_METRICS = 1000

Send = Callable[[list[str]], object]


class AnalyticsCache:
    """Results of queries: LRU, 1000 entries."""

    def __init__(self) -> None:
        self.max_items = MAX_ANALYTICS
        self._results: dict[str, str] = {}

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
        self._status: dict[str, str] = {}

    def put(self, job: str, status: str) -> None:
        """Note a status."""
        if len(self._status) >= MAX_STATUS:
            log.debug("the status cache is full")
        self._status[job] = status

    def get(self, job: str) -> str | None:
        """Return the status of a job."""
        return self._status.get(job)

    def __len__(self) -> int:
        return len(self._status)


class CookieCache:
    """Cookies of sites: FIFO, 100 entries."""

    def __init__(self) -> None:
        self._cookies: dict[str, str] = {}

    def put(self, site: str, cookie: str) -> None:
        """Keep a cookie."""
        self._cookies[site] = cookie

    def get(self, site: str) -> str | None:
        """Return the cookie of a site."""
        return self._cookies.get(site)

    def trim(self) -> None:
        """Drop what came first; the plan was to call this from a timer."""
        while len(self._cookies) > MAX_COOKIES:
            del self._cookies[next(iter(self._cookies))]

    def __len__(self) -> int:
        return len(self._cookies)


class MessageBatch:
    """Messages that are sent together: flushed at 50."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._messages: list[str] = []

    def add(self, message: str) -> None:
        """Queue a message."""
        if len(self._messages) >= BATCH_SIZE:
            log.debug("the batch holds %d messages", len(self._messages))
        self._messages.append(message)

    def flush(self) -> None:
        """Send what is queued."""
        messages, self._messages = self._messages, []
        self._send(messages)

    def __len__(self) -> int:
        return len(self._messages)


class MetricsHistory:
    """Figures over time: a rolling window of 1000."""

    def __init__(self) -> None:
        self._figures: deque[float] = deque(maxlen=MAX_METRICS)

    def add(self, figures: Iterable[float]) -> None:
        """Add figures."""
        self._figures.extend(figures)

    def latest(self) -> float:
        """Return the newest figure."""
        return self._figures[-1]

    def __len__(self) -> int:
        return len(self._figures)
