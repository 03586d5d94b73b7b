"""Collects the rules and their detectors from the families; new modules need no entry here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from floodline.scan._findings.rule import Rule
from floodline.scan._rules.detectors import Detector

HOME = Path(__file__).parent
PACKAGE = __name__.rpartition(".")[0]


def _modules() -> Iterator[ModuleType]:
    # pkgutil would import half of the standard library, and globbing takes three times as long
    for family in _entries(HOME):
        if family.is_dir():
            for file in _entries(family.path):
                name, _, suffix = file.name.partition(".")
                if suffix == "py" and not name.startswith("_"):
                    yield import_module(f"{PACKAGE}.{family.name}.{name}")


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as listing:
        return sorted(listing, key=lambda entry: entry.name)


def _collected() -> tuple[dict[str, Rule], tuple[Detector, ...]]:
    rules: dict[str, Rule] = {}
    detectors: list[Detector] = []
    for module in _modules():
        rules |= {item.code: item for item in vars(module).values() if isinstance(item, Rule)}
        detectors += getattr(module, "DETECTORS", ())
    return dict(sorted(rules.items())), tuple(detectors)


RULES, DETECTORS = _collected()
