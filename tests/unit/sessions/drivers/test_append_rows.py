"""Rows that a holder hands over are written with the save, or wait for the next one."""

from __future__ import annotations

import pytest

from floodline import Sessions
from floodline.errors import ConfigError, SaveFailed, SessionError, StoreUnavailable
from floodline.stores import Append, MemoryStore, NewRow


class Flaky(MemoryStore):
    failing = False

    def save(self, *args, **options):
        if self.failing:
            raise StoreUnavailable("down")
        return super().save(*args, **options)


def rows_of(store):
    return [row.key for row in store.rows("sessions", "alice", "log")]


def test_rows_are_written_with_the_save_even_if_the_state_is_the_same():
    store = MemoryStore()
    with Sessions(dict, store=store) as sessions:
        for key in ("a", "b"):
            with (hold := sessions.use("alice")):
                hold.append_rows(Append("log", [NewRow(key, b"x")]))
                assert [one.rows[0].key for one in hold.waiting_rows] == [key]
                assert key not in rows_of(store)
        assert rows_of(store) == ["a", "b"]
        with (hold := sessions.use("alice")):
            assert hold.waiting_rows == ()


def test_rows_of_a_failed_save_wait_for_the_next_one():
    store = Flaky()
    with Sessions(dict, store=store) as sessions:
        store.failing = True
        with pytest.raises(SaveFailed), (hold := sessions.use("alice")):
            hold.append_rows(Append("log", [NewRow("a", b"x")]))
        store.failing = False
        with (hold := sessions.use("alice")):
            assert len(hold.waiting_rows) == 1
            hold.append_rows(Append("log", [NewRow("b", b"x")]))
        assert rows_of(store) == ["a", "b"]


def test_a_discarded_hold_writes_no_rows():
    store = MemoryStore()
    with Sessions(dict, store=store) as sessions:
        with sessions.use("alice"):
            pass
        with (hold := sessions.use("alice")):
            hold.append_rows(Append("log", [NewRow("a", b"x")]))
            hold.discard()
        with sessions.use("alice"):
            pass
        assert rows_of(store) == []


def refused(hold):
    with pytest.raises((ConfigError, SessionError)) as caught:
        hold.append_rows(Append("log", [NewRow("a", b"x")]))
    return str(caught.value)


def test_rows_need_a_store_and_a_hold_of_ones_own():
    with Sessions(dict) as sessions, (hold := sessions.use("alice")):
        assert "row log" in refused(hold)
    with Sessions(dict, store=MemoryStore()) as sessions:
        with sessions.use("alice"):
            pass
        with (hold := sessions.use("alice", shared=True)):
            assert "shared" in refused(hold)
