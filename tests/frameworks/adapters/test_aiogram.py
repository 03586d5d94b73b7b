"""Storage and isolation of aiogram, under its own dispatcher."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiogram", reason="the extra aiogram is not installed")

from aiogram import Bot, Dispatcher
from aiogram.exceptions import DataNotDictLikeError
from aiogram.fsm.context import FSMContext
from aiogram.fsm.state import State, StatesGroup
from aiogram.fsm.storage.base import StorageKey
from aiogram.types import Chat, Message, Update, User

from floodline.adapters.aiogram import FloodlineIsolation, FloodlineStorage
from floodline.errors import SessionBusy
from floodline.stores import MemoryStore

KEY = StorageKey(bot_id=42, chat_id=-1, user_id=2)


class Order(StatesGroup):
    asked = State()


@pytest.mark.parametrize("where", ["memory", "sqlite"])
def test_state_and_data_are_set_and_cleared_without_a_trace(where: str, tmp_path: Path) -> None:
    async def body() -> None:
        url = None if where == "memory" else f"sqlite:///{tmp_path / 'bot.db'}"
        storage = FloodlineStorage(url)
        assert (await storage.get_state(KEY), await storage.get_data(KEY)) == (None, {})
        await storage.set_state(KEY, Order.asked)
        await storage.set_data(KEY, {"list": [1], "when": datetime(2026, 1, 1)})
        copy = await storage.get_data(KEY)
        copy["list"].append(2)
        assert await storage.get_value(KEY, "list") == [1]
        assert await storage.get_value(KEY, "none", "default") == "default"
        changes = [storage.update_data(KEY, {f"k{n}": n}) for n in range(20)]
        await asyncio.gather(*changes)
        assert len(await storage.get_data(KEY)) == 22
        assert await storage.get_state(KEY) == "Order:asked"
        await storage.set_state(KEY)
        assert len(await storage.get_data(KEY)) == 22
        await storage.set_data(KEY, {})
        assert await storage.update_data(KEY, {}) == {}
        assert storage._flows._store.count("aiogram") == 0
        with pytest.raises(DataNotDictLikeError):
            await storage.set_data(KEY, [])  # type: ignore[arg-type]
        await storage.close()

    asyncio.run(body())


def test_every_part_of_a_key_counts() -> None:
    async def body() -> None:
        storage = FloodlineStorage(MemoryStore())
        keys = [
            KEY,
            StorageKey(42, -1, 3),
            StorageKey(42, -1, 2, thread_id=2),
            StorageKey(42, -1, 2, business_connection_id="2"),
            StorageKey(42, -1, 2, business_connection_id=""),
            StorageKey(42, -1, 2, destiny="2"),
            StorageKey(42, -1, 2, destiny=":2:"),
            StorageKey(42, -1, 2, business_connection_id=":", destiny="2:"),
        ]
        for number, key in enumerate(keys):
            await storage.set_state(key, str(number))
        assert [await storage.get_state(key) for key in keys] == [str(n) for n in range(len(keys))]

    asyncio.run(body())


def test_locks_exclude_each_other_in_all_workers_and_leave_nothing(tmp_path: Path) -> None:
    async def body() -> None:
        url = f"sqlite:///{tmp_path / 'bot.db'}"
        workers = [FloodlineIsolation(url) for _ in range(2)]
        inside, most = 0, 0

        async def update(number: int) -> None:
            nonlocal inside, most
            async with workers[number % 2].lock(KEY):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(update(number) for number in range(10)))
        assert most == 1
        for number in range(50):
            async with workers[0].lock(StorageKey(42, number, number)):
                pass
        locks = workers[0]._locks
        assert (len(locks), locks.stats().held) == (0, 0)
        for worker in workers:
            await worker.close()

    asyncio.run(body())


def test_a_lock_is_released_by_an_error_and_waits_as_long_as_asked() -> None:
    async def body() -> None:
        store = MemoryStore()
        isolation = FloodlineIsolation(store, wait=0)
        with pytest.raises(LookupError):
            async with isolation.lock(KEY):
                raise LookupError

        async def second() -> None:
            async with isolation.lock(KEY):
                pass

        async with isolation.lock(KEY):
            with pytest.raises(SessionBusy):
                await asyncio.create_task(second())
        await second()
        await isolation.close()
        assert (store.count("aiogram-locks"), store.stats().leases) == (0, 0)

    asyncio.run(body())


def test_a_dispatcher_runs_a_dialog_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'bot.db'}"
    seen: list[Any] = []

    async def handle(message: Message, state: FSMContext) -> None:
        seen.append((await state.get_state(), await state.get_data()))
        await state.set_state(Order.asked)
        await state.update_data(**{str(message.text): 1})

    async def one(text: str) -> None:
        dispatcher = Dispatcher(
            storage=FloodlineStorage(url), events_isolation=FloodlineIsolation(url)
        )
        dispatcher.message.register(handle)
        user = User(id=2, is_bot=False, first_name="A")
        when = datetime.now(UTC)
        chat = Chat(id=2, type="private")
        message = Message(message_id=1, date=when, chat=chat, from_user=user, text=text)
        bot = Bot("42:TEST")
        await dispatcher.feed_update(bot, Update(update_id=1, message=message))
        await dispatcher.fsm.close()
        await bot.session.close()

    asyncio.run(one("x"))
    asyncio.run(one("y"))
    assert seen == [(None, {}), ("Order:asked", {"x": 1})]
