"""Full disks, locks, damage and other programs: a typed error, nothing lost, and life goes on."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from floodline.errors import (
    StoreCorrupt,
    StoreError,
    StoreTooNew,
    StoreUnavailable,
    TooLarge,
)
from floodline.stores import Grant, Record, SQLiteStore
from floodline.stores._sqlite import schema as schema_module


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    made = SQLiteStore(path, busy_timeout="20 ms")
    yield made
    made.close()


def put(store: Any, id: str, content: bytes) -> int:
    grant = store.acquire("chat", id, "me", lease=15.0)
    assert isinstance(grant, Grant)
    version: int = store.save(
        "chat",
        id,
        content,
        fence=grant.fence,
        version=grant.version,
        write_id=f"w{grant.fence}",
        release=True,
    )
    return version


def fill(path: Path, rows: int = 200, size: int = 5000) -> None:
    store = SQLiteStore(path)
    for n in range(rows):
        put(store, f"id{n:03}", b"%03d" % n + bytes(size))
    store.close()


# -- a full disk


def limit_pages(store: SQLiteStore, more: int | None) -> None:
    connection = store._database._connection
    assert connection is not None
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + more if more is not None else 2**30}")


def test_a_full_disk_fails_the_save_and_loses_nothing(store: SQLiteStore, path: Path) -> None:
    put(store, "a", b"safe")
    limit_pages(store, 3)
    with pytest.raises(
        StoreUnavailable, match=r"sessions\.db.*disk is full; free some space"
    ) as failed:
        put(store, "a", bytes(100_000))
    assert isinstance(failed.value, OSError)
    assert store.load("chat", "a") == Record(1, b"safe")
    limit_pages(store, None)
    put(store, "a", bytes(100_000))
    assert store.load("chat", "a") == Record(2, bytes(100_000))


def test_on_a_full_disk_only_the_large_write_of_a_batch_fails(store: SQLiteStore) -> None:
    twin = store.aio
    limit_pages(store, 6)

    async def save(id: str, fence: int, content: bytes) -> int:
        return await twin.save(
            "chat", id, content, fence=fence, version=0, write_id=id, release=True
        )

    async def main() -> list[Any]:
        names = [f"id{n}" for n in range(5)]
        grants = [await twin.acquire("chat", one, "me", lease=15.0) for one in names]
        assert all(isinstance(grant, Grant) for grant in grants)
        sizes = [10, 10, 1_000_000, 10, 10]
        saves = [
            save(one, grant.fence, bytes(size))
            for one, grant, size in zip(names, grants, sizes, strict=True)
            if isinstance(grant, Grant)
        ]
        return await asyncio.gather(*saves, return_exceptions=True)

    results = asyncio.run(main())
    assert [result for result in results if isinstance(result, int)] == [1, 1, 1, 1]
    assert isinstance(results[2], StoreUnavailable)
    assert store.ids("chat") == ["id0", "id1", "id3", "id4"]


def test_a_commit_that_fails_acknowledges_nothing_of_its_batch(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin, operations = store.aio, store._database._operations
    assert operations is not None

    def broken() -> None:
        raise sqlite3.OperationalError("made up")

    async def main() -> list[Any]:
        acquires = [twin.acquire("chat", f"id{n}", "me", lease=15.0) for n in range(5)]
        return await asyncio.gather(*acquires, return_exceptions=True)

    with monkeypatch.context() as patch:
        patch.setattr(operations, "end", broken)
        results = asyncio.run(main())
    assert all(isinstance(result, StoreUnavailable) for result in results)
    assert len({id(result) for result in results}) == 5
    assert store.stats().leases == 0
    put(store, "a", b"x")


def test_a_state_above_the_limit_of_sqlite_is_too_large(store: SQLiteStore) -> None:
    connection = store._database._connection
    assert connection is not None
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000)
    with pytest.raises(TooLarge, match="smaller"):
        put(store, "a", bytes(20_000))
    put(store, "a", b"small")


def test_a_number_above_64_bits_fails_alone(store: SQLiteStore) -> None:
    with pytest.raises(TooLarge, match="of that size"):
        store.acquire("chat", "a", "me", lease=15.0, known=2**70)
    assert store.stats().leases == 0


def test_an_id_that_is_no_text_fails_alone(store: SQLiteStore) -> None:
    async def main() -> list[Any]:
        names = ["a", "\ud800", "b"]
        calls = [store.aio.acquire("chat", one, "me", lease=15.0) for one in names]
        return await asyncio.gather(*calls, return_exceptions=True)

    first, broken, last = asyncio.run(main())
    assert isinstance(broken, UnicodeEncodeError)
    assert isinstance(first, Grant)
    assert isinstance(last, Grant)


class Unruly:
    """A connection whose rollback fails: SQLite has rolled back by itself, or lost its file."""

    in_transaction = True

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str) -> Any:
        raise sqlite3.OperationalError("no")

    def close(self) -> None:
        self._connection.close()


def test_a_connection_that_cannot_roll_back_is_replaced(store: SQLiteStore) -> None:
    connection = store._database._connection
    assert connection is not None
    store._database._connection = Unruly(connection)  # type: ignore[assignment]  # a double
    store._database._roll_back(store._database._connection, ValueError())
    assert store._database._connection is None
    put(store, "a", b"x")


def test_a_file_that_could_not_be_made_can_be_made_later(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("BEGIN IMMEDIATE")
    store = SQLiteStore(path, busy_timeout=0)
    with pytest.raises(StoreUnavailable, match="locked"):
        store.count("chat")
    other.execute("ROLLBACK")
    other.close()
    put(store, "a", b"x")
    store.close()


def test_a_disk_that_is_full_when_the_file_is_made_leaves_it_empty(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            schema_module, "_TABLES", "PRAGMA max_page_count = 2;" + schema_module._TABLES
        )
        with pytest.raises(StoreUnavailable, match="disk is full"):
            SQLiteStore(path)
    store = SQLiteStore(path)
    put(store, "a", b"x")
    store.close()


# -- locks


def test_a_locked_file_is_unavailable_until_the_lock_is_gone(
    store: SQLiteStore, path: Path
) -> None:
    put(store, "a", b"one")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreUnavailable, match=r"sessions\.db.*locked by another process"):
        store.acquire("chat", "a", "me", lease=15.0)
    assert store.load("chat", "a") == Record(1, b"one"), "reading needs no lock"
    other.execute("ROLLBACK")
    other.close()
    assert put(store, "a", b"two") == 2


def test_reads_that_wait_beside_a_write_do_not_fail_with_its_lock(
    store: SQLiteStore, path: Path
) -> None:
    put(store, "a", b"one")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def main() -> list[Any]:
        twin = store.aio
        calls = [
            twin.acquire("chat", "b", "me", lease=15.0),
            twin.load("chat", "a"),
            twin.acquire("chat", "c", "me", lease=15.0),
            twin.count("chat"),
        ]
        return await asyncio.gather(*calls, return_exceptions=True)

    refused, row, refused_too, count = asyncio.run(main())
    other.close()
    assert isinstance(refused, StoreUnavailable)
    assert isinstance(refused_too, StoreUnavailable)
    assert (row, count) == (Record(1, b"one"), 1)


def test_a_store_can_be_made_while_the_file_is_locked(path: Path) -> None:
    fill(path, rows=1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    other.execute("DELETE FROM leases")
    store = SQLiteStore(path, busy_timeout=0)
    with pytest.raises(StoreUnavailable, match="locked"):
        store.count("chat")
    other.execute("ROLLBACK")
    other.close()
    assert store.count("chat") == 1
    store.close()


# -- places that cannot be written


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"no directory; create '.*/nowhere' first"):
        SQLiteStore(tmp_path / "nowhere" / "sessions.db")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_place_of_the_file_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be opened; check the path"):
        SQLiteStore(tmp_path)


def test_a_directory_that_we_may_not_search_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", refused)
    with pytest.raises(StoreUnavailable, match="cannot be opened; check the path"):
        SQLiteStore(tmp_path / "hidden" / "sessions.db")


@pytest.fixture
def directory() -> Iterator[Path]:
    """Not one of pytest, which each run of it makes private again, also one beside this."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs a user without rights")
