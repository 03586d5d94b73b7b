"""The fixtures of aiogram's own tests, with ours behind them; `nox -s upstream` copies this."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiogram.fsm.storage.base import StorageKey

from floodline.adapters.aiogram import FloodlineIsolation, FloodlineStorage


@pytest.fixture
async def storage(
    tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[FloodlineStorage]:
    if request.param != "memory_storage":
        pytest.skip("another implementation")
    one = FloodlineStorage(f"sqlite:///{tmp_path / 'bot.db'}")
    yield one
    await one.close()


@pytest.fixture
async def isolation(
    tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[FloodlineIsolation]:
    if request.param != "lock_isolation":
        pytest.skip("another implementation")
    one = FloodlineIsolation(f"sqlite:///{tmp_path / 'bot.db'}")
    yield one
    await one.close()


@pytest.fixture
def storage_key() -> StorageKey:
    return StorageKey(bot_id=42, chat_id=-42, user_id=42)
