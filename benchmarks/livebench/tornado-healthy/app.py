"""A Tornado loop whose jobs come and go."""

import asyncio

from tornado.ioloop import PeriodicCallback

jobs = {}


def job():
    number = len(jobs) % 50
    jobs[number] = [number] * 20


async def main():
    PeriodicCallback(job, 20).start()
    await asyncio.Event().wait()


asyncio.run(main())
