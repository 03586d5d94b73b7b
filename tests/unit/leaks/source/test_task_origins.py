from __future__ import annotations

import asyncio
import sys

import pytest

from floodline.leaks._closeup import feeding_line as feed
from floodline.leaks._closeup.feeding_line import Feeder, Watch
from floodline.leaks._source import task_origins as births
from soak_programs import line_of, module

WAITING = """
import asyncio

class Channel:
    def __init__(self):
        self.closed = asyncio.Event()

    async def ask(self):
        answer = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(answer.set_result, 1)
        waits = asyncio.ensure_future(self.closed.wait())      # begins
        await asyncio.wait([answer, waits], return_when=asyncio.FIRST_COMPLETED)
"""


def test_what_a_task_of_the_library_feeds_is_put_down_to_the_line_that_began_it(
    tmp_path, monkeypatch, untraced
):
    made = module("waiting", WAITING, tmp_path, monkeypatch)

    async def work():
        channel = made.Channel()
        watch = Watch([lambda: len(channel.closed._waiters)], "waiting.Channel.closed")
        with Feeder([watch]):
            await channel.ask()
            await channel.ask()
        channel.closed.set()
        for _ in range(3):
            await asyncio.sleep(0)
        return watch.place()

    place = asyncio.run(work())
    assert place.line == line_of(WAITING, "# begins")
    assert place.function == "ask"


def test_below_a_loop_the_line_that_began_the_task_comes_before_the_line_that_runs_the_loop():
    frames = []
    for name in ("asyncio.locks", "asyncio.base_events"):
        names = {"__name__": name, "sys": sys}
        exec(
            "class BaseEventLoop:\n    def _run_once(self):\n        return sys._getframe()", names
        )
        frames.append(names["BaseEventLoop"]()._run_once())
    known = births.Births(feed._place_in_program)
    watch, begun = Watch([], "app.X"), feed.Place("app.py", 7, "ask")
    chain = [(one, 1) for one in (*frames, sys._getframe())]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feed, "_chain", lambda *_: chain)
        patch.setattr(known, "place", lambda: begun)
        assert feed._place(frames[0], 1, watch, known) == begun
        patch.setattr(known, "place", lambda: None)
        shown = feed._place(frames[0], 1, watch, known)
    assert shown.function == sys._getframe().f_code.co_name


def test_births_are_forgotten_when_there_are_too_many(monkeypatch):
    monkeypatch.setattr(births, "MAX_NOTED", 1)
    known = births.Births(feed._place_in_program)

    def create_task(coro):
        known.note(sys._getframe())

    known._create = create_task.__code__
    one, other = object(), object()
    create_task(one)
    create_task(other)
    create_task(None)
    known.note(sys._getframe())
    assert list(known._noted) == [id(other)]
    assert known.place() is None  # no loop runs here


def test_a_task_that_began_unseen_has_no_place():
    async def work():
        return births.Births(feed._place_in_program).place()

    assert asyncio.run(work()) is None


def test_a_birth_needs_a_line_of_the_program():
    library = {"__name__": "json", "sys": sys}
    exec("def frame():\n    return sys._getframe()", library)
    assert feed._first_of_program([(library["frame"](), 2)]) is None


def test_a_program_without_asyncio_begins_no_task(monkeypatch):
    monkeypatch.delitem(sys.modules, "asyncio")
    known = births.Births(feed._place_in_program)
    known.note(sys._getframe())
    assert known.place() is None
