"""Each request leaves a task behind that waits for an acknowledgement which never comes."""

import asyncio
import itertools

background = set()


async def acknowledge(user, future):
    body = {"user": user, "text": "x" * 300}
    await future
    print(body)


async def main():
    for number in itertools.count():
        future = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(acknowledge(f"user-{number}", future))
        background.add(task)
        task.add_done_callback(background.discard)
        await asyncio.sleep(0.05)


asyncio.run(main())
