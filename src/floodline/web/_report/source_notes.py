"""What the sources add to a report: the scan's finding, and the feeding line itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import NotRequired, TypedDict, cast

from floodline.errors import ConfigError
from floodline.recorder._snapshot import Snapshot, SuspectState
from floodline.scan import Finding, Scan

LONGEST = 160


class FindingNote(TypedDict):
    """What the scan says about a suspect."""

    rule: str
    name: str
    path: str
    line: int
    confidence: str
    message: str


class ExplainedSuspect(SuspectState):
    """A suspect with what the sources say about it, if they were given."""

    finding: NotRequired[FindingNote | None]
    code: NotRequired[str]


class Sources:
    """The sources below a folder, scanned once."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigError(f"--sources {str(folder)!r} is not a folder; give the program's own")
        self.folder = folder.resolve()
        self.findings: Sequence[Finding] = Scan([folder]).report().findings

    def finding(self, suspect: SuspectState) -> Finding | None:
        """Return the finding for a container: by its name, else by the line that feeds it."""
        owner = suspect["owner"]
        for finding in self.findings:
            if finding.symbol == owner:
                return finding
        for finding in self.findings:
            if any(self._is_place(suspect, place) for place in finding.grows):
                return finding
        # a program that is run has a different module name than one that is imported
        tail = owner.split(".")[1:]
        return next((f for f in self.findings if tail and f.symbol.split(".")[1:] == tail), None)

    def _is_place(self, suspect: SuspectState, place: str) -> bool:
        path, _, line = place.rpartition(":")
        return line == str(suspect["line"]) and self._is_file(suspect, Path(path))

    def code(self, suspect: SuspectState) -> str:
        """Return the text of the feeding line, or nothing if it is outside the folder."""
        if not suspect["file"] or not suspect["line"]:
            return ""
        for path in sorted(self.folder.rglob(PurePath(suspect["file"]).name)):
            if self._is_file(suspect, path):
                return _line(path, suspect["line"])
        return ""

    def _is_file(self, suspect: SuspectState, path: Path) -> bool:
        """Return True if both name one file; the program may have run elsewhere (a container)."""
        full = path.resolve()
        told = PurePath(suspect["file"] or "").parts
        below = full.relative_to(self.folder).parts
        return bool(told) and (full.parts[-len(told) :] == told or told[-len(below) :] == below)


def explained(state: Snapshot, sources: Sources | None) -> list[ExplainedSuspect]:
    """Return the suspects, with `finding` and `code` where the sources have something to say."""
    if sources is None:
        return [cast("ExplainedSuspect", {**suspect}) for suspect in state["suspects"]]
    return [
        {**suspect, "finding": _note(sources.finding(suspect)), "code": sources.code(suspect)}
        for suspect in state["suspects"]
    ]


def _note(found: Finding | None) -> FindingNote | None:
    if found is None:
        return None
    return {
        "rule": found.rule,
        "name": found.name,
        "path": found.path,
        "line": found.line,
        "confidence": found.confidence,
        "message": found.message,
    }


def _line(path: Path, number: int) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return ""
    return lines[number - 1].strip()[:LONGEST] if number <= len(lines) else ""
