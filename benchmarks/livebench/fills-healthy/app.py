"""Four stores that fill for 90 seconds, each limited in another way."""

import collections
import functools
import itertools
import time

MOST = 3000


@functools.lru_cache(maxsize=MOST)
def price(article):
    return {"article": article, "text": "x" * 100}


class Store:
    def __init__(self):
        self.order, self.table = collections.deque(), {}
        self.lines, self.slots = [], {}

    def put(self, number):
        self.order.append(number)
        self.table[number] = {"number": number}
        if len(self.order) > MOST:
            oldest = self.order.popleft()
            del self.table[oldest]

    def log(self, line):
        self.lines.append(line)
        self.lines = self.lines[-MOST:]

    def hit(self, number):
        self.slots[number % MOST] = time.time()


store = Store()
for number in itertools.count():
    price(number)
    store.put(number)
    store.log(f"line {number}")
    store.hit(number)
    time.sleep(0.03)
