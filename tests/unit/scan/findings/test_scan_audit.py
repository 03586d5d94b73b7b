"""The audit lists every container with open keys and all its ways out, the safe ones too."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from floodline.cli._main import main
from floodline.scan import Audited, Scan


def audited(folder: Path, code: str) -> dict[str, Audited]:
    (folder / "app.py").write_text(dedent(code), encoding="utf-8")
    return {entry.symbol.rpartition(".")[2]: entry for entry in Scan([folder]).audit()}


WAYS = {
    "event": (
        "growing",
        """
        sessions = {}

        @app.post("/message")
        def message(session_id):
            sessions[session_id] = 1

        @app.delete("/session")
        def delete(session_id):
            del sessions[session_id]
        """,
    ),
    "finally": (
        "bounded",
        """
        sessions = {}

        def handle(session_id, work):
            sessions[session_id] = 1
            try:
                work()
            finally:
                del sessions[session_id]
        """,
    ),
    "ttl": (
        "bounded",
        """
        import time

        sessions = {}

        def handle(session_id):
            sessions[session_id] = time.time()
            sweep()

        def sweep():
            for key, at in list(sessions.items()):
                if at < time.time() - 60:
                    forget(key)

        def forget(key):
            del sessions[key]
        """,
    ),
    "cap": (
        "bounded",
        """
        sessions = {}

        def handle(session_id):
            sessions[session_id] = 1
            if len(sessions) > 100:
                sessions.popitem()
        """,
    ),
    "sweep": (
        "bounded",
        """
        from threading import Thread

        sessions = {}

        def handle(session_id):
            sessions[session_id] = 1

        def sweep():
            sessions.clear()

        Thread(target=sweep).start()
        """,
    ),
    "call": (
        "undecided",
        """
        sessions = {}

        def handle(session_id):
            sessions[session_id] = 1

        def forget(session_id):
            sessions.pop(session_id)
        """,
    ),
    "shutdown": (
        "growing",
        """
        class Server:
            def __init__(self):
                self.sessions = {}

            def handle(self, session_id):
                self.sessions[session_id] = 1

            def shutdown(self):
                self.sessions.clear()

        server = Server()
        """,
    ),
    "never": (
        "growing",
        """
        sessions = {}

        def handle(session_id):
            sessions[session_id] = 1

        def _forget(session_id):
            sessions.pop(session_id)
        """,
    ),
    "weak": (
        "bounded",
        """
        from weakref import WeakValueDictionary

        sessions = WeakValueDictionary()

        def handle(session_id, session):
            sessions[session_id] = session
        """,
    ),
    "comment": (
        "bounded",
        """
        sessions = {}  # floodline: bounded[by the number of seats]

        def handle(session_id):
            sessions[session_id] = 1
        """,
    ),
}


@pytest.mark.parametrize("how", WAYS)
def test_a_way_out_is_named(how, tmp_path):
    verdict, code = WAYS[how]
    entry = audited(tmp_path, code)["sessions"]
    assert (entry.verdict, entry.removals[0].how) == (verdict, how)
    assert entry.removals[0].runs is (verdict == "bounded")
    assert entry.grows != ()


def test_an_age_that_only_the_reader_asks_for_does_not_run_by_itself(tmp_path):
    entry = audited(
        tmp_path,
        """
        import time

        sessions = {}

        def handle(session_id):
            sessions[session_id] = time.time()

        def get(session_id):
            if sessions[session_id] < time.time():
                del sessions[session_id]
        """,
    )["sessions"]
    assert (entry.verdict, entry.rule, entry.confidence) == ("growing", "FLD203", "medium")
    assert [(out.how, out.runs) for out in entry.removals] == [("ttl", False)]


def test_containers_that_get_their_limit_where_they_are_made_are_listed(tmp_path):
    found = audited(
        tmp_path,
        """
        class Service:
            def __init__(self):
                self._memories = BoundedMap(max_items=1000, idle="30 min")
                self._tokens = TTLCache(ttl=60)
                self._kinds = BoundedMap(max_items=10)
                self._unused = BoundedMap(max_items=10)

            def memory(self, session_id):
                self._tokens[session_id] = 1
                self._kinds["plain"] = 1
                return self._memories.get_or_create(session_id, list)
        """,
    )
    assert {name: entry.removals[0].how for name, entry in found.items()} == {
        "_memories": "cap",
        "_tokens": "ttl",
    }
    assert found["_memories"].verdict == "bounded"


def test_what_has_fixed_keys_or_a_short_life_is_not_listed(tmp_path):
    assert (
        audited(
            tmp_path,
            """
            modes = {}
            known = {}

            def setup(user_id):
                known[user_id] = 1

            def handle(session_id):
                found = {}
                found[session_id] = 1
                modes["fast"] = 1
            """,
        )
        == {}
    )


def test_lists_and_what_ranks_low_are_listed_too(tmp_path):
    code = """
        log = []

        class Parser:
            def __init__(self):
                self.seen = {}

            def put(self, name):
                self.seen.setdefault(name, []).append(1)

        def parse(text, name):
            log.append(text)
            Parser().put(name)
    """
    listed = audited(tmp_path, code)
    assert {name: entry.verdict for name, entry in listed.items()} == {
        "log": "growing",
        "seen": "undecided",
    }
    assert listed["log"].key == "every call adds one more"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(dedent(WAYS["event"][1]), encoding="utf-8")
    (tmp_path / "safe.py").write_text(dedent(WAYS["cap"][1]), encoding="utf-8")
    (tmp_path / "bare.py").write_text(
        "x = {}\ndef f(user_id):\n    x[user_id] = 1\ndef g(n):\n    f(n)\n"
    )
    return tmp_path


def test_the_audit_is_read_by_people(project, capsys):
    assert main(["scan", ".", "--audit"]) == 0
    told = capsys.readouterr().out
    assert "app.py:2: app.sessions growing  FLD102 medium\n" in told
    assert "     event  app.py:10  delete() runs only when its event arrives" in told
    assert "       cap  safe.py:7" in told
    assert "      none  nothing removes from it\n" in told
    assert told.endswith("3 containers with open keys: 2 growing, 1 bounded, 0 undecided\n")


def test_the_audit_is_read_by_programs(project, capsys):
    (project / "broken.py").write_text("def", encoding="utf-8")
    assert main(["scan", ".", "--audit", "--format", "json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert list(document)[:4] == ["schema", "tool", "python", "errors"]
    assert [entry["verdict"] for entry in document["containers"]] == [
        "growing",
        "growing",
        "bounded",
    ]
    event = document["containers"][0]["removals"][0]
    assert (event["how"], event["runs"], event["at"]) == ("event", False, "app.py:10")
    assert [skipped["path"] for skipped in document["skipped"]] == ["broken.py"]
    assert main(["scan", ".", "--audit"]) == 3
    assert "broken.py: skipped, syntax error" in capsys.readouterr().out


def test_the_audit_has_two_formats(project, capsys):
    assert main(["scan", ".", "--audit", "--format", "sarif"]) == 2
    assert "--audit has no format 'sarif'; use text or json" in capsys.readouterr().err
