"""The contract of records and leases."""

from __future__ import annotations

from typing import Any

import pytest

from floodline.errors import SessionConflict
from floodline.stores import Held, Record, new_owner
from floodline.testing.store_contract._fixtures import (
    Clock,
    StoreFixtures,
    Wall,
    put,
    take,
    write,
)


class RecordContract(StoreFixtures):
    """Records, leases, fences, compare-and-set and idempotent writes."""

    # -- rows

    def test_what_was_saved_is_loaded(self, store: Any) -> None:
        assert put(store, b"one") == 1
        assert store.load("chat", "a") == Record(1, b"one")

    def test_an_absent_row_is_none(self, store: Any) -> None:
        assert store.load("chat", "a") is None
        assert store.count("chat") == 0
        assert store.ids("chat") == []

    def test_each_write_counts_the_version_up(self, store: Any) -> None:
        assert [put(store, b"%d" % n) for n in range(3)] == [1, 2, 3]

    def test_names_do_not_mix(self, store: Any) -> None:
        put(store, b"one")
        assert store.load("other", "a") is None
        assert store.acquire("other", "a", "somebody", lease=15.0).version == 0

    def test_ids_come_in_order_and_in_pages(self, store: Any) -> None:
        for one in ("b", "ä", "a", "c"):
            put(store, b"", one)
        assert store.ids("chat") == ["a", "b", "c", "ä"]
        assert store.ids("chat", after="a", limit=2) == ["b", "c"]
        assert store.ids("chat", after="ä") == []

    def test_any_text_is_an_id(self, store: Any) -> None:
        odd = ["'; DROP TABLE sessions; --", "a\x00b", "\N{SNOWMAN}" * 100, " ", "%"]
        for one in odd:
            put(store, one.encode(), one)
        assert [store.load("chat", one).envelope for one in odd] == [one.encode() for one in odd]

    def test_an_empty_envelope_is_a_row(self, store: Any) -> None:
        put(store, b"")
        assert store.load("chat", "a") == Record(1, b"")

    # -- leases

    def test_a_grant_brings_the_row_unless_its_version_is_known(self, store: Any) -> None:
        put(store, b"one")
        grants = [take(store), take(store, known=1), take(store, known=7)]
        found = [(grant.version, grant.envelope) for grant in grants]
        assert found == [(1, b"one"), (1, None), (1, b"one")]

    def test_fences_rise_over_all_rows(self, store: Any) -> None:
        fences = [take(store, one).fence for one in "abca"]
        assert fences == sorted(set(fences))

    def test_a_held_lease_is_told_with_its_owner_and_rest(self, store: Any, clock: Clock) -> None:
        take(store)
        clock.now += 5
        assert store.acquire("chat", "a", "you", lease=15.0) == Held("me", 10.0)

    def test_the_owner_who_asks_again_gets_a_new_fence(self, store: Any) -> None:
        old = take(store)
        new = take(store)
        assert new.fence > old.fence
        with pytest.raises(SessionConflict, match="lease was lost"):
            write(store, b"late", old)
        write(store, b"good", new)

    def test_a_lease_that_ran_out_is_taken_over_and_the_old_one_cannot_write(
        self, store: Any, clock: Clock
    ) -> None:
        old = take(store)
        clock.now += 15
        new = take(store, owner="you")
        assert new.fence > old.fence
        with pytest.raises(SessionConflict):
            write(store, b"late", old)
        assert store.load("chat", "a") is None

    def test_a_lease_that_ran_out_but_was_not_taken_still_writes(
        self, store: Any, clock: Clock
    ) -> None:
        grant = take(store)
        clock.now += 1000
        assert write(store, b"slow", grant) == 1

    def test_a_lease_from_before_a_reboot_does_not_hold(self, store: Any, clock: Clock) -> None:
        clock.now = 1_000_000.0
        old = take(store)
        clock.now = 10.0  # the clock of leases starts again at boot
        assert take(store, owner="you").fence > old.fence

    def test_a_dead_owner_is_replaced_at_once(self, store: Any, dead_owner: str) -> None:
        old = take(store, owner=dead_owner)
        assert take(store, owner=new_owner("you")).fence > old.fence

    def test_a_living_owner_of_this_process_is_not_replaced(self, store: Any) -> None:
        take(store, owner=new_owner("me"))
        assert isinstance(store.acquire("chat", "a", new_owner("you"), lease=15.0), Held)

    def test_renewing_prolongs_and_tells_what_is_lost(self, store: Any, clock: Clock) -> None:
        a, b = take(store, "a"), take(store, "b")
        clock.now += 15
        take(store, "b", owner="you")
        assert store.renew("chat", "me", {"a": a.fence, "b": b.fence, "c": 9**18}, lease=15.0) == {
            "b",
            "c",
        }
        clock.now += 14
        assert isinstance(store.acquire("chat", "a", "you", lease=15.0), Held)

    def test_each_lease_ends_when_it_is_not_renewed(self, store: Any, clock: Clock) -> None:
        a, b = take(store, "a"), take(store, "b")
        both = {"a": a.fence, "b": b.fence}
        for _ in range(3):
            assert store.renew("chat", "me", both, lease=15.0) == set()
            clock.now += 14
        for _ in range(2):
            assert store.renew("chat", "me", {"b": b.fence}, lease=15.0) == set()
            assert isinstance(store.acquire("chat", "b", "you", lease=15.0), Held)
            clock.now += 14
        take(store, "a", owner="you")
        clock.now += 1
        take(store, "b", owner="you")
        assert store.renew("chat", "me", both, lease=15.0) == {"a", "b"}

    def test_a_lease_that_ran_out_but_was_not_taken_can_be_renewed(
        self, store: Any, clock: Clock
    ) -> None:
        grant = take(store)
        clock.now += 100
        assert store.renew("chat", "me", {"a": grant.fence}, lease=15.0) == set()
        assert isinstance(store.acquire("chat", "a", "you", lease=15.0), Held)

    def test_nobody_renews_the_lease_of_another_owner(self, store: Any) -> None:
        grant = take(store)
        assert store.renew("chat", "you", {"a": grant.fence}, lease=15.0) == {"a"}

    def test_a_released_lease_is_free_and_cannot_write(self, store: Any) -> None:
        grant = take(store)
        store.release("chat", "a", grant.fence)
        take(store, owner="you")
        with pytest.raises(SessionConflict):
            write(store, b"late", grant)

    def test_releasing_what_is_lost_is_harmless(self, store: Any) -> None:
        old = take(store)
        take(store)
        store.release("chat", "a", old.fence)
        store.release("chat", "never", 9**18)
        assert isinstance(store.acquire("chat", "a", "you", lease=15.0), Held)

    def test_saving_with_release_frees_the_lease(self, store: Any) -> None:
        put(store, b"one")
        assert take(store, owner="you").version == 1

    def test_saving_without_release_keeps_the_lease(self, store: Any) -> None:
        grant = take(store)
        assert write(store, b"one", grant) == 1
        assert isinstance(store.acquire("chat", "a", "you", lease=15.0), Held)
        assert write(store, b"two", grant, version=1, write_id="second") == 2

    # -- compare and set

    def test_a_write_over_another_version_is_refused_and_kept(self, store: Any, wall: Wall) -> None:
        put(store, b"one")
        grant = take(store)
        wall.now += 7
        with pytest.raises(SessionConflict, match=r"'a' of 'chat'.*version 5.*has 1"):
            write(store, b"mine", grant, version=5)
        assert store.load("chat", "a") == Record(1, b"one")
        (kept,) = store.conflicts()
        assert (kept.name, kept.id, kept.at, kept.envelope) == ("chat", "a", wall.now, b"mine")
        assert "version 5" in kept.why
        assert store.stats().conflicts == 1

    def test_a_new_row_is_not_written_over_an_old_one(self, store: Any) -> None:
        put(store, b"one")
        grant = take(store)
        with pytest.raises(SessionConflict, match="has 1"):
            write(store, b"new", grant, version=0)

    def test_a_write_without_its_row_is_refused(self, store: Any) -> None:
        grant = take(store)
        with pytest.raises(SessionConflict, match="has none"):
            write(store, b"x", grant, version=3)

    def test_conflicts_are_told_newest_first_and_by_name(self, store: Any) -> None:
        for n in range(3):
            with pytest.raises(SessionConflict):
                store.save(
                    f"name{n % 2}",
                    "a",
                    b"%d" % n,
                    fence=9**18,
                    version=0,
                    write_id="w",
                    release=False,
                )
        assert [kept.envelope for kept in store.conflicts()] == [b"2", b"1", b"0"]
        assert [kept.envelope for kept in store.conflicts("name0")] == [b"2", b"0"]
        assert [kept.envelope for kept in store.conflicts(limit=1)] == [b"2"]

    # -- one write id, one write

    def test_the_same_write_id_is_one_write(self, store: Any) -> None:
        grant = take(store)
        assert write(store, b"one", grant, write_id="w") == 1
        assert write(store, b"one", grant, write_id="w") == 1
        assert store.load("chat", "a") == Record(1, b"one")

    def test_a_write_is_known_by_its_id_after_its_lease_ended(self, store: Any) -> None:
        grant = take(store)
        assert write(store, b"one", grant, write_id="w", release=True) == 1
        assert write(store, b"one", grant, write_id="w", release=True) == 1
        take(store, owner="you")
        assert write(store, b"one", grant, write_id="w", release=True) == 1
        assert store.conflicts() == []

    def test_a_repeated_write_still_ends_its_lease(self, store: Any) -> None:
        grant = take(store)
        write(store, b"one", grant, write_id="w")
        write(store, b"one", grant, write_id="w", release=True)
        assert take(store, owner="you").version == 1

    def test_a_write_can_be_looked_up_while_it_is_the_last(self, store: Any) -> None:
        assert store.written("chat", "a", "w1") is None
        put(store, b"one", write_id="w1")
        assert store.written("chat", "a", "w1") == 1
        put(store, b"two", write_id="w2")
        assert store.written("chat", "a", "w1") is None
        assert store.written("chat", "a", "w2") == 2

    # -- deleting

    def test_deleting_tells_whether_there_was_a_row(self, store: Any) -> None:
        put(store, b"one")
        assert store.delete("chat", "a", fence=take(store).fence) is True
        assert store.load("chat", "a") is None
        assert store.delete("chat", "a", fence=take(store).fence) is False
        assert store.stats().leases == 0

    def test_deleting_with_a_lost_lease_is_refused(self, store: Any) -> None:
        put(store, b"one")
        old = take(store)
        take(store)
        with pytest.raises(SessionConflict, match="lease was lost"):
            store.delete("chat", "a", fence=old.fence)
        assert store.load("chat", "a") == Record(1, b"one")

    def test_a_hold_from_before_a_delete_cannot_write(self, store: Any) -> None:
        grant = take(store)
        version = write(store, b"one", grant)
        store.delete("chat", "a", fence=grant.fence)
        with pytest.raises(SessionConflict):
            write(store, b"late", grant, version=version, write_id="late")
        assert store.load("chat", "a") is None

    def test_a_row_that_comes_again_never_has_a_version_it_had_before(self, store: Any) -> None:
        old = [put(store, b"old %d" % n) for n in range(3)]
        store.delete("chat", "a", fence=take(store).fence)
        new = [put(store, b"new %d" % n) for n in range(3)]
        assert not set(old) & set(new)
        assert take(store, known=old[0]).envelope == b"new 2"

    def test_fences_do_not_go_back_when_all_rows_are_deleted(self, store: Any) -> None:
        put(store, b"one")
        fence = take(store).fence
        store.delete("chat", "a", fence=fence)
        assert take(store).fence > fence
