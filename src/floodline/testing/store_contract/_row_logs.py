"""The contract of row logs."""

from __future__ import annotations

from typing import Any

import pytest

from floodline.errors import (
    ConfigError,
    LogFull,
    RowConflict,
    RowNotFound,
    SessionConflict,
    SessionNotFound,
)
from floodline.stores import Append, Grant, LogStats, NewRow, Record, Row, unpack_rows
from floodline.testing.store_contract._fixtures import StoreFixtures

NAME, ID, LOG = "chat", "a", "events"


def rows_of(*keys: str, **options: Any) -> list[Append]:
    """Return an append of rows whose data is their key in capitals."""
    new = [NewRow(key, key.upper().encode()) for key in keys]
    return [Append(options.pop("log", LOG), new, **options)]


def keys_of(store: Any, log: str = LOG, id: str = ID, **options: Any) -> list[str]:
    """Return the keys of a page."""
    return [row.key for row in store.rows(NAME, id, log, **options)]


def lease_of(store: Any, id: str = ID, owner: str = "me") -> Grant:
    """Take the lease of a session."""
    grant = store.acquire(NAME, id, owner, lease=15.0)
    assert isinstance(grant, Grant)
    return grant


def save_rows(store: Any, grant: Grant, rows: list[Append], **options: Any) -> int:
    """Save with rows under a grant."""
    terms: dict[str, Any] = {"version": grant.version, "write_id": f"w{grant.fence}"}
    terms.update(fence=grant.fence, release=True, rows=rows)
    terms.update(options)
    version: int = store.save(NAME, ID, b"state", **terms)
    return version


