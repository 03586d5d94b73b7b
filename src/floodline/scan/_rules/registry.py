"""Collects the rules and their detectors from the families; new modules need no entry here."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from floodline.scan._findings.rule import Rule
from floodline.scan._rules.detectors import Detector

HOME = Path(__file__).parent
PACKAGE = __name__.rpartition(".")[0]


def _modules() -> Iterator[ModuleType]:
    for path in sorted(
        HOME.glob("*/[!_]*.py")
    ):  # pkgutil would import half of the standard library
        yield import_module(f"{PACKAGE}.{path.parent.name}.{path.stem}")


def _collected() -> tuple[dict[str, Rule], tuple[Detector, ...]]:
    rules: dict[str, Rule] = {}
    detectors: list[Detector] = []
    for module in _modules():
        rules |= {item.code: item for item in vars(module).values() if isinstance(item, Rule)}
        detectors += getattr(module, "DETECTORS", ())
    return dict(sorted(rules.items())), tuple(detectors)


RULES, DETECTORS = _collected()
