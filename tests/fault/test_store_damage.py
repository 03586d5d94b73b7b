"""A damaged index, table, schema or log is noticed: no session is taken for a new one."""

from __future__ import annotations

import gc
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from floodline import Sessions, telemetry
from floodline.errors import DamagedRecord, SessionConflict, StoreCorrupt, StoreUnavailable
from floodline.stores import Record, SQLiteStore
from floodline.stores._sqlite import places as places_module
from floodline.stores._sqlite.inspection import inspect
from floodline.stores._sqlite.operations import Operations
from floodline.stores._sqlite.places import FIRST, place_of
from store_files import NAME, PAGE, put, take, write_store

WRITTEN = Path(__file__).parent.parent / "data" / "v0_1" / "store.sqlite"
INDEX_LEAF, TABLE_LEAF = 0x0A, 0x0D


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def contents(path: Path) -> dict[str, bytes]:
    return write_store(path, 40, random.Random(3))


@pytest.fixture
def events() -> Iterator[list[Any]]:
    seen: list[Any] = []
    leave = telemetry.subscribe(seen.append)
    yield seen
    leave()


def change_key(path: Path, id: str, leaf: int) -> None:
    """Turn one bit of an id on the leaf pages of the one tree, or of the other."""
    whole = bytearray(path.read_bytes())
    changed = 0
    for start in range(PAGE, len(whole), PAGE):
        if whole[start] == leaf:
            at = whole.find(id.encode(), start, start + PAGE)
            if at >= 0:
                whole[at] ^= 1
                changed += 1
    assert changed == 1
    path.write_bytes(whole)


def numbers(path: Path) -> list[int]:
    with closing(sqlite3.connect(path)) as connection:
        return [row for (row,) in connection.execute("SELECT row FROM sessions")]


def count_rows(path: Path) -> int:
    return len(numbers(path))


# ---- one tree is damaged


def test_a_session_that_the_index_forgot_comes_back(path: Path, contents: dict[str, bytes]) -> None:
    change_key(path, "user-0007", INDEX_LEAF)
    with SQLiteStore(path) as store:
        for hold in (False, True):
            assert take(store, "user-0007", hold=hold) == contents["user-0007"]
        put(store, "user-0007", b"new")
        assert take(store, "user-0007") == b"new"
    assert count_rows(path) == 40


def test_a_session_that_the_table_forgot_is_refused(path: Path, contents: dict[str, bytes]) -> None:
    change_key(path, "user-0007", TABLE_LEAF)
    with SQLiteStore(path) as store:
        for call in (take, lambda *args: take(*args, hold=True)):
            with pytest.raises(StoreCorrupt, match="disagree about session 'user-0007'"):
                call(store, "user-0007")
        assert store.stats().leases == 0
        assert take(store, "user-0008") == contents["user-0008"]
    with (
        SQLiteStore(path) as store,
        Sessions(dict, store=store, name=NAME) as sessions,
        pytest.raises(StoreCorrupt),
        sessions.use("user-0007"),
    ):
        raise AssertionError("the body ran")
    assert count_rows(path) == 40


def test_a_row_under_a_foreign_key_is_refused(path: Path) -> None:
    with SQLiteStore(path) as store:
        put(store, "other", b"x")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE sessions SET row = ?", (place_of(NAME, "mine"),))
        connection.commit()
    with SQLiteStore(path) as store:
        with pytest.raises(StoreCorrupt, match="another row is in the place"):
            store.load(NAME, "mine")
        assert take(store, "other") == b"x"  # by the index


@pytest.mark.parametrize(
    "change",
    [
        "version = 0",
        "version = 'x'",
        "version = -1",
        "envelope = 5.5",
        "envelope = zeroblob(3)",
        "size = 'x'",
    ],
)
def test_a_row_that_was_never_written_so_is_refused(path: Path, change: str) -> None:
    with SQLiteStore(path) as store:
        put(store, "a", b"x")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"UPDATE sessions SET {change}")
        connection.commit()
    with SQLiteStore(path) as store:
        if change.startswith("size"):
            with pytest.raises(StoreCorrupt, match="never written"):
                put(store, "a", b"y")
        else:
            with pytest.raises(StoreCorrupt):
                take(store, "a")


