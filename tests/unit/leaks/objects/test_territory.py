from __future__ import annotations

import json
import os
import sys
import types

import click

from floodline.leaks._objects.territory import Territory, is_program_file, rank_of_module


def test_files_of_the_program_are_those_that_nobody_installed():
    assert is_program_file("/srv/app/main.py")
    assert not is_program_file("/srv/app/.venv/lib/python3.11/site-packages/django/apps.py")
    assert not is_program_file("/usr/lib/python3/dist-packages/apt.py")
    assert not is_program_file(json.__file__)
    assert not is_program_file("<frozen importlib._bootstrap>")
    assert not is_program_file(sys.modules["floodline.leaks"].__file__)


def test_modules_are_ranked_program_library_standard(monkeypatch, tmp_path):
    made = types.ModuleType("made_by_program")
    made.__file__ = os.fspath(tmp_path / "made_by_program.py")
    monkeypatch.setitem(sys.modules, "made_by_program", made)
    monkeypatch.setitem(sys.modules, "odd_module", object())
    names = ("__main__", "made_by_program", "nowhere", click.__name__, "floodline.leaks", "json")
    assert [rank_of_module(name) for name in names] == [0, 0, 0, 1, 1, 2]
    assert rank_of_module("odd_module") == 1


def test_a_territory_remembers():
    territory = Territory()
    assert not territory.is_library("__main__")
    assert territory.is_library("json")
    assert territory.is_library("json")
    assert territory.is_library(None)
