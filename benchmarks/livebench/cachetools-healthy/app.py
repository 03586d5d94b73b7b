"""A worker with a TTL cache of two thousand entries."""

import itertools
import time

from cachetools import TTLCache

cache = TTLCache(maxsize=2000, ttl=5)
for number in itertools.count():
    cache[number] = {"number": number}
    time.sleep(0.01)
