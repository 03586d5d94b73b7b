"""A Tornado loop that adds a listener for each job and never removes it."""

import asyncio

from tornado.ioloop import IOLoop, PeriodicCallback


class Board:
    def __init__(self):
        self.listeners = []

    def job(self):
        def listener(text):
            return text

        self.listeners.append(listener)


async def main():
    board = Board()
    PeriodicCallback(board.job, 30).start()
    IOLoop.current()
    await asyncio.Event().wait()


asyncio.run(main())
