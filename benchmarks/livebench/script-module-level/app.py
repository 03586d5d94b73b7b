"""A script without functions that feeds a list for ever."""

import time

readings = []
while True:
    readings.append({"at": time.time(), "value": len(readings)})
    time.sleep(0.02)
