"""Files that floodline 0.1 has written are opened as they are: a store, a recording, a baseline."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from floodline import Conversation, Sessions
from floodline.cli import main
from floodline.errors import UnreadableRecord
from floodline.recorder import read_recording
from floodline.stores import Codec, SQLiteStore, unseal
from floodline.web import report_document

WRITTEN = Path(__file__).parent.parent / "data" / "v0_1"
OWNER = "__main__.Notebook.notes"


@dataclass
class Profile:
    name: str = ""
    visits: int = 0
    tags: list[str] = field(default_factory=list)
    limits: dict[str, float] = field(default_factory=dict)


def said(id: str, *numbers: int) -> list[dict[str, Any]]:
    turns = [(f"{id} asks {n}", f"answer {n}") for n in numbers]
    return [
        {"role": role, "content": text}
        for turn in turns
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]


SYSTEM = {"role": "system", "content": "You are a weather bot."}
PLAIN = {
    "alice": {
        "turns": 3,
        "ratio": 0.5,
        "none": None,
        "flag": True,
        "raw": b"\x00\xff",
        "nested": {"list": [1, [2, "é中"], {}]},
        "big": 2**40,
    },
    "bob/2": {"text": "x" * 3000},
    "frank": {"theirs": True},
    "émile": {"n": -1},
}
CHATS = {
    "dave": [SYSTEM, *said("dave", 10, 11)],
    "erin": [
        SYSTEM,
        *said("erin", 10),
        {"role": "user", "content": "erin asks 11"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": "{}"},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "rain, 9 °C"},
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the files: what is opened is written to."""
    return Path(shutil.copytree(WRITTEN, tmp_path / "v0_1"))


@pytest.fixture
def store(folder: Path) -> Iterator[SQLiteStore]:
    with SQLiteStore(folder / "store.sqlite") as store:
        yield store


# ---- the store


def test_plain_states_come_back_equal(store: SQLiteStore) -> None:
    assert store.ids("plain") == ["alice", "bob/2", "frank", "grace", "émile"]
    with Sessions(dict, store=store, name="plain") as sessions:
        for name, state in PLAIN.items():
            with sessions.use(name) as found:
                assert found == state
    with (
        Sessions(list, store=store, name="lists") as lists,
        lists.use("queue") as queue,
    ):
        assert queue == [1, "two", {"three": 3}]


def test_a_dataclass_comes_back_equal(store: SQLiteStore) -> None:
    with (
        Sessions(Profile, store=store, name="profiles") as profiles,
        profiles.use("carol") as carol,
    ):
        assert carol == Profile("Carol", 7, ["admin"], {"daily": 2.5})


@pytest.mark.parametrize("id", CHATS)
def test_a_conversation_comes_back_equal_and_goes_on(store: SQLiteStore, id: str) -> None:
    def open_chat(id: str) -> Conversation:
        return Conversation(max_messages=6, archive=store.archive, archive_id=id)

    def attach(_: str, chat: Conversation) -> None:
        chat.configure(archive=store.archive)

    with (
        Sessions(open_chat, store=store, name="chats", on_open=attach) as chats,
        chats.use(id) as chat,
    ):
        assert chat.messages == CHATS[id]
        assert chat.system() == [SYSTEM]
        assert chat.archive_id == id
        assert chat.stats().appended == len(CHATS[id]) + 20
        chat.extend(said(id, 12))
        assert chat.messages[0] == SYSTEM  # it is still pinned
        assert len(chat) <= 6
        assert chat.archived(limit=2) == said(id, 10)


def test_the_archive_is_paged(store: SQLiteStore) -> None:
    assert store.archive.conversations() == ["dave", "erin"]
    chat = Codec(Conversation).decode(unseal(_envelope(store, "chats", "dave")))
    chat.configure(archive=store.archive)
    page = chat.archived(limit=8)
    assert page == said("dave", 6, 7, 8, 9)
    page = chat.archived(before=page.before, limit=50)
    assert page == said("dave", 0, 1, 2, 3, 4, 5)


