"""The process of the command line does not free at its end what ends with it anyway."""

import gc
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from floodline import __main__ as process
from floodline.cli import main
from floodline.cli._scan import scanning
from floodline.scan import Scan

Made = list["weakref.ref[Scan]"]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Made]:
    """Return weak references to the scans of the command line; what was frozen thaws."""
    found: Made = []

    def noted(*given: object, **named: object) -> Scan:
        scan = Scan(*given, **named)  # type: ignore[arg-type]  # passed on as they are
        found.append(weakref.ref(scan))
        return scan

    monkeypatch.setattr(scanning, "Scan", noted)
    (tmp_path / "app.py").write_text("seen = {}\n")
    monkeypatch.setattr(sys, "argv", ["floodline", "scan", "--no-cache", str(tmp_path)])
    yield found
    gc.unfreeze()
    gc.collect()
    assert found[0]() is None


def test_a_process_leaves_its_scan_to_the_system(made: Made) -> None:
    assert process.run() == 0
    gc.collect()
    assert made[0]() is not None
    assert gc.get_freeze_count()


def test_a_caller_of_main_gets_its_memory_back(made: Made) -> None:
    before = gc.get_freeze_count()
    assert main() == 0
    gc.collect()
    assert made[0]() is None
    assert gc.get_freeze_count() == before


def test_commands_that_leave_nothing_end_as_usual(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = gc.get_freeze_count()
    monkeypatch.setattr(sys, "argv", ["floodline", "--version"])
    assert process.run() == 0
    assert "floodline" in capsys.readouterr().out
    assert gc.get_freeze_count() == before
