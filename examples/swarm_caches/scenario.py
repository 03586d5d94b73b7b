"""What a swarm does in a round: fifty queries, jobs, sites and messages, all of them new.

floodline soak examples/swarm_caches/scenario.py
VERSION=bounded floodline soak examples/swarm_caches/scenario.py
"""

from __future__ import annotations

import importlib
import os

caches = importlib.import_module(os.environ.get("VERSION", "leaky"))
analytics, status = caches.AnalyticsCache(), caches.StatusCache()
cookies, messages = caches.CookieCache(), caches.MessageBatch(len)
metrics = caches.MetricsHistory()


def round(i: int) -> None:
    for n in range(50):
        name = f"{i}-{n}"
        analytics.put(name, f"result of {name}: " + "so many litres per second; " * 120)
        status.put(name, f"job {name} is done")
        cookies.put(name, f"cookie of {name}")
        messages.add(f"message {name}")
    metrics.add(range(i * 50, i * 50 + 50))
