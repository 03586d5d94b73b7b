"""A transcript for each of ten rooms, to which every message is added."""

import itertools
import time

TRANSCRIPTS = {f"room {number}": "" for number in range(10)}


def say(room, text):
    TRANSCRIPTS[room] += text + "\n"


for number in itertools.count():
    say(f"room {number % 10}", f"message {number} " * 20)
    time.sleep(0.02)