def write_null(path: Path, table: str, column: str) -> None:
    """Write what the schema forbids, as a turned bit does."""
    for wanted, sql in ((True, f"UPDATE {table} SET {column} = NULL"), (False, "SELECT 1")):
        with closing(sqlite3.connect(path)) as connection:
            before, after = f"{column} INTEGER NOT NULL", f"{column} INTEGER  /* null */"
            if not wanted:
                before, after = after, before
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute(
                "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?",
                (before, after, table),
            )
            connection.commit()
            connection.execute("PRAGMA writable_schema = RESET")
            connection.execute(sql)
            connection.commit()


@pytest.mark.parametrize("change", ["NULL", "fence = 'x'", "fence = -1", "floor = 1.5", ""])
def test_a_damaged_figure_of_the_file_is_refused(path: Path, change: str) -> None:
    with SQLiteStore(path) as store:
        put(store, "a", b"1")
    if change == "NULL":
        write_null(path, "meta", "fence")
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"UPDATE meta SET {change}" if change else "DELETE FROM meta")
            connection.commit()
    with SQLiteStore(path) as store:
        with pytest.raises(StoreCorrupt):
            put(store, "b", b"2")
        assert take(store, "a") == b"1"
        if "floor" not in change:
            with pytest.raises(StoreCorrupt):
                store.stats()


def test_a_damaged_sum_of_the_file_is_refused(path: Path) -> None:
    with SQLiteStore(path) as store:
        put(store, "a", b"1")
    write_null(path, "totals", "bytes")
    with SQLiteStore(path) as store:
        with pytest.raises(StoreCorrupt):
            put(store, "a", b"longer")
        assert take(store, "a") == b"1"


def test_a_damaged_record_is_a_damage_of_the_store(path: Path) -> None:
    with (
        SQLiteStore(path) as store,
        Sessions(dict, store=store) as sessions,
        sessions.use("a") as state,
    ):
        state["x"] = "y" * 100
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"y" * 100, b"y" * 99 + b"z"))
    with SQLiteStore(path) as store, Sessions(dict, store=store) as sessions:
        with pytest.raises(DamagedRecord, match="checksum"), sessions.use("a"):
            pass
        assert len(store.quarantined()) == 1


def test_a_row_that_only_the_insert_meets_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SQLiteStore(path) as store:
        put(store, "a", b"x")
        monkeypatch.setattr(places_module.Places, "find_listed", lambda *_: None)
        for module in ("places", "operations"):
            target = f"floodline.stores._sqlite.{module}.place_of"
            monkeypatch.setattr(target, lambda *_: FIRST + 5)
        with pytest.raises(StoreCorrupt, match="that a search did not find"):
            put(store, "a", b"y")


# ---- keys of one hash


@pytest.fixture
def one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """All keys have the same first place, and share the others too."""
    for module in ("places", "operations"):
        target = f"floodline.stores._sqlite.{module}.place_of"
        monkeypatch.setattr(target, lambda _name, _id, turn=0: FIRST + turn)


@pytest.mark.usefixtures("one_hash")
def test_keys_of_one_hash_are_told_apart(path: Path) -> None:
    with SQLiteStore(path) as store:
        for one in ("a", "b", "c"):
            assert take(store, one) is None
            put(store, one, one.encode())
        assert numbers(path) == [FIRST, FIRST + 1, FIRST + 2]
        for one in ("a", "b", "c"):
            assert take(store, one, hold=True) == one.encode()
        grant: Any = store.acquire(NAME, "a", "me", lease=9.0)
        assert store.delete(NAME, "a", fence=grant.fence)
        assert take(store, "a") is None
        assert take(store, "b") == b"b"
        put(store, "d", b"d")
        put(store, "e", b"e")
        with pytest.raises(StoreCorrupt, match="every place of session 'f' is taken"):
            put(store, "f", b"f")
        store.release(NAME, "b", store.acquire(NAME, "b", "me", lease=9.0).fence)  # type: ignore[union-attr]  # nobody else holds it


