"""Batches of 3,000 rows: one module has them, another empties them."""

import itertools
import time

from batches import Batches

batches = Batches(3000)
for number in itertools.count():
    batches.add({"number": number, "text": "x" * 50})
    if batches.is_full():
        batches.take()
    time.sleep(0.03)
