"""The audit for people and as JSON: every container with open keys, and how entries leave it."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterator
from typing import Any

from floodline.scan._findings.audit import Audited, Verdict
from floodline.scan._reporters.text import counted
from floodline.scan._sources.files import Skipped

SCHEMA = 1
Piece = tuple[str, str]  # style, text
STYLES = {Verdict.GROWING: "bold red", Verdict.BOUNDED: "green", Verdict.UNDECIDED: "yellow"}


def pieces(containers: list[Audited], skipped: tuple[Skipped, ...]) -> Iterator[Piece]:
    """Yield the text, container by container, and a count at the end."""
    for entry in containers:
        yield "bold", f"{entry.path}:{entry.line}: "
        yield "", f"{entry.symbol} "
        yield STYLES[entry.verdict], entry.verdict
        yield "dim", f"  {entry.rule} {entry.confidence}\n" if entry.rule else "\n"
        yield "", f"       key  {entry.key}\n"
        for at in entry.grows:
            yield "", f"     grows  {at}\n"
        for out in entry.removals:
            sign = "" if out.runs else "  (does not run on its own)"
            yield "" if out.runs else "yellow", f"{out.how:>10}  {out.at}  {out.why}{sign}\n"
        if not entry.removals:
            yield "bold red", "      none  nothing removes from it\n"
        yield "", "\n"
    for item in skipped:
        yield "yellow", f"{item.path}: skipped, {item.why}\n"
    counts = Counter(entry.verdict for entry in containers)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in STYLES)
    yield "bold", f"{counted(len(containers), 'container')} with open keys: {told}\n"


def document(
    containers: list[Audited], files: int, skipped: tuple[Skipped, ...], version: str
) -> dict[str, Any]:
    """Return what is written."""
    listed = []
    for entry in containers:
        record = entry._asdict()
        record["removals"] = [out._asdict() for out in entry.removals]
        listed.append(record)
    return {
        "schema": SCHEMA,
        "tool": f"floodline {version}",
        "python": platform.python_version(),
        "errors": [],
        "containers": listed,
        "files": files,
        "skipped": [{"path": item.path, "why": item.why} for item in skipped],
    }


def render(
    containers: list[Audited], files: int, skipped: tuple[Skipped, ...], version: str
) -> str:
    """Write the document, indented by one space."""
    listed = document(containers, files, skipped, version)
    return json.dumps(listed, indent=1, ensure_ascii=False)
