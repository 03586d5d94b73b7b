"""A writer that flushes its batch every fifteen seconds."""

import time

batch = []
last = time.monotonic()
while True:
    batch.append({"at": time.time(), "text": "line " * 10})
    if time.monotonic() - last > 15:
        batch.clear()
        last = time.monotonic()
    time.sleep(0.01)
