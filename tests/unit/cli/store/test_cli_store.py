"""`floodline store`: what people on call see, and moving sessions between stores."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from floodline import Conversation, Sessions
from floodline.cli import main
from floodline.cli._store import output as output
from floodline.errors import SessionConflict, StoreUnavailable
from floodline.stores import Append, Grant, MemoryStore, NewRow, SQLiteStore, seal
from floodline.stores._copying import copy_sessions

SECRET = "the password is swordfish"


def open_chat(id: str) -> Conversation:
    return Conversation(max_messages=4, archive="session", archive_id=id)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with two names, rows, a refused write and a record in quarantine."""
    path = tmp_path / "agent.db"
    with SQLiteStore(path) as store:
        with Sessions(open_chat, store=store, name="chats") as chats:
            for one in ("alice", "bob"):
                with chats.use(one) as chat:
                    for n in range(9):
                        chat.append({"role": "user", "content": f"{n} {SECRET}"})
        with Sessions(dict, store=store, name="plain") as plain, plain.use("carol") as state:
            state["text"] = SECRET
        store.append_rows("items", "rows only", [Append("items", [NewRow("a", b"\xff\x00")])])
        with pytest.raises(SessionConflict):
            store.save(
                *("chats", "alice", seal(b"\xa5stale", version=1)),
                fence=10**9,
                version=1,
                write_id="w",
                release=False,
                rows=[Append("notes", [NewRow("k", SECRET.encode())])],
            )
        store.quarantine("chats", "eve\x1b[31m", b"broken", "the checksum does not match")
    return path


def told(capsys: pytest.CaptureFixture[str], *words: object, status: int = 0) -> Any:
    """Run a command for JSON, and in words, which must not tell what sessions contain."""
    assert main(["store", *map(str, words), "--format", "json"]) == status
    found = json.loads(capsys.readouterr().out)
    assert main(["store", *map(str, words)]) == status
    text = capsys.readouterr().out
    assert "\x1b" not in text
    if not {"--state", "--data"} & set(words):
        assert "swordfish" not in text + json.dumps(found)
    return found, text


def test_ls_lists_names_and_figures(path: Path, capsys: Any) -> None:
    found, text = told(capsys, "ls", path)
    names = [("chats", 2), ("items", 1), ("plain", 1)]
    assert [(one["name"], one["sessions"]) for one in found["names"]] == names
    assert found["stats"]["log_rows"] == 11
    assert "4 sessions" in text
    assert "2 conflicts, 1 in quarantine" in text


def test_ls_lists_the_sessions_of_a_name(path: Path, capsys: Any) -> None:
    found, text = told(capsys, "ls", path, "--name", "chats", "--limit", 1)
    (alice,) = found["sessions"]
    assert (alice["id"], alice["version"], alice["log rows"]) == ("alice", 1, 5)
    assert "--after 'alice'" in text
    found, _ = told(capsys, "ls", f"sqlite:///{path}", "--name", "chats", "--after", "alice")
    assert [one["id"] for one in found["sessions"]] == ["bob"]
    assert told(capsys, "ls", path, "--name", "nobody")[1] == "no sessions\n"


def test_show_tells_what_a_session_has_and_its_state_only_if_asked(path: Path, capsys: Any) -> None:
    found, text = told(capsys, "show", path, "chats", "alice")
    assert [(one["log"], one["rows"]) for one in found["logs"]] == [("archive:alice", 5)]
    assert found["problem"] == ""
    assert "readable" in text
    found, text = told(capsys, "show", path, "plain", "carol", "--state")
    assert found["state"] == {"text": SECRET}
    assert SECRET in text
    found, text = told(capsys, "show", path, "items", "rows only", "--state")
    assert (found["state"], found["bytes"]) == (None, 0)


def test_show_lists_the_rows_of_a_log(path: Path, capsys: Any) -> None:
    words = ("show", path, "chats", "alice", "--log", "archive:alice", "--limit", 2)
    found, _ = told(capsys, *words)
    assert [row["number"] for row in found["rows"]] == [4, 3]
    found, text = told(capsys, *words, "--data")
    assert found["rows"][0]["data"] == {"role": "user", "content": f"4 {SECRET}"}
    assert SECRET in text
    found, _ = told(capsys, "show", path, "items", "rows only", "--log", "items", "--data")
    assert [row["data"] for row in found["rows"]] == ["ff00"]
    _, text = told(capsys, "show", path, "plain", "carol", "--log", "none")
    assert "no logs" in text
    assert "no rows" in text


