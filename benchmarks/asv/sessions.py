from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from floodline import AsyncSessions, Sessions
from floodline.stores import SQLiteStore

USES = 1000
IDS = [f"session-{n}" for n in range(100)] * (USES // 100)


class Use:
    def setup(self):
        self.sessions = Sessions(dict)

    def teardown(self):
        self.sessions.shutdown()

    def time_use(self):
        use = self.sessions.use
        for key in IDS:
            with use(key):
                pass


class AsyncUse:
    def time_use(self):
        asyncio.run(self.uses())

    async def uses(self):
        async with AsyncSessions(dict) as sessions:
            for key in IDS:
                async with sessions.use(key):
                    pass


class SavedUse:
    def setup(self):
        self.directory = tempfile.TemporaryDirectory()
        self.store = SQLiteStore(Path(self.directory.name) / "bench.db")
        self.sessions = Sessions(dict, store=self.store)

    def teardown(self):
        self.sessions.shutdown()
        self.store.close()
        self.directory.cleanup()

    def time_use(self):
        for n, key in enumerate(IDS):
            with self.sessions.use(key) as state:
                state["n"] = n
