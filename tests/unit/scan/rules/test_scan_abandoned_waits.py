"""An answer that never comes leaves its key, unless whoever waits removes it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from floodline.scan import Scan

HEAD = """
import asyncio
import itertools


class Client:
    def __init__(self, stream):
        self._stream = stream
        self._ids = itertools.count()
        self._pending = {}

    async def read(self):
        while True:
            self._answer(await self._stream.get())

    def _answer(self, message):
        future = self._pending.pop(message.id, None)
        if future is not None:
            future.set_result(message)

"""
TAIL = """

client = Client(connect())
"""


def reported(folder: Path, method: str) -> list[str]:
    code = HEAD + dedent(method).replace("\n", "\n    ") + TAIL
    (folder / "app.py").write_text(code, encoding="utf-8")
    findings = Scan([folder]).report().findings
    return [f"{f.rule} {f.confidence}" for f in findings if f.confidence != "low"]


ABANDONED = {
    "a wait that may time out": (
        """
        async def ask(self, text):
            key = next(self._ids)
            future = asyncio.get_running_loop().create_future()
            self._pending[key] = future
            await self._stream.put((key, text))
            return await asyncio.wait_for(future, 10)
        """,
        "FLD109 medium",
    ),
    "a wait that may be cancelled": (
        """
        async def ask(self, text):
            key = next(self._ids)
            future = self._pending[key] = asyncio.get_running_loop().create_future()
            await self._stream.put((key, text))
            return await future
        """,
        "FLD109 medium",
    ),
    "a wait of a thread": (
        """
        def ask(self, text):
            key = next(self._ids)
            future = Future()
            self._pending[key] = future
            self._stream.put((key, text))
            return future.result(timeout=10)
        """,
        "FLD109 medium",
    ),
    "a wait of a thread without an end": (
        """
        def ask(self, text):
            key = next(self._ids)
            answers = Queue()
            self._pending[key] = answers
            self._stream.put((key, text))
            return answers.get()
        """,
        "FLD109 medium",
    ),
    "a wait with a time-out of its own": (
        """
        async def ask(self, text):
            key = next(self._ids)
            future = asyncio.get_running_loop().create_future()
            self._pending[key] = future
            return await self._stream.answer(future, timeout=10)

        def shutdown(self):
            self._pending.clear()
        """,
        "FLD109 medium",
    ),
}


@pytest.mark.parametrize("case", ABANDONED)
def test_a_key_stays_after(case, tmp_path):
    method, wanted = ABANDONED[case]
    assert reported(tmp_path, method) == [wanted]


CLEAN = {
    "a wait that removes its key": """
        async def ask(self, text):
            key = next(self._ids)
            future = asyncio.get_running_loop().create_future()
            self._pending[key] = future
            try:
                return await asyncio.wait_for(future, 10)
            finally:
                self._pending.pop(key, None)
    """,
    "a wait that calls somebody who removes": """
        async def ask(self, text):
            key = next(self._ids)
            future = asyncio.get_running_loop().create_future()
            self._pending[key] = future
            try:
                return await asyncio.wait_for(future, 10)
            finally:
                self._forget(key)

        def _forget(self, key):
            self._pending.pop(key, None)
    """,
    "a caller who removes": """
        async def ask(self, text):
            key = next(self._ids)
            try:
                return await self._send(key, text)
            finally:
                self._pending.pop(key, None)

        async def _send(self, key, text):
            future = asyncio.get_running_loop().create_future()
            self._pending[key] = future
            return await future
    """,
    "a future that removes itself": """
        async def ask(self, text):
            key = next(self._ids)
            future = asyncio.get_running_loop().create_future()
            self._pending[key] = future
            future.add_done_callback(lambda _: self._pending.pop(key, None))
            return await asyncio.wait_for(future, 10)
    """,
    "a map that somebody empties": """
        async def ask(self, text):
            key = next(self._ids)
            future = asyncio.get_running_loop().create_future()
            self._pending[key] = future
            return await asyncio.wait_for(future, 10)

        def expire(self):
            self._pending.clear()
    """,
    "a map with a limit": """
        async def ask(self, text):
            key = next(self._ids)
            future = asyncio.get_running_loop().create_future()
            if len(self._pending) > 100:
                raise RuntimeError
            self._pending[key] = future
            return await asyncio.wait_for(future, 10)
    """,
    "a wait for something else": """
        async def ask(self, text):
            key = next(self._ids)
            future = asyncio.get_running_loop().create_future()
            self._pending[key] = future
            await self._stream.put((key, text))
            self._stream.get()
    """,
    "something that is no answer": """
        async def ask(self, text):
            key = next(self._ids)
            parts = []
            self._pending[key] = parts
            found = {}
            found[key] = future = asyncio.get_running_loop().create_future()
            waiting = {}
            waiting[key] = future
            return await asyncio.wait_for(future, 10)
    """,
}


@pytest.mark.parametrize("case", CLEAN)
def test_nothing_is_said_about(case, tmp_path):
    assert reported(tmp_path, CLEAN[case]) == []


def test_two_unknowns_are_too_many(tmp_path):
    method = ABANDONED["a wait that may be cancelled"][0]
    code = HEAD + dedent(method).replace("\n", "\n    ")
    (tmp_path / "app.py").write_text(code, encoding="utf-8")
    assert [f for f in Scan([tmp_path]).report().findings if f.confidence != "low"] == []
