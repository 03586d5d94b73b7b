"""A bot that keeps the last twenty messages of each of 200 rooms: they fill one after the other."""

import itertools
import time
from collections import defaultdict, deque


class Bot:
    def __init__(self):
        self.history = defaultdict(lambda: deque(maxlen=20))

    def hear(self, room, text):
        self.history[room].append(text)


bot = Bot()
for number in itertools.count():
    bot.hear(number * 7919 % 200, f"message {number} " * 10)
    time.sleep(0.025)
