"""What a report shows first, how much of it, and what a run adds to it."""

from __future__ import annotations

import json

import pytest

from floodline.cli import main

APP = """
app = framework()
rooms = {}


class Service:
    def __init__(self):
        self.names = {}
        self.turns = {}

    def enter(self, name):
        self.names[name] = 1

    def turn(self, user_id):
        self.turns[user_id] = object()


service = Service()


@app.post("/rooms")
def enter(room_id):
    rooms[room_id] = object()
"""
ROOMS = {"owner": "app.rooms", "file": "/srv/app.py", "line": 23}


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def told(capsys, *options):
    main(["scan", ".", "--confidence", "low", "--format", "json", *options])
    return json.loads(capsys.readouterr().out)["findings"]


def test_the_worst_comes_first_and_what_one_owner_has_together(project, capsys):
    found = told(capsys)
    assert [f["symbol"] for f in found] == [
        "app.rooms", "app.Service.turns", "app.Service.names",
    ]  # fmt: skip
    assert [f["rank"] for f in found] == sorted((f["rank"] for f in found), reverse=True)


def test_only_as_many_are_shown_as_asked_for(project, capsys):
    assert [f["symbol"] for f in told(capsys, "--top", "1")] == ["app.rooms"]
    assert len(told(capsys, "--top", "0")) == 3
    assert main(["scan", ".", "--confidence", "low", "--top", "2"]) == 1
    text = capsys.readouterr().out
    assert "app.Service.turns" in text
    assert "app.Service.names" not in text
    assert "1 more are not shown; --top 0 shows all\n" in text
    assert text.splitlines()[-1].startswith("3 findings in 1 file (1 high, ")


def test_a_terminal_shows_the_twenty_worst(project, capsys, monkeypatch):
    code = "".join(f"d{n} = {{}}\ndef f{n}(x_id):\n    d{n}[x_id] = 1\n" for n in range(23))
    (project / "app.py").write_text(code)
    main(["scan", "."])
    assert "not shown" not in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    main(["scan", "."])
    assert "3 more are not shown" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "options", "kind"),
    [
        (APP, (), "handlers found: 1; ranked by what they lead to"),
        ("def f():\n    pass\n", (), "no handlers found; ranked by structure"),
        ("def f():\n    while True:\n        g()\ndef g():\n    pass\n", (), "loops that wait"),
        (APP, ("--library",), "a library; its public classes"),
    ],
)
def test_a_report_says_what_kind_of_program_it_looks_at(project, capsys, code, options, kind):
    (project / "app.py").write_text(code)
    for _ in range(2):  # read, then from the cache
        main(["scan", ".", *options])
        assert kind in capsys.readouterr().out


def observed(project, capsys, **said):
    (project / "soak.json").write_text(json.dumps({"suspects": [{**ROOMS, **said}, "?"]}))
    return {f["symbol"]: f for f in told(capsys, "--with", "soak.json")}


def test_what_grew_in_a_run_is_confirmed_and_first(project, capsys):
    said = {"owner": "__main__.Service.names", "verdict": "growing", "per_round": 2.0}
    found = observed(project, capsys, **said, line=0)
    first, seen = next(iter(found.values())), found["app.Service.names"]
    assert first["rank"] == seen["rank"] == 100
    assert seen["confidence"] == "high"
    assert seen["observed"] == {"verdict": "growing", "rate": 2.0, "line": "/srv/app.py:0"}
    assert "observed" not in found["app.rooms"]


def test_a_container_is_known_by_the_line_that_feeds_it(project, capsys):
    line = APP.splitlines().index("    rooms[room_id] = object()") + 1
    found = observed(project, capsys, owner="?", verdict="growing", line=line)
    assert found["app.rooms"]["observed"]["rate"] is None
    assert found["app.rooms"]["rank"] == 100


def test_what_was_fed_and_stayed_flat_is_out_of_the_way(project, capsys):
    flat = observed(project, capsys, verdict="bounded", per_round=0.0)["app.rooms"]
    assert (flat["rank"], flat["confidence"]) == (0, "low")
    idle = observed(project, capsys, verdict="bounded", line=None)["app.rooms"]
    assert "observed" not in idle
    main(["scan", ".", "--with", "soak.json"])
    assert "in the run" not in capsys.readouterr().out


def test_the_evidence_of_a_run_is_shown_and_kept_in_a_baseline(project, capsys):
    suspect = {**ROOMS, "verdict": "growing", "per_round": 1.5}
    (project / "soak.json").write_text(json.dumps({"suspects": [suspect]}))
    options = ["--with", "soak.json", "--baseline", "known.json"]
    assert main(["scan", ".", "--with", "soak.json"]) == 1
    said = "run  confirmed: it grew in the run, +1.5 items a round  /srv/app.py:23\n"
    assert said in capsys.readouterr().out
    assert main(["scan", ".", *options, "--write-baseline"]) == 0
    kept = json.loads((project / "known.json").read_text())["fingerprints"].values()
    assert "FLD101 app.rooms: growing +1.5 a round at /srv/app.py:23" in kept
    assert main(["scan", ".", *options]) == 0


@pytest.mark.parametrize("text", ["{", "{}", "[]", "no recording"])
def test_a_file_of_another_kind_is_refused(project, capsys, text):
    (project / "soak.json").write_text(text)
    assert main(["scan", ".", "--with", "soak.json"]) == 2
    assert "soak.json" in capsys.readouterr().err
