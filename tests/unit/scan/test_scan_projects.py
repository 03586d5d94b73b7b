"""A project is taken for a library by its shape, unless somebody says otherwise."""

from __future__ import annotations

import pytest

from floodline.cli import main
from floodline.scan._sources.projects import Project, project_of

STORE = """
class Store:
    def __init__(self):
        self.rows = {}

    def put(self, row_id, row):
        self.rows[row_id] = row
"""
NAMED = '[project]\nname = "shop"\n'
CFG = "[metadata]\nname = shop\n"
BY_SHAPE = "a library by its shape"


@pytest.fixture
def kind(tmp_path, monkeypatch, capsys):
    """Return the line that says what was scanned."""
    monkeypatch.chdir(tmp_path)

    def scan(*options: str, **files: str) -> str:
        for name, text in {"shop/__init__.py": "", "shop/store.py": STORE, **files}.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
        main(["scan", "shop", "--no-cache", *options])
        return capsys.readouterr().out.splitlines()[-2]

    return scan


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": NAMED},
        {"pyproject.toml": '[tool.poetry]\nname = "shop"\n'},
        {"setup.cfg": CFG, "pyproject.toml": "[tool.ruff]\n"},
        {"setup.py": "from setuptools import setup\nsetup(name='shop')\n"},
    ],
)
def test_a_package_without_commands_and_handlers_is_a_library(kind, files):
    assert kind(**files).startswith(BY_SHAPE)


@pytest.mark.parametrize(
    "files",
    [
        {},  # no project at all
        {".git": ""},  # a project that is not packaged
        {"setup.cfg": "name = shop\n"},  # and one that says nothing
        {"pyproject.toml": NAMED + '[project.scripts]\nshop = "shop:main"\n'},
        {"setup.cfg": CFG + "[options.entry_points]\nconsole_scripts = shop = shop:main\n"},
        {"setup.py": "setup(entry_points={'console_scripts': ['shop = shop:main']})"},
        {"pyproject.toml": NAMED, "shop/__main__.py": ""},
        {"pyproject.toml": NAMED, "shop/run.py": "if __name__ == '__main__':\n    start()\n"},
        {"pyproject.toml": NAMED, "shop/app.py": "while True:\n    f()\ndef f():\n    pass\n"},
    ],
)
def test_everything_else_is_a_program(kind, files):
    assert BY_SHAPE not in kind(**files)


def test_the_options_and_the_settings_decide_otherwise(kind):
    packaged = {"pyproject.toml": NAMED}
    assert kind("--no-library", **packaged).startswith("no handlers found")
    assert kind("--library", **packaged).startswith("a library; its public")
    said = {"pyproject.toml": NAMED + "[tool.floodline.scan]\nlibrary = false\n"}
    assert kind(**said).startswith("no handlers found")


def test_metadata_that_cannot_be_read_says_nothing(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project")
    assert project_of([tmp_path / "app.py"]) == Project()