def test_what_is_not_there_is_a_usage_error(path: Path, tmp_path: Path, capsys: Any) -> None:
    missing = tmp_path / "missing.db"
    for words in (
        ["show", path, "chats", "nobody"],
        ["ls", missing],
        ["ls", f"sqlite:///{missing}"],
    ):
        assert main(["store", *map(str, words)]) == 2
    assert not missing.exists()
    assert "nobody" in capsys.readouterr().err


def test_check_finds_damaged_sessions_and_rows(path: Path, capsys: Any) -> None:
    found, text = told(capsys, "check", path)
    assert (found["sessions"], found["rows"], found["damaged"]) == (4, 11, [])
    assert "0 damaged" in text
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE sessions SET envelope = x'00' || envelope WHERE id = 'carol'")
        connection.execute("UPDATE log_rows SET data = x'00' WHERE number = 3")
    found, _ = told(capsys, "check", path, status=1)
    assert [one["id"] for one in found["damaged"]] == ["alice", "bob", "carol"]
    found, _ = told(capsys, "check", path, "--name", "items")
    assert found["damaged"] == []
    found, text = told(capsys, "show", path, "plain", "carol", "--state", status=1)
    assert "begins with" in found["problem"]


def test_conflicts_and_quarantine_are_listed(path: Path, capsys: Any) -> None:
    found, _ = told(capsys, "conflicts", path)
    assert [one["id"] for one in found["conflicts"]] == ["alice", "alice"]
    found, _ = told(capsys, "conflicts", path, "--data", "--name", "chats")
    refused, rows = (one["data"] for one in found["conflicts"])
    assert refused == "stale"
    assert rows == [{"log": "notes", "key": "k", "data": SECRET}]
    found, text = told(capsys, "quarantine", path, "--data")
    assert [one["data"] for one in found["quarantine"]] == [b"broken".hex()]
    assert r"eve\x1b[31m" in text
    assert told(capsys, "conflicts", path, "--name", "plain")[1] == "no conflicts\n"
    assert told(capsys, "quarantine", path, "--name", "plain")[1] == "nothing in quarantine\n"


