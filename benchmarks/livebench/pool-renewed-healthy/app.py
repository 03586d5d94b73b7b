"""A pool whose workers are replaced every few seconds, and a program that only waits for it."""

import itertools
import multiprocessing
import os
import time


def work(number):
    return number + sum(len(os.urandom(200)) for _ in range(2000))


if __name__ == "__main__":
    with multiprocessing.Pool(2, maxtasksperchild=60) as pool:
        for number in itertools.count():
            pool.apply(work, (number,))
            time.sleep(0.05)
