"""Collects the rules and their detectors from the families; a new module needs no entry here."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from floodline.scan import _rules
from floodline.scan._findings.rule import Rule
from floodline.scan._rules.detectors import Detector


def _modules() -> Iterator[ModuleType]:
    for family in iter_modules(_rules.__path__, f"{_rules.__name__}."):
        if family.ispkg:
            package = import_module(family.name)
            for module in iter_modules(package.__path__, f"{family.name}."):
                yield import_module(module.name)


def _collected() -> tuple[dict[str, Rule], tuple[Detector, ...]]:
    rules: dict[str, Rule] = {}
    detectors: list[Detector] = []
    for module in _modules():
        rules |= {item.code: item for item in vars(module).values() if isinstance(item, Rule)}
        detectors += getattr(module, "DETECTORS", ())
    return dict(sorted(rules.items())), tuple(detectors)


RULES, DETECTORS = _collected()