class RowContract(StoreFixtures):
    """Rows: appending, paging, caps, deleting, and the save of a session."""

    # -- appending without a save

    def test_rows_come_back_in_the_order_of_their_append(self, store: Any) -> None:
        assert store.append_rows(NAME, ID, rows_of("b", "a")) == 2
        assert store.append_rows(NAME, ID, rows_of("c")) == 1
        page = store.rows(NAME, ID, LOG)
        assert [(row.key, row.data) for row in page] == [("b", b"B"), ("a", b"A"), ("c", b"C")]
        numbers = [row.number for row in page]
        assert numbers == sorted(set(numbers))
        assert all(isinstance(row.at, float) for row in page)

    def test_a_log_that_is_not_there_is_empty(self, store: Any) -> None:
        assert store.rows(NAME, ID, LOG) == []
        assert store.rows(NAME, ID, LOG, after=3, newest_first=True) == []
        assert store.get_rows(NAME, ID, LOG, ["a"]) == {}
        assert store.get_row(NAME, ID, LOG, "a") is None
        assert store.logs(NAME, ID) == []
        assert store.count_rows(NAME, ID) == 0
        assert store.delete_rows(NAME, ID) == 0
        assert store.load(NAME, ID) is None

    def test_rows_are_found_by_their_keys(self, store: Any) -> None:
        store.append_rows(NAME, ID, rows_of("a", "b", "c"))
        found = store.get_rows(NAME, ID, LOG, ["c", "missing", "a"])
        assert {key: row.data for key, row in found.items()} == {"c": b"C", "a": b"A"}
        row = store.get_row(NAME, ID, LOG, "b")
        assert isinstance(row, Row)
        assert (row.key, row.data) == ("b", b"B")

    def test_logs_sessions_and_names_do_not_mix(self, store: Any) -> None:
        store.append_rows(NAME, ID, rows_of("a"))
        store.append_rows(NAME, ID, rows_of("b", log="other"))
        store.append_rows(NAME, "b", rows_of("c"))
        store.append_rows("elsewhere", ID, rows_of("d"))
        assert keys_of(store) == ["a"]
        assert keys_of(store, "other") == ["b"]
        assert keys_of(store, id="b") == ["c"]
        assert [row.key for row in store.rows("elsewhere", ID, LOG)] == ["d"]

    def test_any_text_is_a_log_and_a_key_and_any_bytes_are_data(self, store: Any) -> None:
        odd = ["'; DROP TABLE x; --", "a\x00b", "\N{SNOWMAN}" * 100, " ", "%", "a:b", "a/b", "{x}"]
        data = bytes(range(256))
        for log in odd:
            new = [NewRow(key, data + key.encode()) for key in odd]
            store.append_rows(NAME, ID, [Append(log, new)])
        for log in odd:
            page = store.rows(NAME, ID, log)
            assert [(row.key, row.data) for row in page] == [(k, data + k.encode()) for k in odd]
        assert [one.log for one in store.logs(NAME, ID)] == sorted(odd)

    def test_empty_data_is_a_row(self, store: Any) -> None:
        store.append_rows(NAME, ID, [Append(LOG, [NewRow("a", b"")])])
        store.append_rows(NAME, ID, [Append(LOG, [NewRow("a", b"")])])
        assert [row.data for row in store.rows(NAME, ID, LOG)] == [b""]

    def test_an_append_of_nothing_writes_nothing_else(self, store: Any) -> None:
        assert store.append_rows(NAME, ID, []) == 0
        assert store.append_rows(NAME, ID, [Append(LOG, [])]) == 0
        assert store.logs(NAME, ID) == []

    def test_several_logs_are_appended_together(self, store: Any) -> None:
        assert store.append_rows(NAME, ID, [*rows_of("a"), *rows_of("b", "c", log="items")]) == 3
        assert store.logs(NAME, ID) == [LogStats(LOG, 1, 1), LogStats("items", 2, 2)]
        assert store.logs(NAME, ID, after=LOG) == [LogStats("items", 2, 2)]
        assert store.logs(NAME, ID, limit=1) == [LogStats(LOG, 1, 1)]
        assert store.count_rows(NAME, ID) == 3
        assert store.count_rows(NAME, ID, "items") == 2

    # -- one key, one row

    def test_the_same_row_twice_is_one_row(self, store: Any) -> None:
        store.append_rows(NAME, ID, rows_of("a", "b"))
        assert store.append_rows(NAME, ID, rows_of("b", "a", "c")) == 1
        assert keys_of(store) == ["a", "b", "c"]
        assert store.count_rows(NAME, ID, LOG) == 3

    def test_a_key_with_other_bytes_is_refused_and_nothing_is_written(self, store: Any) -> None:
        store.append_rows(NAME, ID, rows_of("a"))
        with pytest.raises(RowConflict, match="'a'"):
            store.append_rows(NAME, ID, [Append(LOG, [NewRow("new", b""), NewRow("a", b"other")])])
        assert [(row.key, row.data) for row in store.rows(NAME, ID, LOG)] == [("a", b"A")]
        with pytest.raises(RowConflict):
            store.append_rows(NAME, ID, [*rows_of("x", log="z"), Append(LOG, [NewRow("a", b"")])])
        assert store.logs(NAME, ID) == [LogStats(LOG, 1, 1)]

    def test_a_key_may_be_kept_or_replaced_in_its_place(self, store: Any) -> None:
        store.append_rows(NAME, ID, rows_of("a", "b"))
        (before, _) = store.rows(NAME, ID, LOG)
        kept = Append(LOG, [NewRow("a", b"longer")], when_taken="keep")
        assert store.append_rows(NAME, ID, [kept]) == 0
        assert store.get_row(NAME, ID, LOG, "a").data == b"A"
        other = Append(LOG, [NewRow("a", b"longer")], when_taken="replace")
        assert store.append_rows(NAME, ID, [other]) == 1
        assert keys_of(store) == ["a", "b"]
        after = store.get_row(NAME, ID, LOG, "a")
        assert (after.number, after.data) == (before.number, b"longer")
        assert store.logs(NAME, ID) == [LogStats(LOG, 2, 7)]

    def test_a_key_twice_in_one_append_is_judged_like_two_appends(self, store: Any) -> None:
        twice = [NewRow("a", b"1"), NewRow("a", b"2")]
        with pytest.raises(RowConflict):
            store.append_rows(NAME, ID, [Append(LOG, twice)])
        assert store.count_rows(NAME, ID) == 0
        store.append_rows(NAME, ID, [Append(LOG, twice, when_taken="replace")])
        assert [row.data for row in store.rows(NAME, ID, LOG)] == [b"2"]

    # -- places

    def test_given_numbers_place_the_rows_and_equal_ones_follow_their_keys(
        self, store: Any
    ) -> None:
        new = [("late", 9), ("b", 5), ("a", 5), ("\N{SNOWMAN}", 5), ("z", 5), ("first", 0)]
        store.append_rows(NAME, ID, [Append(LOG, [NewRow(k, b"", n) for k, n in new])])
        assert keys_of(store) == ["first", "a", "b", "z", "\N{SNOWMAN}", "late"]
        store.append_rows(NAME, ID, rows_of("next"))
        assert store.rows(NAME, ID, LOG, newest_first=True, limit=1)[0].number > 9

    def test_the_largest_numbers_are_exact(self, store: Any) -> None:
        last = 2**53 - 1
        new = [NewRow("b", b"", last), NewRow("a", b"", last - 1)]
        store.append_rows(NAME, ID, [Append(LOG, new)])
        assert [row.number for row in store.rows(NAME, ID, LOG)] == [last - 1, last]
        assert keys_of(store, after=last - 1) == ["b"]

    def test_pages_go_both_ways(self, store: Any) -> None:
        store.append_rows(NAME, ID, rows_of(*"abcdef"))
        assert keys_of(store, limit=2) == ["a", "b"]
        assert keys_of(store, after="b", limit=2) == ["c", "d"]
        assert keys_of(store, after="f") == []
        assert keys_of(store, newest_first=True, limit=2) == ["f", "e"]
        assert keys_of(store, before="e", newest_first=True, limit=2) == ["d", "c"]
        assert keys_of(store, before="c") == ["a", "b"]
        assert keys_of(store, after="b", before="e") == ["c", "d"]
        assert keys_of(store, after="b", before="e", newest_first=True) == ["d", "c"]
        assert keys_of(store, after="e", before="b") == []

    def test_pages_begin_at_numbers_too(self, store: Any) -> None:
        new = [NewRow(key, b"", number) for key, number in (("a", 1), ("b", 2), ("c", 2), ("d", 4))]
        store.append_rows(NAME, ID, [Append(LOG, new)])
        assert keys_of(store, after=1) == ["b", "c", "d"]
        assert keys_of(store, after=2) == ["d"]
        assert keys_of(store, before=2) == ["a"]
        assert keys_of(store, after="b") == ["c", "d"]
        assert keys_of(store, after=0, before=3, newest_first=True, limit=2) == ["c", "b"]
        assert keys_of(store, after=-1) == ["a", "b", "c", "d"]
        assert keys_of(store, before=0) == []

    def test_a_page_cannot_begin_at_a_key_that_is_not_there(self, store: Any) -> None:
        for options in ({"after": "x"}, {"before": "x"}):
            with pytest.raises(RowNotFound, match="'x'"):
                store.rows(NAME, ID, LOG, **options)
        store.append_rows(NAME, ID, rows_of("a"))
        with pytest.raises(KeyError):
            store.rows(NAME, ID, LOG, after="x")

    # -- caps

    def test_a_full_log_refuses_and_nothing_is_written(self, store: Any) -> None:
        store.append_rows(NAME, ID, rows_of("a", "b", max_rows=2))
        with pytest.raises(LogFull, match="3 rows"):
            store.append_rows(NAME, ID, [*rows_of("x", log="z"), *rows_of("c", max_rows=2)])
        assert store.append_rows(NAME, ID, rows_of("b", max_rows=2)) == 0
        assert store.append_rows(NAME, ID, rows_of("b", max_rows=1)) == 0
        assert store.logs(NAME, ID) == [LogStats(LOG, 2, 2)]
        big = Append(LOG, [NewRow("c", b"12345")], max_bytes=6)
        with pytest.raises(LogFull):
            store.append_rows(NAME, ID, [big])
        other = Append(LOG, [NewRow("a", b"12345")], max_bytes=5, when_taken="replace")
        with pytest.raises(LogFull):
            store.append_rows(NAME, ID, [other])
        assert store.append_rows(NAME, ID, rows_of("c")) == 1

    def test_the_oldest_leave_a_full_log(self, store: Any) -> None:
        for key in "abcde":
            store.append_rows(NAME, ID, rows_of(key, max_rows=3, when_full="drop"))
        assert keys_of(store) == ["c", "d", "e"]
        store.append_rows(NAME, ID, rows_of(*"fghij", max_rows=2, when_full="drop"))
        assert keys_of(store) == ["i", "j"]
        store.append_rows(
            NAME, ID, [Append(LOG, [NewRow("k", b"123")], max_bytes=4, when_full="drop")]
        )
        assert store.logs(NAME, ID) == [LogStats(LOG, 2, 4)]
        assert keys_of(store) == ["j", "k"]

    # -- deleting

    def test_rows_are_deleted_one_by_one_by_log_or_all(self, store: Any) -> None:
        store.append_rows(NAME, ID, [*rows_of(*"abcd"), *rows_of("x", log="other")])
        assert store.delete_rows(NAME, ID, LOG, keys=["b", "missing", "b"]) == 1
        assert keys_of(store) == ["a", "c", "d"]
        assert store.delete_rows(NAME, ID, "nowhere") == 0
        assert store.delete_rows(NAME, ID, LOG) == 3
        assert store.logs(NAME, ID) == [LogStats("other", 1, 1)]
        store.append_rows(NAME, ID, rows_of("a"))
        assert store.delete_rows(NAME, ID) == 2
        assert store.count_rows(NAME, ID) == 0
        assert store.load(NAME, ID) is not None
        with pytest.raises(ConfigError):
            store.delete_rows(NAME, ID, keys=["a"])

    def test_the_number_of_a_deleted_row_is_not_used_again(self, store: Any) -> None:
        store.append_rows(NAME, ID, rows_of("a", "b"))
        last = store.get_row(NAME, ID, LOG, "b").number
        store.delete_rows(NAME, ID, LOG, keys=["b"])
        store.append_rows(NAME, ID, rows_of("c"))
        assert store.get_row(NAME, ID, LOG, "c").number > last
        last = store.get_row(NAME, ID, LOG, "c").number
        store.delete_rows(NAME, ID)
        store.append_rows(NAME, ID, rows_of("d"))
        assert store.get_row(NAME, ID, LOG, "d").number > last
        assert store.append_rows(NAME, ID, [Append(LOG, [NewRow("b", b"other")])]) == 1

    # -- with the save of a session

    def test_rows_are_written_with_the_save(self, store: Any) -> None:
        version = save_rows(store, lease_of(store), rows_of("a", "b"))
        assert store.load(NAME, ID) == Record(version, b"state")
        assert keys_of(store) == ["a", "b"]
        assert isinstance(store.acquire(NAME, ID, "you", lease=15.0), Grant)

    def test_a_repeated_save_appends_nothing(self, store: Any) -> None:
        grant = lease_of(store)
        version = save_rows(store, grant, rows_of("a"))
        store.delete_rows(NAME, ID, LOG)
        assert save_rows(store, grant, rows_of("a")) == version
        assert store.count_rows(NAME, ID) == 0

    def test_a_refused_save_appends_nothing_and_keeps_its_rows(self, store: Any) -> None:
        save_rows(store, lease_of(store), rows_of("a"))
        grant = lease_of(store)
        with pytest.raises(SessionConflict):
            save_rows(store, grant, rows_of("b", "c"), version=grant.version + 5, release=False)
        lease_of(store)
        with pytest.raises(SessionConflict):
            save_rows(store, grant, rows_of("d"))
        assert keys_of(store) == ["a"]
        envelopes = [one.envelope for one in store.conflicts()]
        assert envelopes[0] == envelopes[2] == b"state"
        assert unpack_rows(envelopes[3]) == [(LOG, "b", b"B"), (LOG, "c", b"C")]
        assert unpack_rows(envelopes[1]) == [(LOG, "d", b"D")]

    def test_a_save_whose_rows_are_refused_writes_nothing_and_keeps_its_lease(
        self, store: Any
    ) -> None:
        version = save_rows(store, lease_of(store), rows_of("a"))
        grant = lease_of(store)
        with pytest.raises(RowConflict):
            save_rows(store, grant, [*rows_of("b"), Append(LOG, [NewRow("a", b"other")])])
        with pytest.raises(LogFull):
            save_rows(store, grant, rows_of("b", max_rows=1))
        assert store.load(NAME, ID).version == version
        assert store.written(NAME, ID, f"w{grant.fence}") is None
        assert keys_of(store) == ["a"]
        assert store.conflicts() == []
        assert not isinstance(store.acquire(NAME, ID, "you", lease=15.0), Grant)
        assert save_rows(store, grant, rows_of("b")) > version

    def test_fence_and_version_are_judged_before_the_rows(self, store: Any) -> None:
        save_rows(store, lease_of(store), rows_of("a"))
        old = lease_of(store)
        lease_of(store)
        with pytest.raises(SessionConflict):
            save_rows(store, old, [Append(LOG, [NewRow("a", b"other")])])

    # -- without a lease, and with one

    def test_an_append_needs_no_lease_and_does_not_change_the_version(self, store: Any) -> None:
        grant = lease_of(store)
        version = save_rows(store, grant, [], release=False)
        store.append_rows(NAME, ID, rows_of("a"))
        assert store.load(NAME, ID) == Record(version, b"state")
        assert save_rows(store, grant, [], version=version, write_id="again") > version
        assert keys_of(store) == ["a"]

    def test_an_append_to_no_session_begins_an_empty_one_if_asked(self, store: Any) -> None:
        with pytest.raises(SessionNotFound):
            store.append_rows(NAME, ID, rows_of("a"), create=False)
        assert store.count_rows(NAME, ID) == 0
        store.append_rows(NAME, ID, rows_of("a"))
        record = store.load(NAME, ID)
        assert record.envelope == b""
        assert store.written(NAME, ID, "") == record.version > 0
        assert store.ids(NAME) == [ID]
        assert store.count(NAME) == 1
        assert store.append_rows(NAME, ID, rows_of("b"), create=False) == 1
        grant = lease_of(store)
        assert (grant.version, grant.envelope) == (record.version, b"")
        assert save_rows(store, grant, rows_of("c")) > record.version
        assert keys_of(store) == ["a", "b", "c"]

    def test_an_append_and_a_deletion_may_depend_on_a_lease(self, store: Any) -> None:
        old = lease_of(store)
        new = lease_of(store)
        with pytest.raises(SessionConflict):
            store.append_rows(NAME, ID, rows_of("a"), fence=old.fence)
        assert unpack_rows(store.conflicts()[0].envelope) == [(LOG, "a", b"A")]
        assert store.append_rows(NAME, ID, rows_of("a"), fence=new.fence) == 1
        with pytest.raises(SessionConflict):
            store.delete_rows(NAME, ID, LOG, fence=old.fence)
        assert keys_of(store) == ["a"]
        assert store.delete_rows(NAME, ID, LOG, fence=new.fence) == 1

    # -- figures

    def test_stats_count_the_rows_and_bytes_of_all_logs(self, store: Any) -> None:
        store.append_rows(NAME, ID, [*rows_of("a", "b"), *rows_of("cc", log="other")])
        store.append_rows(NAME, "b", rows_of("dddd"))
        stats = store.stats()
        assert (stats.rows, stats.log_rows, stats.log_bytes) == (2, 4, 8)
        store.delete_rows(NAME, ID, LOG, keys=["a"])
        stats = store.stats()
        assert (stats.log_rows, stats.log_bytes) == (3, 7)
