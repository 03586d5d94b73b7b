"""Objects that refer to themselves, without a collector: no name leads to them."""

import gc
import itertools
import time


class Node:
    def __init__(self, number):
        self.number, self.me, self.text = number, self, "x" * 500


gc.disable()
for number in itertools.count():
    Node(number)
    time.sleep(0.01)
