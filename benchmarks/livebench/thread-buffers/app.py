"""A buffer for each thread, made at its first use and never emptied."""

import itertools
import threading
import time

local = threading.local()


def note(text):
    if not hasattr(local, "buffer"):
        local.buffer = []
    local.buffer.append(text)


def work():
    for number in itertools.count():
        note(f"line {number} " * 20)
        time.sleep(0.05)


for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
threading.Event().wait()
