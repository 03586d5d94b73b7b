"""Calls of several callers in one round trip: each gets its own answer, and no one else's error."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from floodline.errors import FloodlineError, SessionConflict
from floodline.stores import Append, Grant, Held, NewRow, Record
from floodline.stores._writer import Call
from servers import Postgres, Valkey, asked, put, take, told


def together(store: Any, *calls: tuple[Any, ...]) -> list[Any]:
    """Run calls as one batch; return the result or the error of each."""
    batch = [Call(what, args) for what, *args in calls]
    store._writers[0]._runner.run(batch)
    return [call.error or call.result for call in batch]


def acquire(id: str, known: int | None = None) -> tuple[Any, ...]:
    return ("acquire", "chat", id, "me", 15.0, known)


def save(id: str, grant: Grant, write_id: str, *rows: Append, release: bool = True) -> Any:
    content = f"{id} by {write_id}".encode()
    return ("save", "chat", id, content, grant.fence, grant.version, write_id, release, rows)


def test_each_of_a_batch_gets_its_own_answer(opened: Any) -> None:
    store = opened(connections=1)
    version = put(store, b"old", "old")
    held = take(store, "held", "other")
    ids = [f"id{n}" for n in range(150)]  # more than one script serves
    calls = [acquire(one) for one in ids]
    calls[40:40] = [acquire("held"), acquire("old"), acquire("old", version), ("count", "chat")]
    answers = together(store, *calls)
    lost, old, same, count = answers[40:44]
    del answers[40:44]
    assert isinstance(lost, Held)
    assert lost.owner == "other"
    assert (old.version, old.envelope, same.version, same.envelope) == (
        version,
        b"old",
        version,
        None,
    )
    assert count == 1
    fences = [held.fence, *(grant.fence for grant in answers)]
    assert len(set(fences)) == len(fences)
    assert all(fence > held.fence for fence in fences[1:])
    assert take(store, "later").fence > max(old.fence, same.fence, *fences)

    row = Append("log", [NewRow("key", b"row")])
    saves = [save(one, grant, f"w{one}") for one, grant in zip(ids, answers, strict=True)]
    saves[7] = save("id7", answers[7], "wid7", row)
    stale = Grant(answers[9].fence, 5, None)
    saves[9] = save("id9", stale, "wid9")
    lost_lease = Grant(held.fence - 1, 0, None)
    saves.append(save("held", lost_lease, "late"))
    saved = together(store, *saves)
    assert isinstance(saved[9], SessionConflict)
    assert "based on version 5" in str(saved[9])
    assert isinstance(saved[150], SessionConflict)
    assert "lease was lost" in str(saved[150])
    assert sorted(kept.envelope for kept in store.conflicts()) == [b"held by late", b"id9 by wid9"]
    kept = {kept.id: kept.why for kept in store.conflicts()}
    assert kept["id9"] == "it was based on version 5, but the store has none"
    assert store.get_row("chat", "id7", "log", "key").data == b"row"
    for n in (0, 7, 63, 64, 149):
        assert store.load("chat", f"id{n}") == Record(saved[n], f"id{n} by wid{n}".encode())
    assert store.stats().leases == 3  # "held", "old" and "later"
    assert store.stats().rows == 150


def test_a_fence_rises_although_its_batch_had_to_wait(opened: Any, server: Any) -> None:
    if not isinstance(server, Postgres):
        pytest.skip("scripts do not wait")
    psycopg = pytest.importorskip("psycopg")
    store, other = opened(connections=1), opened(connections=1)
    take(store, "a", "me")
    got: list[Any] = []
    batch = threading.Thread(target=lambda: got.extend(together(store, acquire("a"), acquire("b"))))
    with psycopg.connect(server.url) as blocker:
        blocker.execute("SELECT FROM floodline.leases WHERE id = 'a' FOR UPDATE")
        batch.start()
        while not asked(server, "SELECT 1 FROM pg_locks WHERE NOT granted"):
            assert batch.is_alive()
        between = take(other, "b", "somebody")
        other.release("chat", "b", between.fence)
    batch.join()
    fences = [grant.fence for grant in got]
    assert min(fences) > between.fence
    assert len(set(fences)) == 2
    saved = together(store, *(save(*one, "w") for one in zip("ab", got, strict=True)))
    assert [store.load("chat", one).version for one in "ab"] == saved


@pytest.mark.parametrize("ids", ["a", "ab"])
def test_a_fence_is_above_all_that_others_drew_while_it_waited(
    opened: Any, server: Any, ids: str
) -> None:
    if not isinstance(server, Postgres):
        pytest.skip("scripts do not wait")
    psycopg = pytest.importorskip("psycopg")
    store = opened(connections=1)
    take(store, "a", "me")
    got: list[Any] = []
    late = threading.Thread(target=lambda: got.extend(together(store, *map(acquire, ids))))
    with psycopg.connect(server.url) as other:  # who saves, releases and acquires again
        ahead = "SELECT setval('\"floodline\".fences', last_value + 1000000000000)"
        other.execute(f'{ahead} FROM "floodline".fences')  # so that no clock makes a gap
        other.execute("DELETE FROM floodline.leases")
        late.start()
        while not asked(server, "SELECT 1 FROM pg_locks WHERE NOT granted"):
            assert late.is_alive()
        (theirs,) = other.execute("SELECT floodline.next_fences(1, 0)").fetchone()
    late.join()
    fences = [grant.fence for grant in got]
    assert min(fences) > theirs
    assert len(set(fences)) == len(ids)
    assert asked(server, "SELECT fence FROM floodline.leases ORDER BY id") == [
        (fence,) for fence in fences
    ]


@pytest.mark.parametrize("ids", ["a", "ab", "ba"])
def test_a_fence_is_above_that_of_its_lease_although_the_sequence_is_behind(
    opened: Any, server: Any, ids: str
) -> None:
    if not isinstance(server, Postgres):
        pytest.skip("only PostgreSQL has a sequence")
    store = opened(connections=1)
    first = take(store, "a", "me").fence
    asked(server, "UPDATE floodline.leases SET fence = fence + 1000000000000")
    fences = [grant.fence for grant in together(store, *map(acquire, ids))]
    assert min(fences) > first + 1000000000000
    assert take(store, "c", "me").fence > max(fences)
    assert len(set(fences)) == len(ids)


@pytest.mark.parametrize("wrong", ["version", "fence", "write"])
def test_one_of_a_batch_of_known_sessions_is_judged_for_itself(opened: Any, wrong: str) -> None:
    store, ids = opened(connections=1), ["a", "b", "c"]
    first = together(store, *(save(one, take(store, one), "first") for one in ids))
    for turn in ("2", "3"):
        grants = together(store, *map(acquire, ids))
        saved = together(store, *(save(*one, turn) for one in zip(ids, grants, strict=True)))
    old = together(store, *map(acquire, ids))[1]
    grants = together(store, *map(acquire, ids))
    if wrong != "write":
        fence = old.fence if wrong == "fence" else grants[1].fence
        version = first[1] if wrong == "version" else grants[1].version
        grants[1] = Grant(fence, version, None)
    writes = ["4", "2" if wrong == "write" else "4", "4"]
    done = together(store, *map(save, ids, grants, writes))
    contents = [store.load("chat", one).envelope for one in ids]
    assert contents == [b"a by 4", b"b by 3", b"c by 4"]
    assert [done[0] > saved[0], done[2] > saved[2]] == [True, True]
    if wrong == "write":
        assert done[1] == saved[1] - 1
    else:
        assert isinstance(done[1], SessionConflict)
        assert [kept.envelope for kept in store.conflicts()] == [b"b by 4"]
    assert (store.stats().leases, store.stats().rows) == (int(wrong == "fence"), 3)
    assert store.stats().row_bytes == sum(map(len, contents))
    assert together(store, save("a", grants[0], "4"))[0] == done[0]


@pytest.mark.parametrize(("connections", "used"), [(1, {0}), (2, {0}), (3, {0, 1})])
def test_sessions_have_all_connections_but_the_last(
    opened: Any, connections: int, used: set[int]
) -> None:
    store = opened(connections=connections)
    place = {writer: n for n, writer in enumerate(store._writers)}
    assert {place[store._writer_of("load", ("chat", f"id{n}"))] for n in range(50)} == used
    assert place[store._writer_of("count", ("chat",))] == connections - 1


def test_a_session_may_be_saved_twice_in_a_batch(opened: Any) -> None:
    store = opened(connections=1)
    grant = take(store)
    first, again, other = together(
        store, save("a", grant, "one"), save("a", grant, "one"), save("a", grant, "two")
    )
    assert first == again
    assert isinstance(other, SessionConflict)
    assert store.load("chat", "a").envelope == b"a by one"
    assert [kept.envelope for kept in store.conflicts()] == [b"a by two"]
    assert store.stats().leases == 0


def test_a_write_is_known_by_any_id_after_others(opened: Any) -> None:
    store = opened(connections=1)
    names = ["a b", "5", "two\nlines", "", "%d+ x", "last"]
    versions = {}
    for name in names:
        grant = take(store)
        (versions[name],) = together(store, save("a", grant, name))
    again = take(store)
    for name in ("5", "%d+ x", "last"):
        stale = Grant(again.fence, 0, None)
        assert together(store, save("a", stale, name, release=False)) == [versions[name]]


def test_one_that_fails_does_not_harm_its_batch(opened: Any, server: Any) -> None:
    store = opened(connections=1)
    grants = {one: take(store, one) for one in ("a", "bad", "c")}
    break_row(store, server, "bad")
    good, bad, also = together(store, *(save(one, grants[one], "w") for one in grants))
    assert (good, also) == (store.load("chat", "a").version, store.load("chat", "c").version)
    assert isinstance(bad, FloodlineError)
    assert not isinstance(bad, SessionConflict)
    assert store.stats().leases == 1


def test_a_number_that_is_too_large_fails_its_caller_alone(opened: Any) -> None:
    store = opened(connections=1)
    grants = {one: take(store, one) for one in ("a", "b")}
    huge = Grant(2**70, 0, None)
    good, bad = together(store, save("a", grants["a"], "w"), save("b", huge, "w"))
    assert good == store.load("chat", "a").version
    assert isinstance(bad, FloodlineError)
    assert store.load("chat", "b") is None


def break_row(store: Any, server: Postgres | Valkey, id: str) -> None:
    if isinstance(server, Valkey):
        told(server, "HSET", redis_key(store, "v", id), "x", "x")
        return
    asked(server, f"ALTER TABLE floodline.sessions ADD CONSTRAINT broken CHECK (id <> '{id}')")


def redis_key(store: Any, kind: str, id: str) -> str:
    return f"{{{store._writers[0]._runner._wire._target.prefix}}}:{kind}4:chat{id}"


def test_a_session_whose_envelope_was_evicted_is_gone_as_a_whole(opened: Any, server: Any) -> None:
    if not isinstance(server, Valkey):
        pytest.skip("only Redis evicts")
    store = opened(connections=1)
    (first,) = together(store, save("a", take(store, "a"), "w"))
    told(server, "DEL", redis_key(store, "e", "a"))
    assert store.load("chat", "a") is None
    (grant,) = together(store, acquire("a"))
    assert (grant.version, grant.envelope, store.stats().rows) == (0, None, 0)
    (again,) = together(store, save("a", grant, "x"))
    assert again > first
    assert store.load("chat", "a") == Record(again, b"a by x")


@pytest.fixture(autouse=True)
def mended(server: Any) -> Any:
    yield
    if isinstance(server, Postgres):
        asked(server, "ALTER TABLE floodline.sessions DROP CONSTRAINT IF EXISTS broken")
