"""Requests in flight, one in five of which is never taken out again."""

import asyncio
import itertools
import random


class Gateway:
    def __init__(self):
        self.pending = {}

    async def call(self, number):
        self.pending[number] = {"number": number, "body": "x" * 300}
        await asyncio.sleep(random.random())
        if number % 5:
            del self.pending[number]


async def main():
    gateway, tasks = Gateway(), set()
    for number in itertools.count():
        task = asyncio.create_task(gateway.call(number))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        await asyncio.sleep(0.02)


asyncio.run(main())
