"""What a project says about itself: is it packaged, and does it install a program?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

FILES = ("pyproject.toml", "setup.cfg", "setup.py")
TABLES = ("scripts", "gui-scripts")


class Project(NamedTuple):
    """The metadata of the project that some paths are in."""

    packaged: bool = False
    runs: bool = False  # it has entry points for commands


def project_of(paths: Sequence[Path]) -> Project:
    """Read the metadata nearest to the first path, `Project()` if there is none."""
    start = paths[0].absolute() if paths else Path.cwd()
    for folder in (start, *start.parents):
        found = [folder / name for name in FILES if (folder / name).is_file()]
        if found:
            said = [_read(file) for file in found]
            return Project(any(one.packaged for one in said), any(one.runs for one in said))
        if (folder / ".git").exists():
            break
    return Project()


def _read(file: Path) -> Project:
    """Read one file; what cannot be read says nothing."""
    try:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".toml":
            return _of_toml(text)
        if file.suffix == ".cfg":
            return _of_cfg(text)
    except (OSError, ValueError):
        return Project()
    return Project("setup(" in text, "console_scripts" in text or "scripts=" in text)


def _of_toml(text: str) -> Project:
    import tomllib  # takes longer to import than most of these files to read

    document: dict[str, Any] = tomllib.loads(text)
    tool = document.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, dict) else None
    tables = [table for table in (document.get("project"), poetry) if isinstance(table, dict)]
    runs = any(table.get(name) for table in tables for name in TABLES)
    return Project(any("name" in table for table in tables), runs)


def _of_cfg(text: str) -> Project:
    from configparser import ConfigParser, Error  # few projects still have such a file

    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except Error as error:
        raise ValueError(str(error)) from error
    points = "options.entry_points"
    runs = any(parser.has_option(points, name) for name in ("console_scripts", "gui_scripts"))
    return Project(parser.has_option("metadata", "name"), runs)
