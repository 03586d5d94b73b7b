"""Finds the modules that imports mean: below `src`, or beside a file that is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from pathlib import PurePosixPath as Path

from floodline.scan._facts.calls import IN_MAIN
from floodline.scan._facts.model import FileFacts

_KEPT = attrgetter("kept")


class Imports:
    """Knows the modules of a program, and the folders from which files are run."""

    def __init__(
        self,
        files: Sequence[FileFacts],
        modules: Mapping[str, FileFacts],
        by_path: Mapping[str, str],
    ) -> None:
        self._files = files
        self._modules = modules
        self._by_path = by_path
        self._parts = {part for f in files for part in f.path.removesuffix(".py").split("/")}
        init = "/__init__.py"
        self._packages = {f.path.removesuffix(init) for f in files if f.path.endswith(init)}
        self.run = [file for file in files if IN_MAIN in map(_KEPT, file.calls)]
        self._roots = {file.path.rpartition("/")[0] for file in self.run}

    @cached_property
    def names(self) -> set[str]:
        """Everything that any module imports, as it is called at home."""
        return {target.rpartition(":")[2] for file in self._files for _, target in file.imports}

    def is_outside(self, target: str) -> bool:
        """Return True if an import is from a package of which the program has not even a folder."""
        head = target.partition(":")[0].partition(".")[0]
        return bool(head) and head not in self._parts

    def meant(self, path: str, target: str) -> str:
        """Return what an import means, even if it starts with a folder above the packages: `src`.

        The folder has to be there: `discord.utils` is not the `utils` of the program.
        """
        source, colon, name = target.partition(":")
        head, _, rest = source.partition(".")
        if not head or source in self._modules:
            return target
        if rest not in self._modules:
            return self._above(path, source, target)
        inside = Path(self._modules[rest].path).parts[: -len(rest.split("."))]
        found = inside[-1:] == (head,) or inside[-2:-1] == (head,)  # with an `__init__.py`
        return f"{rest}{colon}{name}" if found else target

    def _above(self, path: str, source: str, target: str) -> str:
        """Return what an import means in a file below the folder from which it is looked up.

        That is a folder from which a file is run. A dotted name says enough to be looked up in any
        folder above that is no package.
        """
        below, folder = source.replace(".", "/"), path.rpartition("/")[0]
        while True:
            known = folder in self._roots or ("." in source and folder not in self._packages)
            if known and (found := self._by_path.get(f"{folder}/{below}" if folder else below)):
                return target.replace(source, found, 1)
            if not folder:
                return target
            folder = folder.rpartition("/")[0]


def renamed(imports: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Return the names under which something is imported that has another one at home."""
    every = [item for found in imports.values() for item in found.items()]
    return {name for name, target in every if target.rpartition(":")[2] != name}
