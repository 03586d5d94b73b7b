"""A script whose main function keeps all results in a local list."""

import concurrent.futures
import time


def work(number):
    return {"number": number, "text": "done " * 10}


def main():
    results = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        while True:
            results.append(pool.submit(work, len(results)).result())
            time.sleep(0.03)


main()
