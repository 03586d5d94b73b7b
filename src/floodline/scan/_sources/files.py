"""Finds the files to read, names their modules, and says why a file could not be read."""

from __future__ import annotations

import os
import stat
import tokenize
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from floodline.scan._facts.reasons import Ground, Reason

SKIPPED_FOLDERS = {
    "__pycache__", "node_modules", "site-packages", "build", "dist", "venv",
}  # fmt: skip
TESTS = {"tests", "test", "testing"}
NOT_READ = ("test_", "conftest.py", ".")
HEAD = 400  # bytes in which most files have their first two lines
TEST = "_test.py"  # how the name of a test may end instead
# in the root of a project; its folder has another name in every clone, so it names no package
PROJECT = (".git", ".hg", "pyproject.toml", "setup.cfg")


class Source(NamedTuple):
    """One file to read."""

    path: Path
    shown: str
    module: str
    size: int = 0  # in bytes


class Skip(Ground):
    """Why a file is not read."""

    NOT_THERE = "there is no such file or folder"
    NOT_REGULAR = "it is not a regular file"
    SYSTEM = "{}"  # what the operating system says
    TOO_LARGE = "it has {} bytes, more than {}"
    TABLE = "it is a data table: {} commas, more than {}"
    SYNTAX = "syntax error: {}"
    SYNTAX_IN_LINE = "syntax error on line {}: {}"
    TOO_DEEP = "it is nested too deeply to be read"
    ENCODING = "it is not written in {}: {} at byte {}"
    NOT_SOURCE = "{}"  # what Python says


class Skipped(NamedTuple):
    """One file that could not be read, and why."""

    path: str
    reason: Reason

    @property
    def why(self) -> str:
        """Return the reason as text."""
        return str(self.reason)


class How(Ground):
    """How a file was read that the running Python cannot parse."""

    NEWER = "it has newer syntax, and Python {} read it"
    REWRITTEN = "it has newer syntax, which was rewritten to read it"
    PARTLY = "syntax error on line {}: {}; {} left out"


class Otherwise(NamedTuple):
    """One such file, and how it was read."""

    path: str
    reason: Reason

    @property
    def how(self) -> str:
        """Return it as text."""
        return str(self.reason)

    @property
    def partly(self) -> bool:
        """Return True if some of its lines were not read."""
        return self.reason.ground is How.PARTLY


def sources(paths: Sequence[Path], exclude: Sequence[str] = ()) -> Iterator[Source | Skipped]:
    """Yield every Python file below the paths once, in a stable order.

    Folders of tools and environments are not entered, nor are tests and what `exclude` names. A
    file that is given explicitly is read whatever its name.
    """
    seen: set[tuple[int, int]] = set()
    listed: list[Source | Skipped] = []
    for root in paths:
        if root.is_dir():
            listed += _below(root, seen, tuple(exclude))
        else:
            name = _joined(_first(_absolute(root).parent).package, root.stem)
            listed.append(_source(root, shown(root), _text(name or "__init__")))
    return _told_apart(listed)


def _told_apart(listed: list[Source | Skipped]) -> Iterator[Source | Skipped]:
    """Give files names of their own: two services may both have an `app`, and mean their own."""
    homes: dict[str, set[Path]] = defaultdict(set)
    for source in listed:
        if isinstance(source, Source):
            homes[source.module].add(_absolute(source.path))
    for source in listed:
        if isinstance(source, Source) and len(homes[source.module]) > 1:
            shared = Path(os.path.commonpath(homes[source.module]))
            below = _absolute(source.path).relative_to(shared).with_suffix("").parts
            yield source._replace(module=_text(".".join(below).removesuffix(".__init__")))
        else:
            yield source


class _Folder(NamedTuple):
    """A folder, and where the names of its modules start: at a package, or at a project."""

    path: Path
    home: Path
    outer: Path | None = None  # what is above the outermost package

    def entered(self, names: set[str]) -> _Folder:
        """Return the same folder, knowing what is in it."""
        if not names.isdisjoint(PROJECT):
            return self._replace(home=self.path, outer=None)
        if self.outer is None and self.path != self.home and "__init__.py" in names:
            return self._replace(outer=self.path.parent)
        return self

    @property
    def package(self) -> str:
        """Return the name that its modules have in front of their own."""
        parts = self.path.relative_to(self.outer or self.home).parts
        if self.outer is None and parts[:1] == ("src",):
            parts = parts[1:]
        return ".".join(parts)


def _first(root: Path) -> _Folder:
    """Return the root of a scan, with the project and the packages that it is in."""
    above = [root, *root.parents]
    home = next((f for f in above if any((f / mark).exists() for mark in PROJECT)), None)
    if home is None:
        home = next(folder for folder in above if not _is_package(folder, in_project=True))
    inside = [folder for folder in above if home in folder.parents]
    packages = [folder for folder in inside if _is_package(folder, in_project=True)]
    return _Folder(root, home, packages[-1].parent if packages else None)