@pytest.mark.parametrize("there", [False, True], ids=["new file", "file of another user"])
def test_a_read_only_directory_is_unavailable(directory: Path, there: bool) -> None:
    path = directory / "sessions.db"
    if there:
        fill(path, rows=1)
        path.chmod(0o444)
    before = {file.name: file.read_bytes() for file in directory.iterdir()}
    directory.chmod(0o555)
    program = """
        import os, sys
        from floodline.errors import StoreUnavailable
        from floodline.stores import SQLiteStore
        os.chdir(os.path.dirname(sys.argv[1]))
        if os.getuid() == 0:
            os.setuid(65534)  # root may write everywhere
        try:
            store = SQLiteStore("sessions.db")
            store.acquire("chat", "a", "me", lease=15)
        except StoreUnavailable as error:
            print(error)
    """
    for parent in directory.parents:  # they may be for one user only
        if parent.owner() == directory.owner() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o111)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        capture_output=True,
        check=True,
        timeout=100,
    )
    directory.chmod(0o755)
    assert b"sessions.db' cannot be" in done.stdout, done
    assert {file.name: file.read_bytes() for file in directory.iterdir()} == before


# -- files that are no store, or damaged


def test_random_bytes_are_no_store_and_stay_as_they_are(path: Path) -> None:
    path.write_bytes(b"no database at all " * 1000)
    with pytest.raises(StoreCorrupt, match=r"sessions\.db.*not a SQLite database.*left as it is"):
        SQLiteStore(path)
    assert path.read_bytes() == b"no database at all " * 1000
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_truncated_file_is_corrupt_and_stays_as_it_is(path: Path) -> None:
    fill(path)
    whole = path.read_bytes()
    half = whole[: len(whole) // 2]
    path.write_bytes(half)
    with pytest.raises(StoreCorrupt, match="damaged"):
        SQLiteStore(path)
    assert path.read_bytes() == half
    path.write_bytes(whole)
    store = SQLiteStore(path)
    assert store.count("chat") == 200
    store.close()


def test_a_damaged_page_harms_only_what_stands_on_it(path: Path) -> None:
    fill(path)
    whole = bytearray(path.read_bytes())
    middle = (len(whole) // 2) // 4096 * 4096
    whole[middle : middle + 4096] = os.urandom(4096)
    path.write_bytes(whole)
    store = SQLiteStore(path)
    good = bad = 0
    for n in range(200):
        try:
            row = store.load("chat", f"id{n:03}")
            good += row == Record(1, b"%03d" % n + bytes(5000))
        except StoreError:
            bad += 1
    assert good > 150
    assert good + bad < 200 or bad > 0 or good == 199
    put(store, "new", b"still works")
    assert store.load("chat", "new") == Record(1, b"still works")
    store.close()


def test_a_damaged_page_fails_its_caller_and_not_the_neighbours_in_the_batch(path: Path) -> None:
    fill(path, rows=100)
    connection = sqlite3.connect(path)
    sql = "SELECT rootpage FROM sqlite_master WHERE name = 'conflicts'"
    (page,) = connection.execute(sql).fetchone()
    connection.close()
    whole = bytearray(path.read_bytes())
    whole[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(whole)
    store = SQLiteStore(path)

    async def main() -> list[Any]:
        twin = store.aio
        calls = [twin.load("chat", "id001"), twin.conflicts(), twin.count("chat")]
        return await asyncio.gather(*calls, return_exceptions=True)

    row, conflicts, count = asyncio.run(main())
    assert isinstance(row, Record)
    assert isinstance(conflicts, StoreCorrupt)
    assert count == 100
    store.close()


def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE users (name)")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="belongs to another program"):
        SQLiteStore(path)
    assert path.read_bytes() == before


def test_a_newer_schema_is_left_alone(path: Path) -> None:
    fill(path, rows=1)
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 99")
    other.commit()
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match=r"schema 99.*knows up to 1.*update floodline"):
        SQLiteStore(path)
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    store = SQLiteStore(path)
    put(store, "a", b"x")
    assert store.count("chat") == 1
    store.close()


# -- files that go away


def test_a_deleted_file_is_noticed_and_not_replaced_by_an_empty_one(
    store: SQLiteStore, path: Path
) -> None:
    put(store, "a", b"one")
    aside = path.with_suffix(".aside")
    path.rename(aside)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="deleted while in use; put it back"):
            store.load("chat", "a")
    assert not path.exists()
    aside.rename(path)
    assert store.load("chat", "a") == Record(1, b"one")
    assert put(store, "a", b"two") == 2


def test_a_file_that_was_replaced_is_opened_anew(store: SQLiteStore, path: Path) -> None:
    put(store, "a", b"one")
    copy = path.with_suffix(".copy")
    backup = sqlite3.connect(copy)
    source = sqlite3.connect(path)
    source.backup(backup)
    backup.close()
    source.close()
    put(store, "a", b"two")
    copy.replace(path)
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    assert store.load("chat", "a") == Record(1, b"one")


def test_a_store_does_not_move_with_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SQLiteStore("sessions.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store._database.shut()
    put(store, "a", b"x")
    store.close()
    assert (tmp_path / "sessions.db").exists()
