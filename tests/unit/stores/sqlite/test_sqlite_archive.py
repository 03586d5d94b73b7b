"""The archive in a SQLite file."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
import threading
import weakref

import pytest

from floodline.errors import (
    CodecError,
    ConfigError,
    StoreClosed,
    StoreCorrupt,
    StoreUnavailable,
)
from floodline.stores import SQLiteStore
from floodline.stores._sqlite.archive import SQLiteArchive


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent.db"


@pytest.fixture
def archive(path):
    with SQLiteArchive(path) as archive:
        yield archive


def message(i, size=10):
    return {"role": "user", "content": f"{i} " + "x" * size, "raw": b"\x00\xff"}


def test_messages_come_back_equal_and_in_order(archive):
    archive.put("alice", [(3, message(3)), (1, message(1))])
    archive.put("alice", [(2, message(2))])
    archive.put("bob", [(1, message(9))])
    assert archive.page("alice") == [(i, message(i)) for i in (1, 2, 3)]
    assert archive.page("alice", limit=2) == [(2, message(2)), (3, message(3))]
    assert archive.page("alice", before=2) == [(1, message(1))]
    assert archive.page("nobody") == []
    assert archive.conversations() == ["alice", "bob"]
    assert archive.conversations(after="alice", limit=1) == ["bob"]


def test_the_same_message_twice_is_kept_once(archive):
    for _ in range(3):
        archive.put("alice", [(1, message(1))])
    archive.put("alice", [(1, message("another"))])
    assert archive.page("alice") == [(1, message(1)), (1, message("another"))]
    assert archive.stats().items == 2


def test_it_lives_beside_a_session_store_in_one_file(path):
    store = SQLiteStore(path)
    try:
        with SQLiteArchive(path) as archive:
            archive.put("alice", [(1, message(1))])
            grant = store.acquire("sessions", "alice", "me", lease=5)
            store.save(
                "sessions", "alice", b"state", fence=grant.fence, version=0, write_id="w",
                release=True,
            )  # fmt: skip
            assert store.load("sessions", "alice").envelope == b"state"
            assert archive.stats().items == 1
    finally:
        store.close()
    SQLiteStore(path).close()


@pytest.fixture
def clock(monkeypatch):
    """The date, and the seconds that pass with it."""
    clock = Clock()
    monkeypatch.setattr("floodline.stores._sqlite.archive.machine_clock", lambda: clock)
    return clock


def test_a_date_that_is_wrong_for_a_moment_deletes_nothing(path, clock):
    off = [0.0]
    with SQLiteArchive(path, retain="30 d", clock=lambda: clock() + off[0]) as archive:
        archive.put("alice", [(1, message(1))])
        off[0] = 40 * 86_400.0
        archive.put("alice", [(2, message(2))])
        assert archive.purge() == 0
        off[0] = 0.0
        assert archive.purge() == 0
        clock.now += 29 * 86_400
        assert archive.purge() == 0
        clock.now += 2 * 86_400
        assert archive.purge() == 2


def test_a_new_process_knows_the_date_of_the_last(path, clock):
    with SQLiteArchive(path, retain="30 d", clock=clock) as archive:
        archive.put("alice", [(1, message(1))])
    with SQLiteArchive(path, retain="30 d", clock=lambda: clock() + 40 * 86_400) as archive:
        assert archive.purge() == 0
        clock.now += 3600
        assert archive.purge() == 1


def test_what_is_older_than_the_retention_is_deleted_in_slices(path, clock):
    with SQLiteArchive(path, retain="1 h", clock=clock) as archive:
        archive.put("alice", [(i, message(i)) for i in range(500)])
        clock.now += 3601
        archive.put("alice", [(500, message(500))])
        assert archive.stats().items == 301
        assert archive.purge(limit=100) == 100
        assert archive.purge() == 200
        assert archive.purge() == 0
        assert archive.page("alice") == [(500, message(500))]
        stats = archive.stats()
        assert (stats.kind, stats.items) == ("archive", 1)


def test_the_oldest_go_when_the_bytes_are_too_many(path):
    with SQLiteArchive(path, max_bytes="10 KiB") as archive:
        for i in range(200):
            archive.put("alice", [(i, message(i, 500))])
            assert archive.stats().bytes <= 10 * 1024
        kept = [seq for seq, _ in archive.page("alice")]
        assert kept == list(range(kept[0], 200))
        assert archive.stats().max_bytes == 10 * 1024


def test_without_a_retention_nothing_is_purged(archive):
    archive.put("alice", [(1, message(1))])
    assert archive.purge() == 0


def test_a_conversation_can_be_forgotten(archive):
    archive.put("alice", [(i, message(i)) for i in range(2500)])
    archive.put("bob", [(1, message(1))])
    assert archive.delete("alice") == 2500
    assert archive.delete("alice") == 0
    assert (archive.stats().items, archive.conversations()) == (1, ["bob"])


def test_what_cannot_be_encoded_is_refused_whole(archive):
    with pytest.raises(CodecError, match=r"message 2 cannot be archived .*\$\[2\]"):
        archive.put("alice", [(1, message(1)), (2, {"content": object()})])
    assert archive.stats().items == 0


def test_a_path_may_be_a_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SQLiteArchive("sqlite:///a%20b.db") as archive:
        assert archive.path == str(tmp_path / "a b.db")
    for wrong in ("sqlite://host/a.db", "sqlite:///a.db?x=1", "sqlite:///", ":memory:", ""):
        with pytest.raises(ConfigError):
            SQLiteArchive(wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"retain": 0}, {"max_bytes": "much"}, {"synchronous": "off"}, {"busy_timeout": -1}],
)
def test_bad_settings_fail_at_construction(path, wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        SQLiteArchive(path, **wrong)


def test_a_file_of_another_program_is_refused(path):
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(StoreCorrupt, match="another program"):
        SQLiteArchive(path)


def test_a_locked_file_is_unavailable_and_nothing_is_kept(path):
    with SQLiteArchive(path, busy_timeout=0) as archive:
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            archive.put("alice", [(1, message(1))])
        blocker.execute("ROLLBACK")
        blocker.close()
        archive.put("alice", [(1, message(1))])
        assert archive.stats().items == 1


def test_a_file_that_was_deleted_is_not_made_anew(archive, path):
    archive.put("alice", [(1, message(1))])
    path.unlink()
    with pytest.raises(StoreUnavailable, match="deleted while in use"):
        archive.put("alice", [(2, message(2))])


def test_a_broken_connection_is_replaced(archive):
    archive.put("alice", [(1, message(1))])
    shelf = archive._writer._runner
    shelf._connection.execute("BEGIN")
    archive.put("alice", [(2, message(2))])
    shelf._connection.close()

    class Broken:
        in_transaction = False

        def execute(self, *_):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorname = "SQLITE_IOERR_WRITE"
            raise error

        def close(self):
            raise sqlite3.OperationalError("still broken")

    shelf._connection = Broken()
    with pytest.raises(StoreUnavailable, match="check the disk"):
        archive.put("alice", [(3, message(3))])
    archive.put("alice", [(3, message(3))])
    assert [seq for seq, _ in archive.page("alice")] == [1, 2, 3]


def test_a_failing_operation_rolls_back_whole(archive, monkeypatch):
    shelf = archive._writer._runner

    def fail(connection, limit):
        raise RuntimeError("between two statements")

    monkeypatch.setattr(shelf, "_purge", fail)
    with pytest.raises(RuntimeError, match="between"):
        archive.put("alice", [(1, message(1))])
    monkeypatch.undo()
    assert archive.stats().items == 0


def test_after_close_it_is_closed(path):
    archive = SQLiteArchive(path)
    archive.close()
    archive.close()
    with pytest.raises(StoreClosed):
        archive.put("alice", [(1, message(1))])


def test_a_collected_archive_lets_go_of_its_file(path):
    archive = SQLiteArchive(path)
    archive.put("alice", [(1, message(1))])
    shelf, gone = archive._writer._runner, weakref.ref(archive)
    del archive
    gc.collect()
    assert gone() is None
    assert shelf._connection is None


def test_threads_share_one_archive(archive):
    def work(name):
        for i in range(50):
            archive.put(name, [(i, message(i))])

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert archive.stats().items == 200
    assert all(len(archive.page(f"t{n}")) == 50 for n in range(4))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_and_its_parent_both_go_on(archive):
    archive.put("alice", [(1, message(1))])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            archive.put("alice", [(2, message(2))])
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    archive.put("alice", [(3, message(3))])
    assert [seq for seq, _ in archive.page("alice")] == [1, 2, 3]


def test_what_belongs_to_a_parent_process_is_left_open(archive):
    shelf = archive._writer._runner
    connection = shelf._connection
    shelf.disown()
    connection.execute("SELECT 1")
    connection.close()
    assert archive.stats().items == 0


def test_what_put_has_returned_from_survives_a_kill(path):
    program = f"""
import os, signal
from floodline.stores._sqlite.archive import SQLiteArchive
archive = SQLiteArchive({str(path)!r})
for i in range(20):
    archive.put("alice", [(i, {{"content": str(i)}})])
os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
"""
    subprocess.run([sys.executable, "-c", program], check=False, timeout=100)
    with SQLiteArchive(path, synchronous="full") as archive:
        assert [seq for seq, _ in archive.page("alice")] == list(range(20))