def test_purge_asks_and_deletes(path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    assert main(["store", "purge", str(path), "chats", "--unused", "1 ms"]) == 1
    assert "nothing was deleted" in capsys.readouterr().err
    assert main(["store", "purge", str(path), "chats", "--unused", "1 d", "--yes"]) == 0
    assert "0 of 2 sessions" in capsys.readouterr().out
    words = ["store", "purge", str(path), "chats", "--unused", "1 ms", "--yes", "--format", "json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["deleted"] == 2
    with SQLiteStore(path) as store:
        assert store.names() == ["items", "plain"]
        assert store.stats().log_rows == 1


# ---- copying


def everything(store: Any) -> dict[tuple[str, str], Any]:
    found = {}
    for name in store.names():
        for one in store.ids(name):
            logs = {
                log.log: [(r.key, r.number, r.data) for r in store.rows(name, one, log.log)]
                for log in store.logs(name, one)
            }
            found[name, one] = (store.load(name, one).envelope, logs)
    return found


def test_a_copy_holds_the_same_and_is_not_made_twice(
    path: Path, tmp_path: Path, capsys: Any
) -> None:
    there = tmp_path / "copy.db"
    assert main(["store", "copy", str(path), str(there)]) == 0
    said = capsys.readouterr()
    assert "4 sessions copied with 11 rows" in said.out
    assert "not copied: 2 conflicts and 1 in quarantine" in said.err
    with SQLiteStore(path) as source, SQLiteStore(there) as target:
        assert everything(target) == everything(source)
    found, text = told(capsys, "copy", path, f"sqlite:///{there}")
    assert (found["copied"], found["same"], found["left"]) == (0, 4, [])
    assert (found["conflicts_left"], found["quarantine_left"]) == (2, 1)
    assert "4 were there already" in text
    with (
        Sessions(dict, store=f"sqlite:///{there}", name="plain") as plain,
        plain.use("carol", create=False) as state,
    ):
        assert state == {"text": SECRET}


def test_only_the_named_are_copied_and_others_are_not_overwritten(
    path: Path, tmp_path: Path, capsys: Any
) -> None:
    there = tmp_path / "copy.db"
    with (
        Sessions(dict, store=f"sqlite:///{there}", name="plain") as plain,
        plain.use("carol") as state,
    ):
        state["mine"] = True
    found, text = told(capsys, "copy", path, there, "--name", "plain", status=1)
    assert [one["outcome"] for one in found["left"]] == ["different"]
    assert "--replace" in text
    assert main(["store", "copy", str(path), str(there), "--name", "plain", "--replace"]) == 0
    with SQLiteStore(path) as source, SQLiteStore(there) as target:
        assert target.names() == ["plain"]
        assert everything(target)["plain", "carol"] == everything(source)["plain", "carol"]


class Dying(MemoryStore):
    """A target that stops in the middle."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls = calls

    def _ask(self, what: str, /, *args: Any) -> Any:
        if what in ("save", "append_rows"):
            self.calls -= 1
            if self.calls == 0:
                raise StoreUnavailable("the target has gone away")
        return super()._ask(what, *args)


@pytest.mark.parametrize("calls", range(1, 7))
def test_an_interrupted_copy_is_continued(
    path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    monkeypatch.setattr("floodline.stores._copying._SLICE_BYTES", 100)
    target = Dying(calls)
    with SQLiteStore(path) as source:
        first = [one.outcome for one in copy_sessions(source, target)]
        assert first.count("failed") == 1
        again = [one.outcome for one in copy_sessions(source, target)]
        assert again.count("copied") == 1
        assert again.count("same") == 3
        assert everything(target) == everything(source)


def test_what_changes_while_it_is_copied_is_told(path: Path) -> None:
    class Changing(MemoryStore):
        def release(self, name: str, id: str, fence: int) -> None:
            super().release(name, id, fence)
            self.append_rows(name, id, [Append("late", [NewRow("x", b"")])])

    with SQLiteStore(path) as source:
        outcomes = [one.outcome for one in copy_sessions(source, Changing(), names=["plain"])]
        assert outcomes == ["different"]
        target = MemoryStore()
        assert isinstance(target.acquire("plain", "carol", "somebody", lease=15.0), Grant)
        outcomes = [one.outcome for one in copy_sessions(source, target, names=["plain"])]
        assert outcomes == ["busy"]


def test_rows_that_contradict_are_left_alone(path: Path) -> None:
    target = MemoryStore()
    target.append_rows("items", "rows only", [Append("items", [NewRow("a", b"other")])])
    with SQLiteStore(path) as source:
        (one,) = copy_sessions(source, target, names=["items"])
        assert (one.outcome, "other bytes" in one.why) == ("different", True)
        (one,) = copy_sessions(source, target, names=["items"], replace=True)
        assert one.outcome == "copied"


def test_a_session_deleted_in_the_meantime_is_no_error() -> None:
    source = MemoryStore()
    for one in ("a", "b"):
        source.append_rows("n", one, [])
    copies: Iterator[Any] = copy_sessions(source, MemoryStore())
    first = [one.outcome for one in islice(copies, 1)]
    grant = source.acquire("n", "b", "me", lease=15.0)
    assert isinstance(grant, Grant)
    source.delete("n", "b", fence=grant.fence)
    assert first + [one.outcome for one in copies] == ["copied", "gone"]


def test_sessions_in_use_are_pointed_out(path: Path, tmp_path: Path, capsys: Any) -> None:
    with SQLiteStore(path) as store:
        store.acquire("chats", "alice", "somebody", lease=600.0)
        assert main(["store", "copy", str(path), str(tmp_path / "copy.db")]) == 0
    assert "1 sessions are in use" in capsys.readouterr().err


def test_a_bar_is_shown_in_a_terminal(
    path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["store", "check", str(path)]) == 0
    assert "4 sessions" in capsys.readouterr().out


def test_passwords_and_odd_dates_are_not_printed() -> None:
    assert "secret" not in output.shown("redis://user:secret@host:6379/0")
    assert output.when(1e300) == "1e+300"
    assert output.when(0.0) == "1970-01-01 00:00:00 UTC"
