"""`kill -9` in the middle of saves with rows: a state and its rows are both there, or neither."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest

from floodline import Conversation, Sessions
from floodline.errors import DamagedRecord, StoreUnavailable
from floodline.stores import Append, NewRow, SQLiteStore
from floodline.stores._sqlite import row_logs

SAVES = """
    import os, sys
    from floodline.stores import Append, NewRow, SQLiteStore

    store = SQLiteStore(sys.argv[1], busy_timeout="30 s")
    count = 0
    while True:
        one = f"id{count % 3}"
        count += 1
        grant = store.acquire("chat", one, f"writer {os.getpid()}", lease=0.0)
        n = int(grant.envelope or b"0")
        new = [NewRow(f"{n}", b"x" * (n % 7) * 500), NewRow(f"{n} too", b"")]
        store.save("chat", one, b"%d" % (n + 1), fence=grant.fence, version=grant.version,
                   write_id=f"{one} {n}", release=True, rows=[Append("turns", new)])
        os.write(1, b"%s %d\\n" % (one.encode(), n + 1))
"""
TALKS = """
    import os, sys
    from floodline import Conversation, Sessions

    def open_chat(id):
        return Conversation(max_messages=4, archive="session", archive_id=id)

    with Sessions(open_chat, store="sqlite:///" + sys.argv[1], max_sessions=2) as sessions:
        n = 0
        while True:
            one, n = f"id{n % 3}", n + 1
            with sessions.use(one) as chat:
                last = int(chat[-1]["content"]) if len(chat) else 0
                for number in range(last + 1, last + 4):
                    chat.append({"role": "user", "content": f"{number}"})
            os.write(1, b"%s %d\\n" % (one.encode(), last + 3))
"""


def kill_at_some_time(program: str, path: Path, chance: random.Random) -> dict[str, int]:
    """Run a program for a while and return what it has acknowledged."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(chance.randrange(1, 60))]
    process.kill()
    lines += process.stdout.read().splitlines()
    _, err = process.communicate(timeout=400)
    assert err == b"", err.decode()
    return {one.decode(): int(n) for one, n in (line.split() for line in lines)}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_save_and_its_rows_survive_together(tmp_path: Path, seed: int) -> None:
    path, chance = tmp_path / "s.db", random.Random(seed)
    for _ in range(2):
        acknowledged = kill_at_some_time(SAVES, path, chance)
        with SQLiteStore(path) as store:
            for one, n in acknowledged.items():
                record = store.load("chat", one)
                assert record is not None
                saved = int(record.envelope)
                assert saved >= n
                keys = [row.key for row in store.rows("chat", one, "turns", limit=100_000)]
                assert keys == [key for k in range(saved) for key in (f"{k}", f"{k} too")]
                assert store.count_rows("chat", one) == 2 * saved


def test_what_a_conversation_cuts_is_archived_once_whatever_is_killed(tmp_path: Path) -> None:
    path, chance = tmp_path / "s.db", random.Random(3)

    def open_chat(id: str) -> Conversation:
        return Conversation(max_messages=4, archive="session", archive_id=id)

    for _ in range(3):
        acknowledged = kill_at_some_time(TALKS, path, chance)
        with Sessions(open_chat, store=f"sqlite:///{path}") as sessions:
            for one, n in acknowledged.items():
                with sessions.use(one) as chat:
                    found = [int(m["content"]) for m in [*chat.archived(limit=100_000), *chat]]
                    assert found == list(range(1, len(found) + 1))
                    assert len(found) >= n


def test_rows_of_a_deleted_session_are_removed_after_a_crash_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.db"
    with SQLiteStore(path) as store, monkeypatch.context() as patch:
        patch.setattr(row_logs.RowLogs, "reap", lambda _: None)  # the process ends before
        store.append_rows("chat", "a", [Append("l", [NewRow(f"{n}", b"x") for n in range(1200)])])
        grant = store.acquire("chat", "a", "me", lease=15.0)
        store.delete("chat", "a", fence=grant.fence)
        store.append_rows("chat", "a", [Append("l", [NewRow("new", b"")])])
        assert left(path) == 1201
    with SQLiteStore(path) as store:
        for _ in range(5):
            store.release("chat", "a", 0)
        assert left(path) == 1
        assert [row.key for row in store.rows("chat", "a", "l")] == ["new"]


def left(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        count: int = connection.execute("SELECT count(*) FROM log_rows").fetchone()[0]
        return count


def test_a_session_that_0_1_deletes_takes_its_rows_along(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    new = [Append("l", [NewRow("old", b"x")])]
    with SQLiteStore(path) as store:
        store.append_rows("chat", "a", new)
        store.append_rows("chat", "b", new)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DELETE FROM sessions WHERE id = 'a'")  # all that 0.1 does
        assert store.count_rows("chat", "a") == 0
        assert (store.stats().log_rows, store.stats().log_bytes) == (1, 1)
        store.append_rows("chat", "a", [Append("l", [NewRow("new", b"")])])
        assert [row.key for row in store.rows("chat", "a", "l")] == ["new"]
        assert [row.key for row in store.rows("chat", "b", "l")] == ["old"]


def test_a_damaged_row_is_refused_and_its_neighbours_are_not(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with SQLiteStore(path) as store:
        store.append_rows("chat", "a", [Append("l", [NewRow(k, k.encode()) for k in "abcd"])])
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE log_rows SET data = x'00' WHERE key = 'b'")
            connection.execute("UPDATE log_rows SET at = 'noon' WHERE key = 'c'")
        for key in "bc":
            with pytest.raises(DamagedRecord, match=f"'{key}'"):
                store.get_row("chat", "a", "l", key)
            with pytest.raises(DamagedRecord):
                store.append_rows("chat", "a", [Append("l", [NewRow(key, b"new")])])
        with pytest.raises(DamagedRecord):
            store.rows("chat", "a", "l")
        assert store.get_row("chat", "a", "l", "d") is not None
        assert store.delete_rows("chat", "a", "l", keys=["b", "c"]) == 2
        assert [row.key for row in store.rows("chat", "a", "l")] == ["a", "d"]


def test_tables_of_a_batch_that_was_rolled_back_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SQLiteStore(tmp_path / "s.db") as store:
        with monkeypatch.context() as patch:

            def full(*_: object) -> None:
                raise sqlite3.OperationalError("database or disk is full")

            patch.setattr(row_logs.RowLogs, "_count", full)
            with pytest.raises(StoreUnavailable):
                store.append_rows("chat", "a", [Append("l", [NewRow("a", b"1")])])
        assert store.rows("chat", "a", "l") == []
        assert store.load("chat", "a") is None
        assert store.append_rows("chat", "a", [Append("l", [NewRow("a", b"1")])]) == 1
        assert store.count_rows("chat", "a") == 1
