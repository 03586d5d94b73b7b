"""Finds the modules that imports mean: below `src`, or beside a file that is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath as Path

from floodline.scan._facts.model import FileFacts


class Imports:
    """Knows the modules of a program, and the folders from which files are run."""

    def __init__(
        self,
        files: Sequence[FileFacts],
        modules: Mapping[str, FileFacts],
        by_path: Mapping[str, str],
    ) -> None:
        self._modules = modules
        self._by_path = by_path
        self._roots = {file.path.rpartition("/")[0] for file in files if _is_run(file)}

    def meant(self, path: str, target: str) -> str:
        """Return what an import means, even if it starts with a folder above the packages: `src`.

        The folder has to be there: `discord.utils` is not the `utils` of the program.
        """
        source, colon, name = target.partition(":")
        head, _, rest = source.partition(".")
        if not head or source in self._modules:
            return target
        if rest not in self._modules:
            return self._in_root(path, source, target)
        inside = Path(self._modules[rest].path).parts[: -len(rest.split("."))]
        found = inside[-1:] == (head,) or inside[-2:-1] == (head,)  # with an `__init__.py`
        return f"{rest}{colon}{name}" if found else target

    def _in_root(self, path: str, source: str, target: str) -> str:
        """Return what an import means in a file below a folder from which a file is run."""
        root = path.rpartition("/")[0]
        while root and root not in self._roots:
            root = root.rpartition("/")[0]
        found = self._by_path.get(f"{root}/{source.replace('.', '/')}") if root else None
        return target.replace(source, found, 1) if found else target


def renamed(imports: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Return the names under which something is imported that has another one at home."""
    every = [item for found in imports.values() for item in found.items()]
    return {name for name, target in every if target.rpartition(":")[2] != name}


def _is_run(file: FileFacts) -> bool:
    return any(call.kept.how == "main" for call in file.calls)