def test_a_refused_save_and_a_damaged_record_are_listed(store: SQLiteStore) -> None:
    (refused,) = store.conflicts()
    assert (refused.name, refused.id, refused.at) == ("plain", "frank", 1_700_001_200.0)
    assert Codec().decode(unseal(refused.envelope)) == {"mine": 1}
    (damaged,) = store.quarantined("plain")
    assert (damaged.name, damaged.id) == ("plain", "grace")
    assert damaged.envelope == _envelope(store, "plain", "grace")
    with Sessions(dict, store=store, name="plain") as sessions:
        with pytest.raises(UnreadableRecord), sessions.use("grace"):
            pass
        assert sessions.close("grace")
    assert len(store.quarantined()) == 1  # the same bytes are kept once
    stats = store.stats()
    assert (stats.rows, stats.leases, stats.conflicts, stats.quarantined) == (8, 0, 1, 1)


def test_a_state_is_saved_over_one_of_0_1(store: SQLiteStore, folder: Path) -> None:
    with Sessions(dict, store=store, name="plain") as sessions, sessions.use("alice") as alice:
        alice["turns"] += 1
    store.close()
    with (
        SQLiteStore(folder / "store.sqlite") as again,
        Sessions(dict, store=again, name="plain") as sessions,
        sessions.use("alice") as alice,
    ):
        assert alice == {**PLAIN["alice"], "turns": 4}


def _envelope(store: SQLiteStore, name: str, id: str) -> bytes:
    record = store.load(name, id)
    assert record is not None
    return record.envelope


# ---- the recording


def test_the_report_of_a_recording_has_its_verdict_and_all_keys(folder: Path, capsys: Any) -> None:
    assert main(["report", str(folder / "run.rec"), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) >= {
        *("schema", "tool", "python", "errors", "verdict", "where", "suspects", "exit"),
        *("processes", "sessions", "containers", "window"),
    }
    assert (document["schema"], document["errors"]) == (1, [])
    assert (document["verdict"], document["where"]) == ("growing", "python")
    assert document["exit"]["status"] == 0
    assert document["exit"]["signal"] is None
    window = document["window"]
    assert (window["command"], window["unit"], window["closed"]) == ("chat.py 80", "second", True)
    assert 80 < window["seconds"] < 81
    assert len(window["memory"]["points"]) > 20
    assert [stats["name"] for stats in document["sessions"]] == ["chats"]
    assert {stats["name"] for stats in document["containers"]} == {"replies", "audit"}
    (process,) = document["processes"]
    assert (process["state"], process["verdict"]) == ("exited", "growing")


def test_the_suspect_of_a_recording_is_named_and_found_in_the_source(
    folder: Path, capsys: Any
) -> None:
    words = ["report", str(folder / "run.rec"), "--format", "json", "--sources", str(folder)]
    assert main(words) == 0
    (suspect,) = json.loads(capsys.readouterr().out)["suspects"]
    assert (suspect["rank"], suspect["verdict"], suspect["owner"]) == (1, "growing", OWNER)
    assert (suspect["defined_in"], suspect["type"]) == ("__main__.Notebook", "dict")
    assert (suspect["line"], suspect["line_source"]) == (26, "static")
    assert suspect["holds"].startswith("Note ")
    assert suspect["finding"]["rule"] == "FLD101"
    assert suspect["code"] == 'cls.notes[f"note-{number}"] = Note(number)'


def test_a_recording_is_replayed(folder: Path) -> None:
    recording = read_recording(folder / "run.rec")
    assert recording.closed
    assert not recording.running
    verdicts = [report_document(frame)["verdict"] for frame in recording.frames(20)]
    assert verdicts[0] == "undecided"
    assert verdicts[-1] == "growing"


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_a_recording_is_rendered(folder: Path, capsys: Any, form: str) -> None:
    assert main(["report", str(folder / "run.rec"), "--format", form]) == 0
    page = capsys.readouterr().out
    assert OWNER in page.replace("<wbr>", "")
    assert "chat.py" in page


def test_top_shows_a_recording(folder: Path, capsys: Any) -> None:
    assert main(["top", "--once", str(folder / "run.rec")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("GROWING")
    assert OWNER in shown
    assert "replies" in shown


# ---- the baseline


def test_a_baseline_knows_its_findings(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(folder)
    scan = ["scan", "chat.py", "--confidence", "low", "--preview", "--no-cache", "--format", "json"]
    assert main([*scan, "--fail-on", "low"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    assert (found["rule"], found["symbol"], found["status"]) == (
        "FLD101",
        "chat.Notebook.notes",
        "new",
    )
    assert main([*scan, "--fail-on", "low", "--baseline", "baseline.json"]) == 0
    known = json.loads(capsys.readouterr().out)["findings"]
    assert [(one["fingerprint"], one["status"]) for one in known] == [
        (found["fingerprint"], "baseline")
    ]
