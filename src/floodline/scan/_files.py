"""Finds the files to read, names their modules, and says why a file could not be read."""

from __future__ import annotations

import os
import tokenize
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

SKIPPED_FOLDERS = {
    "__pycache__", "node_modules", "site-packages", "build", "dist", "venv",
}  # fmt: skip
TESTS = {"tests", "test", "testing"}


class Source(NamedTuple):
    """One file to read."""

    path: Path
    shown: str
    module: str
    is_test: bool


class Skipped(NamedTuple):
    """One file that could not be read, and why."""

    path: str
    why: str


def sources(paths: Sequence[Path]) -> Iterator[Source | Skipped]:
    """Yield every Python file below the paths once, in a stable order.

    Folders of tools and environments are not entered.
    """
    seen: set[tuple[int, int]] = set()
    for root in paths:
        if root.is_dir():
            yield from _below(root, root, seen)
        elif root.exists():
            yield Source(root, shown(root), module_name(root), False)
        else:
            yield Skipped(shown(root), "there is no such file or folder")


def _below(folder: Path, root: Path, seen: set[tuple[int, int]]) -> Iterator[Source | Skipped]:
    stack = [folder]
    while stack:
        here = stack.pop()
        try:
            status = here.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError as error:
            yield Skipped(shown(here), error.strerror or str(error))
            continue
        below = []
        for entry in entries:
            path = here / entry.name
            if entry.name.endswith(".py") and not path.is_dir():
                inside = path.relative_to(root)
                yield Source(path, shown(path), module_name(path, root), _is_test(inside))
            elif path.is_dir() and entry.name not in SKIPPED_FOLDERS and entry.name[0] != ".":
                below.append(path)
        stack.extend(reversed(below))


def _is_test(inside: Path) -> bool:
    name = inside.name
    return bool(TESTS & set(inside.parts[:-1])) or name.startswith("test_") or name == "conftest.py"


def shown(path: Path) -> str:
    """Return a path as it is shown: relative to the working folder where that is possible."""
    try:
        return Path(os.path.abspath(path)).relative_to(Path.cwd()).as_posix()  # noqa: PTH100 -- resolve() would follow links
    except ValueError:
        return path.as_posix()


def module_name(path: Path, root: Path | None = None) -> str:
    """Return the dotted name under which Python would import the file.

    Folders with an `__init__.py` above the file count, and those below the scanned root.
    """
    parts = [path.stem] if path.stem != "__init__" else []
    folder = path.parent
    while (folder / "__init__.py").exists() and folder.name:
        parts.insert(0, folder.name)
        folder = folder.parent
    if root is not None and folder != root and root in folder.parents:
        parts = [*folder.relative_to(root).parts, *parts]
    return ".".join(parts) or path.parent.name


def decoded(data: bytes) -> str:
    """Decode source as Python does: by its mark or its coding line; what does not fit raises."""
    encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
    return data.decode(encoding)
