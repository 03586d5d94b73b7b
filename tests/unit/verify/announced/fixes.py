"""Five fixes that were announced; one of them was made."""

from __future__ import annotations

import logging
from collections import OrderedDict

log = logging.getLogger(__name__)


class AnalyticsCache:
    """Announced: keeps the 1000 used last. It does."""

    def __init__(self, limit=1000):
        self._limit = limit
        self._results = OrderedDict()

    def get(self, query):
        self._results.move_to_end(query)
        return self._results[query]

    def put(self, query, result):
        self._results[query] = result
        self._results.move_to_end(query)
        while len(self._results) > self._limit:
            self._results.popitem(last=False)


class StatusCache:
    """Announced: at 20 the oldest leaves. It only says so."""

    LIMIT = 20

    def __init__(self):
        self.by_job = {}

    def update(self, job, status):
        self.by_job[job] = status
        if len(self.by_job) > self.LIMIT:
            log.warning("more than %d statuses", self.LIMIT)


cookies = {}


def remember_cookie(domain, cookie):
    """Announced: the first of 100 leaves first. Nothing leaves but by logout."""
    cookies[domain] = cookie


def logout(domain):
    cookies.pop(domain, None)


class Writer:
    """Announced: written in batches of 50. The number is there, the flush is not called."""

    BATCH = 50

    def __init__(self, sink=print):
        self._rows = []
        self._sink = sink

    def add(self, row):
        self._rows.append(row)

    def flush_if_full(self):
        if len(self._rows) >= self.BATCH:
            self._sink(self._rows)
            self._rows.clear()


class Latencies:
    """Announced: a rolling window of 1000. Only what is shown is cut."""

    def __init__(self):
        self.samples = []

    def observe(self, value):
        self.samples.append(value)

    def shown(self):
        return self.samples[-1000:]
