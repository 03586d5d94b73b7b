"""Futures whose callbacks are kept by an object that lives on."""

import asyncio


class Bus:
    def __init__(self):
        self.handlers = {}

    def subscribe(self, topic, handler):
        self.handlers.setdefault(topic, []).append(handler)


bus = Bus()


async def serve(number):
    bus.subscribe(f"topic-{number % 5}", lambda text: (number, text))
    await asyncio.sleep(0)


async def main():
    number = 0
    while True:
        number += 1
        await serve(number)
        await asyncio.sleep(0.03)


asyncio.run(main())
