from __future__ import annotations

import sys

import pytest

from floodline.errors import ConfigError
from floodline.soak import load


def test_a_scenario_file_is_imported_with_its_folder_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "beside_it.py").write_text("X = 5\n", encoding="utf-8")
    file = tmp_path / "scene_one.py"
    file.write_text("import beside_it\ndef round(i): return beside_it.X\n", encoding="utf-8")
    found = load(file)
    assert found.round(0) == 5
    assert not found.asynchronous
    assert found.setup() is None
    for name in ("scene_one", "beside_it"):
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize(
    ("name", "text"), [("missing.py", None), ("no_round.py", "x = 1\n"), ("scene.txt", "x = 1\n")]
)
def test_a_file_that_is_no_scenario_is_refused(tmp_path, monkeypatch, name, text):
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = tmp_path / name
    if text:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="scenario"):
        load(file)
    sys.modules.pop("no_round", None)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("round = print\nsetup = 3\n", "setup is 3; make it a function"),
        ("def round(i): yield\n", "round() yields"),
        ("async def round(i): yield\n", "round() yields"),
        ("def round(): pass\n", "round() must accept one argument, the number of the round"),
        ("def round(i): pass\ndef teardown(x): pass\n", "teardown(x) must accept no argument"),
    ],
)
def test_functions_that_cannot_be_called_are_refused(tmp_path, monkeypatch, text, part):
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = tmp_path / "refused_scene.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load(file)
    assert part in str(refused.value)
    sys.modules.pop("refused_scene")


def test_a_function_without_a_signature_is_accepted(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    file = tmp_path / "builtin_scene.py"
    file.write_text("round = int\n", encoding="utf-8")
    assert load(file).round is int
    sys.modules.pop("builtin_scene")