def _below(
    root: Path, seen: set[tuple[int, int]], exclude: tuple[str, ...]
) -> Iterator[Source | Skipped]:
    first = _first(_absolute(root))
    stack = [(os.fspath(root), first, shown(root), _is_above(first.path, Path.cwd()))]
    while stack:
        here, folder, prefix, above = stack.pop()
        try:
            status = os.stat(here)  # noqa: PTH116 -- making a path of each folder takes longer
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(here) as listing:
                entries = sorted(listing, key=_name)
        except OSError as error:
            yield Skipped(prefix, Skip.SYSTEM(error.strerror or str(error)))
            continue
        below = []
        folder = folder.entered({entry.name for entry in entries})
        package: str | None = None  # asked only if there is a module: most of it is paths
        for entry in entries:
            name = entry.name
            place = _text(name if prefix == "." else f"{prefix}/{name}")
            if exclude and matches(place, exclude):
                continue
            if _is_folder(entry):
                if name not in SKIPPED_FOLDERS and not _has_tests(name):
                    below.append(_inner(here, folder, name, place, above=above))
            elif name.endswith(".py") and not (name.startswith(NOT_READ) or name.endswith(TEST)):
                if package is None:
                    package = folder.package
                module = _text(_joined(package, name[:-3]) or "__init__")
                yield _source(Path(here, name), place, module)
        stack.extend(reversed(below))


def _inner(
    here: str, folder: _Folder, name: str, place: str, *, above: bool
) -> tuple[str, _Folder, str, bool]:
    """Return a folder to enter: what is shown changes where the working folder begins."""
    inner = folder._replace(path=folder.path / name)
    path = os.path.join(here, name)  # noqa: PTH118 -- making a path of each folder takes longer
    if not above:
        return path, inner, place, False
    return path, inner, shown(Path(path)), _is_above(inner.path, Path.cwd())


def _is_above(folder: Path, inner: Path) -> bool:
    return folder in inner.parents


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _has_tests(name: str) -> bool:
    """Return True for a folder of tests, or a hidden one."""
    return name in TESTS or name.startswith(("test_", ".")) or name.endswith("_tests")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _source(path: Path, place: str, module: str) -> Source | Skipped:
    """Return the file, or why there is nothing to read: reading a pipe would wait forever."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return Skipped(place, Skip.NOT_THERE())
    except OSError as error:
        return Skipped(place, Skip.SYSTEM(error.strerror or str(error)))
    if not stat.S_ISREG(status.st_mode):
        return Skipped(place, Skip.NOT_REGULAR())
    return Source(path, place, module, status.st_size)


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 -- resolve() would follow links


def _is_package(folder: Path, *, in_project: bool) -> bool:
    if not folder.name or not (folder / "__init__.py").exists():
        return False
    return not (in_project and any((folder / mark).exists() for mark in PROJECT))


def _joined(package: str, stem: str) -> str:
    parts = [package, stem if stem != "__init__" else ""]
    return ".".join(part for part in parts if part)


def matches(place: str, patterns: Sequence[str]) -> bool:
    """Return True if a path, a folder above it, or its end matches one of the patterns."""
    return any(
        fnmatchcase(place, pattern)
        or fnmatchcase(place, f"{pattern.rstrip('/')}/*")
        or fnmatchcase(place, f"*/{pattern}")
        or fnmatchcase(place, f"*/{pattern.rstrip('/')}/*")
        for pattern in patterns
    )


def shown(path: Path) -> str:
    """Return a path as it is shown: relative to the working folder if possible."""
    try:
        return _printable(_absolute(path).relative_to(Path.cwd()))
    except ValueError:
        return _printable(path)


def _printable(path: Path) -> str:
    """Return a path with undecodable bytes escaped: a report must be writable."""
    return _text(path.as_posix())


def _text(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def module_name(path: Path) -> str:
    """Return the dotted name under which Python would import the file, by its `__init__.py`s."""
    parts = [path.stem] if path.stem != "__init__" else []
    folder = path.parent
    while _is_package(folder, in_project=False):
        parts.insert(0, folder.name)
        folder = folder.parent
    return _text(".".join(parts) or path.parent.name)


def decoded(data: bytes) -> str:
    """Decode source as Python does, by its mark or its coding line; bad bytes raise."""
    head = data[:HEAD]
    if head.count(b"\n") > 1 and b"coding" not in head and not head.startswith(BOM_UTF8):
        with suppress(UnicodeDecodeError):  # most; why another one is no text is told below
            return data.decode()
    encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
    return data.decode(encoding)
