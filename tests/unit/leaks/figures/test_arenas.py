from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from floodline.leaks._figures import arenas as arenas_module


@pytest.fixture(autouse=True)
def forgotten():
    """Ask anew in each test what this machine can do."""
    arenas_module._printer.cache_clear()
    yield
    arenas_module._printer.cache_clear()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks glibc for a file in memory")
def test_arenas_are_counted_and_nothing_is_printed():
    """In a process of its own, whose arenas are full: here, earlier tests have left room."""
    if arenas_module.arena_bytes() is None:
        pytest.skip("this Python does not export its figures")
    code = (
        "from floodline.leaks._figures import arenas as arenas_module\n"
        "before = arenas_module.arena_bytes()\n"
        "kept = [bytes(400) for _ in range(50_000)]\n"
        "print(arenas_module.arena_bytes() - before >= 10 << 20)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("True\n", "")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks glibc for a file in memory")
def test_standard_error_stays_where_it_is(monkeypatch):
    moved = []
    with monkeypatch.context() as patch:  # pytest itself leads it elsewhere after the test
        patch.setattr(os, "dup2", lambda *files: moved.append(files))
        arenas_module.arena_bytes()
    assert moved == []


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_where_the_allocator_cannot_be_asked_there_is_no_figure(monkeypatch, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert arenas_module.arena_bytes() is None


def test_another_allocator_has_no_arenas(monkeypatch):
    assert arenas_module._parsed(b"3 free PyListObjects") is None
    monkeypatch.setattr(arenas_module, "_printer", lambda: lambda: b"")
    assert arenas_module.arena_bytes() is None
    printed = b"# arenas allocated current = 1,027\n1,027 arenas * 1048576 bytes/arena = 9"
    assert arenas_module._parsed(printed) == 1027 << 20


def test_without_memory_for_the_print_there_is_no_figure(monkeypatch):
    made = SimpleNamespace(open_memstream=lambda *_: 0, fclose=lambda *_: 0, free=lambda *_: 0)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_: made)
    assert arenas_module.arena_bytes() is None
