"""Tokens that a timer removes after 90 seconds."""

import asyncio
import itertools


class Tokens:
    def __init__(self, lifetime):
        self.lifetime, self.table = lifetime, {}

    def issue(self, number):
        self.table[number] = {"number": number, "text": "x" * 100}
        loop = asyncio.get_running_loop()
        loop.call_later(self.lifetime, self.table.pop, number, None)


async def main():
    tokens = Tokens(90)
    for number in itertools.count():
        tokens.issue(number)
        await asyncio.sleep(0.03)


asyncio.run(main())
