"""Finds the modules of the same project that a file imports, for the constants in them."""

from __future__ import annotations

import ast
from functools import lru_cache
from pathlib import Path

from floodline._python.constants import Constants, Others
from floodline.scan._sources.files import decoded

ROOTS = (".git", "pyproject.toml", "setup.py", "setup.cfg")  # what marks a project's folder
HIGHEST = 8  # folders above the file; the project is never further up


def others(file: Path) -> Others:
    """Return the finder of the modules that a file imports; it parses them and runs nothing."""

    @lru_cache(maxsize=64)
    def find(name: str, dots: int) -> Constants | None:
        found = _located(file.resolve(), name, dots)
        if found is None:
            return None
        try:
            tree = ast.parse(decoded(found.read_bytes()))
        except (OSError, SyntaxError, ValueError, LookupError, RecursionError, MemoryError):
            return None
        return Constants(tree, None, others(found))

    return find


def _located(file: Path, name: str, dots: int) -> Path | None:
    inner = Path(*name.split(".")) if name else Path()
    for folder in _folders(file, dots):
        for path in (
            folder / inner.with_suffix(".py") if name else None,
            folder / inner / "__init__.py",
        ):
            if path is not None and path.is_file():
                return path
    return None


def _folders(file: Path, dots: int) -> list[Path]:
    """Return where an import looks: one folder for a relative one, else those of the project."""
    above = list(file.parents)
    if dots:
        return above[dots - 1 : dots]
    found = []
    for folder in above[:HIGHEST]:
        found += [folder, folder / "src"]
        if any((folder / mark).exists() for mark in ROOTS):
            break
    return found
