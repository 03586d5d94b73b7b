"""The stream of states: whole, newest first, bounded."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from floodline.web._dashboard import event_stream
from floodline.web._dashboard.event_stream import Live, encode, thinned
from web_states import Shown, leaking

PATIENCE = 100.0  # a safety net, not a measure


class Reader:
    """One client of a stream; `room` lets it take the next event."""

    def __init__(self, room=None):
        self.got = []
        self.leaving = asyncio.Event()
        self.news = asyncio.Event()
        self.room = room

    async def receive(self):
        await self.leaving.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.got.append(message)
        self.news.set()
        if self.room is not None:
            await self.room.wait()

    async def until(self, count):
        while len(self.got) < count:
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), PATIENCE)

    def states(self):
        bodies = [message["body"] for message in self.got]
        return [json.loads(body.split(b"data: ")[1]) for body in bodies if b"data: " in body]


def state(number):
    return {"verdict": "undecided", "number": number, "processes": []}


def numbers(reader):
    return [each["number"] for each in reader.states()]


def test_a_reader_gets_the_whole_state_and_then_each_new_one():
    async def main():
        source, reader = Shown(state(1)), Reader()
        live = Live(source)
        reading = asyncio.ensure_future(live.stream(reader.receive, reader.send))
        await reader.until(1)
        source.show(state(2))
        await reader.until(2)
        reader.leaving.set()
        await asyncio.wait_for(reading, PATIENCE)
        return numbers(reader), live.readers, reader.got[0]["body"]

    got, readers, first = asyncio.run(main())
    assert got[:2] == [1, 2]
    assert readers == 0
    assert first.startswith(b"event: state\ndata: {")
    assert first.endswith(b"}\n\n")


def test_a_slow_reader_skips_to_the_newest_state_and_nothing_is_queued():
    async def main():
        source, slow = Shown(state(1)), Reader(room=asyncio.Event())
        quick = Reader()
        live = Live(source)
        tasks = [
            asyncio.ensure_future(live.stream(each.receive, each.send)) for each in (slow, quick)
        ]
        await slow.until(1)
        for number in (2, 3, 4):
            source.show(state(number))
            await quick.until(number)
        slow.room.set()
        await slow.until(2)
        for each in (slow, quick):
            each.leaving.set()
        await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
        return numbers(slow)[:2], numbers(quick)[:4], source.asked

    assert asyncio.run(main()) == ([1, 4], [1, 2, 3, 4], 4)


def test_a_reader_that_takes_nothing_loses_its_place(monkeypatch):
    monkeypatch.setattr(event_stream, "STALLED", 0.01)

    async def main():
        live, reader = Live(Shown(state(1))), Reader(room=asyncio.Event())
        await asyncio.wait_for(live.stream(reader.receive, reader.send), PATIENCE)
        return live.readers

    assert asyncio.run(main()) == 0


def test_a_reader_that_goes_away_while_we_send_frees_its_place():
    async def main():
        live, reader = Live(Shown(state(1))), Reader()

        async def broken(message):
            raise ConnectionResetError

        await asyncio.wait_for(live.stream(reader.receive, broken), PATIENCE)
        return live.readers

    assert asyncio.run(main()) == 0


def test_a_quiet_source_is_told_from_a_dead_one(monkeypatch):
    monkeypatch.setattr(event_stream, "QUIET", 0.01)

    async def main():
        live, reader = Live(Shown(state(1))), Reader()
        reading = asyncio.ensure_future(live.stream(reader.receive, reader.send))
        await reader.until(2)
        reader.leaving.set()
        await asyncio.wait_for(reading, PATIENCE)
        return reader.got[1]["body"]

    assert asyncio.run(main()) == b": nothing new\n\n"


def test_closing_sends_the_newest_state_last():
    async def main():
        source, reader = Shown(state(1)), Reader()
        live = Live(source)
        reading = asyncio.ensure_future(live.stream(reader.receive, reader.send))
        await reader.until(1)
        source._state, source._version = state(2), 2  # nobody is woken
        closer = threading.Thread(target=live.close)
        closer.start()
        await asyncio.wait_for(reading, PATIENCE)
        closer.join()
        return numbers(reader), reader.got[-1]["more_body"]

    got, more = asyncio.run(main())
    assert got[-1] == 2
    assert not more


def test_closing_without_readers_or_after_the_loop_is_harmless():
    async def main(live):
        reader = Reader()
        reader.leaving.set()
        await asyncio.wait_for(live.stream(reader.receive, reader.send), PATIENCE)

    unused, used = Live(Shown(state(1))), Live(Shown(state(1)))
    unused.close()
    assert unused.closed
    asyncio.run(main(used))
    used.close()


def test_a_source_that_fails_ends_the_stream_and_the_next_reader_asks_again():
    class Failing(Shown):
        def wait(self, version, timeout):
            raise OSError("the recorder is broken")

    async def main():
        live = Live(Failing(state(1)))
        for _ in range(2):
            reader = Reader()
            await asyncio.wait_for(live.stream(reader.receive, reader.send), PATIENCE)
            with pytest.raises(OSError, match="broken"):
                await live._pump
        return numbers(reader)

    assert asyncio.run(main())[0] == 1


def test_nothing_is_encoded_while_nobody_reads():
    async def main():
        source, reader = Shown(state(1)), Reader()
        live = Live(source)
        reader.leaving.set()
        await asyncio.wait_for(live.stream(reader.receive, reader.send), PATIENCE)
        await asyncio.wait_for(live._pump, PATIENCE)
        before = source.asked
        source.show(state(2))
        await asyncio.sleep(0)
        return source.asked - before

    assert asyncio.run(main()) == 0


def test_numbers_that_json_has_not_become_null():
    text = encode({"rate": float("nan"), "deep": [{"x": float("inf")}, 1.5, "a"]})
    assert json.loads(text) == {"rate": None, "deep": [{"x": None}, 1.5, "a"]}


def test_the_points_of_processes_are_thinned_and_the_newest_is_kept():
    state = leaking()
    points = state["processes"][0]["points"]
    kept = thinned(state)["processes"][0]["points"]
    assert len(points) > 200
    assert 40 <= len(kept) <= 60
    assert kept[-1] == points[-1]
    assert thinned(state)["memory"] == state["memory"]
    assert thinned({"processes": [{"points": [[1, 2]]}, {"points": []}]})["processes"] == [
        {"points": [[1, 2]]},
        {"points": []},
    ]


def test_a_state_is_one_line_of_json():
    assert b"\n" not in encode(leaking())
    assert json.loads(encode(leaking())) == leaking()
