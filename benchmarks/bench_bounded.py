"""BoundedMap against cachetools.TTLCache and moka-py: `python benchmarks/bench_bounded.py`."""

from __future__ import annotations

import itertools
import sys
import time
import tracemalloc
from threading import Lock

import cachetools
import moka_py

from floodline.bounded import BoundedMap
from measure import Row, at_least_faster, at_most, below, best, loop, show

KEYS = [f"session-{n:06}" for n in range(10_000)]
NUMBER = 1_000


def touch() -> list[Row]:
    """Read a key that is in the map, which renews its idle time."""
    ours: BoundedMap[str, int] = BoundedMap(100_000, idle="30 min")
    ttl: cachetools.TTLCache[str, int] = cachetools.TTLCache(100_000, 1800)
    moka = moka_py.Moka(100_000, tti=1800.0)
    for n, key in enumerate(KEYS):
        ours[key] = ttl[key] = n
        moka.set(key, n)
    key = KEYS[77]
    locked = "with lock:\n    value = cache[key]\n    cache[key] = value"
    works = [
        loop("cache.get(key)", NUMBER, cache=ours, key=key),
        loop("cache[key]", NUMBER, cache=ours, key=key),
        loop(locked, NUMBER, cache=ttl, key=key, lock=Lock()),
        loop("cache.get(key)", NUMBER, cache=moka, key=key),
    ]
    get, item, peer, fast = best(works, number=NUMBER)
    return [
        at_least_faster("get, idle TTL / locked TTLCache get + set", get, peer, 5),
        at_least_faster("[], idle TTL / locked TTLCache get + set", item, peer, 5),
        at_most("get, idle TTL / moka-py get, time to idle", get, fast, 1.7),
    ]


def set_with_eviction() -> list[Row]:
    """Set a new key in a full map, which evicts the oldest."""
    peer: cachetools.TTLCache[int, int] = cachetools.TTLCache(10_000, 1800)
    maps = {
        "ttl": BoundedMap[int, int](10_000, ttl="30 min"),
        "idle": BoundedMap[int, int](10_000, idle="30 min"),
        "ttl + idle": BoundedMap[int, int](10_000, ttl="60 min", idle="30 min"),
        "count only": BoundedMap[int, int](10_000),
    }
    numbers = itertools.count()
    for cache in (peer, *maps.values()):
        for n in range(10_000):
            cache[-n] = n
    statement = "cache[step(numbers)] = 1"
    works = [
        loop(statement, NUMBER, cache=cache, step=next, numbers=numbers) for cache in maps.values()
    ]
    locked = "with lock:\n    cache[step(numbers)] = 1"
    works.append(loop(locked, NUMBER, cache=peer, step=next, numbers=numbers, lock=Lock()))
    *ours, theirs = best(works, number=NUMBER)
    return [
        at_least_faster(f"set with eviction, {name} / locked TTLCache", seconds, theirs, 2)
        for name, seconds in zip(maps, ours, strict=True)
    ]


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def sweep() -> list[Row]:
    """Remove 1,000 expired of 1,000,000, fifty times over."""
    clock = _Clock()
    peer: cachetools.TTLCache[int, None] = cachetools.TTLCache(2_000_000, 1_000, timer=clock)
    aged: BoundedMap[int, None] = BoundedMap(ttl=1_000, clock=clock)
    idled: BoundedMap[int, None] = BoundedMap(idle=1_000, clock=clock)
    for n in range(1_000_000):
        clock.now = n / 1_000  # a thousand a second
        peer[n] = aged[n] = idled[n] = None
    works = [peer.expire, aged.sweep, idled.sweep]
    times = [float("inf")] * 3
    for second in range(50):
        clock.now = 1_000.9995 + second
        for at, work in enumerate(works):
            start = time.perf_counter()
            work()
            times[at] = min(times[at], time.perf_counter() - start)
    assert len(peer) == len(aged) == len(idled) == 950_000
    return [
        at_most("sweep 1,000 of 1,000,000, ttl / expire()", times[1], times[0], 2),
        at_most("sweep 1,000 of 1,000,000, idle / expire()", times[2], times[0], 2),
    ]


def first_eviction() -> list[Row]:
    """Evict once after all 100,000 entries were touched."""
    rows = []
    for name, bounds in {"count": {}, "idle": {"idle": 1800}}.items():
        worst = 0.0
        for _ in range(3):
            cache: BoundedMap[int, int] = BoundedMap(100_000, **bounds)
            for n in range(100_000):
                cache[n] = n
            for n in range(100_000):
                cache.get(n)
            start = time.perf_counter()
            cache[-1] = -1
            worst = max(worst, time.perf_counter() - start)
        rows.append(below(f"first eviction after 100,000 touches, {name}", worst, 0.001))
    return rows


def memory() -> None:
    """Print what an entry costs on top of its key and value."""
    for name, bounds in {"count": {}, "idle": {"idle": 60}, "ttl": {"ttl": 60}}.items():
        keys = list(range(100_000))
        tracemalloc.start()
        cache: BoundedMap[int, None] = BoundedMap(200_000, **bounds)
        for key in keys:
            cache[key] = None
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(f"bytes per entry, {name}: {size / len(keys):.0f}")


def main() -> int:
    ok = show("bounded", [*touch(), *set_with_eviction(), *sweep(), *first_eviction()])
    memory()
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
