"""What the sources add to a report: the scan's finding, and the feeding line itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

from floodline.errors import ConfigError
from floodline.scan import Finding, Scan
from floodline.web._words import State, Suspect

LONGEST = 160


class Sources:
    """The sources below a folder, scanned once."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigError(f"--sources {str(folder)!r} is no folder; give the program's own")
        self.folder = folder
        self.findings: Sequence[Finding] = Scan([folder]).report().findings

    def finding(self, suspect: Suspect) -> Finding | None:
        """Return the finding for a container: by its name, else by the line that feeds it."""
        owner = suspect["owner"]
        for finding in self.findings:
            if finding.symbol == owner:
                return finding
        for finding in self.findings:
            if any(self._is_place(suspect, place) for place in finding.grows):
                return finding
        # a program that is run has another module name than one that is imported
        tail = owner.split(".")[1:]
        return next((f for f in self.findings if tail and f.symbol.split(".")[1:] == tail), None)

    def _is_place(self, suspect: Suspect, place: str) -> bool:
        path, _, line = place.rpartition(":")
        return line == str(suspect["line"]) and _same_file(path, suspect["file"])

    def code(self, suspect: Suspect) -> str:
        """Return the text of the feeding line, or nothing if it is not below the folder."""
        if not suspect["file"] or not suspect["line"]:
            return ""
        named = PurePath(suspect["file"]).name
        for path in sorted(self.folder.rglob(named)):
            if _same_file(str(path), suspect["file"]):
                return _line(path, suspect["line"])
        return ""


def explained(state: State, sources: Sources | None) -> list[dict[str, Any]]:
    """Return the suspects, with `finding` and `code` where the sources have something to say."""
    suspects = [dict(suspect) for suspect in state["suspects"]]
    for suspect in suspects if sources else ():
        assert sources is not None
        found = sources.finding(suspect)
        names = ("rule", "name", "path", "line", "confidence", "message")
        suspect["finding"] = {name: getattr(found, name) for name in names} if found else None
        suspect["code"] = sources.code(suspect)
    return suspects


def _same_file(one: str, other: str | None) -> bool:
    """Whether two paths name one file, as far as the shorter one goes."""
    if not other:
        return False
    ends = zip(reversed(PurePath(one).parts), reversed(PurePath(other).parts), strict=False)
    return all(mine == theirs for mine, theirs in ends)


def _line(path: Path, number: int) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return ""
    return lines[number - 1].strip()[:LONGEST] if number <= len(lines) else ""
