"""A service with a full lru_cache and a counter that is reset."""

import collections
import functools
import random
import time

counts = collections.Counter()


@functools.lru_cache(maxsize=500)
def price(article):
    return {"article": article, "cents": article * 7}


while True:
    article = random.randrange(5000)
    price(article)
    counts[article % 100] += 1
    if counts.total() > 2000:
        counts.clear()
    time.sleep(0.005)