@pytest.mark.usefixtures("one_hash")
def test_a_repeated_first_write_is_known_in_another_place(path: Path) -> None:
    with SQLiteStore(path) as store:
        put(store, "a", b"a")
        grant: Any = store.acquire(NAME, "b", "me", lease=9.0)
        terms: Any = {"fence": grant.fence, "version": 0, "release": False}
        for _ in range(2):
            assert store.save(NAME, "b", b"b", write_id="w", **terms) == 1
        with pytest.raises(SessionConflict, match="version"):
            store.save(NAME, "b", b"c", write_id="another", **terms)
        assert store.load(NAME, "b") == Record(1, b"b")
        assert store.stats().rows == 2


# ---- files of 0.1


def test_rows_of_0_1_move_to_their_places_beside_the_work(path: Path) -> None:
    shutil.copyfile(WRITTEN, path)
    before = numbers(path)
    assert all(row < FIRST for row in before)
    with SQLiteStore(path) as store:
        ids = store.ids("plain")
        assert numbers(path) == before  # opening moves nothing
        put(store, "new", b"x")
        assert store.ids("plain") == ids
        for one in ids:
            assert store.load("plain", one) is not None
    assert all(row >= FIRST for row in numbers(path))
    assert count_rows(path) == len(before) + 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_damaged_index_of_0_1_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copyfile(WRITTEN, path)
    whole = path.read_bytes()
    assert whole.count(b"plainalice") == 2
    index = whole.index(b"plainalice")
    if whole[index // PAGE * PAGE] != INDEX_LEAF:
        index = whole.index(b"plainalice", index + 1)
    path.write_bytes(whole[:index] + b"plainalicf" + whole[index + 10 :])
    with SQLiteStore(path) as store:
        with pytest.raises(StoreCorrupt, match="its table has session 'alice'"):
            store.load("plain", "alice")
        assert store.load("plain", "nobody") is None
        monkeypatch.setattr(places_module, "_SCANNED", 1)
        assert store.load("plain", "alice") is None  # too many rows to go through


def test_a_row_of_0_1_that_cannot_be_moved_stays(path: Path) -> None:
    shutil.copyfile(WRITTEN, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE sessions SET id = x'00ff' WHERE id = 'grace'")
        connection.commit()
    with SQLiteStore(path) as store:
        put(store, "new", b"x")
        put(store, "new", b"y")
    assert sum(row < FIRST for row in numbers(path)) == 1


def test_moving_rows_costs_nobody_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copyfile(WRITTEN, path)
    with SQLiteStore(path) as store:

        def fail(*_: object) -> None:
            raise sqlite3.OperationalError("database is locked")

        monkeypatch.setattr(places_module.Places, "move_old", fail)
        put(store, "new", b"x")
        assert take(store, "new") == b"x"


# ---- the look at the whole file


def unclean_copy(path: Path, to: Path) -> None:
    """Copy a store as a killed process would leave it, with its log."""
    with SQLiteStore(path) as store:
        put(store, "last", b"x")
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", f"{to}{suffix}")


@pytest.mark.parametrize("leaf", [INDEX_LEAF, TABLE_LEAF])
def test_an_inspection_finds_what_one_tree_forgot(
    path: Path, contents: dict[str, bytes], leaf: int, events: list[Any]
) -> None:
    change_key(path, "user-0007", leaf)
    with SQLiteStore(path) as store:
        assert store.load(NAME, "nobody") is None
        inspect(store._database, store._writer)
        with pytest.raises(StoreCorrupt, match="may only seem to be missing"):
            store.load(NAME, "nobody")
        assert take(store, "user-0008") == contents["user-0008"]
        store._database.shut()
        with pytest.raises(StoreCorrupt, match="may only seem to be missing"):
            store.load(NAME, "nobody")
    assert [event.kind for event in events].count("store_damaged") == 1


def test_an_inspection_of_a_whole_file_finds_nothing(
    path: Path, contents: dict[str, bytes]
) -> None:
    with SQLiteStore(path) as store:
        for n in range(400):
            put(store, f"more-{n}", b"x")
        inspect(store._database, store._writer)
        assert store._database.damage == ""
        assert store.load(NAME, "nobody") is None


def test_an_inspection_ends_with_its_store(path: Path) -> None:
    store = SQLiteStore(path)
    store.close()
    inspect(store._database, store._writer)
    assert store._database.damage == ""


def test_a_page_that_cannot_be_read_is_noted_by_an_inspection(
    path: Path, contents: dict[str, bytes], events: list[Any]
) -> None:
    whole = bytearray(path.read_bytes())
    leaves = [at for at in range(PAGE, len(whole), PAGE) if whole[at] == TABLE_LEAF]
    at = next(at for at in leaves if b"user-0007" in whole[at : at + PAGE])
    whole[at + 1 : at + 8] = b"\xff" * 7
    path.write_bytes(whole)
    with SQLiteStore(path) as store:
        inspect(store._database, store._writer)
        assert "cannot be read" in store._database.damage


def test_after_an_unclean_end_the_whole_file_is_looked_at(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []
    monkeypatch.setattr(
        "floodline.stores._sqlite.store.inspect_beside", lambda *args: looked.append(args)
    )
    write_store(path, 5, random.Random(1))
    with SQLiteStore(path):
        pass
    assert looked == []
    left = tmp_path / "left.db"
    unclean_copy(path, left)
    with SQLiteStore(left) as store:
        assert take(store, "last") == b"x"
    assert len(looked) == 1


def test_the_look_goes_on_beside_the_work(path: Path, tmp_path: Path) -> None:
    write_store(path, 5, random.Random(1))
    left = tmp_path / "left.db"
    unclean_copy(path, left)
    with SQLiteStore(left) as store:
        for n in range(20):
            put(store, f"n{n}", b"x")
        assert store._database.unclean
        assert store._database.damage == ""


# ---- the schema, the header, the files


def test_text_of_the_schema_that_is_none_is_a_damage(path: Path) -> None:
    write_store(path, 1, random.Random(1))
    whole = path.read_bytes()
    at = whole.index(b"CREATE TABLE sessions")
    path.write_bytes(whole[: at + 13] + b"\xff\xfe" + whole[at + 15 :])
    with pytest.raises(StoreCorrupt):
        SQLiteStore(path)


def test_an_error_whose_text_is_none_is_a_damage(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        b"\xff".decode()

    with SQLiteStore(path) as store:
        monkeypatch.setattr(places_module.Places, "find_listed", fail)
        with pytest.raises(StoreCorrupt, match="codec can't decode"):
            store.load(NAME, "a")
    monkeypatch.setattr("floodline.stores._sqlite.database.connect", fail)
    with pytest.raises(StoreCorrupt, match="codec can't decode"):
        SQLiteStore(path)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP INDEX sessions_by_use",
        "DROP TABLE totals",
        "ALTER TABLE leases RENAME TO leasen",
        "PRAGMA user_version = 100000",
    ],
)
def test_a_schema_that_no_floodline_makes_is_a_damage(path: Path, statement: str) -> None:
    write_store(path, 1, random.Random(1))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()
    with pytest.raises(StoreCorrupt, match="unlike any file of floodline"):
        SQLiteStore(path)


def test_a_file_of_another_size_than_it_says_is_a_damage(path: Path) -> None:
    write_store(path, 20, random.Random(1))
    with path.open("ab") as file:
        file.write(bytes(PAGE))
    with pytest.raises(StoreCorrupt, match="its header says"):
        SQLiteStore(path)


@pytest.mark.parametrize(("at", "value"), [(18, 3), (59, 2), (59, 3)])
def test_a_header_of_an_unknown_format_or_encoding_is_a_damage(
    path: Path, at: int, value: int
) -> None:
    write_store(path, 20, random.Random(1))
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([value]))
    with pytest.raises(StoreCorrupt):
        SQLiteStore(path)


def test_a_store_in_another_encoding_is_a_damage(path: Path, tmp_path: Path) -> None:
    write_store(path, 1, random.Random(1))
    other = tmp_path / "utf-16.db"
    with closing(sqlite3.connect(path)) as ours, closing(sqlite3.connect(other)) as copy:
        copy.execute("PRAGMA encoding = 'UTF-16le'")
        copy.executescript("\n".join(ours.iterdump()))
        for pragma in ("application_id", "user_version"):
            copy.execute(f"PRAGMA {pragma} = {ours.execute(f'PRAGMA {pragma}').fetchone()[0]}")
    with pytest.raises(StoreCorrupt, match="its header says encoding UTF-16le"):
        SQLiteStore(other)


def replace(path: Path) -> None:
    copy = path.with_suffix(".copy")
    shutil.copyfile(path, copy)
    copy.replace(path)


@pytest.mark.parametrize("harm", [Path.unlink, replace], ids=["deleted", "replaced"])
@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_what_went_to_a_lost_file_is_not_acknowledged(
    path: Path, suffix: str, harm: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with SQLiteStore(path) as store:
        put(store, "a", b"one")
        grant: Any = store.acquire(NAME, "a", "me", lease=9.0)
        row, harmed = Operations._row, []

        def find(self: Any, *args: Any, **how: Any) -> Any:
            if not harmed:  # inside the transaction: whoever looked before it saw nothing
                harmed.append(harm(Path(f"{path}{suffix}")))
            return row(self, *args, **how)

        monkeypatch.setattr(Operations, "_row", find)
        with pytest.raises(StoreUnavailable, match="while in use, so nothing was acknowledged"):
            store.save(NAME, "a", b"two", fence=grant.fence, version=1, write_id="w", release=True)
        assert harmed


def test_a_log_that_was_deleted_loses_nothing(path: Path) -> None:
    with SQLiteStore(path) as store:
        put(store, "a", b"one")
        Path(f"{path}-wal").unlink()
        with pytest.raises(StoreUnavailable, match="-wal' was deleted while in use"):
            put(store, "b", b"two")
        put(store, "b", b"three")
    with SQLiteStore(path) as store:
        assert (take(store, "a"), take(store, "b")) == (b"one", b"three")


def test_an_archive_notices_a_lost_log(path: Path) -> None:
    with SQLiteStore(path) as store:
        store.archive.put("a", [(1, {"role": "user", "content": "x"})])
        Path(f"{path}-wal").unlink()
        with pytest.raises(StoreUnavailable, match="nothing was archived"):
            store.archive.put("a", [(2, {"role": "user", "content": "y"})])


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
def test_a_connection_that_is_given_up_is_closed_at_once(path: Path) -> None:
    write_store(path, 5, random.Random(1))
    with closing(sqlite3.connect(path)) as connection:
        sql = "SELECT rootpage FROM sqlite_master WHERE name = 'leases'"
        (page,) = connection.execute(sql).fetchone()
    whole = bytearray(path.read_bytes())
    whole[(page - 1) * PAGE : (page - 1) * PAGE + 8] = b"\xff" * 8
    path.write_bytes(whole)
    open_files = Path("/proc/self/fd")
    gc.disable()  # a failing store must not need it
    try:
        with SQLiteStore(path) as store:
            before = len(list(open_files.iterdir()))
            for _ in range(20):
                with pytest.raises(StoreCorrupt):
                    take(store, "user-0001", hold=True)
            assert len(list(open_files.iterdir())) <= before
    finally:
        gc.enable()
