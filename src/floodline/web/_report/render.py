"""The report of a recording: one document, written as HTML, JSON or Markdown."""

from __future__ import annotations

import json
from pathlib import Path

from floodline.errors import ConfigError
from floodline.leaks._vocabulary import Outcome
from floodline.recorder._snapshot import Snapshot
from floodline.web._report.document import report_document
from floodline.web._report.markdown import markdown
from floodline.web._report.page import page
from floodline.web._report.source_notes import Sources, explained

FORMATS = ("html", "json", "markdown")
SUFFIXES = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown"}


def write_report(
    state: Snapshot, path: Path | str, *, format: str | None = None, sources: Path | None = None
) -> Path:
    """Write the report of a state to a file; the format defaults to its suffix, else HTML."""
    target = Path(path)
    text = render_report(state, format or SUFFIXES.get(target.suffix.lower(), "html"), sources)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"the report cannot be written to {target} ({error}); give another file"
        ) from error
    return target


def render_report(state: Snapshot, format: str = "html", sources: Path | None = None) -> str:
    """Return the report as text; `sources` is the folder for `floodline scan` to scan."""
    if format not in FORMATS:
        known = ", ".join(repr(each) for each in FORMATS)
        raise ConfigError(f"format={format!r} is unknown; choose one of {known}")
    suspects = explained(state, Sources(sources) if sources else None)
    if format == "json":
        return json.dumps({**report_document(state), "suspects": suspects}, indent=1) + "\n"
    write = markdown if format == "markdown" else page
    return write(state, [each for each in suspects if each["verdict"] != Outcome.BOUNDED])
