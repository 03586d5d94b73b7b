"""How many sessions are parked: asked of the store at each upkeep, kept right in between."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from floodline import AsyncSessions, Sessions
from floodline.errors import StoreUnavailable
from floodline.sessions._flows.store_counts import RECOUNT
from floodline.stores import MemoryStore, SQLiteStore


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    made = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "s.db")
    yield made
    made.close()


def used(sessions, *ids):
    for each in ids:
        with sessions.use(each) as state:
            state["id"] = each


def test_without_a_store_nothing_is_parked_or_known(clock):
    with Sessions(dict, clock=clock) as sessions:
        used(sessions, "a")
        sessions.sweep()
        stats = sessions.stats()
    assert (stats.parked, stats.store_rows, stats.store_file_bytes) == (None, None, None)


def test_the_store_is_asked_at_the_first_upkeep_and_not_by_stats(store, clock):
    with Sessions(dict, store=store, clock=clock) as sessions:
        used(sessions, "a", "b", "c")
        sessions.park("a")
        assert sessions.stats().parked is None
        sessions.sweep()
        stats = sessions.stats()
        assert (stats.parked, stats.store_rows, stats.items) == (1, 3, 2)
        assert (stats.store_file_bytes is None) == isinstance(store, MemoryStore)


def test_parking_coming_back_and_closing_move_the_figure_at_once(store, clock):
    with Sessions(dict, store=store, clock=clock) as sessions:
        used(sessions, "a", "b", "c")
        sessions.sweep()
        parked = [sessions.stats().parked]
        for act in (sessions.park, sessions.park, sessions.close):
            act({0: "a", 1: "b", 2: "b"}[len(parked) - 1])
            parked.append(sessions.stats().parked)
        used(sessions, "a")
        parked.append(sessions.stats().parked)
        sessions.close("a")
        sessions.close("never seen")
        parked.append(sessions.stats().parked)
    assert parked == [0, 1, 2, 1, 0, 0]


def test_a_new_session_that_was_never_saved_is_not_parked_when_it_goes(store, clock):
    with Sessions(dict, store=store, clock=clock, on_error="discard") as sessions:
        sessions.sweep()
        with suppress(RuntimeError), sessions.use("a"):
            raise RuntimeError("no good")
        with sessions.use("b", shared=True):
            pass
        sessions.park("b")
        assert sessions.stats().parked == 0 == store.count("sessions")


def test_a_discarded_session_whose_row_stays_is_parked(store, clock):
    with Sessions(dict, store=store, clock=clock, on_error="discard") as sessions:
        used(sessions, "a")
        sessions.sweep()
        with suppress(RuntimeError), sessions.use("a"):
            raise RuntimeError("no good")
        assert ("a" in sessions, sessions.stats().parked) == (False, 1)
        used(sessions, "a")
        assert sessions.stats().parked == 0


def test_a_copy_that_went_stale_and_was_loaded_anew_is_still_live(store, clock):
    with (
        Sessions(dict, store=store, clock=clock) as mine,
        Sessions(dict, store=store, clock=clock) as other,
    ):
        used(mine, "a")
        mine.sweep()
        with other.use("a") as state:
            state["by"] = "the other"
        used(mine, "a")
        assert mine.stats().left == {"stale": 1}
        assert mine.stats().parked == 0


def test_what_other_processes_did_is_seen_when_the_store_is_asked_again(store, clock):
    with (
        Sessions(dict, store=store, clock=clock) as mine,
        Sessions(dict, store=store, clock=clock) as other,
    ):
        mine.sweep()
        used(other, "a", "b")
        mine.sweep()
        assert mine.stats().parked == 0
        clock.now += RECOUNT
        mine.sweep()
        assert mine.stats().parked == 2


def test_live_sessions_that_have_no_row_yet_take_nothing_from_the_parked(store, clock):
    with Sessions(dict, store=store, clock=clock, durability="park") as sessions:
        used(sessions, "a", "b", "c")
        sessions.park("a")
        sessions.sweep()
        stats = sessions.stats()
    assert (stats.items, stats.store_rows, stats.parked) == (2, 1, 1)


def test_rows_that_were_deleted_unused_are_no_longer_parked(clock):
    wall = Clock()
    store = MemoryStore(clock=wall, wall=wall)
    with Sessions(dict, store=store, clock=clock, retain="1 h") as sessions:
        used(sessions, "a", "b", "live")
        sessions.park("a")
        sessions.park("b")
        sessions.sweep()
        before = sessions.stats().parked
        wall.now += 3601
        used(sessions, "live")
        sessions.sweep()
        stats = sessions.stats()
    assert (before, stats.purged, stats.parked) == (2, 2, 0)


def test_a_store_that_does_not_answer_makes_the_figure_unknown_and_nothing_else(clock):
    class Mute(MemoryStore):
        mute = False

        def count(self, name):
            if self.mute:
                raise StoreUnavailable("no answer")
            return super().count(name)

    store = Mute()
    with Sessions(dict, store=store, clock=clock) as sessions:
        used(sessions, "a")
        sessions.park("a")
        sessions.sweep()
        store.mute = True
        clock.now += RECOUNT
        sessions.sweep()
        used(sessions, "a")
        stats = sessions.stats()
        assert (stats.parked, stats.store_rows, stats.hook_errors) == (None, None, 0)


def test_async_sessions_ask_too(store, clock):
    async def main():
        async with AsyncSessions(dict, store=store, clock=clock) as sessions:
            for each in ("a", "b"):
                async with sessions.use(each) as state:
                    state["id"] = each
            await sessions.sweep()
            await sessions.park("a")
            return sessions.stats()

    stats = asyncio.run(main())
    assert (stats.items, stats.parked, stats.store_rows) == (1, 1, 2)
