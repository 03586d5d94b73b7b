"""SARIF: every log fits the schema of 2.1.0."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from jsonschema.validators import validator_for

from floodline.cli import main

SCHEMA = json.loads((Path(__file__).parents[3] / "data" / "sarif-2.1.0.json").read_text())
VALIDATOR = validator_for(SCHEMA)(SCHEMA)
LEAKY = "sessions = {}\n\n\ndef handle(session_id, state):\n    sessions[session_id] = state\n"
ANSWERED = LEAKY.replace("= state\n", "= state  # floodline: ignore[FLD101] it ends soon\n")


def errors(document: dict) -> list[str]:
    """What does not fit the schema, each with its place."""
    return [f"{each.json_path}: {each.message}" for each in VALIDATOR.iter_errors(document)]


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(LEAKY)
    return tmp_path


def log(capsys, *arguments: str) -> dict:
    main(["scan", ".", "--format", "sarif", *arguments])
    return json.loads(capsys.readouterr().out)


def full(project, capsys) -> dict:
    """A log with everything: new, known and answered findings, problems, skipped files."""
    assert main(["scan", ".", "--baseline", "known.json", "--write-baseline"]) == 0
    capsys.readouterr()
    (project / "new file.py").write_text("# \N{SNOWMAN}\n" + LEAKY)
    (project / "answered.py").write_text(ANSWERED)
    (project / "unused.py").write_text("x = 1  # floodline: ignore[FLD101] nothing here\n")
    (project / "broken.py").write_text("def (:\n")
    (project / "cached.py").write_text(
        "import functools\n\nclass A:\n    @functools.cache\n    def f(self):\n        return 1\n"
    )
    return log(capsys, "--baseline", "known.json", "--confidence", "low")


def place_of(result: dict) -> dict:
    return result["locations"][0]["physicalLocation"]


def test_an_empty_log_fits_the_schema(project, capsys):
    (project / "app.py").write_text("")
    assert errors(log(capsys)) == []


def test_a_log_with_everything_fits_the_schema(project, capsys):
    document = full(project, capsys)
    assert errors(document) == []
    run = document["runs"][0]
    states = {place_of(r)["artifactLocation"]["uri"]: r for r in run["results"]}
    assert states["app.py"]["baselineState"] == "unchanged"
    assert states["new%20file.py"]["baselineState"] == "new"
    assert states["answered.py"]["suppressions"] == [{"kind": "inSource"}]
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 2
    assert run["columnKind"] == "unicodeCodePoints"
    for result in run["results"]:
        assert result["codeFlows"][0]["threadFlows"][0]["locations"]
        assert result["partialFingerprints"]
        assert place_of(result)["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"]


def test_what_does_not_fit_is_seen(project, capsys):
    document = full(project, capsys)
    for spoil in (
        lambda run: run.pop("tool"),
        lambda run: run.update(columnKind="bytes"),
        lambda run: run["results"][0].update(surprise=1),
        lambda run: place_of(run["results"][0])["region"].update(startLine=0),
        lambda run: run["results"][0].update(message="text"),
        lambda run: run["results"][0]["codeFlows"][0].update(threadFlows=[]),
    ):  # fmt: skip
        spoiled = copy.deepcopy(document)
        spoil(spoiled["runs"][0])
        assert errors(spoiled)
